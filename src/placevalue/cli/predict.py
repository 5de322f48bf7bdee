"""predict: answer problems with a checkpoint."""

import argparse
from pathlib import Path
from typing import get_args

from placevalue.cli.console import make_console
from placevalue.experiments.recipe import GenerationConfig, Precision, field_help, to_yaml
from placevalue.reports.terminal import count_table


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `predict`."""
    from placevalue.data.corpora import SHORTHANDS

    about = dict(field_help(GenerationConfig))
    default = "(default: %(default)s)"
    names = f"mawps:test, fermat:1000+, {', '.join(SHORTHANDS)}, or a file; repeatable"
    verb.add_argument("checkpoint", help="a run, one of its checkpoints, a folder with a model, a hub or fetched name")
    verb.add_argument("--data", action="append", required=True, metavar="NAME", help=names)
    verb.add_argument("--out", type=Path, required=True, help="the folder for the predictions and their record")
    verb.add_argument("--beams", type=int, default=GenerationConfig.beams, help=f"{about['beams']} {default}")
    verb.add_argument(
        "--batch-size", type=int, default=GenerationConfig.batch_size, help=f"{about['batch_size']} {default}"
    )
    verb.add_argument(
        "--max-question", type=int, metavar="N", help="cut questions at N tokens (default: as in training)"
    )
    verb.add_argument("--max-answer", type=int, metavar="N", help="longest answer in tokens (default: as in training)")
    verb.add_argument(
        "--precision",
        choices=get_args(Precision),
        default=GenerationConfig.precision,
        help=f"{about['precision']} {default}",
    )
    verb.add_argument("--device", help="as torch names it (default: cuda if available)")
    verb.add_argument("--allow-leakage", action="store_true", help="also answer problems the model was trained on")
    verb.add_argument("--dry-run", action="store_true", help="print the settings and counts without loading the model")


def run(options: argparse.Namespace) -> None:
    """Answer problems with a checkpoint; an interrupted run continues where it stopped."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from placevalue.experiments.predict import answer_problems, assign_problems

    console = make_console()
    generation = GenerationConfig(options.beams, options.batch_size, options.precision)
    assignment = assign_problems(
        options.checkpoint, options.data, generation, options.max_question, options.max_answer, options.allow_leakage
    )
    if options.dry_run:
        links = {name: value for name, value in assignment.links.items() if name != "data"}
        console.print(to_yaml(links) + f"# goes to {options.out}", markup=False, soft_wrap=True)
        console.print(count_table(assignment.counts, options.checkpoint))
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("problems", total=len(assignment.questions))
        record = answer_problems(
            assignment, options.out, options.device, lambda done, _all: bar.update(task, completed=done)
        )
        bar.update(task, completed=record.counts["problems"])
    console.print(count_table(record.counts, str(options.out)))
    for note in assignment.leakage.overridden + assignment.leakage.notes:
        console.print(f"note: {note}", markup=False)
    seconds = record.durations["generate"]
    console.print(f"{options.out}: {record.counts['problems']:,} problems in {seconds:.0f} s", soft_wrap=True)
