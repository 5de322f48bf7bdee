"""Terminal tables of scores, counts, sweeps and comparisons, and the paper's table."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from placevalue.common.records import ScoreRecord, SweepRecord
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.statistics import PairedTest
from placevalue.reports.formatting import counted, format_interval, format_value
from placevalue.reports.tables import LEGEND, Entry, Line, PaperTable

if TYPE_CHECKING:
    from rich.table import Table

SHOWN = ("accuracy_paper", "accuracy_exact", "accuracy_paper_numeric", "accuracy_paper_reachable", "cer_written",
         "cer_shortest", "digit_length", "no_number")  # fmt: skip
"""The metrics that `score_table` shows by default."""
_ARROWS = {"higher": "↑", "lower": "↓", "zero": "→0"}
_FEW_SETS = 3  # with more, the terminal is too narrow for the intervals of each

Cell = str | Sequence[str | tuple[str, str]]
"""Plain text, or parts of it, each with a rich style where it needs one."""


def rich_table(
    title: str, columns: Iterable[Cell], sections: Iterable[Iterable[Iterable[Cell]]], left: int = 1, caption: str = ""
) -> "Table":
    """A table of rows in sections, with a line between them; the first `left` columns are aligned left.

    Text is never read as rich markup.
    """
    from rich.table import Table
    from rich.text import Text

    def text(cell: Cell) -> Text:
        return Text(cell) if isinstance(cell, str) else Text.assemble(*cell)

    table = Table(title=Text(title, "table.title"), caption=Text(caption, "table.caption") if caption else None)
    for index, column in enumerate(columns):
        table.add_column(text(column), justify="left" if index < left else "right", no_wrap=not index)
    for rows in sections:
        for row in rows:
            table.add_row(*map(text, row))
        table.add_section()
    return table


def score_table(record: ScoreRecord, title: str, metrics: Sequence[str] = SHOWN) -> "Table":
    """Sets, their mean and operations as rows, metrics as columns; `log_error` alone is not in percent."""
    means = {"mean over sets": record.averages} if record.averages else {}
    sections = [
        [[name, *(_score(scores.get(metric), metric) for metric in metrics)] for name, scores in part.items()]
        for part in (record.scores, means, record.operations)
    ]
    caption = "95% intervals in brackets, then the number of problems, or of sets for the mean"
    return rich_table(title, ["set", *map(_heading, metrics)], sections, caption=caption)


def _heading(metric: str) -> str:
    return f"{metric.replace('_', ' ')} {_ARROWS[METRICS[metric].direction]}"


def _score(score: Mapping[str, Any] | None, metric: str) -> Cell:
    if score is None:
        return ""
    span = format_interval(score["low"], score["high"], metric)
    return [format_value(score["value"], metric), (f"\n{span}\n{score['n']:,}", "dim")]


def comparison_table(found: Mapping[str, Mapping[str, PairedTest]], first: str, second: str) -> "Table":
    """One row for each set and metric: both means, their difference with its interval, and p."""

    def row(name: str, metric: str, test: PairedTest) -> Iterable[str]:
        yield from (name, metric, test.test, format_value(test.first, metric), format_value(test.second, metric))
        span = format_interval(test.low, test.high, metric, signed=True)
        yield f"{format_value(test.difference, metric, signed=True)} {span}".strip()
        yield from ("" if count is None else f"{count:,}" for count in (test.n, test.only_first, test.only_second))
        yield f"{test.p:.3g}"

    columns = ("set", "metric", "test", "first", "second", "difference", "n", "only first", "only second", "p")
    sections = [[row(name, metric, test) for metric, test in tests.items()] for name, tests in found.items()]
    return rich_table(f"{second} against {first}", columns, sections, 3, "p is not corrected for the number of rows")


def count_table(counts: Mapping[str, int], title: str) -> "Table":
    """The counts of a prediction record: a row for each set, and one for all sets if there are several."""
    totals = {name: f"{count:,}" for name, count in counts.items() if ":" not in name}
    sets = dict.fromkeys(key.partition(":")[2] for key in counts if ":" in key)
    rows = [[each, *(f"{counts[f'{name}:{each}']:,}" for name in totals)] for each in sets]
    total = [["all sets", *totals.values()]] if len(sets) > 1 else []
    return rich_table(title, ["set", *(name.replace("_", " ") for name in totals)], [rows, total])


def sweep_table(record: SweepRecord, title: str) -> "Table":
    """One row for each trial: its values, the score of each seed with its interval, and their mean."""
    search, seeds, metric = (record.config[name] for name in ("search", "seeds", "metric"))
    columns = [*(path.rpartition(".")[2] for path in search), *(f"seed {seed}" for seed in seeds)]
    rows: list[list[Cell]] = []
    for trial in record.trials:
        best = record.best is not None and trial["values"] == record.best["values"]
        scores = [_score(score, metric) for score in trial["scores"].values()]
        mean = (format_value(trial["value"], metric), "bold" if best else "")
        rows.append([*map(str, trial["values"].values()), *scores, [mean]])
    caption = f"on {record.config['data']['dev']}; 95% intervals over its problems"
    return rich_table(title, [*columns, f"mean {_heading(metric)}"], [rows], len(search), caption)


def terminal_table(table: PaperTable) -> "Table":
    """The paper's table: gains green, losses red, bold above 1 point; the best of a column underlined.

    Intervals are shown where they fit: in the mean over sets, and in the sets if there are few.
    """
    kinds = [column.kind for column in table.columns]
    wide = [kind == "mean" or (kind == "set" and kinds.count("set") <= _FEW_SETS) for kind in kinds]
    counts = [f"\n{'sets' if column.kind == 'mean' else 'n'}={column.n:,}" for column in table.columns]
    columns: list[Cell] = [[name, (count, "dim")] for name, count in zip(table.headers, counts, strict=True)]

    def row(line: Line) -> list[Cell]:
        seeds = f"\n{counted(line.seeds, 'seed')}" if line.seeds else ""
        return [[line.name, (seeds, "dim")], *map(_entry, line.entries, wide), line.time]

    sections = [list(map(row, lines)) for _, lines in groupby(table.lines, key=lambda line: line.group)]
    caption = f"{LEGEND} Green is better, bold above 1 point, underlined the best."
    return rich_table(f"{table.subtitle}\n{table.title}", ["", *columns, "trained"], sections, caption=caption)


def _entry(entry: Entry | None, wide: bool) -> Cell:
    if entry is None:
        return ""
    style = {"plain": "default", "gain": "green", "loss": "red"}[entry.tone]
    style = ("bold " if entry.large else "") + style + (" underline" if entry.best else "")
    return [(entry.text, style), entry.mark, (f"\n{entry.span}" if wide and entry.span else "", "dim")]
