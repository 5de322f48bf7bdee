"""Leave a finished run as it is, or continue one from its newest whole checkpoint.

Nothing is taken on trust: weights and checkpoints are compared with their checksums. What does not fit is named and set
aside, and an older whole checkpoint is taken instead.
"""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError, TrainingError
from placevalue.common.files import read_json, write_json
from placevalue.common.ownership import set_aside
from placevalue.common.records import TrainRecord, read_record
from placevalue.experiments.checksums import find_damage, find_torn, read_sums
from placevalue.experiments.recipe import TrainConfig
from placevalue.experiments.run_folder import (
    CONFIG,
    PROCESSES,
    RECORD,
    RUN,
    SCHEMA,
    SEEN,
    find_changes,
    find_checkpoints,
    find_model_damage,
    take_model,
    weight_files,
)

logger = logging.getLogger(__name__)


def finished_run(config: TrainConfig, checksums: dict[str, str], folder: Path) -> TrainRecord | None:
    """The record of the finished run in a folder, None if there is none or its model is damaged; changes nothing.

    Another run than `config` is refused.
    """
    if not (folder / RECORD).exists():
        return None
    record = read_record(folder / RECORD, TrainRecord)
    _refuse_other(config, checksums, record.config | {SEEN: record.data}, folder)
    if find_model_damage(folder, record):
        return None
    logger.info("%s already holds this run", folder)
    return record


def repaired_run(config: TrainConfig, checksums: dict[str, str], folder: Path, resume: bool) -> TrainRecord | None:
    """The record of the finished run in a folder; its model, if damaged, is replaced by a checkpoint with the same.

    Without such a checkpoint, a damaged model is refused or, with `resume`, set aside with its record: None.
    """
    if finished := finished_run(config, checksums, folder):
        return finished
    if not (folder / RECORD).exists():
        return None
    record = read_record(folder / RECORD, TrainRecord)
    damage = find_model_damage(folder, record)
    told = f"{folder} is damaged: {'; '.join(damage)}"
    if twin := find_twin(folder, record):
        take_model(twin, folder)
        logger.warning("%s. The model of %s, which is the same, was put in its place", told, twin.name)
        return record
    if not resume:
        raise TrainingError(f"{told}. Pass resume=True (--resume) to train it again, or restore it")
    for name in [*(each.partition(" ")[0] for each in damage), RECORD]:
        if (folder / name).exists():
            set_aside(folder / name, "is damaged" if name != RECORD else "is of a model that is damaged")
    return None


def find_twin(folder: Path, record: TrainRecord) -> Path | None:
    """A whole checkpoint of a finished run with the same model."""
    for path in find_checkpoints(folder):
        sums = read_sums(path) or {}
        if record.files and record.files.items() <= sums.items() and not find_damage(path, record.files):
            return path
    return None


def claim_folder(config: TrainConfig, checksums: dict[str, str], folder: Path, resume: bool) -> Path | None:
    """Claim the folder for this run, and return the checkpoint to continue from, if there is one."""
    begun = read_json(folder / CONFIG) if (folder / CONFIG).exists() else {}
    checkpoints = {path: read_sums(path) for path in find_checkpoints(folder)}
    older = SCHEMA not in begun
    if strange := [path for path, sums in checkpoints.items() if sums is None and not older]:
        raise TrainingError(f"{strange[0]} is not a checkpoint of this run: move it away, or choose another folder")
    stopped = [path for path, sums in checkpoints.items() if sums or (sums is None and _state(path))]
    processes = int(os.environ.get("WORLD_SIZE", 1))
    before = begun.get(PROCESSES, max(map(_count_processes, stopped), default=processes))
    if stopped and begun:
        _refuse_other(config, checksums, begun, folder)
    if stopped and before != processes:
        raise TrainingError(
            f"{folder} holds a run of {before} process(es), and this is one of {processes}, with other batches: "
            "continue with as many processes, or choose another folder"
        )
    if stopped and not resume:
        raise TrainingError(
            f"{folder} holds a run that stopped at {stopped[-1].name}: pass resume=True (--resume) to continue "
            "it, or choose another folder"
        )
    mark = {} if older and stopped else {SCHEMA: RUN}
    write_json(folder / CONFIG, mark | config.to_dict() | {SEEN: checksums, PROCESSES: processes})
    for path, sums in checkpoints.items():
        if sums == {}:
            logger.warning("%s is unfinished: removing it", path)
            shutil.rmtree(path)
    return _newest_whole([path for path, sums in checkpoints.items() if sums != {}], processes)


def _newest_whole(checkpoints: list[Path], processes: int) -> Path | None:
    """The newest checkpoint without faults; newer ones are set aside."""
    for path in reversed(checkpoints):
        faults = _find_faults(path, processes)
        if not faults:
            return path
        set_aside(path, f"cannot be continued from ({'; '.join(faults)})")
    if checkpoints:
        logger.warning("no checkpoint is left to continue from: the run starts from the beginning")
    return None


def _find_faults(checkpoint: Path, processes: int) -> list[str]:
    """Why a run cannot continue from a checkpoint."""
    if faults := _find_damage(checkpoint):
        return faults
    state = _state(checkpoint)
    if state is None:
        return ["trainer_state.json is missing or damaged"]
    if (count := _count_processes(checkpoint)) != processes:
        return [f"it has the random states of {count} of {processes} process(es)"]
    best = checkpoint.with_name(f"checkpoint-{state.get('best_global_step')}")
    if state.get("best_global_step") and best != checkpoint and (not best.is_dir() or _find_damage(best)):
        return [f"{best.name}, the best on dev, is missing or damaged"]
    steps = state["global_step"]
    if steps >= state["max_steps"] and not any("loss" in row and row["step"] == steps for row in state["log_history"]):
        return ["its last loss is unknown"]  # an earlier version did not log it, so it may be NaN
    return []


def _find_damage(checkpoint: Path) -> list[str]:
    """What is wrong with the files of a checkpoint; without checksums, what is missing or cut off."""
    sums = read_sums(checkpoint)
    if sums is not None:
        return find_damage(checkpoint, sums) if sums else ["it is unfinished"]
    needed = {"optimizer": checkpoint.glob("optimizer*"), "scheduler": checkpoint.glob("scheduler*")}
    missing = [name for name, found in needed.items() if not any(found)]
    missing += [] if weight_files(checkpoint) else ["weights"]
    return [f"its {name} is missing" for name in missing] + find_torn(checkpoint)


def _state(checkpoint: Path) -> dict[str, Any] | None:
    """The trainer's state in a checkpoint; None if there is none, or only a part of it."""
    try:
        found: dict[str, Any] = read_json(checkpoint / "trainer_state.json")
    except (OSError, DataError):
        return None
    return found if isinstance(found, dict) and "global_step" in found else None


def _count_processes(checkpoint: Path) -> int:
    """How many processes wrote a checkpoint: each writes its random state."""
    return len(list(checkpoint.glob("rng_state*.pth")))


def _refuse_other(config: TrainConfig, checksums: dict[str, str], found: dict[str, Any], folder: Path) -> None:
    if changed := find_changes(found, config.to_dict() | {SEEN: checksums}):
        raise TrainingError(
            f"{folder} holds another run: {'; '.join(changed)}. Choose another folder, or remove it yourself"
        )
