"""The folder of a run: what lies where in it, whose it is, and from which checkpoint a stopped run goes on."""

import logging
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from placevalue.common.errors import DataError, TrainingError
from placevalue.common.files import read_json, write_json
from placevalue.common.hub import resolve_model, weights_hash
from placevalue.common.records import TrainRecord, read_record
from placevalue.common.validation import find_differences
from placevalue.data import data_checksum
from placevalue.experiments.methods import METHODS, Method
from placevalue.experiments.recipe import NumberSettings, Recipe, TrainConfig, TrainingConfig

logger = logging.getLogger(__name__)
SEEN = "checksums"  # the key of what data and model were when the run began
MODEL = "model"  # the key, among these, of the model's weights
BYSTANDERS = ("keep_checkpoints", "log_every", "tensorboard", "workers")
"""Settings of training that no weight depends on."""
_BEFORE = {"markers": "mean"}  # what was done before there was a setting for it, where that is not the default now
RECORD, CONFIG, CHECKPOINTS, ANSWERS = "train.json", "run.json", "checkpoints", "predictions"
PROCESSES = "processes"
RECIPE = "recipe.yaml"  # beside the folders of the runs that it asks for
TRAINED_ON = "placevalue_trained_on"
"""The key of a model's own config that says which corpora its weights have seen."""


def run_checksums(config: TrainConfig, checksum: Callable[[str], str] = data_checksum) -> dict[str, str]:
    """What a run is made from: the checksums of its data, and of its model where that is in a folder."""
    found = {spec: checksum(spec) for spec in (config.data.train, config.data.dev) if spec is not None}
    weights = weights_hash(resolve_model(config.model))
    return found | ({} if weights is None else {MODEL: weights})


def find_changes(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """What differs between two runs, as config and checksums, as far as their weights depend on it.

    A setting that is younger than a record had its default then, or what `_BEFORE` says; a model's checksum counts
    where both have one.
    """
    theirs, ours = _telling(there), _telling(here)
    if not all(MODEL in each[SEEN] for each in (theirs, ours)):
        for each in (theirs, ours):
            each[SEEN].pop(MODEL, None)
    return find_differences(theirs, ours)


def _telling(run: Mapping[str, Any]) -> dict[str, Any]:
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
    """What differs between answers and the recipe: data by name and checksum, settings of generation."""
    wanted = {key: value for key, value in asdict(recipe.generation).items() if key in settings}
    there = {"data": data, "generation": {key: settings[key] for key in wanted}}
    return find_differences(there, {"data": tested, "generation": wanted})


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
            f"{folder} holds a run of {before} process(es), and this is one of {processes}, whose batches would be "
            "others: go on with as many, or choose another folder"
        )
    if states and not resume:
        raise TrainingError(
            f"{folder} holds a run that stopped at {list(states)[-1].name}: pass resume=True (--resume) to go on, or "
            "choose another folder"
        )
    if int(os.environ.get("RANK", 0)) == 0:
        for path in set(checkpoints) - set(whole):
            logger.warning("%s was not written whole and is removed", path)
            shutil.rmtree(path, ignore_errors=True)
        write_json(folder / CONFIG, config.to_dict() | {SEEN: checksums, PROCESSES: processes})
    # Taken up at its very end, Trainer would take one step too many: rather do the last steps again.
    unfinished = [path for path in whole if states[path]["global_step"] < states[path]["max_steps"]]
    if states and not unfinished:
        logger.warning("%s has no checkpoint left to go on from: the run starts from the beginning", folder)
    return unfinished[-1] if unfinished else None


def _state(checkpoint: Path) -> dict[str, Any] | None:
    """How far a checkpoint is; none where it was not written to its end: Trainer writes its state last."""
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
