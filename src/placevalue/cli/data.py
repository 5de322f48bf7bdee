"""data: list, show and generate problems to train and test on."""

import argparse
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from placevalue.cli.console import make_console
from placevalue.data import CORPORA, FermatConfig, corpus_licence, load_data, write_fermat


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `data`."""
    actions = verb.add_subparsers(required=True, metavar="ACTION")
    for name, (define_action, action) in ACTIONS.items():
        about = (action.__doc__ or "").splitlines()[0]
        parser = actions.add_parser(name, help=about, description=about)
        parser.set_defaults(action=action)
        define_action(parser)


def run(options: argparse.Namespace) -> None:
    """Run the action."""
    options.action(options)


def _list_data(_: argparse.Namespace) -> None:
    """List the data that comes with placevalue: names, rows, licences."""
    console = make_console()
    for name, corpus in CORPORA.items():
        console.print(f"{corpus.about} ({corpus_licence(name)})", soft_wrap=True)
        for part in corpus.parts:
            console.print(f"  {f'{name}:{part}':<36}{len(load_data(f'{name}:{part}')):>6,} problems", soft_wrap=True)
    console.print(
        "`placevalue data fermat` generates FERMAT's training and dev sets with other settings", soft_wrap=True
    )


def _define_show(action: argparse.ArgumentParser) -> None:
    action.add_argument("data", metavar="DATA", help="a name from `data list`, or a .jsonl or .csv file")
    action.add_argument("--rows", type=int, default=3, help="number of problems (default: %(default)s)")


def _show_data(options: argparse.Namespace) -> None:
    """Show the first problems of a data set."""
    console = make_console()
    problems = load_data(options.data)
    for problem in problems[: max(options.rows, 0)]:
        for name, value in asdict(problem).items():
            console.print(f"{name:<10}{value}", markup=False, soft_wrap=True)
        console.print()
    console.print(f"{len(problems):,} problems", soft_wrap=True)


def _define_fermat(action: argparse.ArgumentParser) -> None:
    kinds = get_type_hints(FermatConfig)
    for setting in fields(FermatConfig):
        choices = get_args(kinds[setting.name])
        kind: dict[str, Any] = {"choices": choices} if choices else {"type": int}
        about = f"{setting.metadata['help']} (default: %(default)s)"
        action.add_argument(f"--{setting.name.replace('_', '-')}", default=setting.default, help=about, **kind)
    action.add_argument("--out", type=Path, required=True, help="folder for train.jsonl, dev.jsonl and data.json")


def _make_fermat(options: argparse.Namespace) -> None:
    """Generate FERMAT's training and dev sets from its templates."""
    console = make_console()
    from rich.progress import Progress

    config = FermatConfig(**{setting.name: getattr(options, setting.name) for setting in fields(FermatConfig)})
    with Progress(console=console) as progress:
        task = progress.add_task("FERMAT", total=config.size + config.dev_size)
        record = write_fermat(config, options.out, lambda rows: progress.advance(task, rows))
    for name, made in record["files"].items():
        console.print(f"{options.out / name}: {made['rows']:,} problems", soft_wrap=True)


ACTIONS = {
    "list": (lambda _parser: None, _list_data),
    "show": (_define_show, _show_data),
    "fermat": (_define_fermat, _make_fermat),
}
