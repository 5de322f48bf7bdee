"""Terminal tables of scores, counts, sweeps and comparisons, and the paper's table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from placevalue.common.records import ScoreRecord, SweepRecord
from placevalue.common.text import visible
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.statistics import Interval, PairedTest
from placevalue.reports.breakdowns import CEILING, FLOOR, TaskGrid
from placevalue.reports.formatting import counted, format_interval, format_value
from placevalue.reports.tables import COLOURS, GRID_LEGEND, LEGEND, Entry, Line, PaperTable, told_between

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

SHOWN = ("accuracy_paper", "accuracy_exact", "accuracy_paper_numeric", "accuracy_paper_reachable", "cer_written",
         "cer_shortest", "digit_length", "no_number")  # fmt: skip
"""The metrics that `score_table` shows by default."""
_ARROWS = {"higher": "↑", "lower": "↓", "zero": "→0"}
_FEW_SETS = 3  # with more, the terminal is too narrow for the intervals of each

Cell = str | Sequence[str | tuple[str, str]]
"""Plain text, or parts of it, each with a rich style where it needs one."""
_SHORTEST = 12  # how far the names of rows are folded to make room


@dataclass(frozen=True)
class FittedTable:
    """A table for the terminal, in several parts below each other if it is too narrow: no figure is ever cut.

    Each part repeats the first `keys` columns, which say what a row is. The first `left` columns are aligned left. Text
    is never read as rich markup.
    """

    title: str
    columns: Sequence[Cell]
    sections: Sequence[Sequence[Sequence[Cell]]]
    """Rows, with a line between sections."""
    left: int = 1
    keys: int = 1
    caption: str = ""
    words: str = ""
    """What to conclude from it."""

    def __rich_console__(self, _: "Console", options: "ConsoleOptions") -> Iterator["RenderableType"]:
        from rich.text import Text

        yield Text(visible(self.title), "italic", no_wrap=True, overflow="ignore")
        yield from self._fit(options.max_width)
        if self.caption:
            yield Text(self.caption, "dim italic")
        if self.words:
            yield Text(visible(self.words))

    def _fit(self, width: int) -> Iterator["Table"]:
        """The tables, each at most this wide if the widest column beside the keys is."""
        columns = list(map(_text, self.columns))
        sections = [[list(map(_text, row)) for row in rows] for rows in self.sections]
        rows = [row for section in sections for row in section]
        widths = [
            max([_longest(column.plain.split()), *(_longest(row[index].plain.splitlines()) for row in rows)])
            for index, column in enumerate(columns)
        ]
        room = width - 1 - sum(3 + each for each in widths[: self.keys])
        lack = max(widths[self.keys :], default=0) + 3 - room
        longest = max(range(self.keys), key=lambda index: widths[index])
        if lack > 0:
            folded = max(min(_SHORTEST, widths[longest]), widths[longest] - lack)
            room, widths[longest] = room + widths[longest] - folded, folded
        parts: list[list[int]] = [[]]
        for index in range(self.keys, len(columns)):
            if parts[-1] and sum(3 + widths[each] for each in (*parts[-1], index)) > room:
                parts.append([])
            parts[-1].append(index)
        for part in parts:
            yield self._table(columns, sections, [*range(self.keys), *part], widths)

    def _table(
        self, columns: list["Text"], sections: list[list[list["Text"]]], chosen: list[int], widths: list[int]
    ) -> "Table":
        from rich.table import Table

        table = Table()
        for index in chosen:
            side: Any = "left" if index < self.left else "right"
            table.add_column(columns[index], justify=side, width=widths[index], overflow="fold")
        for rows in sections:
            for row in rows:
                table.add_row(*(row[index] for index in chosen))
            table.add_section()
        return table


def _text(cell: Cell) -> "Text":
    from rich.text import Text

    parts = [cell] if isinstance(cell, str) else cell
    return Text.assemble(*(visible(part) if isinstance(part, str) else (visible(part[0]), part[1]) for part in parts))


def _longest(parts: Iterable[str]) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, parts), default=0)


def score_table(record: ScoreRecord, title: str, metrics: Sequence[str] = SHOWN) -> FittedTable:
    """Sets, their mean and operations as rows, metrics as columns; `log_error` alone is not in percent."""
    means = {"mean over sets": record.averages} if record.averages else {}
    sections = [
        [[name, *(_score(scores.get(metric), metric) for metric in metrics)] for name, scores in part.items()]
        for part in (record.scores, means, record.operations)
    ]
    caption = "95% intervals in brackets, then the number of problems, or of sets for the mean"
    return FittedTable(title, ["set", *map(_heading, metrics)], sections, caption=caption)


def _heading(metric: str) -> str:
    return f"{metric.replace('_', ' ')} {_ARROWS[METRICS[metric].direction]}"


def _score(score: Mapping[str, Any] | None, metric: str) -> Cell:
    if score is None:
        return ""
    span = format_interval(score["low"], score["high"], metric)
    return [format_value(score["value"], metric), (f"\n{span}\n{score['n']:,}", "dim")]


def comparison_table(found: Mapping[str, Mapping[str, PairedTest]], first: str, second: str) -> FittedTable:
    """One row for each set and metric: both means, their difference with its interval, and p."""

    def row(name: str, metric: str, test: PairedTest) -> list[Cell]:
        span = format_interval(test.low, test.high, metric, signed=True)
        difference = f"{format_value(test.difference, metric, signed=True)} {span}".strip()
        means = format_value(test.first, metric), format_value(test.second, metric)
        counts = ("" if count is None else f"{count:,}" for count in (test.n, test.only_first, test.only_second))
        return [name, metric, test.test, *means, difference, *counts, f"{test.p:.3g}"]

    columns = ("set", "metric", "test", "first", "second", "difference", "n", "only first", "only second", "p")
    sections = [[row(name, metric, test) for metric, test in tests.items()] for name, tests in found.items()]
    title, caption = f"{second} against {first}", "p is not corrected for the number of rows"
    return FittedTable(title, columns, sections, left=3, keys=2, caption=caption)


def count_table(counts: Mapping[str, int], title: str) -> FittedTable:
    """The counts of a prediction record: a row for each set, and one for all sets if there are several."""
    totals = {name: f"{count:,}" for name, count in counts.items() if ":" not in name}
    sets = dict.fromkeys(key.partition(":")[2] for key in counts if ":" in key)
    rows = [[each, *(f"{counts[f'{name}:{each}']:,}" for name in totals)] for each in sets]
    total = [["all sets", *totals.values()]] if len(sets) > 1 else []
    return FittedTable(title, ["set", *(name.replace("_", " ") for name in totals)], [rows, total])


def sweep_table(record: SweepRecord, title: str) -> FittedTable:
    """One row for each trial: its values, the score of each seed with its interval, and their mean."""
    search, seeds, metric = (record.config[name] for name in ("search", "seeds", "metric"))
    columns = [*(path.rpartition(".")[2] for path in search), *(f"seed {seed}" for seed in seeds)]
    rows: list[list[Cell]] = []
    for trial in record.trials:
        scores = [_score(score, metric) for score in trial["scores"].values()]
        mean = (format_value(trial["value"], metric), "bold" if trial in record.winners else "")
        rows.append([*map(str, trial["values"].values()), *scores, [mean]])
    caption = f"on {record.config['data']['dev']}; 95% intervals over its problems"
    keys = len(search)
    return FittedTable(title, [*columns, f"mean {_heading(metric)}"], [rows], keys, keys, caption)


def grid_table(grid: TaskGrid, method: str) -> FittedTable:
    """Tasks by length, as in the page's heat map: bold at the ceiling, dim at the floor."""

    def cell(index: int, score: Interval | None) -> Cell:
        if score is None:
            return ""
        style = "bold" if score.value > CEILING else "dim" if score.value < FLOOR else ""
        return [(format_value(score.value, grid.metrics[index]), style if index < grid.lengths else "")]

    lines = [
        [task, *map(cell, range(len(row)), row)] for task, row in zip(grid.tasks, grid.scores[method], strict=True)
    ]
    caption = f"{told_between(grid, method)} {GRID_LEGEND}"
    return FittedTable(f"{grid.title}: {method}", ["task", *grid.columns], [lines[:-1], lines[-1:]], caption=caption)


def space_tables(record: Mapping[str, Any]) -> Iterator[FittedTable]:
    """A model's number space: F1 and more of each aggregation, and F1 in the precision that a model sees."""
    parts = record["parts"]
    rows = []
    for name in (key.removeprefix("f1/") for key in parts if key.startswith("f1/")):
        f1, drift, rank = (parts[f"{kind}/{name}"] for kind in ("f1", "drift", "rank"))
        figures = [*_thousandths(f1["f1"]), *(f"{drift[length]:.1f}" for length in ("3", "6", "12"))]
        rows.append([name, *figures, f"{rank['6']:.2f}", f"{f1['closest']:.2g}"])
    lengths = [f"F1 {counted(length, 'digit')}" for length in range(1, len(rows[0]) - 5)]
    others = [*(f"drift {length} digits" for length in (3, 6, 12)), "rank corr. 6 digits", "closest two"]
    title = f"{record['model']}: neighbours in space and in value"
    yield FittedTable(title, ["aggregation", *lengths, *others], [rows])
    found = {key.removeprefix("precision/"): part["f1"] for key, part in parts.items() if key.startswith("precision/")}
    rows = [[*name.split("/"), *_thousandths(f1)] for name, f1 in found.items()]
    columns = ["aggregation", "precision", *lengths[: len(rows[0]) - 2]]
    yield FittedTable("in the precision that a model sees", columns, [rows], 2, 2)


def _thousandths(f1: Mapping[str, float]) -> list[str]:
    return [f"{value:.3f}" for value in f1.values()]


def terminal_table(table: PaperTable) -> FittedTable:
    """The paper's table: significant gains green, losses red, bold above 1 point; the best of a column underlined.

    Intervals are shown where they fit: in the mean over sets, and in the sets if there are few.
    """
    kinds = [column.kind for column in table.columns]
    wide = [kind == "mean" or (kind == "set" and kinds.count("set") <= _FEW_SETS) for kind in kinds]
    counts = [
        f"\n{'sets' if column.kind == 'mean' else 'n'}={column.n:,}"
        + f"\n{counted(column.copies, 'copy', 'copies')}" * bool(column.copies)
        for column in table.columns
    ]
    columns: list[Cell] = [[name, (count, "dim")] for name, count in zip(table.headers, counts, strict=True)]

    def row(line: Line) -> list[Cell]:
        seeds = f"\n{counted(line.seeds, 'seed')}" if line.seeds else ""
        return [[line.name, (seeds, "dim")], *map(_entry, line.entries, wide), line.time]

    sections = [list(map(row, lines)) for _, lines in groupby(table.lines, key=lambda line: line.group)]
    caption = f"{LEGEND} {COLOURS}: green is better, bold above 1 point. Underlined: the best."
    title = f"{table.subtitle}. {table.title}"
    return FittedTable(title, ["", *columns, "trained"], sections, caption=caption, words=table.words)


def _entry(entry: Entry | None, wide: bool) -> Cell:
    if entry is None:
        return ""
    style = {"plain": "default", "gain": "green", "loss": "red"}[entry.tone]
    style = ("bold " if entry.large else "") + style + (" underline" if entry.best else "")
    small = "".join(f"\n{each}" for each in (entry.span if wide else "", entry.part) if each)
    return [(entry.text, style), entry.mark, (small, "dim")]
