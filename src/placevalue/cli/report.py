"""placevalue report: show experiments as one page, or as tables."""

import argparse

from placevalue.cli.arguments import a_path
from placevalue.cli.console import make_console
from placevalue.common.errors import ConfigError
from placevalue.common.files import write_whole
from placevalue.common.ownership import replace_own
from placevalue.experiments.methods import METHODS
from placevalue.reports.breakdowns import task_grids
from placevalue.reports.results import load_experiments
from placevalue.reports.summary import summarise
from placevalue.reports.tables import (
    MARKS,
    PERCENTAGES,
    SHOWN,
    grids_to_markdown,
    make_table,
    to_csv,
    to_latex,
    to_markdown,
    without_operations,
)
from placevalue.reports.terminal import grid_table, terminal_table

BEGIN, END = "<!-- results -->", "<!-- end of results -->"
WRITERS = {"markdown": to_markdown, "latex": to_latex}
FORMATS = ("html", "terminal", *WRITERS, "csv")


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `report`."""
    written = "folders that `placevalue reproduce` wrote"
    verb.add_argument("folders", nargs="+", type=a_path, metavar="FOLDER", help=written)
    verb.add_argument("--format", choices=FORMATS, default="html", help="html is a page with charts and predictions")
    shown = f"repeatable; default: {', '.join(SHOWN)}"
    verb.add_argument("--metric", action="append", choices=PERCENTAGES, metavar="NAME", help=shown)
    baseline = "default: the recipe's; of older experiments digits, or the first method"
    verb.add_argument("--baseline", choices=list(METHODS), metavar="METHOD", help=baseline)
    verb.add_argument("--brief", action="store_true", help="omit operations and tasks (tables only)")
    out = "default: report.html in the first folder; tables are printed"
    verb.add_argument("--out", type=a_path, metavar="FILE", help=out)
    into = f"insert the tables into this file, between {BEGIN} and {END}"
    verb.add_argument("--into", type=a_path, metavar="FILE", help=into)


def run(options: argparse.Namespace) -> None:
    """Show experiments as one HTML page, or as tables for the terminal, Markdown, LaTeX or CSV."""
    metrics = options.metric or SHOWN
    if options.brief and options.format in ("html", "csv"):
        raise ConfigError(f"--brief is for tables: use --format terminal, markdown or latex, not {options.format}")
    console = make_console()
    if options.format == "html":
        from placevalue.reports.page import report

        out = report(options.folders, options.out, options.baseline, metrics)
        console.print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")
        return
    found = load_experiments(options.folders)
    summaries = [summarise(each, options.baseline, metric) for each in found for metric in metrics]
    tables = [make_table(summary) for summary in summaries]
    if options.brief:
        tables = [without_operations(table) for table in tables]
    grids = [] if options.brief else [grid for each in found for grid in task_grids(each)]
    if options.format == "terminal":
        for table in tables:
            console.print(terminal_table(table))
        for grid in grids:
            for method in grid.scores:
                console.print(grid_table(grid, method))
        return
    text = to_csv(summaries) if options.format == "csv" else WRITERS[options.format](tables)
    if options.format == "markdown":
        text = "\n".join(filter(None, (text, grids_to_markdown(grids))))
    if options.into is not None:
        before, begin, rest = options.into.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise ConfigError(f"{options.into} has no place for tables: add {BEGIN} and {END}, each on its own line")
        write_whole(options.into, f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}")
    elif options.out is None:
        print(text, end="")  # noqa: T201
    else:
        replace_own(options.out, text, MARKS[options.format])
