"""train: one method of a recipe, with one seed."""

import argparse

from placevalue.cli.arguments import SEED, a_path
from placevalue.cli.console import make_console
from placevalue.cli.recipe_flags import define_recipe, recipe_overrides
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import default_folder, read_recipe, to_yaml


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `train`."""
    define_recipe(verb)
    verb.add_argument("--method", choices=list(METHODS), help="(default: the recipe's first)")
    verb.add_argument("--seed", type=SEED, help="(default: the recipe's first)")
    verb.add_argument("--out", type=a_path, help="the folder of the run (default: runs/RECIPE/METHOD-SEED)")
    verb.add_argument("--resume", action="store_true", help="continue an interrupted run from its last checkpoint")
    verb.add_argument("--dry-run", action="store_true", help="print the resolved config and stop")


def run(options: argparse.Namespace) -> None:
    """Train one method of a recipe; `accelerate launch -m placevalue.cli train ...` uses many devices."""
    config = read_recipe(options.recipe, recipe_overrides(options)).run(options.method, options.seed)
    folder = options.out or default_folder(options.recipe, f"{config.method}-{config.seed}")
    console = make_console()
    if options.dry_run:
        console.print(to_yaml(config.to_dict()) + f"# goes to {folder}")
        return
    from placevalue.experiments.train import train

    record = train(config, folder, resume=options.resume)
    chosen = "" if record.selected is None else f", {record.selected['checkpoint']} kept by {record.selected['by']}"
    console.print(f"{folder}: {record.steps} steps in {record.durations['train']:.0f} s{chosen}")
