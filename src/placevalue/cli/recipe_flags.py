"""Flags of the verbs that take a recipe."""

import argparse
from pathlib import Path

from placevalue.experiments.recipe import Recipe, field_help


def define_recipe(verb: argparse.ArgumentParser) -> None:
    """Add the recipe, its overrides, and the list of its keys to the help."""
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    keys = "\n".join(f"  {key:<34}{sentence}" for key, sentence in field_help(Recipe))
    verb.epilog = f"keys of a recipe, which KEY=VALUE overrides can set:\n{keys}"
    verb.add_argument("recipe", type=Path, help="a YAML file, see recipes/")
    verb.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="such as training.learning_rate=1e-5")
    verb.add_argument("--max-steps", type=int, metavar="N", help="the same as training.max_steps=N")


def recipe_overrides(options: argparse.Namespace) -> list[str]:
    """The overrides of a command line."""
    return options.overrides + ([f"training.max_steps={options.max_steps}"] if options.max_steps else [])
