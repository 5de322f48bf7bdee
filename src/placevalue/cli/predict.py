"""predict: answer problems with a checkpoint."""

import argparse

from placevalue.cli.arguments import Whole, a_path, define_fields, read_fields
from placevalue.cli.console import make_console, make_progress
from placevalue.common.hub import check_device
from placevalue.experiments.recipe import field_help, to_yaml
from placevalue.experiments.settings import GenerationConfig
from placevalue.reports.terminal import count_table


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `predict`."""
    from placevalue.data.corpora import SHORTHANDS

    names = f"mawps:test, fermat:1000+, {', '.join(SHORTHANDS)}, or a file; repeatable"
    verb.add_argument("checkpoint", help="a run, one of its checkpoints, a folder with a model, a hub or fetched name")
    verb.add_argument("--data", action="append", required=True, metavar="NAME", help=names)
    verb.add_argument("--out", type=a_path, required=True, help="the folder for the predictions and their record")
    define_fields(verb, GenerationConfig, dict(field_help(GenerationConfig)))
    verb.add_argument("--max-question", type=Whole(1), metavar="N", help="longest question (default: as trained)")
    longest = "longest answer in tokens (default: as trained, else what the longest correct one needs)"
    verb.add_argument("--max-answer", type=Whole(1), metavar="N", help=longest)
    verb.add_argument("--device", help="as torch names it (default: cuda if available)")
    verb.add_argument("--allow-leakage", action="store_true", help="also answer problems the model was trained on")
    verb.add_argument("--dry-run", action="store_true", help="print the settings and counts without loading the model")


def run(options: argparse.Namespace) -> None:
    """Answer problems with a checkpoint; an interrupted run continues where it stopped."""
    from placevalue.experiments.predict import answer_problems, assign_problems

    console = make_console()
    if options.device is not None:
        check_device(options.device)
    lengths = options.max_question, options.max_answer
    generation = read_fields(options, GenerationConfig)
    assignment = assign_problems(options.checkpoint, options.data, generation, *lengths, options.allow_leakage)
    if options.dry_run:
        links = {name: value for name, value in assignment.links.items() if name != "data"}
        console.print(to_yaml(links) + f"# goes to {options.out}")
        console.print(count_table(assignment.counts, options.checkpoint))
        return
    with make_progress(console) as bar:
        task = bar.add_task("problems", total=len(assignment.questions), text="")
        show = lambda done, total: bar.update(task, completed=done, text=f"{done:,}/{total:,}")  # noqa: E731
        record = answer_problems(assignment, options.out, options.device, show)
        show(record.counts["problems"], record.counts["problems"])
    console.print(count_table(record.counts, str(options.out)))
    for note in assignment.leakage.overridden + assignment.leakage.notes:
        console.print(f"note: {note}")
    seconds = record.durations["generate"]
    console.print(f"{options.out}: {record.counts['problems']:,} problems in {seconds:.0f} s")
