"""data: list, show and generate problems to train and test on."""

import argparse
from dataclasses import asdict, fields
from pathlib import Path

from placevalue.cli.console import define_fields, make_console, read_fields
from placevalue.data import CORPORA, FermatConfig, corpus_licence, data_size, load_data, write_fermat


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `data`."""
    actions = verb.add_subparsers(required=True, metavar="ACTION")
    parsers = {}
    for name, action in (("list", _list_data), ("show", _show_data), ("fermat", _make_fermat)):
        parsers[name] = actions.add_parser(name, help=action.__doc__, description=action.__doc__)
        parsers[name].set_defaults(action=action)
    show, fermat = parsers["show"], parsers["fermat"]
    show.add_argument("data", metavar="DATA", help="a name from `data list`, or a .jsonl or .csv file")
    show.add_argument("--rows", type=int, default=3, help="number of problems (default: %(default)s)")
    define_fields(fermat, FermatConfig, {each.name: each.metadata["help"] for each in fields(FermatConfig)})
    fermat.add_argument("--out", type=Path, required=True, help="folder for train.jsonl, dev.jsonl and data.json")


def run(options: argparse.Namespace) -> None:
    """Run the action."""
    options.action(options)


def _list_data(_: argparse.Namespace) -> None:
    """List the data that comes with placevalue: names, rows, licences."""
    console = make_console()
    for name, corpus in CORPORA.items():
        console.print(f"{corpus.about} ({corpus_licence(name)})", soft_wrap=True)
        for part in corpus.parts:
            console.print(f"  {f'{name}:{part}':<36}{data_size(f'{name}:{part}'):>6,} problems", soft_wrap=True)
    console.print("`placevalue data fermat` generates FERMAT's training sets with other settings", soft_wrap=True)


def _show_data(options: argparse.Namespace) -> None:
    """Show the first problems of a data set."""
    console = make_console()
    problems = load_data(options.data)
    for problem in problems[: max(options.rows, 0)]:
        for name, value in asdict(problem).items():
            console.print(f"{name:<10}{value}", markup=False, soft_wrap=True)
        console.print()
    console.print(f"{len(problems):,} problems", soft_wrap=True)


def _make_fermat(options: argparse.Namespace) -> None:
    """Generate FERMAT's training and dev sets from its templates."""
    console = make_console()
    from rich.progress import Progress

    config: FermatConfig = read_fields(options, FermatConfig)
    with Progress(console=console) as progress:
        task = progress.add_task("FERMAT", total=config.size + config.dev_size)
        record = write_fermat(config, options.out, lambda rows: progress.advance(task, rows))
    for name, made in record["files"].items():
        console.print(f"{options.out / name}: {made['rows']:,} problems", soft_wrap=True)
