"""Flags of the verbs that take a recipe."""

import argparse
import shutil
import textwrap

from placevalue.cli.arguments import Whole, a_path
from placevalue.common.errors import ConfigError
from placevalue.experiments.cluster import Cluster
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


def define_cluster(verb: argparse.ArgumentParser) -> None:
    """Add the flags of a Ray cluster, on which the runs are done."""
    where = "a Ray cluster to do the runs on: HOST:PORT, auto, or local"
    verb.add_argument("--cluster", metavar="ADDRESS", help=where)
    gpus = "with --cluster, GPUs for each run, such as 0.25 (default: 1 if the cluster has any)"
    verb.add_argument("--gpus-per-run", type=float, metavar="N", help=gpus)
    cores = f"with --cluster, CPU cores for each run (default: {Cluster.cpus:g})"
    verb.add_argument("--cpus-per-run", type=float, metavar="N", help=cores)


def read_cluster(options: argparse.Namespace) -> Cluster | None:
    """The cluster of a command line, if it names one."""
    given = {"gpus": options.gpus_per_run, "cpus": options.cpus_per_run}
    given = {name: value for name, value in given.items() if value is not None}
    if options.cluster is None:
        if given:
            raise ConfigError(f"--{next(iter(given))}-per-run has no effect without --cluster ADDRESS")
        return None
    return Cluster(options.cluster, **given)


def recipe_overrides(options: argparse.Namespace) -> list[str]:
    """The overrides of a command line."""
    return options.overrides + ([f"training.max_steps={options.max_steps}"] if options.max_steps else [])


def _indent(text: str) -> str:
    width = max(shutil.get_terminal_size().columns - 2, 30)
    return textwrap.fill(text, width, initial_indent="      ", subsequent_indent="      ", break_on_hyphens=False)
