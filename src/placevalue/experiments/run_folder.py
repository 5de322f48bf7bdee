"""The folder of a run: its files, which run it holds, and the checkpoint an interrupted run continues from."""

import logging
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError, TrainingError
from placevalue.common.files import read_json, write_json
from placevalue.common.hub import WEIGHTS, resolve_model, weights_hash
from placevalue.common.records import TrainRecord, read_record
from placevalue.common.validation import find_differences
from placevalue.data import data_checksum
from placevalue.experiments.methods import METHODS, Method
from placevalue.experiments.recipe import NumberSettings, Recipe, TrainConfig, TrainingConfig

logger = logging.getLogger(__name__)
SEEN = "checksums"  # the key of the checksums of data and model when the run began
MODEL = "model"  # the key of the model's weights among these checksums
BYSTANDERS = ("keep_checkpoints", "log_every", "tensorboard", "workers")
"""Settings of training that do not affect the weights."""
_BEFORE = {"markers": "mean"}  # the former behaviour where it is not the default of a later setting
RECORD, CONFIG, CHECKPOINTS, ANSWERS = "train.json", "run.json", "checkpoints", "predictions"
PROCESSES = "processes"
RECIPE = "recipe.yaml"  # in the folder of an experiment, beside its runs
TRAINED_ON = "placevalue_trained_on"
"""The key in a model's config that lists the corpora its weights were trained on."""


def run_checksums(config: TrainConfig, checksum: Callable[[str], str] = data_checksum) -> dict[str, str]:
    """The checksums of a run's data, and of its model if that is a folder."""
    found = {spec: checksum(spec) for spec in (config.data.train, config.data.dev) if spec is not None}
    weights = weights_hash(resolve_model(config.model))
    return found | ({} if weights is None else {MODEL: weights})


def weight_files(folder: Path) -> list[Path]:
    """The files with the weights of a model."""
    return [file for kind in WEIGHTS for file in folder.glob(kind)]


def find_changes(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """The differences between two runs, given as config and checksums, that affect their weights.

    A setting that a record does not have yet counts as its default, or as `_BEFORE` says. The model's checksums are
    compared if both runs have one.
    """
    theirs, ours = _relevant(there), _relevant(here)
    for one, other in ((theirs, ours), (ours, theirs)):
        if MODEL not in one[SEEN]:
            other[SEEN].pop(MODEL, None)
    return find_differences(theirs, ours)


def _relevant(run: Mapping[str, Any]) -> dict[str, Any]:
    method = METHODS.get(run.get("method", ""), Method(""))
    training = asdict(TrainingConfig()) | run.get("training", {})
    left_out = {*BYSTANDERS, *(() if method.loss else ("ce_weight",))}
    return {key: value for key, value in run.items() if key != PROCESSES} | {
        "training": {key: value for key, value in training.items() if key not in left_out},
        "numbers": asdict(NumberSettings()) | _BEFORE | run.get("numbers", {}) if method.digits else {},
        SEEN: dict(run.get(SEEN, {})),
    }


def changed_answers(
    recipe: Recipe, tested: dict[str, str], data: dict[str, str], settings: dict[str, Any]
) -> list[str]:
    """The differences between predictions and the recipe, in data (by checksum) and generation settings."""
    wanted = {key: value for key, value in asdict(recipe.generation).items() if key in settings}
    there = {"data": data, "generation": {key: settings[key] for key in wanted}}
    return find_differences(there, {"data": tested, "generation": wanted})


def finished_run(config: TrainConfig, checksums: dict[str, str], folder: Path) -> TrainRecord:
    """The record of the finished run in a folder; another run than `config` is refused."""
    record = read_record(folder / RECORD, TrainRecord)
    _refuse_other(config, checksums, record.config | {SEEN: record.data}, folder)
    logger.info("%s already holds this run", folder)
    return record


def claim_folder(config: TrainConfig, checksums: dict[str, str], folder: Path, resume: bool) -> Path | None:
    """Claim the folder for this run, and return the checkpoint to continue from, if there is one."""
    found = [path for path in (folder / CHECKPOINTS).glob("checkpoint-*") if path.name.split("-")[1].isdecimal()]
    checkpoints = sorted(found, key=lambda path: int(path.name.split("-")[1]))
    begun = read_json(folder / CONFIG) if (folder / CONFIG).exists() else {}
    states = {path: state for path in checkpoints if (state := _state(path)) is not None}
    counts = {path: len(list(path.glob("rng_state*.pth"))) for path in states}  # each process writes one
    processes = int(os.environ.get("WORLD_SIZE", 1))
    before = begun.get(PROCESSES, max(counts.values(), default=processes))
    whole = [path for path in states if counts[path] == before]
    if states and begun:
        _refuse_other(config, checksums, begun, folder)
    if states and before != processes:
        raise TrainingError(
            f"{folder} holds a run of {before} process(es), and this is one of {processes}, with other batches: "
            "continue with as many processes, or choose another folder"
        )
    if states and not resume:
        raise TrainingError(
            f"{folder} holds a run that stopped at {list(states)[-1].name}: pass resume=True (--resume) to continue "
            "it, or choose another folder"
        )
    if int(os.environ.get("RANK", 0)) == 0:
        for path in set(checkpoints) - set(whole):
            logger.warning("%s is incomplete: removing it", path)
            shutil.rmtree(path, ignore_errors=True)
        write_json(folder / CONFIG, config.to_dict() | {SEEN: checksums, PROCESSES: processes})
    # Resumed from the very last step, Trainer would do one step too many, so repeat the last steps instead.
    unfinished = [path for path in whole if states[path]["global_step"] < states[path]["max_steps"]]
    if states and not unfinished:
        logger.warning("%s has no checkpoint to continue from: the run starts from the beginning", folder)
    return unfinished[-1] if unfinished else None


def _state(checkpoint: Path) -> dict[str, Any] | None:
    """The trainer's state in a checkpoint; None if the checkpoint is incomplete, since Trainer writes it last."""
    try:
        found: dict[str, Any] = read_json(checkpoint / "trainer_state.json")
    except (OSError, DataError):
        return None
    return found if "global_step" in found else None


def _refuse_other(config: TrainConfig, checksums: dict[str, str], found: dict[str, Any], folder: Path) -> None:
    if changed := find_changes(found, config.to_dict() | {SEEN: checksums}):
        raise TrainingError(
            f"{folder} holds another run: {'; '.join(changed)}. Choose another folder, or remove it yourself"
        )
