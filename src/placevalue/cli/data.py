"""data: list, show and generate problems to train and test on."""

import argparse
from dataclasses import asdict, fields

from placevalue.cli.arguments import Whole, a_path, define_fields, read_fields
from placevalue.cli.console import make_console, make_progress
from placevalue.data import CORPORA, FermatConfig, corpus_licence, data_size, load_data, write_fermat
from placevalue.data.corpora import copy_note, describe_copies
from placevalue.evaluation.metrics import metric_values, read_answer
from placevalue.evaluation.trivial import ABOUT, trivial_answers
from placevalue.reports.formatting import format_value


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `data`."""
    actions = verb.add_subparsers(required=True, metavar="ACTION")
    parsers = {}
    verbs = {"list": _list_data, "show": _show_data, "check": _check_data, "fermat": _make_fermat}
    for name, action in verbs.items():
        parsers[name] = actions.add_parser(name, help=action.__doc__, description=action.__doc__)
        parsers[name].set_defaults(action=action)
    show, check, fermat = parsers["show"], parsers["check"], parsers["fermat"]
    show.add_argument("data", metavar="DATA", help="a name from `data list`, or a .jsonl or .csv file")
    show.add_argument("--rows", type=Whole(), default=3, help="number of problems (default: %(default)s)")
    for name in ("train", "test"):
        check.add_argument(name, metavar=name.upper(), help="a name from `data list`, or a .jsonl or .csv file")
    define_fields(fermat, FermatConfig, {each.name: each.metadata["help"] for each in fields(FermatConfig)})
    fermat.add_argument("--out", type=a_path, required=True, help="folder for the parts and data.json")


def run(options: argparse.Namespace) -> None:
    """Run the action."""
    options.action(options)


def _list_data(_: argparse.Namespace) -> None:
    """List the data that comes with placevalue: names, rows, licences."""
    console = make_console()
    for name, corpus in CORPORA.items():
        console.print(f"{corpus.about} ({corpus_licence(name)})")
        for part in corpus.parts:
            console.print(f"  {f'{name}:{part}':<36}{data_size(f'{name}:{part}'):>6,} problems")
    console.print("`placevalue data fermat` generates sets from FERMAT's templates with other settings")


def _show_data(options: argparse.Namespace) -> None:
    """Show the first problems of a data set."""
    console = make_console()
    problems = load_data(options.data)
    for problem in problems[: options.rows]:
        for name, value in asdict(problem).items():
            console.print(f"{name:<10}{value}")
        console.print()
    console.print(f"{len(problems):,} problems")
    if note := copy_note(options.data):
        console.print(f"note: {note}")


def _check_data(options: argparse.Namespace) -> None:
    """Say how many test questions copy training questions, and how many answers are right without a model."""
    console = make_console()
    console.print(describe_copies(options.test, options.train))
    problems = load_data(options.test)
    found = trivial_answers([problem.question for problem in problems], load_data(options.train))
    for name, texts in found.items():
        answers = (read_answer(problem.answer, text) for problem, text in zip(problems, texts, strict=True))
        right = format_value(float(metric_values(answers, ["accuracy_paper"]).mean()), "accuracy_paper")
        console.print(f"{name:<18}{right:>5}%  {ABOUT[name]}")


def _make_fermat(options: argparse.Namespace) -> None:
    """Generate training, dev and test sets from FERMAT's templates."""
    console = make_console()
    config: FermatConfig = read_fields(options, FermatConfig)
    with make_progress(console) as bar:
        task = bar.add_task("FERMAT", total=sum(config.sizes.values()), text="")
        record = write_fermat(config, options.out, lambda rows: bar.advance(task, rows))
    for name, made in record["files"].items():
        console.print(f"{options.out / name}: {made['rows']:,} problems")
