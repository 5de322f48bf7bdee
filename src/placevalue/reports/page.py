"""One self-contained HTML page of several experiments: tables, charts and every prediction.

The page needs no network. Nothing that a model or a data set wrote can become markup: the template escapes all text,
the predictions are JSON that the script shows as text, and the page's policy allows no other script.
"""

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import placevalue
from placevalue.common.ownership import replace_own
from placevalue.evaluation.scoring import group_rows
from placevalue.evaluation.trivial import ABOUT
from placevalue.experiments.methods import METHODS
from placevalue.reports.breakdowns import Breakdown, break_down, learning_curves, task_grids
from placevalue.reports.charts import curve_chart, further_colours, heat_map, method_class, point_chart
from placevalue.reports.costs import cost_remark
from placevalue.reports.formatting import counted
from placevalue.reports.results import Experiment, load_experiments
from placevalue.reports.runs import FACTS, fact_text, run_table, runs_to_csv
from placevalue.reports.summary import Summary, headline, summarise
from placevalue.reports.tables import (
    COLOURS,
    GRID_LEGEND,
    LEGEND,
    SHOWN,
    column_title,
    make_table,
    to_csv,
    told_between,
)

REPORT = "report.html"
DIVIDERS = {
    "contrast": "differences that were fixed beforehand",
    "exploratory": "exploratory: not fixed beforehand, so not marked as significant",
    "trivial": "trivial answers, which need no model",
    "paper": "published in the paper for this model",
}
"""What stands above the rows of a group."""
OURS = ("baseline", "method", "exploratory")
"""The groups of rows with a method of the experiment."""
MARK = "<title>placevalue: "
"""By this text a page is known as ours."""
MOST_PREDICTIONS = 120_000
"""The most predictions of one experiment that the page lists; if there are more, it lists those of the first seeds."""


def report(
    folders: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None = None,
    baseline: str | None = None,
    metrics: Sequence[str] = SHOWN,
) -> Path:
    """Write the page of one or several experiments.

    Args:
        folders: Folders that `placevalue reproduce` wrote, the most important first.
        out: The file; `report.html` in the first folder by default.
        baseline: The method to compare with; by default as in `summarise`.
        metrics: One table each.

    Example:
        >>> report(["runs/quick", "results/flan-t5-small-title-mawps"])  # doctest: +SKIP
        PosixPath('runs/quick/report.html')
    """
    experiments = load_experiments(folders)
    out = Path(folders[0]) / REPORT if out is None else Path(out)
    return replace_own(out, make_page(experiments, baseline, metrics), MARK)


write_report = report  # its first name


def make_page(experiments: Sequence[Experiment], baseline: str | None = None, metrics: Sequence[str] = SHOWN) -> str:
    """The page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("placevalue.reports", "template")
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    templates.filters["source_hash"] = _source_hash
    summaries = [[summarise(each, baseline, metric) for metric in metrics] for each in experiments]
    return templates.get_template("page.html.j2").render(
        style=loader.get_source(templates, "page.css")[0] + further_colours(),
        script=loader.get_source(templates, "page.js")[0],
        version=placevalue.__version__,
        legend=f"{LEGEND} {COLOURS}: green is better, red is worse, darker above 1 point.",
        run_facts=FACTS,
        fact_text=fact_text,
        about={name: method.about for name, method in METHODS.items()} | ABOUT,
        dividers=DIVIDERS,
        colour=method_class,
        counted=counted,
        sections=list(map(_section, experiments, summaries)),
        data=list(map(_predictions, experiments, summaries)),
    )


def _source_hash(text: str) -> str:
    """How the page's policy names the one script or style that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _section(experiment: Experiment, summaries: Sequence[Summary]) -> dict[str, Any]:
    """Everything about one experiment except its predictions, and its row of the overview."""
    tables, column = [make_table(summary) for summary in summaries], headline(summaries[0])
    entries = {line.label: line.entries[column] for line in tables[0].lines if line.group in OURS}
    baseline, best = summaries[0].baseline, {label: each for label, each in entries.items() if each and each.best}
    return {
        "experiment": experiment,
        "facts": _facts(experiment),
        "tables": tables,
        "runs": run_table(experiment),
        "points": [(each.title, _part(each, experiment), point_chart(each)) for each in break_down(experiment)],
        "grids": [
            (grid.title, [(method, told_between(grid, method), heat_map(grid, method)) for method in grid.scores])
            for grid in task_grids(experiment)
        ],
        "grid_legend": GRID_LEGEND,
        "curves": [(each.title, "", curve_chart(each)) for each in learning_curves(experiment)],
        "column": tables[0].headers[column],
        "baseline": baseline,
        "level": entries[baseline],
        "best": list(best),
        "change": next(iter(best.values()), None),
    }


def _part(breakdown: Breakdown, experiment: Experiment) -> str:
    """How many problems a chart is of, if not all."""
    total = len(experiment.runs[0].rows)
    return "" if breakdown.problems == total else f"{breakdown.problems:,} of {total:,} problems"


def _facts(experiment: Experiment) -> dict[str, str]:
    """What was trained and tested, where and when."""
    runs, methods = experiment.runs, counted(len(experiment.methods), "method")
    sets = group_rows([row.set for row in runs[0].rows])
    tested = ", ".join(f"{column_title(name)} ({len(rows):,})" for name, rows in sets.items())
    if len(sets) > 3:
        tested = f"{len(sets)} sets, {len(runs[0].rows):,} problems"
    days = sorted({str(run.train.provenance.get("time", ""))[:10] for run in runs} - {""})
    commits = [run.train.provenance.get("git", {}) for run in runs]
    return {
        "model": experiment.model,
        "trained on": _several(run.train.config.get("data", {}).get("train") for run in runs),
        "dev": _several(run.train.config.get("data", {}).get("dev") for run in runs),
        "tested on": tested,
        "runs": f"{len(runs)}: {methods}, {counted(len(experiment.seeds), 'seed')}",
        "steps": _several(f"{run.train.steps:,}" for run in runs),
        "device": _several(run.train.provenance.get("device") for run in runs),
        "date": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        "time": cost_remark(experiment),
        "commit": _several(git.get("commit", "")[:10] + " with changes" * bool(git.get("dirty")) for git in commits),
    }


def _several(values: Iterable[object]) -> str:
    """Each distinct value once."""
    return ", ".join(dict.fromkeys(str(value) for value in values if value))


def _predictions(experiment: Experiment, summaries: Sequence[Summary]) -> dict[str, Any]:
    """The data of the list of predictions: every problem once, and a text and a verdict from each run."""
    rows = experiment.runs[0].rows
    seeds = max(1, MOST_PREDICTIONS // max(1, len(rows) * len(experiment.methods)))
    runs = [run for run in experiment.runs if run.seed in experiment.seeds[:seeds]]
    seen = np.zeros(len(rows), dtype=int)
    seen[list(experiment.copies.repeated)], seen[list(experiment.copies.reworded)] = 1, 2
    sets, operations = (list(group_rows(keys)) for keys in ([row.set for row in rows], [row.operation for row in rows]))
    return {
        "name": experiment.name,
        "baseline": summaries[0].baseline,
        "unlisted": len(experiment.runs) - len(runs),
        "sets": [[name, column_title(name)] for name in sets],
        "operations": operations,
        "ids": [row.id for row in rows],
        "set": [sets.index(row.set) for row in rows],
        "operation": [-1 if row.operation is None else operations.index(row.operation) for row in rows],
        "seen": seen.tolist() if experiment.training else None,
        "questions": [row.question for row in rows] if any(row.question for row in rows) else None,
        "answers": [row.answer for row in rows],
        "runs": [
            {
                "method": run.method,
                "colour": method_class(run.method),
                "seed": run.seed,
                "texts": [row.prediction for row in run.rows],
                "right": "".join(f"{value:.0f}" for value in run.values("accuracy_paper")),
            }
            for run in runs
        ],
        "files": {
            "tables.csv": to_csv(summaries),
            "runs.csv": runs_to_csv(table := run_table(experiment)),
            "recipe.yaml": table.recipe,
        },
    }
