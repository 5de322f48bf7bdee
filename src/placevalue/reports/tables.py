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
from placevalue.evaluation.metrics import METRICS
from placevalue.reports.formatting import counted, duration, format_interval, format_number, format_value
from placevalue.reports.paper_results import METHODS as PAPER_METHODS
from placevalue.reports.paper_results import SETS, published_rows
from placevalue.reports.summary import BASELINE, Cell, Column, Summary, conclusion

SHOWN = ("accuracy_paper", "cer_written")
"""The metrics of a report by default: those of the paper."""
PERCENTAGES = tuple(name for name, metric in METRICS.items() if metric.direction != "zero")
LEGEND = (
    "The first row is in percent; the others are changes from it in percentage points. 95% intervals in brackets; "
    "† p < 0.05, ‡ p < 0.01 after Holm's correction over the methods of a column."
)
_TITLES = {
    "accuracy_paper": "Accuracy",
    "accuracy_paper_reachable": "Accuracy on answers within the token limit",
    "cer_written": "Character error rate",
}
_LARGE = 1.0  # points above which a change is shown darker, as in the paper
Tone = Literal["plain", "gain", "loss"]


@dataclass(frozen=True)
class Entry:
    """The text of one cell."""

    text: str
    about: str  # the score, the change and p in words
    span: str = ""  # the interval, or empty
    mark: str = ""  # † or ‡ if the change is significant
    tone: Tone = "plain"
    large: bool = False  # whether the change is above 1 point
    best: bool = False


@dataclass(frozen=True)
class Line:
    """The texts of one row."""

    label: str
    group: Literal["baseline", "method", "paper"]
    entries: tuple[Entry | None, ...]
    seeds: int | Literal[""] = ""
    time: str = ""

    @property
    def name(self) -> str:
        """The label, marked if the row is the paper's."""
        return f"paper: {self.label}" if self.group == "paper" else self.label


@dataclass(frozen=True)
class PaperTable:
    """A table in the paper's form."""

    title: str
    subtitle: str
    columns: tuple[Column, ...]  # named by their headers
    lines: tuple[Line, ...]
    words: str  # what you may conclude from it

    @property
    def headers(self) -> tuple[str, ...]:
        """The columns' headers."""
        return tuple(column.name for column in self.columns)


def make_table(summary: Summary) -> PaperTable:
    """A summary in the paper's form, with the paper's own figures below it if the model is the same."""
    metric = summary.metric
    if metric not in PERCENTAGES:
        raise ConfigError(f"{metric} is not a percentage: expected one of {', '.join(PERCENTAGES)}")
    lines = []
    for row in summary.rows:
        group: Literal["baseline", "method"] = "baseline" if row.method == summary.baseline else "method"
        entries = tuple(None if cell is None else _entry(cell, group, metric) for cell in row.cells)
        lines.append(Line(row.method, group, entries, len(row.seeds), duration(row.seconds)))
    for method, figures in published_rows(summary.model, metric, summary.columns).items():
        lines.append(Line(PAPER_METHODS[method], "paper", tuple(_published(method, each, metric) for each in figures)))
    better = "lower" if METRICS[metric].direction == "lower" else "higher"
    return PaperTable(
        title=f"{_TITLES.get(metric, metric.replace('_', ' '))}, {better} is better",
        subtitle=f"{summary.name}: {summary.model}",
        columns=tuple(replace(column, name=column_title(column.name)) for column in summary.columns),
        lines=tuple(lines),
        words=conclusion(summary),
    )


def without_operations(table: PaperTable) -> PaperTable:
    """The table without the columns of single operations."""
    kept = [index for index, column in enumerate(table.columns) if column.kind != "operation"]
    lines = (replace(line, entries=tuple(line.entries[index] for index in kept)) for line in table.lines)
    return replace(table, columns=tuple(table.columns[index] for index in kept), lines=tuple(lines))


def column_title(name: str) -> str:
    """The header of a set or operation: the paper's name for it, else its own without underscores."""
    return SETS.get(name, name.replace("_", " "))


def _entry(cell: Cell, group: str, metric: str) -> Entry:
    score, change = cell.score, cell.change
    text, span = format_value(score.value, metric), format_interval(score.low, score.high, metric)
    about = f"{text}% {span}".strip()
    if group == "baseline":
        return Entry(text, about, span, best=cell.best)
    if change is None:
        return Entry(f"({text})", f"{about}; no seed in common", best=cell.best)
    text, tone, large = _signed(100 * change.value, metric)
    span = format_interval(change.low, change.high, metric, signed=True)
    about += f"; change {f'{text} {span}'.strip()} over {counted(change.seeds, 'seed')}, p = {change.p:.2g}"
    mark = "‡" if change.p < 0.01 else "†" if change.p < 0.05 else ""
    return Entry(text, about, span, mark, tone, large, cell.best)


def _published(method: str, value: float | None, metric: str) -> Entry | None:
    if value is None:
        return None
    if method == BASELINE:
        return Entry(format_number(value), f"{value:g}% in the paper")
    text, tone, large = _signed(value, metric)
    return Entry(text, f"{value:+g} points in the paper".replace("-", "−"), tone=tone, large=large)


def _signed(points: float, metric: str) -> tuple[str, Tone, bool]:
    """A change as text, whether it is an improvement, and whether it is above 1 point."""
    text = format_number(points, signed=True)
    if text in ("+0.0", "−0.0"):
        return "0.0", "plain", False
    gains = points < 0 if METRICS[metric].direction == "lower" else points > 0
    return text, "gain" if gains else "loss", abs(points) > _LARGE


def to_markdown(tables: Sequence[PaperTable]) -> str:
    """The tables as Markdown, each with its conclusion; the best of a column is bold."""

    def cell(entry: Entry | None) -> str:
        if entry is None:
            return ""
        text = f"**{entry.text}**" if entry.best else entry.text
        return f"{text}{entry.mark} {entry.span}".strip()

    parts = []
    for table in tables:
        rows = [["", *map(_plain, table.headers), "training", "seeds"], ["---", *["--:"] * (len(table.columns) + 2)]]
        for line in table.lines:
            rows.append([_plain(line.name), *map(cell, line.entries), line.time, str(line.seeds)])
        lines = [f"**{_plain(table.subtitle)}. {table.title}**", "", *(f"| {' | '.join(row)} |" for row in rows)]
        parts.append("\n".join([*lines, "", _plain(table.words)]))
    return "\n\n".join([*parts, f"{LEGEND} Bold: the best of a column."]) + "\n"


def _plain(text: str) -> str:
    """Escape text for Markdown."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|" else letter for letter in " ".join(text.split()))


_TEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"−": "$-$", "<": "$<$", ">": "$>$", "†": r"\textsuperscript{\dag}", "‡": r"\textsuperscript{\ddag}"}
)
_COLOURS = {("gain", False): "D9F0D3", ("gain", True): "7FBF7B", ("loss", False): "FDDBC7", ("loss", True): "EF8A62"}


def to_latex(tables: Sequence[PaperTable]) -> str:
    """The tables as LaTeX, coloured as in the paper."""
    lines = [r"% needs \usepackage{booktabs,graphicx} and \usepackage[table]{xcolor}"]
    for table in tables:
        lines += ["", r"\begin{table*}", r"\centering", rf"\begin{{tabular}}{{l{'r' * (len(table.columns) + 1)}}}"]
        heads = [rf" & \rotatebox{{90}}{{{header.translate(_TEX)}}}" for header in (*table.headers, "training")]
        lines += [r"\toprule", "".join(heads) + r" \\"]
        for group, members in groupby(table.lines, key=lambda line: line.group):
            lines.append(r"\midrule")
            for line in members:
                absolute = group == "baseline" or line.label == PAPER_METHODS[BASELINE]
                cells = [line.name.translate(_TEX), *(_latex_cell(entry, absolute) for entry in line.entries)]
                lines.append(" & ".join([*cells, line.time]) + r" \\")
        caption = f"{table.subtitle}. {table.title}. {LEGEND}".translate(_TEX)
        lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def _latex_cell(entry: Entry | None, absolute: bool) -> str:
    if entry is None:
        return ""
    colour = _COLOURS.get((entry.tone, entry.large), "D9D9D9" if absolute else None)
    text, mark, span = (each.translate(_TEX) for each in (entry.text, entry.mark, entry.span))
    text = rf"\textbf{{{text}}}" if entry.best else text
    span = rf" {{\scriptsize {span}}}" if span else ""
    return (rf"\cellcolor[HTML]{{{colour}}}" if colour else "") + text + mark + span


CSV_FIELDS = ("experiment", "model", "metric", "baseline", "method", "seeds", "kind", "column", "n", "score",
              "score_low", "score_high", "change", "change_low", "change_high", "p", "change_seeds", "best",
              "train_seconds")  # fmt: skip


def to_csv(summaries: Sequence[Summary]) -> str:
    """Every figure of the tables, one cell a line, as shares; empty if there is none."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for summary in summaries:
        about = (summary.name, summary.model, summary.metric, summary.baseline)
        for row in summary.rows:
            for column, cell in zip(summary.columns, row.cells, strict=True):
                score = astuple(cell.score)[:3] if cell else [""] * 3
                change = astuple(cell.change) if cell and cell.change else [""] * 5
                head = (*about, row.method, len(row.seeds), column.kind, column.name, column.n)
                writer.writerow([*head, *score, *change, int(cell.best) if cell else "", row.seconds])
    return file.getvalue()
