"""What would keep an experiment from running to its end, found before any training starts and reported all at once."""

import os
import shutil
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from placevalue.common.errors import PlacevalueError
from placevalue.common.hub import WEIGHTS, count_parameters, load_config, load_tokenizer, resolve_model
from placevalue.common.validation import find_faults
from placevalue.data import data_sources, load_data
from placevalue.data.corpora import expand_data
from placevalue.data.leakage import check_leakage
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import NumberSettings, Recipe, TrainingConfig
from placevalue.experiments.run_folder import TRAINED_ON
from placevalue.tokenizer.tokenizer import number_tokenizer

NEEDED = (("accelerate", "train"), ("rapidfuzz", "evaluate"))
_TRAINED_BYTES = 4  # weights are trained in float32
CHECKPOINT_COPIES = 3  # a checkpoint holds the weights and AdamW's two moments


def find_obstacles(values: Mapping[str, Any], folder: Path, kept: int = 1, jobs: int = 1) -> list[str]:
    """What is wrong with a recipe's plain values, with what they name, and with the place where results go.

    Args:
        values: The recipe as its YAML file has it; a wrong key does not hide a missing file.
        folder: Where the experiment goes.
        kept: How many copies of the model will lie there in the end, beyond those that do already.
        jobs: How many are trained at once.
    """
    faults = find_faults(Recipe, values)
    faults += [f"{name} is missing: pip install 'placevalue[{extra}]'" for name, extra in NEEDED if not find_spec(name)]
    model, data = values.get("model"), values.get("data")
    data = data if isinstance(data, Mapping) else {}
    tests = data.get("test", ())
    tests = [each for each in tests if isinstance(each, str)] if isinstance(tests, list | tuple) else []
    parts = [each for each in (data.get("train"), data.get("dev")) if isinstance(each, str)]
    if not tests and not any(fault.startswith("data.test") for fault in faults):
        faults.append("data.test names no problems: give at least one set to score on, such as mawps:test")
    faults += _data_faults(parts, tests)
    if isinstance(model, str):
        faults += _model_faults(model, values, tests)
        faults += _disk_faults(model, folder, kept, jobs, values)
    return faults


def _data_faults(parts: list[str], tests: list[str]) -> list[str]:
    faults = []
    for spec in dict.fromkeys([*parts, *(expand_data(tests) if tests else [])]):
        try:
            load_data(spec)
        except (PlacevalueError, OSError) as error:
            faults.append(str(error))
    return faults


def _model_faults(model: str, values: Mapping[str, Any], tests: list[str]) -> list[str]:
    """A model or tokenizer that cannot be loaded, a method it does not bear, tests that it has seen."""
    try:
        config, base = load_config(model), load_tokenizer(model)
        source = Path(resolve_model(model))
    except PlacevalueError as error:
        return [str(error)]
    faults = []
    if source.is_dir() and not any(file for kind in WEIGHTS for file in source.glob(kind)):
        faults.append(f"the folder {model!r} has no weights: expected model.safetensors beside its config.json")
    numbers = values.get("numbers")
    settings = numbers if isinstance(numbers, Mapping) and not find_faults(NumberSettings, numbers) else {}
    given = {key: settings[key] for key in ("pattern", "ignore") if key in settings}
    methods = values.get("methods")
    known = [METHODS[name] for name in methods if name in METHODS] if isinstance(methods, list | tuple) else []
    for token, position in sorted({(each.token or "", each.position) for each in known if each.digits}):
        try:
            number_tokenizer(base, token or None, position, **given)
        except PlacevalueError as error:
            faults.append(f"{model!r} with numbers as digits: {error}")
            break
    data = values.get("data")
    train = data.get("train") if isinstance(data, Mapping) else None
    seen = [*getattr(config, TRAINED_ON, []), *_sources([train] if isinstance(train, str) else [])]
    try:
        check_leakage(seen, _sources(expand_data(tests) if tests else []))
    except PlacevalueError as error:
        faults.append(str(error))
    return faults


def _sources(specs: Iterable[str]) -> list[str]:
    """The corpora of data that can be had; what cannot is reported elsewhere."""
    found: list[str] = []
    for spec in specs:
        try:
            found += data_sources(spec)
        except (PlacevalueError, OSError):
            continue
    return found


def _disk_faults(model: str, folder: Path, kept: int, jobs: int, values: Mapping[str, Any]) -> list[str]:
    """Too little space for the weights of all runs and for the checkpoints of those that are trained at once."""
    faults = []
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK):
        faults.append(f"nothing can be written in {place}: choose another folder")
    weights = weight_bytes(model)
    if weights is None or not jobs:
        return faults
    training = values.get("training")
    checkpoints = training.get("keep_checkpoints") if isinstance(training, Mapping) else None
    checkpoints = checkpoints if isinstance(checkpoints, int) else TrainingConfig.keep_checkpoints
    needed = weights * (kept + jobs * (1 + CHECKPOINT_COPIES * (checkpoints + 1)))
    free = shutil.disk_usage(place).free
    if free < needed:
        faults.append(
            f"{place} has {free / 1e9:.1f} GB free, and up to {needed / 1e9:.1f} GB are needed for {kept} copies of "
            f"the model and the checkpoints of {jobs} runs at once: make room, choose another folder, or keep less "
            "(--keep records)"
        )
    return faults


def weight_bytes(model: str) -> int | None:
    """How much a trained copy of a model takes; none where not even its config can be had."""
    from safetensors import safe_open

    try:
        source = Path(resolve_model(model))
        config = None if source.is_dir() else load_config(model)
    except PlacevalueError:
        return None
    if config is not None:
        try:
            return _TRAINED_BYTES * count_parameters(config)
        except Exception:
            return None  # an architecture that cannot be built here; loading it says why
    total = 0
    for file in source.glob("*.safetensors"):
        with safe_open(file, "numpy") as opened:
            for name in opened.keys():  # noqa: SIM118
                size = _TRAINED_BYTES
                for length in opened.get_slice(name).get_shape():
                    size *= length
                total += size
    return total or None
