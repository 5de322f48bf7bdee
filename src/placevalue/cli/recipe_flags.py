"""Flags of the verbs that take a recipe."""

import argparse
import shutil
import textwrap

from placevalue.cli.arguments import Whole, a_path
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import Recipe, field_help, field_values


def define_recipe(verb: argparse.ArgumentParser) -> None:
    """Add the recipe, its overrides, and the list of its keys to the help."""
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    values = {**dict(field_values(Recipe)), "methods": f"a list of {', '.join(METHODS)}; required"}
    keys = (f"  {key}\n{_indent(f'{about} ({values[key]})')}" for key, about in field_help(Recipe))
    verb.epilog = "\n".join(["keys of a recipe, which KEY=VALUE overrides can set:", *keys])
    verb.add_argument("recipe", type=a_path, help="a YAML file, see recipes/")
    verb.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="such as training.learning_rate=1e-5")
    verb.add_argument("--max-steps", type=Whole(1), metavar="N", help="the same as training.max_steps=N")


def recipe_overrides(options: argparse.Namespace) -> list[str]:
    """The overrides of a command line."""
    return options.overrides + ([f"training.max_steps={options.max_steps}"] if options.max_steps else [])


def _indent(text: str) -> str:
    width = max(shutil.get_terminal_size().columns - 2, 30)
    return textwrap.fill(text, width, initial_indent="      ", subsequent_indent="      ", break_on_hyphens=False)
