"""Find what would stop an experiment before any training starts, and report all of it together."""

import os
from importlib.util import find_spec
from pathlib import Path

from placevalue.common.errors import PlacevalueError
from placevalue.common.hub import load_config, load_tokenizer, refuse_sealed, resolve_model
from placevalue.common.records import TRAINED_ON
from placevalue.data import load_data
from placevalue.data.corpora import expand_data, problem_sources
from placevalue.data.leakage import check_leakage
from placevalue.experiments.adapter import missing_peft
from placevalue.experiments.callbacks import missing_trackers
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import Recipe
from placevalue.experiments.run_folder import weight_files
from placevalue.experiments.settings import unknown_names
from placevalue.tokenizer.tokenizer import number_tokenizer

NEEDED = ("accelerate", "rapidfuzz")
"""Packages that every experiment imports."""


def find_obstacles(recipe: Recipe, folder: Path) -> list[str]:
    """Find missing packages, data or weights, an unfit tokenizer, leakage, a read-only disk."""
    faults = [f"{name} is missing: pip install 'placevalue[all]'" for name in NEEDED if not find_spec(name)]
    faults += unknown_names(recipe.training) + missing_peft(recipe.lora) + missing_trackers(recipe.training)
    if not recipe.data.test:
        faults.append("data.test names no problems: give at least one set to score on, such as mawps:test")
    tests = expand_data(recipe.data.test) if recipe.data.test else []
    sources: dict[str, list[str]] = {}
    for spec in dict.fromkeys([recipe.data.train, *([recipe.data.dev] if recipe.data.dev else []), *tests]):
        try:
            load_data(spec)
            sources[spec] = list(problem_sources(spec))
        except (PlacevalueError, OSError) as error:
            faults.append(str(error))
    trained = sources.get(recipe.data.train, [])
    faults += _model_faults(recipe, trained, [source for spec in tests for source in sources.get(spec, [])])
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK):
        faults.append(f"nothing can be written in {place}: choose another folder")
    return faults


def _model_faults(recipe: Recipe, trained: list[str], tested: list[str]) -> list[str]:
    """A model that cannot be loaded, a tokenizer that refuses a method, test problems that the model was trained on."""
    try:
        config, base = load_config(recipe.model), load_tokenizer(recipe.model)
        refuse_sealed(recipe.model, config)
    except PlacevalueError as error:
        return [str(error)]
    faults = []
    source = Path(resolve_model(recipe.model))
    if source.is_dir() and not weight_files(source):
        faults.append(f"the folder {recipe.model!r} has no weights: expected model.safetensors beside its config.json")
    methods = [METHODS[name] for name in recipe.methods]
    numbers = recipe.numbers
    for markers in (True, False):
        with_digits = [each for each in methods if each.digits and each.markers == markers]
        for token, position, rewrite in sorted(
            {(each.token or "", each.position, each.rewrite or "") for each in with_digits}
        ):
            how = token or None, position, numbers.pattern, numbers.ignore
            try:
                number_tokenizer(base, *how, rewrite=rewrite or None, markers=markers)
            except PlacevalueError as error:
                without = "" if markers else " and no markers"
                faults.append(f"{recipe.model!r} with numbers as digits{without}: {error}")
                break
    try:
        check_leakage([*getattr(config, TRAINED_ON, []), *trained], tested)
    except PlacevalueError as error:
        faults.append(str(error))
    return faults
