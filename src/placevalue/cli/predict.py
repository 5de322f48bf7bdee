"""predict: a checkpoint to its answers."""

import argparse
from pathlib import Path

from placevalue.cli.console import make_console
from placevalue.experiments.recipe import GenerationConfig, field_help, to_yaml
from placevalue.reports.terminal import count_table


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `generate`."""
    from placevalue.data.corpora import SHORTHANDS
    from placevalue.experiments.prompts import PRECISIONS

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


def run(options: argparse.Namespace) -> None:
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
