"""train, generate and evaluate: a recipe to a checkpoint, to predictions, to scores."""

import argparse
from pathlib import Path

from placevalue.cli.console import make_console
from placevalue.common.errors import PlacevalueError
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.scoring import compare, evaluate, load_predictions
from placevalue.evaluation.statistics import DRAWS
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import GenerationConfig, Recipe, field_help, read_recipe, to_yaml
from placevalue.reports.scoreboards import SHOWN, comparison_table, count_table, score_table


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


def define_recipe(verb: argparse.ArgumentParser) -> None:
    """The flags of every verb that takes a recipe."""
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    keys = "\n".join(f"  {key:<34}{sentence}" for key, sentence in field_help(Recipe))
    verb.epilog = f"keys of a recipe, each of which an override can set:\n{keys}"
    verb.add_argument("recipe", type=Path, help="a YAML file, see recipes/")
    verb.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="such as training.learning_rate=1e-5")
    verb.add_argument("--max-steps", type=int, metavar="N", help="the same as training.max_steps=N")


def recipe_overrides(options: argparse.Namespace) -> list[str]:
    """All that a command line changes in its recipe."""
    return options.overrides + ([f"training.max_steps={options.max_steps}"] if options.max_steps else [])


def define_train(verb: argparse.ArgumentParser) -> None:
    """The flags of `train`."""
    define_recipe(verb)
    verb.add_argument("--method", choices=list(METHODS), help="the first of the recipe where none is given")
    verb.add_argument("--seed", type=int, help="the first of the recipe where none is given")
    verb.add_argument("--out", type=Path, help="where the run goes; runs/RECIPE/METHOD-SEED if not given")
    verb.add_argument("--resume", action="store_true", help="go on from the last checkpoint of a run that was stopped")
    verb.add_argument("--dry-run", action="store_true", help="print the resolved config and stop")


def run_train(options: argparse.Namespace) -> None:
    """Train one method of a recipe; `accelerate launch -m placevalue.cli.main train ...` uses many devices."""
    config = read_recipe(options.recipe, recipe_overrides(options)).run(options.method, options.seed)
    folder = options.out or Path("runs") / options.recipe.stem / f"{config.method}-{config.seed}"
    console = make_console()
    if options.dry_run:
        console.print(to_yaml(config.to_dict()) + f"# goes to {folder}", markup=False, soft_wrap=True)
        return
    from placevalue.experiments.train import train

    record = train(config, folder, options.resume)
    chosen = "" if record.selected is None else f", {record.selected['checkpoint']} kept by {record.selected['by']}"
    console.print(f"{folder}: {record.steps} steps in {record.durations['train']:.0f} s{chosen}", soft_wrap=True)


def define_generate(verb: argparse.ArgumentParser) -> None:
    """The flags of `generate`."""
    from placevalue.experiments.prompts import PRECISIONS, SHORTHANDS

    about = dict(field_help(GenerationConfig))
    named = " or ".join(SHORTHANDS)
    verb.add_argument(
        "checkpoint", help="a run, one of its checkpoints, any folder with a model, a hub or fetched name"
    )
    verb.add_argument(
        "--data",
        action="append",
        required=True,
        metavar="NAME",
        help=f"mawps:test, fermat:1000+, {named}, a file; again",
    )
    verb.add_argument("--out", type=Path, required=True, help="the folder for the predictions and their record")
    verb.add_argument("--beams", type=int, default=GenerationConfig.beams, help=about["beams"])
    verb.add_argument("--batch-size", type=int, default=GenerationConfig.batch_size, help=about["batch_size"])
    verb.add_argument(
        "--max-question", type=int, metavar="TOKENS", help="where questions are cut; as in training if not"
    )
    verb.add_argument(
        "--max-answer", type=int, metavar="TOKENS", help="the longest answer; as in training if not given"
    )
    verb.add_argument("--precision", choices=PRECISIONS, default=GenerationConfig.precision, help=about["precision"])
    verb.add_argument("--device", help="as torch names it; cuda where there is one if not given")
    verb.add_argument("--allow-leakage", action="store_true", help="answer problems that the model has seen")
    verb.add_argument("--dry-run", action="store_true", help="print what would be done and stop")


def run_generate(options: argparse.Namespace) -> None:
    """Answer problems with a checkpoint; a run that was stopped is taken up again."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from placevalue.experiments.predict import answer_problems
    from placevalue.experiments.prompts import assign_problems

    console = make_console()
    names = ("beams", "batch_size", "max_question", "max_answer", "precision", "allow_leakage")
    given = {name: getattr(options, name) for name in names}
    assignment = assign_problems(options.checkpoint, options.data, **given)
    if options.dry_run:
        links = {name: value for name, value in assignment.links.items() if name != "data"}
        console.print(to_yaml(links) + f"# goes to {options.out}", markup=False, soft_wrap=True)
        console.print(count_table(assignment.counts, options.checkpoint))
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("problems", total=len(assignment.questions))
        told = lambda done, _all: bar.update(task, completed=done)  # noqa: E731
        record = answer_problems(assignment, options.out, options.device, told)
        bar.update(task, completed=record.counts["problems"])
    console.print(count_table(record.counts, str(options.out)))
    for note in assignment.leakage.overridden + assignment.leakage.notes:
        console.print(f"note: {note}", markup=False)
    seconds = record.durations["generate"]
    console.print(f"{options.out}: {record.counts['problems']:,} problems in {seconds:.0f} s", soft_wrap=True)
