"""The paper's published figures for the models, methods and data sets that we have too."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from placevalue.data.fermat import PAPER_SETS
from placevalue.reports.summary import Column

MODELS = {"facebook/bart-base": "BART base", "google/flan-t5-base": "FLAN base", "google/flan-t5-large": "FLAN large"}
METHODS = {
    "digits": "Digits",
    "agg-before": "[AGG] + Digits",
    "agg-after": "Digits + [AGG]",
    "pause": "[PAUSE] + Digits",
    "aux-hard": "Digits + Aux Loss",
}
"""Our methods that the paper has too, with the names of its rows."""
ABSOLUTE = "digits"
"""The row of the paper's tables that is in percent; its others are changes from it."""
TABLES = {"accuracy_paper": ("accuracy", "token_ablation_accuracy"), "cer_written": ("cer",)}
_SETS = ("Original", "Commuted", "Integers 0 to 1000", "2-digit integers", "3-digit integers", "4-digit integers",
         "1000+", "1000+ same", "1dp random", "2dp random")  # fmt: skip
SETS = {"mawps:test": "MAWPS"} | {f"fermat:{ours}": theirs for ours, theirs in zip(PAPER_SETS, _SETS, strict=True)}


@cache
def paper_tables() -> dict[str, Any]:
    """The paper's tables, with a note on how they were read; see `paper.json`."""
    found: dict[str, Any] = json.loads(files("placevalue.reports").joinpath("paper.json").read_text(encoding="utf-8"))
    return found


def published_rows(model: str, metric: str, columns: tuple[Column, ...]) -> dict[str, tuple[float | None, ...]]:
    """The paper's figures for this model and metric, by our method and under our columns; None if it has none.

    Its baseline is in percent, the others are changes in points. Its operations pool the ten FERMAT sets, so they match
    ours only if these are the sets.
    """
    found: dict[str, dict[str, float]] = {}
    for name in TABLES.get(metric, ()):
        found |= paper_tables()[name].get(MODELS.get(model, ""), {})
    sets = [column.name for column in columns if column.kind == "set"]
    pooled = set(sets) == {name for name in SETS if name.startswith("fermat:")}

    def figure(row: dict[str, float], column: Column) -> float | None:
        if column.kind == "mean":
            every = [row.get(SETS.get(name, "")) for name in sets]
            return None if None in every else sum(every) / len(every)  # type: ignore[arg-type]
        if column.kind == "operation":
            return row.get(column.name) if pooled else None
        return row.get(SETS.get(column.name, ""))

    ours = {method: found[theirs] for method, theirs in METHODS.items() if theirs in found}
    rows = {method: tuple(figure(row, column) for column in columns) for method, row in ours.items()}
    return {method: figures for method, figures in rows.items() if any(each is not None for each in figures)}
