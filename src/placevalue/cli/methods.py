"""methods: list what recipes can compare."""

import argparse

from placevalue.cli.console import make_console


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `methods`."""
    verb.add_argument("--markdown", action="store_true", help="print the whole table, as in docs/methods.md")


def run(options: argparse.Namespace) -> None:
    """List the methods that recipes can name: what each is, and who proposed it."""
    from rich.table import Table

    from placevalue.experiments.method_table import HEADER, method_rows, to_markdown

    console = make_console()
    if options.markdown:
        console.print(to_markdown())
        return
    table = Table(box=None)
    shown = HEADER[:3]
    for name in shown:
        table.add_column(name, overflow="fold", no_wrap=name == "method")
    for row in method_rows():
        table.add_row(*row[: len(shown)])
    console.print(table)
