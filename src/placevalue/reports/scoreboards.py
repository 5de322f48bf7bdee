"""Scores, comparisons and counts as tables for people."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placevalue.common.records import ScoreRecord, SweepRecord
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.statistics import PairedTest
from placevalue.reports.formatting import format_interval, format_value

if TYPE_CHECKING:
    from rich.table import Table

SHOWN = ("accuracy_paper", "accuracy_exact", "accuracy_paper_numeric", "accuracy_paper_reachable", "cer_written",
         "cer_shortest", "digit_length", "no_number")  # fmt: skip
"""The metrics of a table unless others are asked for."""
_ARROWS = {"higher": "↑", "lower": "↓", "zero": "→0"}


def score_table(record: ScoreRecord, title: str, metrics: Sequence[str] = SHOWN) -> "Table":
    """Sets, their mean and operations as rows; metrics in percent, with interval and n, as columns.

    `log_error` alone is no percentage.
    """
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        title=escape(title), caption="95% intervals in brackets, then the number of problems; of the mean, of sets"
    )
    table.add_column("set")
    for name in metrics:
        table.add_column(f"{name.replace('_', ' ')} {_ARROWS[METRICS[name].direction]}", justify="right")
    sections: list[Mapping[str, Mapping[str, Any]]] = [record.scores, record.operations]
    if record.averages:
        sections.insert(1, {"mean over sets": record.averages})
    for section in sections:
        for name, scores in section.items():
            table.add_row(escape(name), *(_cell(metric, scores.get(metric)) for metric in metrics))
        table.add_section()
    return table


def _cell(metric: str, score: Mapping[str, Any] | None) -> str:
    if score is None:
        return ""
    span = format_interval(score["low"], score["high"], metric)
    return f"{format_value(score['value'], metric)}\n[dim]\\{span}\n{score['n']:,}[/dim]"


def comparison_table(found: Mapping[str, Mapping[str, PairedTest]], first: str, second: str) -> "Table":
    """One line for each set and metric: both means, their difference with its interval, the test and its p."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        title=escape(f"{second} against {first}"), caption="p of each line by itself: many lines need a correction"
    )
    for name in ("set", "metric"):
        table.add_column(name)
    for name in ("first", "second", "difference", "n", "only first", "only second", "p"):
        table.add_column(name, justify="right")
    table.add_column("test")
    for name, tests in found.items():
        for metric, test in tests.items():
            percent = [format_value(number, metric) for number in (test.first, test.second)]
            span = format_interval(test.low, test.high, metric, signed=True)
            only = ["" if number is None else f"{number:,}" for number in (test.only_first, test.only_second)]
            difference = escape(f"{format_value(test.difference, metric, signed=True)} {span}")
            table.add_row(escape(name), metric, *percent, difference, f"{test.n:,}", *only, f"{test.p:.3g}", test.test)
        table.add_section()
    return table


def count_table(counts: Mapping[str, int], title: str) -> "Table":
    """The counts of a prediction record: a line for each set, and one for all where there are several."""
    from rich.markup import escape
    from rich.table import Table

    totals = {name: count for name, count in counts.items() if ":" not in name}
    sets = list(dict.fromkeys(key.partition(":")[2] for key in counts if ":" in key))
    table = Table(title=escape(title))
    table.add_column("set")
    for name in totals:
        table.add_column(name.replace("_", " "), justify="right")
    for each in sets:
        table.add_row(escape(each), *(f"{counts[f'{name}:{each}']:,}" for name in totals))
    if len(sets) > 1:
        table.add_section()
        table.add_row("all sets", *(f"{count:,}" for count in totals.values()))
    return table


def sweep_table(record: SweepRecord, title: str) -> "Table":
    """One line for each trial: its values, the score of each seed in percent with its interval, their mean."""
    from rich.markup import escape
    from rich.table import Table

    config = record.config
    arrow = _ARROWS[METRICS[config["metric"]].direction]
    table = Table(title=escape(title), caption=f"on {escape(config['data']['dev'])}; 95% intervals over its problems")
    for path in config["search"]:
        table.add_column(path.rpartition(".")[2])
    for seed in config["seeds"]:
        table.add_column(f"seed {seed}", justify="right")
    table.add_column(f"mean {config['metric'].replace('_', ' ')} {arrow}", justify="right")
    for trial in record.trials:
        values = [escape(str(value)) for value in trial["values"].values()]
        seeds = [_cell(config["metric"], score) for score in trial["scores"].values()]
        is_best = record.best is not None and trial["values"] == record.best["values"]
        mean = format_value(trial["value"], config["metric"])
        table.add_row(*values, *seeds, f"[bold]{mean}[/bold]" if is_best else mean)
    return table
