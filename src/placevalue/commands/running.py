"""train and evaluate: a recipe to a checkpoint, predictions to scores."""

import argparse
from pathlib import Path

from placevalue.commands.consoles import make_console
from placevalue.errors import PlacevalueError
from placevalue.evaluation import compare, evaluate, load_predictions
from placevalue.intervals import DRAWS
from placevalue.methods import METHODS
from placevalue.metrics import METRICS
from placevalue.recipes import Recipe, field_help, read_recipe, to_yaml
from placevalue.scoreboards import SHOWN, comparison_table, score_table


def define_evaluate(verb: argparse.ArgumentParser) -> None:
    """The flags of `evaluate`."""
    verb.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a folder of predictions, or a JSONL file")
    verb.add_argument("--compare", action="store_true", help="test two runs on the same problems against each other")
    verb.add_argument("--allow-leakage", action="store_true", help="score models on problems that they have seen")
    verb.add_argument("--draws", type=int, default=DRAWS, help="resamples behind the intervals")
    verb.add_argument("--seed", type=int, default=0, help="makes the resamples")
    verb.add_argument(
        "--max-answer", type=int, metavar="TOKENS", help="target tokens, where the predictions do not say"
    )
    verb.add_argument("--metrics", nargs="+", choices=list(METRICS), default=SHOWN, metavar="NAME", help="what to show")
    verb.add_argument("--out", type=Path, metavar="FILE", help="where the record goes; score.json in the folder if not")


def run_evaluate(options: argparse.Namespace) -> None:
    """Score predictions by set and operation, with intervals; with --compare, test two runs against each other."""
    if options.compare and len(options.paths) != 2:
        raise PlacevalueError(f"--compare takes two paths, and {len(options.paths)} were given")
    if options.out is not None and len(options.paths) > 1:
        raise PlacevalueError("--out takes one path: leave it out and each folder gets its own score.json")
    console = make_console()
    settings = (options.out, options.draws, options.seed, options.allow_leakage, options.max_answer)
    records = [evaluate(path, *settings) for path in options.paths]
    for path, record in zip(options.paths, records, strict=True):
        console.print(score_table(record, str(path), options.metrics))
        for note in record.notes:
            console.print(f"note: {note}", markup=False)
    if options.compare:
        first, second = map(load_predictions, options.paths)
        console.print(comparison_table(compare(first, second, options.draws, options.seed), *map(str, options.paths)))


def define_train(verb: argparse.ArgumentParser) -> None:
    """The flags of `train`."""
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    keys = "\n".join(f"  {key:<34}{sentence}" for key, sentence in field_help(Recipe))
    verb.epilog = f"keys of a recipe, each of which an override can set:\n{keys}"
    verb.add_argument("recipe", type=Path, help="a YAML file, see recipes/")
    verb.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="such as training.learning_rate=1e-5")
    verb.add_argument("--method", choices=list(METHODS), help="the first of the recipe where none is given")
    verb.add_argument("--seed", type=int, help="the first of the recipe where none is given")
    verb.add_argument("--max-steps", type=int, metavar="N", help="the same as training.max_steps=N")
    verb.add_argument("--out", type=Path, help="where the run goes; runs/RECIPE/METHOD-SEED if not given")
    verb.add_argument("--resume", action="store_true", help="go on from the last checkpoint of a run that was stopped")
    verb.add_argument("--dry-run", action="store_true", help="print the resolved config and stop")


def run_train(options: argparse.Namespace) -> None:
    """Train one method of a recipe; `accelerate launch -m placevalue.cli train ...` uses many devices."""
    overrides = options.overrides + ([f"training.max_steps={options.max_steps}"] if options.max_steps else [])
    config = read_recipe(options.recipe, overrides).run(options.method, options.seed)
    folder = options.out or Path("runs") / options.recipe.stem / f"{config.method}-{config.seed}"
    console = make_console()
    if options.dry_run:
        console.print(to_yaml(config.to_dict()) + f"# goes to {folder}", markup=False, soft_wrap=True)
        return
    from placevalue.training import train

    record = train(config, folder, options.resume)
    chosen = "" if record.selected is None else f", {record.selected['checkpoint']} kept by {record.selected['by']}"
    console.print(f"{folder}: {record.steps} steps in {record.durations['train']:.0f} s{chosen}", soft_wrap=True)
