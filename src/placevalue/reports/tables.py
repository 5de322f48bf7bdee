"""Tables in the paper's form: the baseline absolute, every other method as its signed change.

One typed table, shown in the terminal, as Markdown, LaTeX or CSV, and in the page that `reporting` writes. A cell
without a record is empty.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from placevalue.common.errors import ConfigError
from placevalue.evaluation.metrics import METRICS
from placevalue.reports.formatting import counted, duration, format_interval, format_number, format_value
from placevalue.reports.paper_results import METHODS as PAPER_METHODS
from placevalue.reports.paper_results import SETS, PublishedRow, published_rows
from placevalue.reports.summary import BASELINE, Cell, Change, Row, Summary, conclusion

SHOWN = ("accuracy_paper", "cer_written")
"""The metrics of a report unless others are asked for: those of the paper."""
PERCENTAGES = tuple(name for name, metric in METRICS.items() if metric.direction != "zero")  # a signed error is none
LEGEND = (
    "The first row is in percent, the others are changes from it in points. In brackets 95% intervals; † p < 0.05, "
    "‡ p < 0.01 after Holm's correction for the methods of a column."
)
_TITLES = {
    "accuracy_paper": "Accuracy",
    "accuracy_paper_reachable": "Accuracy on answers that can be written",
    "cer_written": "Character error rate",
}
_LARGE = 1.0  # points from which on a change is shown darker, as in the paper
Tone = Literal["plain", "gain", "loss"]


@dataclass(frozen=True)
class Entry:
    """One cell as it is shown."""

    text: str
    span: str
    """Its interval, or nothing."""
    mark: str
    """How significant the change is."""
    tone: Tone
    large: bool
    """Whether the change is above 1 point."""
    best: bool
    about: str
    """The whole of it in words."""


@dataclass(frozen=True)
class Line:
    """One row as it is shown."""

    label: str
    group: Literal["baseline", "method", "paper"]
    seeds: str
    time: str
    entries: tuple[Entry | None, ...]

    @property
    def name(self) -> str:
        """The label, marked where the row is the paper's."""
        return f"paper: {self.label}" if self.group == "paper" else self.label


@dataclass(frozen=True)
class PaperTable:
    """A table in the paper's form."""

    title: str
    subtitle: str
    headers: tuple[str, ...]
    kinds: tuple[str, ...]
    """`set`, `mean`, `unseen` or `operation`, one for each header."""
    counts: tuple[int, ...]
    lines: tuple[Line, ...]
    words: str
    """What may be concluded from it."""


def make_table(summary: Summary) -> PaperTable:
    """A summary in the paper's form, with the paper's own figures below where the model is the same.

    Example:
        >>> make_table(summarise(load_experiment("runs/quick"))).headers  # doctest: +SKIP
        ('MAWPS', 'a*b', 'a+b', 'a-b', 'a/b')
    """
    if summary.metric not in PERCENTAGES:
        raise ConfigError(f"{summary.metric} is no percentage: expected one of {', '.join(PERCENTAGES)}")
    direction = METRICS[summary.metric].direction
    lines = [_line(row, summary) for row in summary.rows]
    for row in published_rows(summary.model, summary.metric, summary.columns):
        entries = tuple(_published(row, value, direction) for value in row.figures)
        lines.append(Line(row.name, "paper", "", "", entries))
    return PaperTable(
        title=f"{metric_title(summary.metric)}, {'lower' if direction == 'lower' else 'higher'} is better",
        subtitle=f"{summary.name}: {summary.model}",
        headers=tuple(column_title(column.name) for column in summary.columns),
        kinds=tuple(column.kind for column in summary.columns),
        counts=tuple(column.n for column in summary.columns),
        lines=tuple(lines),
        words=conclusion(summary),
    )


def without_operations(table: PaperTable) -> PaperTable:
    """The table without what breaks its sets down."""
    kept = [index for index, kind in enumerate(table.kinds) if kind != "operation"]
    lines = (replace(line, entries=tuple(line.entries[index] for index in kept)) for line in table.lines)
    headers, kinds = (tuple(row[index] for index in kept) for row in (table.headers, table.kinds))
    counts = tuple(table.counts[index] for index in kept)
    return replace(table, headers=headers, kinds=kinds, counts=counts, lines=tuple(lines))


def metric_title(metric: str) -> str:
    """A metric for people."""
    return _TITLES.get(metric, metric.replace("_", " "))


def column_title(name: str) -> str:
    """A set or operation for people: as the paper calls it, else without its underscores."""
    return SETS.get(name, name.replace("_", " "))


def _line(row: Row, summary: Summary) -> Line:
    group: Literal["baseline", "method"] = "baseline" if row.method == summary.baseline else "method"
    entries = tuple(None if cell is None else _entry(cell, group, summary.metric) for cell in row.cells)
    return Line(row.method, group, str(len(row.seeds)), duration(row.seconds), entries)


def _entry(cell: Cell, group: str, metric: str) -> Entry:
    score, change = cell.score, cell.change
    text, span = format_value(score.value, metric), format_interval(score.low, score.high, metric)
    about = f"{text}% {span}".strip()
    if group == "baseline":
        return Entry(text, span, "", "plain", False, cell.best, about)
    if change is None:
        return Entry(f"({text})", "", "", "plain", False, cell.best, f"{about}; no seed in common")
    text, tone, large = _signed(100 * change.value, METRICS[metric].direction)
    span = format_interval(change.low, change.high, metric, signed=True)
    about += f"; change {f'{text} {span}'.strip()} over {counted(change.seeds, 'seed')}, p = {change.p:.2g}"
    return Entry(text, span, significance(change), tone, large, cell.best, about)


def _published(row: PublishedRow, value: float | None, direction: str) -> Entry | None:
    if value is None:
        return None
    if row.method == BASELINE:
        return Entry(format_number(value), "", "", "plain", False, False, f"{value:g}% in the paper")
    text, tone, large = _signed(value, direction)
    return Entry(text, "", "", tone, large, False, f"{value:+g} points in the paper".replace("-", "−"))


def _signed(points: float, direction: str) -> tuple[str, Tone, bool]:
    """A change as text, whether it is for the better, and whether it is above 1 point."""
    text = format_number(points, signed=True)
    if text in ("+0.0", "−0.0"):
        return "0.0", "plain", False
    gains = points < 0 if direction == "lower" else points > 0
    return text, "gain" if gains else "loss", abs(points) > _LARGE


def significance(change: Change) -> str:
    """† below 0.05, ‡ below 0.01, nothing else."""
    return "‡" if change.p < 0.01 else "†" if change.p < 0.05 else ""


def to_markdown(tables: Sequence[PaperTable]) -> str:
    """The tables as Markdown, each with what may be concluded from it; the best of a column in bold."""

    def cell(entry: Entry | None) -> str:
        if entry is None:
            return ""
        text = f"**{entry.text}**" if entry.best else entry.text
        return f"{text}{entry.mark} {entry.span}".strip()

    parts = []
    for table in tables:
        heads = ["", *(_plain(header) for header in table.headers), "training", "seeds"]
        lines = [
            f"**{_plain(table.subtitle)}. {table.title}**",
            "",
            _row(heads),
            _row(["---", *["--:"] * (len(heads) - 1)]),
        ]
        for line in table.lines:
            lines.append(_row([_plain(line.name), *(cell(entry) for entry in line.entries), line.time, line.seeds]))
        lines += ["", _plain(table.words)]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, LEGEND.replace("In brackets", "Bold is the best of a column. In brackets")]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Text that Markdown takes for text."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|" else letter for letter in " ".join(text.split()))


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_COLOURS = {("gain", False): "D9F0D3", ("gain", True): "7FBF7B", ("loss", False): "FDDBC7", ("loss", True): "EF8A62"}
_BASE_COLOUR = "D9D9D9"


def to_latex(tables: Sequence[PaperTable]) -> str:
    """The tables as LaTeX, coloured as in the paper."""
    needed = r"% needs \usepackage{booktabs,graphicx} and \usepackage[table]{xcolor}"
    return "\n\n".join([needed, *(_latex_table(table) for table in tables)]) + "\n"


def _latex_table(table: PaperTable) -> str:
    heads = " & ".join(rf"\rotatebox{{90}}{{{_tex(header)}}}" for header in (*table.headers, "training"))
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * (len(table.headers) + 1)}}}",
        r"\toprule",
        rf" & {heads} \\",
    ]
    group = ""
    for line in table.lines:
        if line.group != group:
            lines.append(r"\midrule")
        group = line.group
        cells = [_tex(line.name), *(_latex_cell(entry, _is_base(line)) for entry in line.entries)]
        lines.append(" & ".join([*cells, _tex(line.time)]) + r" \\")
    caption = f"{table.subtitle}. {table.title}. {LEGEND}"
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", rf"\caption{{{_tex(caption)}}}", r"\end{table*}"])


def _is_base(line: Line) -> bool:
    """Whether a row is absolute, ours or the paper's."""
    return line.group == "baseline" or line.label == PAPER_METHODS[BASELINE]


def _latex_cell(entry: Entry | None, base: bool) -> str:
    if entry is None:
        return ""
    colour = _COLOURS.get((entry.tone, entry.large), _BASE_COLOUR if base else None)
    text = rf"\textbf{{{_tex(entry.text)}}}" if entry.best else _tex(entry.text)
    span = rf" {{\scriptsize {_tex(entry.span)}}}" if entry.span else ""
    return (rf"\cellcolor[HTML]{{{colour}}}" if colour else "") + text + _tex(entry.mark) + span


def _tex(text: str) -> str:
    """Text that LaTeX takes for text."""
    signs = _LATEX | {letter: f"\\{letter}" for letter in "&%$#_{}"}
    signs |= {"−": "$-$", "<": "$<$", ">": "$>$", "†": r"\textsuperscript{\dag}", "‡": r"\textsuperscript{\ddag}"}
    return "".join(signs.get(letter, letter) for letter in text)


CSV_FIELDS = ("experiment", "model", "metric", "baseline", "method", "seeds", "kind", "column", "n", "score",
              "score_low", "score_high", "change", "change_low", "change_high", "p", "change_seeds", "best",
              "train_seconds")  # fmt: skip


def to_csv(summaries: Sequence[Summary]) -> str:
    """Every figure of the tables, one cell a line, as shares; empty where there is none."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for summary in summaries:
        writer.writerows(_csv_rows(summary))
    return file.getvalue()


def _csv_rows(summary: Summary) -> Iterator[list[object]]:
    for row in summary.rows:
        for column, cell in zip(summary.columns, row.cells, strict=True):
            head = [summary.name, summary.model, summary.metric, summary.baseline, row.method, len(row.seeds)]
            score: list[object] = [""] * 3 if cell is None else [cell.score.value, cell.score.low, cell.score.high]
            change = None if cell is None else cell.change
            moved: list[object] = [""] * 5
            if change is not None:
                moved = [change.value, change.low, change.high, change.p, change.seeds]
            best = "" if cell is None else int(cell.best)
            yield [*head, column.kind, column.name, column.n, *score, *moved, best, row.seconds]
