"""The folder of a run: what lies where in it, whose it is, and from which checkpoint a stopped run goes on."""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

from placevalue.errors import DataError, TrainingError
from placevalue.recipes import TrainConfig
from placevalue.records import TrainRecord, read_record
from placevalue.schemas import find_differences
from placevalue.storage import read_json, write_json

logger = logging.getLogger(__name__)
SEEN = "checksums"  # the key of what the data was when the run began
RECORD, CONFIG, CHECKPOINTS, ANSWERS = "train.json", "run.json", "checkpoints", "predictions"
RECIPE = "recipe.yaml"  # beside the folders of the runs that it asks for
TRAINED_ON = "placevalue_trained_on"
"""The key of a model's own config that says which corpora its weights have seen."""


def finished_run(config: TrainConfig, checksums: dict[str, str], folder: Path) -> TrainRecord:
    """The record of a run that a folder holds; another run than `config` says is refused."""
    record = read_record(folder / RECORD, TrainRecord)
    _refuse_other(config, checksums, record.config | {SEEN: record.data}, folder)
    logger.info("%s holds this run already", folder)
    return record


def claim_folder(config: TrainConfig, checksums: dict[str, str], folder: Path, resume: bool) -> Path | None:
    """Claim the folder for this run; the checkpoint to go on from, if there is one."""
    found = [path for path in (folder / CHECKPOINTS).glob("checkpoint-*") if path.name.split("-")[1].isdecimal()]
    checkpoints = sorted(found, key=lambda path: int(path.name.split("-")[1]))
    states = {path: state for path in checkpoints if (state := _state(path)) is not None}
    whole = list(states)
    if whole and (folder / CONFIG).exists():
        _refuse_other(config, checksums, read_json(folder / CONFIG), folder)
    if whole and not resume:
        raise TrainingError(
            f"{folder} holds a run that stopped at {whole[-1].name}: pass resume=True (--resume) to go on, or choose "
            "another folder"
        )
    if int(os.environ.get("RANK", 0)) == 0:
        for path in set(checkpoints) - set(whole):
            logger.warning("%s was not written whole and is removed", path)
            shutil.rmtree(path, ignore_errors=True)
        write_json(folder / CONFIG, config.to_dict() | {SEEN: checksums})
    # Taken up at its very end, Trainer would take one step too many: rather do the last steps again.
    unfinished = [path for path, state in states.items() if state["global_step"] < state["max_steps"]]
    if whole and not unfinished:
        logger.warning("%s has only its last checkpoint left: the run starts from the beginning", folder)
    return unfinished[-1] if unfinished else None


def _state(checkpoint: Path) -> dict[str, Any] | None:
    """How far a checkpoint is; none where it was not written to its end: Trainer writes its state last."""
    try:
        found: dict[str, Any] = read_json(checkpoint / "trainer_state.json")
    except (OSError, DataError):
        return None
    return found if "global_step" in found else None


def _refuse_other(config: TrainConfig, checksums: dict[str, str], found: dict[str, Any], folder: Path) -> None:
    if changed := find_differences(found, config.to_dict() | {SEEN: checksums}):
        raise TrainingError(
            f"{folder} holds another run: {'; '.join(changed)}. Choose another folder, or remove it yourself"
        )
