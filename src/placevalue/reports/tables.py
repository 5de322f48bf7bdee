"""Tables in the paper's form: the baseline in percent, every other method as its signed change.

One typed table becomes Markdown, LaTeX, a terminal table or part of the page. A cell without a record is empty.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import groupby
from typing import Literal

from placevalue.common.errors import ConfigError
from placevalue.common.validation import one_of
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.statistics import Interval
from placevalue.reports.breakdowns import CEILING, FLOOR, TaskGrid
from placevalue.reports.conclusions import conclusion, copy_remark
from placevalue.reports.formatting import counted, duration, format_interval, format_number, format_value
from placevalue.reports.paper_results import ABSOLUTE, SETS, published_rows
from placevalue.reports.paper_results import METHODS as PAPER_METHODS
from placevalue.reports.summary import Cell, Change, Column, Row, Summary

SHOWN = ("accuracy_paper", "cer_written")
"""The metrics of a report by default: those of the paper."""
PERCENTAGES = tuple(name for name, metric in METRICS.items() if metric.is_share)
LEGEND = (
    "The first row is in percent, as are the trivial ones, which need no model; the others are changes from the first "
    "in percentage points. 95% intervals in brackets; † p < 0.05, ‡ p < 0.01 over two seeds or more, after Holm's "
    "correction over a column's methods or, if the recipe has contrasts, over these: rows such as a − b and those that "
    "are not exploratory; ° not significantly better than the best trivial row. The paper's rows are changes from its "
    "Digits."
)
COLOURS = "Only changes with † or ‡ have a colour"
"""Added to the legend where there are colours."""
GRID_LEGEND = (
    "Percent right, by the digits of the longest operand. exact: the whole answer is right and nothing else. off by: "
    "the mean size of log10(answer / right answer), where both are positive numbers; 1 is ten times too large or small."
)
_PREAMBLE = r"% needs \usepackage{booktabs,graphicx} and \usepackage[table]{xcolor}"
_TITLES = {
    "accuracy_paper": "Accuracy",
    "accuracy_paper_reachable": "Accuracy on answers within the token limit",
    "cer_written": "Character error rate",
}
_LARGE = 0.01  # above this, a change is shown darker, as in the paper
Tone = Literal["plain", "gain", "loss"]


@dataclass(frozen=True)
class Entry:
    """The text of one cell."""

    text: str
    about: str  # the score, the change and p in words
    span: str = ""  # the interval, or empty
    mark: str = ""  # † or ‡ if the change is significant, ° if the method does not beat the best trivial row
    tone: Tone = "plain"
    large: bool = False  # whether the change is above 1 point
    best: bool = False
    part: str = ""  # how many of the column's problems have a value, if not all


@dataclass(frozen=True)
class Line:
    """The texts of one row."""

    label: str
    group: Literal["baseline", "method", "contrast", "exploratory", "trivial", "paper"]
    entries: tuple[Entry | None, ...]
    seeds: int | Literal[""] = ""
    time: str = ""

    @property
    def name(self) -> str:
        """The label, marked if the row is exploratory, trivial or the paper's."""
        return f"{self.group}: {self.label}" if self.group in ("exploratory", "trivial", "paper") else self.label


@dataclass(frozen=True)
class PaperTable:
    """A table in the paper's form."""

    title: str
    subtitle: str
    columns: tuple[Column, ...]  # named by their headers
    lines: tuple[Line, ...]
    words: str  # what you may conclude from it
    copies: str  # how many test questions copy training questions; part of the words too
    asked: int = 0  # the number of problems

    @property
    def headers(self) -> tuple[str, ...]:
        """The columns' headers."""
        return tuple(column.name for column in self.columns)

    def size(self, column: Column) -> str:
        """How many problems a column has, and of how many if it leaves some out: `38 of 500 problems`."""
        if column.kind == "mean":
            return counted(column.n, "set")
        whole = column.kind == "set" or column.n == self.asked
        return counted(column.n, "problem") if whole else f"{column.n:,} of {self.asked:,} problems"


def make_table(summary: Summary) -> PaperTable:
    """A summary in the paper's form, with the paper's own figures below it if the model is the same."""
    metric = summary.metric
    if metric not in PERCENTAGES:
        raise ConfigError(f"{metric} is not a percentage: expected {one_of(PERCENTAGES, metric)}")
    lines: list[Line] = []
    exploratory: list[Line] = []
    for row in summary.rows:
        changes = [cell.change for cell in row.cells if cell and cell.change]
        group: Literal["baseline", "method", "exploratory"] = "method"
        if row.method == summary.baseline:
            group = "baseline"
        elif any(change.exploratory for change in changes):
            group = "exploratory"
        unbeaten = summary.trivial.unbeaten[row.method]
        entries = tuple(
            None if cell is None else replace(_with_trivial(_entry(cell, group, metric), name), part=part)
            for cell, name, part in zip(row.cells, unbeaten, _parts(row, summary.columns), strict=True)
        )
        line = Line(row.method, group, entries, len(row.seeds), duration(row.seconds))
        (exploratory if group == "exploratory" else lines).append(line)
    for contrast in summary.contrasts:
        entries = tuple(None if change is None else _change(change, metric) for change in contrast.changes)
        lines.append(Line(contrast.name, "contrast", entries))
    lines += exploratory
    for name, scores in summary.trivial.scores.items():
        lines.append(Line(name, "trivial", tuple(None if score is None else _score(score, metric) for score in scores)))
    for method, figures in published_rows(summary.model, metric, summary.columns).items():
        lines.append(Line(PAPER_METHODS[method], "paper", tuple(_published(method, each) for each in figures)))
    better = "lower" if METRICS[metric].direction == "lower" else "higher"
    return PaperTable(
        title=f"{_TITLES.get(metric, metric.replace('_', ' '))}, {better} is better",
        subtitle=f"{summary.name}: {summary.model}",
        columns=tuple(replace(column, name=column_title(column.name)) for column in summary.columns),
        lines=tuple(lines),
        words=" ".join(filter(None, (conclusion(summary), operations_remark(summary)))),
        copies=copy_remark(summary),
        asked=_asked(summary),
    )


def _asked(summary: Summary) -> int:
    return sum(column.n for column in summary.columns if column.kind == "set")


def operations_remark(summary: Summary) -> str:
    """How many problems the columns of operations leave out; empty if there are none."""
    known, asked = sum(column.n for column in summary.columns if column.kind == "operation"), _asked(summary)
    if known in (0, asked):
        return ""
    return f"The columns of operations have {known:,} of the {asked:,} problems: those of one known operation."


def _parts(row: Row, columns: Sequence[Column]) -> list[str]:
    """For each column, how many of its problems have a value, if not all."""
    sizes = [0 if column.kind == "mean" else column.n for column in columns]
    covered = row.covered or sizes
    return [f"{n:,} of {size:,}" if 0 < n < size else "" for n, size in zip(covered, sizes, strict=True)]


def without_operations(table: PaperTable) -> PaperTable:
    """The table without the columns of single operations."""
    kept = [index for index, column in enumerate(table.columns) if column.kind != "operation"]
    lines = (replace(line, entries=tuple(line.entries[index] for index in kept)) for line in table.lines)
    return replace(table, columns=tuple(table.columns[index] for index in kept), lines=tuple(lines))


def column_title(name: str) -> str:
    """The header of a set or operation: the paper's name for it, else its own without underscores."""
    return SETS.get(name, name.replace("_", " "))


def _entry(cell: Cell, group: str, metric: str) -> Entry:
    score, change = _score(cell.score, metric), cell.change
    if group == "baseline":
        return replace(score, best=cell.best)
    if change is None:
        return Entry(f"({score.text})", f"{score.about}; no seed in common", best=cell.best)
    told = _change(change, metric)
    return replace(told, about=f"{score.about}; change {told.about}", best=cell.best)


def _change(change: Change, metric: str) -> Entry:
    """A difference, marked if it is significant over several seeds and was fixed beforehand."""
    text, tone = _signed(100 * change.value), _tone(change, metric)
    span = format_interval(change.low, change.high, metric, signed=True)
    p = f"p = {change.p:.2g}" + (" without correction, exploratory" if change.exploratory else "")
    about = f"{f'{text} {span}'.strip()} over {counted(change.seeds, 'seed')}, {p}"
    mark = "" if not change.is_shown else "‡" if change.p < 0.01 else "†"
    return Entry(text, about, span, mark, tone, tone != "plain" and abs(change.value) > _LARGE)


def _tone(change: Change, metric: str) -> Tone:
    """Whether a difference is an improvement; plain unless it is marked."""
    if not change.is_shown:
        return "plain"
    gains = change.value < 0 if METRICS[metric].direction == "lower" else change.value > 0
    return "gain" if gains else "loss"


def _score(score: Interval, metric: str) -> Entry:
    text, span = format_value(score.value, metric), format_interval(score.low, score.high, metric)
    return Entry(text, f"{text}% {span}".strip(), span)


def _with_trivial(entry: Entry, unbeaten: str) -> Entry:
    """The entry, marked if the method does not beat a trivial row."""
    if not unbeaten:
        return entry
    return replace(entry, about=f"{entry.about}; not significantly better than {unbeaten}", mark=f"{entry.mark}°")


def _published(method: str, value: float | None) -> Entry | None:
    if value is None:
        return None
    if method == ABSOLUTE:
        return Entry(format_number(value), f"{value:g}% in the paper")
    return Entry(_signed(value), f"{value:+g} points in the paper".replace("-", "−"))


def _signed(points: float) -> str:
    """A change as text."""
    text = format_number(points, signed=True)
    return "0.0" if text in ("+0.0", "−0.0") else text


def to_markdown(tables: Sequence[PaperTable]) -> str:
    """The tables as Markdown, each with its conclusion; the best of a column is bold."""

    def cell(entry: Entry | None) -> str:
        if entry is None:
            return ""
        text = f"**{entry.text}**" if entry.best else entry.text
        return " ".join(filter(None, (f"{text}{entry.mark}", entry.span, entry.part and f"({entry.part})")))

    parts = []
    for table in tables:
        rows = [["", *map(_plain, table.headers), "training", "seeds"], ["---", *["--:"] * (len(table.columns) + 2)]]
        for line in table.lines:
            rows.append([_plain(line.name), *map(cell, line.entries), line.time, str(line.seeds)])
        lines = [f"**{_plain(table.subtitle)}. {table.title}**", "", *(f"| {' | '.join(row)} |" for row in rows)]
        parts.append("\n".join([*lines, "", _plain(table.words)]))
    return "\n\n".join([*parts, f"{LEGEND} Bold: the best of a column."]) + "\n"


def told_between(grid: TaskGrid, method: str) -> str:
    """In how many cells methods can be told apart."""
    few, cells = grid.between(method)
    return f"{few} of {cells} cells lie between {FLOOR:.0%} and {CEILING:.0%}."


def grids_to_markdown(grids: Sequence[TaskGrid]) -> str:
    """Generated tasks by length as Markdown, one table for each method."""
    parts = []
    for grid in grids:
        for method, scores in grid.scores.items():
            rows = [["", *grid.columns], ["---", *["--:"] * len(grid.columns)]]
            for task, found in zip(grid.tasks, scores, strict=True):
                cells = zip(found, grid.metrics, strict=True)
                rows.append([task, *("" if each is None else format_value(each.value, name) for each, name in cells)])
            title = f"**{_plain(grid.title)}: {_plain(method)}**. {told_between(grid, method)}"
            parts.append("\n".join([title, "", *(f"| {' | '.join(row)} |" for row in rows)]))
    return "\n\n".join([*parts, GRID_LEGEND]) + "\n" if parts else ""


def _plain(text: str) -> str:
    """Escape text for Markdown."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|" else letter for letter in " ".join(text.split()))


_TEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"−": "$-$", "<": "$<$", ">": "$>$", "†": r"\textsuperscript{\dag}", "‡": r"\textsuperscript{\ddag}"}
    | {"°": r"\textsuperscript{$\circ$}"}
)
_COLOURS = {("gain", False): "D9F0D3", ("gain", True): "7FBF7B", ("loss", False): "FDDBC7", ("loss", True): "EF8A62"}


def to_latex(tables: Sequence[PaperTable]) -> str:
    """The tables as LaTeX, in the paper's colours where a change is significant."""
    lines = [_PREAMBLE]
    for table in tables:
        lines += ["", r"\begin{table*}", r"\centering", rf"\begin{{tabular}}{{l{'r' * (len(table.columns) + 1)}}}"]
        heads = [rf" & \rotatebox{{90}}{{{header.translate(_TEX)}}}" for header in (*table.headers, "training")]
        lines += [r"\toprule", "".join(heads) + r" \\"]
        for group, members in groupby(table.lines, key=lambda line: line.group):
            lines.append(r"\midrule")
            for line in members:
                absolute = group in ("baseline", "trivial") or line.label == PAPER_METHODS[ABSOLUTE]
                cells = [line.name.translate(_TEX), *(_latex_cell(entry, absolute) for entry in line.entries)]
                lines.append(" & ".join([*cells, line.time]) + r" \\")
        about = (f"{table.subtitle}. {table.title}.", table.copies, LEGEND, f"{COLOURS}.")
        caption = " ".join(filter(None, about)).translate(_TEX)
        lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def _latex_cell(entry: Entry | None, absolute: bool) -> str:
    if entry is None:
        return ""
    colour = _COLOURS.get((entry.tone, entry.large), "D9D9D9" if absolute else None)
    text, mark, span = (each.translate(_TEX) for each in (entry.text, entry.mark, entry.span))
    text = rf"\textbf{{{text}}}" if entry.best else text
    small = " ".join(filter(None, (span, entry.part)))
    span = rf" {{\scriptsize {small}}}" if small else ""
    return (rf"\cellcolor[HTML]{{{colour}}}" if colour else "") + text + mark + span


CSV_FIELDS = ("experiment", "model", "metric", "baseline", "method", "seeds", "kind", "column", "n", "copies",
              "score", "score_low", "score_high", "change", "change_low", "change_high", "p", "change_seeds", "best",
              "train_seconds", "unbeaten", "exploratory", "smallest_visible", "covered")  # fmt: skip
_FORMER_FIELDS = CSV_FIELDS[:-3]


def to_csv(summaries: Sequence[Summary]) -> str:
    """Every figure of the tables, one cell a line, as shares; empty if there is none."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for summary in summaries:
        about = (summary.name, summary.model, summary.metric, summary.baseline)
        columns = [(column.kind, column.name, column.n, column.copies) for column in summary.columns]
        for row in summary.rows:
            unbeaten = summary.trivial.unbeaten[row.method]
            for column, cell, name, covered in zip(columns, row.cells, unbeaten, row.covered, strict=True):
                score = astuple(cell.score)[:3] if cell else [""] * 3
                *change, exploratory, visible = _figures(cell.change if cell else None)
                best = int(cell.best) if cell else ""
                shown = [*score, *change, best, row.seconds, name, exploratory, visible, covered]
                writer.writerow([*about, row.method, len(row.seeds), *column, *shown])
        for contrast in summary.contrasts:
            for column, difference in zip(columns, contrast.changes, strict=True):
                *change, exploratory, visible = _figures(difference)
                shown = ["", "", "", *change, "", "", "", exploratory, visible, ""]
                writer.writerow([*about, f"contrast: {contrast.name}", "", *column, *shown])
        for name, scores in summary.trivial.scores.items():
            for column, found in zip(columns, scores, strict=True):
                score = astuple(found)[:3] if found else [""] * 3
                writer.writerow([*about, f"trivial: {name}", "", *column, *score, *[""] * 11])
    return file.getvalue()


def _figures(change: Change | None) -> list[object]:
    """The fields of a change in CSV: 7, empty if there is none."""
    if change is None:
        return [""] * 7
    visible = "" if change.visible is None else change.visible
    return [change.value, change.low, change.high, change.p, change.seeds, int(change.exploratory), visible]


MARKS = {"markdown": LEGEND.partition(";")[0], "latex": _PREAMBLE, "csv": ",".join(_FORMER_FIELDS)}
"""By these texts files with tables are known as ours, those of earlier versions too."""
