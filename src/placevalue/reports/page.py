"""One self-contained page of several experiments: tables, charts, and every prediction to browse.

The page needs no network, and nothing that a model or a data set wrote can become markup: fragments are made by
`markup.tag`, the predictions travel as JSON and are shown as text, and the page's own policy allows no other script.
"""

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import placevalue
from placevalue.common.files import write_whole
from placevalue.evaluation.metrics import accuracy
from placevalue.experiments.methods import METHODS
from placevalue.reports.breakdowns import break_down, loss_curves
from placevalue.reports.charts import curve_chart, method_class, point_chart
from placevalue.reports.markup import Markup, join, tag
from placevalue.reports.results import Experiment, Run, load_experiments
from placevalue.reports.summary import Summary, conclusion, headline, summarise
from placevalue.reports.tables import LEGEND, SHOWN, Entry, Line, PaperTable, column_title, make_table

REPORT = "report.html"
MOST_PREDICTIONS = 120_000
"""Predictions of one experiment that the page lists; where there are more, those of the first seeds."""


def report(
    folders: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None = None,
    baseline: str | None = None,
    metrics: Sequence[str] = SHOWN,
) -> Path:
    """Write the page of one or several experiments.

    Args:
        folders: What `placevalue reproduce` wrote, the most important first.
        out: The file; `report.html` in the first folder by default.
        baseline: The method to compare with; by default as `summarise` chooses it.
        metrics: Those that get a table.

    Example:
        >>> report(["runs/quick", "results/flan-t5-small-title-mawps"])  # doctest: +SKIP
        PosixPath('runs/quick/report.html')
    """
    experiments = load_experiments(folders)
    out = Path(folders[0]) / REPORT if out is None else Path(out)
    return write_whole(out, make_page(experiments, baseline, metrics))


write_report = report  # what it was called first


def make_page(experiments: Sequence[Experiment], baseline: str | None = None, metrics: Sequence[str] = SHOWN) -> str:
    """The page as text."""
    summaries = [[summarise(each, baseline, metric) for metric in metrics] for each in experiments]
    sections = [_section(index, *both) for index, both in enumerate(zip(experiments, summaries, strict=True))]
    data = [_predictions(*both) for both in zip(experiments, summaries, strict=True)]
    style, script = _read("page.css"), _read("page.js")
    links = [(f"#e{index}", each.name) for index, each in enumerate(experiments)]
    return Template(_read("page.html")).substitute(
        policy=f"default-src 'none'; style-src '{_source_hash(style)}'; script-src '{_source_hash(script)}'",
        style=style,
        script=script,
        title=tag("title", f"placevalue: {', '.join(each.name for each in experiments)}"),
        links=join(*(tag("a", name, href=link) for link, name in [*links, ("#predictions", "Predictions")])),
        overview=_overview(experiments, [each[0] for each in summaries]) if len(experiments) > 1 else "",
        sections=join(*sections),
        version=placevalue.__version__,
        data=as_script(data),
    )


def _read(name: str) -> str:
    return files("placevalue.reports").joinpath("template", name).read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    """As a page's policy names the one script or style that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def as_script(value: object) -> str:
    """JSON that is safe inside a script element: no text in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _overview(experiments: Sequence[Experiment], summaries: Sequence[Summary]) -> Markup:
    """The best method of each experiment beside its baseline."""
    rows = []
    for index, (experiment, summary) in enumerate(zip(experiments, summaries, strict=True)):
        table, column = make_table(summary), headline(summary)
        ours = [line for line in table.lines if line.group != "paper"]
        best = [line for line in ours if (entry := line.entries[column]) is not None and entry.best]
        cells = [tag("th", tag("a", experiment.name, href=f"#e{index}"), scope="row"), tag("td", experiment.model)]
        cells += [tag("td", table.headers[column]), tag("td", summary.baseline), _cell(ours[0].entries[column])]
        cells += [tag("td", ", ".join(line.label for line in best)), _cell(best[0].entries[column] if best else None)]
        rows.append(tag("tr", *cells))
    heads = ("experiment", "model", "column", "baseline", "%", "best method", "change")
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in heads)))
    return tag("section", tag("h2", "Overview"), _scrolled(head, tag("tbody", *rows)), id="overview")


def _section(index: int, experiment: Experiment, summaries: Sequence[Summary]) -> Markup:
    """All of one experiment but its predictions."""
    points = [_figure(each.title, point_chart(each)) for each in break_down(experiment)]
    curves = [_figure(each.title, curve_chart(each)) for each in loss_curves(experiment)]
    return tag(
        "section",
        tag("h2", experiment.name),
        _facts(experiment),
        *(tag("p", conclusion(summary), class_="conclusion") for summary in summaries[:1]),
        *(_table(make_table(summary)) for summary in summaries),
        tag("p", f"{LEGEND} Green is better, darker above 1 point; bold is the best of a column.", class_="legend"),
        tag("h3", "Where the methods differ"),
        _keys(experiment.methods),
        tag("div", *points, class_="charts"),
        tag("div", *curves, class_="charts"),
        tag("p", "Bars are 95% intervals. Thin lines are seeds, thick ones their mean.", class_="legend"),
        _missing(experiment),
        id=f"e{index}",
        class_="experiment",
    )


def _figure(title: str, chart: Markup) -> Markup:
    return tag("figure", tag("figcaption", title), chart)


def _facts(experiment: Experiment) -> Markup:
    """What was trained and tested, where and when."""
    runs, methods = experiment.runs, len(experiment.methods)
    sets = {name: sum(row.set == name for row in runs[0].rows) for name in dict.fromkeys(r.set for r in runs[0].rows)}
    tested = ", ".join(f"{column_title(name)} ({count:,})" for name, count in sets.items())
    if len(sets) > 3:
        tested = f"{len(sets)} sets, {len(runs[0].rows):,} problems"
    days = sorted({str(run.train.provenance.get("time", ""))[:10] for run in runs} - {""})
    facts = {
        "model": experiment.model,
        "trained on": _several(run.train.config.get("data", {}).get("train") for run in runs),
        "tested on": tested,
        "runs": f"{len(runs)}: {_counted(methods, 'method')}, {_counted(len(experiment.seeds), 'seed')}",
        "steps": _several(f"{run.train.steps:,}" for run in runs),
        "device": _several(run.train.provenance.get("device") for run in runs),
        "date": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        "commit": _several(map(_commit, runs)),
    }
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    return tag("dl", *pairs, class_="facts")


def _several(values: Iterable[object]) -> str:
    """Each of several values once."""
    return ", ".join(dict.fromkeys(str(value) for value in values if value))


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _commit(run: Run) -> str:
    git = run.train.provenance.get("git", {})
    return git.get("commit", "")[:10] + (" with changes" if git.get("dirty") else "")


def _table(table: PaperTable) -> Markup:
    starts = [index for index, kind in enumerate(table.kinds) if not index or table.kinds[index - 1] != kind]
    heads = [tag("th", "", scope="col")]
    for index, (header, kind, count) in enumerate(zip(table.headers, table.kinds, table.counts, strict=True)):
        size = f"{count:,} {'sets' if kind == 'mean' else 'problems'}"
        heads.append(tag("th", header, tag("small", size), scope="col", class_="edge" if index in starts else None))
    heads.append(tag("th", "training", tag("small", "mean"), scope="col", class_="edge"))
    lines = []
    for number, line in enumerate(table.lines):
        if line.group == "paper" and table.lines[number - 1].group != "paper":
            text = "the paper's published figures for this model"
            lines.append(tag("tr", tag("th", text, colspan=len(heads), scope="rowgroup"), class_="divider"))
        lines.append(_row(line, starts))
    name, _, direction = table.title.partition(", ")
    caption = tag("caption", name, tag("small", f"{direction}; %"))
    return _scrolled(caption, tag("thead", tag("tr", *heads)), tag("tbody", *lines))


def _row(line: Line, starts: Sequence[int]) -> Markup:
    about = METHODS[line.label].about if line.label in METHODS else None
    seeds = tag("small", _counted(int(line.seeds), "seed")) if line.seeds else None
    cells = [_cell(entry, index in starts) for index, entry in enumerate(line.entries)]
    head = tag("th", line.label, seeds, scope="row", title=about)
    return tag("tr", head, *cells, tag("td", line.time, class_="edge time"), class_=line.group)


def _cell(entry: Entry | None, edge: bool = False) -> Markup:
    if entry is None:
        return tag("td", class_="edge" if edge else None)
    names = [entry.tone, "large" if entry.large else "", "best" if entry.best else "", "edge" if edge else ""]
    mark = tag("sup", entry.mark) if entry.mark else None
    span = tag("small", entry.span) if entry.span else None
    return tag("td", tag("span", entry.text, mark), span, class_=" ".join(filter(None, names)), title=entry.about)


def _scrolled(*parts: Markup) -> Markup:
    return tag("div", tag("table", *parts), class_="scrolled", tabindex=0)


def _keys(methods: Sequence[str]) -> Markup:
    """The colours of the methods; a click hides one."""
    keys = [
        tag("button", tag("i", class_=method_class(name)), name, type="button", data_key=name, aria_pressed="true")
        for name in methods
    ]
    return tag("div", *keys, class_="keys")


def _missing(experiment: Experiment) -> Markup | None:
    if not experiment.missing:
        return None
    lines = [tag("li", line) for line in experiment.missing]
    return tag(
        "details",
        tag("summary", f"{_counted(len(lines), 'run')} without a result"),
        tag("ul", *lines),
        class_="missing",
    )


def _predictions(experiment: Experiment, summaries: Sequence[Summary]) -> dict[str, Any]:
    """What the page's list of predictions is made of: problems once, and of each run a text and a verdict each."""
    rows = experiment.runs[0].rows
    seeds = experiment.seeds
    fits = max(1, MOST_PREDICTIONS // max(1, len(rows) * len(experiment.methods)))
    runs = [run for run in experiment.runs if run.seed in seeds[:fits]]
    sets, operations = _numbered(row.set for row in rows), _numbered(row.operation for row in rows)
    right: Callable[[Run], str] = lambda run: "".join(str(int(accuracy(each, "paper"))) for each in run.answers)  # noqa: E731
    return {
        "name": experiment.name,
        "baseline": summaries[0].baseline,
        "unlisted": len(experiment.runs) - len(runs),
        "sets": [[name, column_title(name)] for name in sets],
        "operations": list(operations),
        "ids": [row.id for row in rows],
        "set": [sets[row.set] for row in rows],
        "operation": [-1 if row.operation is None else operations[row.operation] for row in rows],
        "questions": [row.question for row in rows] if any(row.question for row in rows) else None,
        "answers": [row.answer for row in rows],
        "runs": [
            {
                "method": run.method,
                "colour": method_class(run.method),
                "seed": run.seed,
                "texts": [row.prediction for row in run.rows],
                "right": right(run),
            }
            for run in runs
        ],
    }


def _numbered(names: Iterable[str | None]) -> dict[str, int]:
    found = dict.fromkeys(name for name in names if name is not None)
    return {name: index for index, name in enumerate(found)}
