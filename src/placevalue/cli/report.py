"""report: experiments as one page, or as tables."""

import argparse
from pathlib import Path

from placevalue.cli.console import make_console
from placevalue.common.errors import ConfigError
from placevalue.common.files import write_whole
from placevalue.experiments.methods import METHODS
from placevalue.reports.results import load_experiments
from placevalue.reports.summary import summarise
from placevalue.reports.tables import (
    PERCENTAGES,
    SHOWN,
    make_table,
    to_csv,
    to_latex,
    to_markdown,
    without_operations,
)
from placevalue.reports.terminal import terminal_table

BEGIN, END = "<!-- results -->", "<!-- end of results -->"
FORMATS = ("html", "terminal", "markdown", "latex", "csv")


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `report`."""
    verb.add_argument(
        "folders",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="what `placevalue reproduce` wrote; several in one report",
    )
    verb.add_argument("--format", choices=FORMATS, default="html", help="html is a page with charts and predictions")
    verb.add_argument(
        "--metric", action="append", choices=PERCENTAGES, metavar="NAME", help=f"{', '.join(SHOWN)} if not given; again"
    )
    verb.add_argument("--baseline", choices=list(METHODS), metavar="METHOD", help="digits, else the recipe's first")
    verb.add_argument("--brief", action="store_true", help="no operations; in the terminal, Markdown and LaTeX")
    verb.add_argument("--out", type=Path, metavar="FILE", help="report.html in the first folder; tables are printed")
    verb.add_argument(
        "--into", type=Path, metavar="FILE", help=f"put the tables into a file, between {BEGIN} and {END}"
    )


def run(options: argparse.Namespace) -> None:
    """Show experiments in the paper's form: a page, or tables for the terminal, Markdown, LaTeX, CSV."""
    metrics = options.metric or SHOWN
    if options.brief and options.format in ("html", "csv"):
        raise ConfigError(f"--brief is for tables: expected --format terminal, markdown or latex, not {options.format}")
    console = make_console()
    if options.format == "html":
        from placevalue.reports.page import report

        out = report(options.folders, options.out, options.baseline, metrics)
        console.print(f"{out}: {out.stat().st_size / 1e6:.1f} MB", soft_wrap=True, markup=False)
        return
    found = load_experiments(options.folders)
    summaries = [summarise(each, options.baseline, metric) for each in found for metric in metrics]
    tables = [make_table(summary) for summary in summaries]
    if options.brief:
        tables = [without_operations(table) for table in tables]
    if options.format == "terminal":
        for table in tables:
            console.print(terminal_table(table))
            console.print(table.words, markup=False)
        return
    made = {
        "markdown": lambda: to_markdown(tables),
        "latex": lambda: to_latex(tables),
        "csv": lambda: to_csv(summaries),
    }
    text = made[options.format]()
    if options.into is not None:
        write_whole(options.into, replace_between(options.into.read_text(encoding="utf-8"), text, options.into))
    elif options.out is None:
        print(text, end="")  # noqa: T201
    else:
        write_whole(options.out, text)


def replace_between(text: str, tables: str, path: Path) -> str:
    """A text with other tables between its two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigError(f"{path} has no place for tables: put {BEGIN} and {END} into it, each on a line of its own")
    return f"{before}{begin}\n\n{tables.strip()}\n\n{end}{after}"
