"""The folder of a run: its files, and which run it holds."""

import contextlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from placevalue.common.errors import TrainingError
from placevalue.common.files import copy_whole, known_hash
from placevalue.common.hub import CARD, WEIGHTS, resolve_model, weights_hash
from placevalue.common.ownership import may_rewrite, read_mark
from placevalue.common.records import TrainRecord, is_record
from placevalue.common.validation import find_differences
from placevalue.data import data_checksum
from placevalue.experiments.adapter import LoraSettings
from placevalue.experiments.checksums import find_damage, find_torn, mark_unfinished, model_sums, read_sums
from placevalue.experiments.methods import METHODS, Method
from placevalue.experiments.recipe import Recipe, TrainConfig, with_new_names
from placevalue.experiments.settings import NumberSettings, TrainingConfig
from placevalue.numbers.config import FORMER
from placevalue.tokenizer.prompt import Prompt

SEEN = "checksums"  # the key of the checksums of data and model when the run began
MODEL = "model"  # the key of the model's weights among these checksums
BYSTANDERS = ("keep_checkpoints", "log_every", "tensorboard", "report_to", "workers")
"""Settings of training that do not affect the weights."""
RECORD, CONFIG, CHECKPOINTS, ANSWERS = "train.json", "run.json", "checkpoints", "predictions"
MODEL_FILES = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja", "vocab.*", "merges.txt", "spiece.model", "model*.json",
    "training_args.bin",
)  # fmt: skip
"""What Trainer writes beside the weights of a model; records of earlier versions do not name the files."""
TENSORBOARD = "tensorboard"
PROCESSES = "processes"
ADAPTER = "adapter_model*"  # the weights of one, in place of a whole model's
SCHEMA, RUN = "schema", "placevalue/run/1"
"""The key and value in a run's config that say that its checkpoints have checksums; earlier versions wrote none."""
LOG = "train.log"  # of a run that a sweep started; it may be there before the run
RECIPE = "recipe.yaml"  # in the folder of an experiment, beside its runs


def run_checksums(config: TrainConfig, checksum: Callable[[str], str] = data_checksum) -> dict[str, str]:
    """The checksums of a run's data, and of its model if that is a folder."""
    found = {spec: checksum(spec) for spec in (config.data.train, config.data.dev) if spec is not None}
    weights = weights_hash(resolve_model(config.model))
    return found | ({} if weights is None else {MODEL: weights})


def weight_files(folder: Path) -> list[Path]:
    """The files with the weights of a model."""
    return [file for kind in (*WEIGHTS, ADAPTER) for file in folder.glob(kind)]


def is_run(folder: Path) -> bool:
    """Whether a folder is one of `placevalue train`: it has the config that a run begins with, or its record."""
    return {"method", "seed", SEEN} <= read_mark(folder / CONFIG).keys() or is_record(folder / RECORD, TrainRecord)


def find_model_damage(folder: Path, record: TrainRecord) -> list[str]:
    """What is wrong with the model of a finished run; nothing if its weights were not kept."""
    if not weight_files(folder):
        return []
    return find_torn(folder) if record.files is None else find_damage(folder, record.files)


def take_model(checkpoint: Path, folder: Path) -> dict[str, str]:
    """Copy the model of a checkpoint to the folder of its run; return the checksums of its files."""
    sums = read_sums(checkpoint) or {path.name: known_hash(path) for path in checkpoint.iterdir() if path.is_file()}
    if not weight_files(checkpoint):
        raise TrainingError(
            f"{checkpoint} holds no weights that load without FSDP: set fsdp_state_dict_type to FULL_STATE_DICT in "
            "accelerate's config"
        )
    files = model_sums(sums)
    for name in files:
        copy_whole(checkpoint / name, folder / name)
    return files


def remove_model(folder: Path, record: TrainRecord) -> None:
    """Remove the model of a run, weights first, since without them it counts as removed; what else is there stays."""
    names = MODEL_FILES if record.files is None else record.files
    for path in [*weight_files(folder), *(path for name in names for path in folder.glob(name))]:
        path.unlink(missing_ok=True)
    if may_rewrite(folder / CARD):
        (folder / CARD).unlink(missing_ok=True)
    if (folder / TENSORBOARD).is_dir():
        shutil.rmtree(folder / TENSORBOARD)


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a run; what else is in their folder stays."""
    for path in find_checkpoints(folder):
        if read_sums(path) is not None or (path / "trainer_state.json").is_file():
            remove_checkpoint(path)
    with contextlib.suppress(OSError):  # not empty
        (folder / CHECKPOINTS).rmdir()


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint; if this is interrupted, what is left counts as unfinished."""
    if not path.is_symlink():
        mark_unfinished(path)
        shutil.rmtree(path)


def find_checkpoints(folder: Path) -> list[Path]:
    """The folders of a run's checkpoints, whole or not, in the order of their steps."""
    found = [path for path in (folder / CHECKPOINTS).glob("checkpoint-*") if path.name.split("-")[1].isdecimal()]
    return sorted(found, key=lambda path: int(path.name.split("-")[1]))


def find_changes(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """The differences between two runs, given as config and checksums, that affect their weights.

    A setting that a record does not have yet counts as its default, or as `FORMER` says. The model's checksums are
    compared if both runs have one.
    """
    theirs, ours = _relevant(there), _relevant(here)
    for one, other in ((theirs, ours), (ours, theirs)):
        if MODEL not in one[SEEN]:
            other[SEEN].pop(MODEL, None)
    return find_differences(theirs, ours)


def _relevant(run: Mapping[str, Any]) -> dict[str, Any]:
    run = with_new_names(run)
    method = METHODS.get(run.get("method", ""), Method(""))
    training = asdict(TrainingConfig()) | run.get("training", {})
    weight = None if method.loss is None else "loss_weight" if method.mix == "add" else "ce_weight"
    left_out = {*BYSTANDERS, "ce_weight", "loss_weight"} - {weight}
    numbers = asdict(NumberSettings()) | FORMER | run.get("numbers", {}) if method.digits else {}
    if numbers.get("pattern") == "paper":
        numbers["negatives"] = FORMER["negatives"]  # it reads no sign
    return {key: value for key, value in run.items() if key not in (PROCESSES, SCHEMA)} | {
        "training": {key: value for key, value in training.items() if key not in left_out},
        "numbers": numbers,
        "prompt": asdict(Prompt()) | run.get("prompt", {}),
        "lora": asdict(LoraSettings()) | run.get("lora", {}),
        SEEN: dict(run.get(SEEN, {})),
    }


def changed_answers(
    recipe: Recipe, tested: dict[str, str], data: dict[str, str], settings: dict[str, Any]
) -> list[str]:
    """The differences between predictions and the recipe, in data (by checksum) and generation settings."""
    wanted = {key: value for key, value in asdict(recipe.generation).items() if key in settings}
    there = {"data": data, "generation": {key: settings[key] for key in wanted}}
    return find_differences(there, {"data": tested, "generation": wanted})
