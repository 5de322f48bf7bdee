"""The record of a study: the values of every run, and each arm compared with cross-entropy alone."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.addition.grid import CE, Arm, Cell, Grid
from benchmarks.addition.intervals import LEVEL, paired_difference, surviving
from benchmarks.addition.study import read_run
from placevalue.common.errors import DataError
from placevalue.common.files import write_whole

SCHEMA = 1
OUTCOMES = {"exact": 1, "error": -1, "curve": 1}
"""What is compared, with 1 if higher is better and -1 if lower is: exact match and mean absolute error after training,
and the mean exact match over all tests during training, which shows how fast a model learned."""
MARKS = (0.5, 0.9)
"""The record has the first step at which exact match reaches each of these."""


def build_record(grid: Grid, folder: Path) -> dict[str, Any]:
    """Summarise the runs in a folder."""
    found = {run: outcome for run in grid.runs() if (outcome := read_run(folder, run))}
    if not found:
        raise DataError(
            f"{folder} has no run of this study: train the models with `python -m benchmarks.addition run` first"
        )
    runs = [
        {"cell": run.cell.name, "arm": run.arm.name, "seed": run.seed} | _flat(outcome)
        for run, outcome in found.items()
    ]
    cells = [_cell_entry(cell, grid, runs) for cell in sorted(grid.cells, key=lambda cell: (cell.digits, cell.size))]
    comparisons = [
        difference for cell in cells for arm in cell["arms"] for difference in arm.get("differences", {}).values()
    ]
    for difference, kept in zip(comparisons, surviving([one["chance"] for one in comparisons]), strict=True):
        difference["survives"] = kept
    origins = {dumps(outcome["provenance"]): outcome["provenance"] for outcome in found.values()}
    return {
        "schema": SCHEMA,
        "benchmark": "addition",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": asdict(grid.settings) | {"seeds": list(grid.seeds), "arms": [_arm_config(arm) for arm in grid.arms]},
        "provenance": list(origins.values()),
        "parameters": max(outcome["parameters"] for outcome in found.values()),
        "seconds_a_run": round(fmean(outcome["seconds"] for outcome in found.values()), 1),
        "missing": len(grid.runs()) - len(found),
        "level": LEVEL,
        "comparisons": len(comparisons),
        "cells": cells,
        "runs": runs,
    }


def write_record(path: Path, record: dict[str, Any]) -> Path:
    """Write indented JSON with each list of plain values on one line."""
    text = dumps(record, indent=1, ensure_ascii=False)
    return write_whole(path, re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda match: _one_line(match[1]), text) + "\n")


def _one_line(values: str) -> str:
    return "[" + re.sub(r",\s+", ", ", values) + "]"


def _arm_config(arm: Arm) -> dict[str, Any]:
    return {"name": arm.name} | asdict(arm)


def _flat(outcome: dict[str, Any]) -> dict[str, Any]:
    """The values of a run as lists with one entry per test."""
    checkpoints = outcome["checkpoints"]
    names = list(checkpoints[0]["test"])
    return {
        "steps": [checkpoint["step"] for checkpoint in checkpoints],
        "test": {name: [checkpoint["test"][name] for checkpoint in checkpoints] for name in names},
        "train_exact": [checkpoint["train"]["exact"] for checkpoint in checkpoints],
        "ce": [round(checkpoint["ce"], 5) for checkpoint in checkpoints],
        "aux": [round(checkpoint["aux"], 5) for checkpoint in checkpoints if "aux" in checkpoint],
        "digit_norm": [round(checkpoint["digit_norm"], 4) for checkpoint in checkpoints],
        "seconds": outcome["seconds"],
    }


def _cell_entry(cell: Cell, grid: Grid, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The means of each arm in one cell, and its differences from cross-entropy alone over the seeds that both have."""
    arms = []
    of = {arm.name: {r["seed"]: r for r in runs if (r["cell"], r["arm"]) == (cell.name, arm.name)} for arm in grid.arms}
    for arm in grid.arms:
        own, rivals = of[arm.name], of.get(CE.name, {})
        if not own:
            continue
        entry = {"arm": arm.name, "seeds": sorted(own)} | _summary(list(own.values()))
        shared = sorted(own.keys() & rivals.keys())
        differences = {
            outcome: asdict(difference) | {"better": difference.is_clear and difference.mean * sign > 0}
            | {"worse": difference.is_clear and difference.mean * sign < 0}
            for outcome, sign in OUTCOMES.items()
            if (difference := paired_difference(*([_value(of_arm[seed], outcome) for seed in shared]
                                                  for of_arm in (own, rivals))))
        }  # fmt: skip
        arms.append(entry | ({"differences": differences} if arm != CE and differences else {}))
    return {"cell": cell.name} | asdict(cell) | {"arms": arms}


def _value(run: dict[str, Any], outcome: str) -> float:
    return fmean(run["test"]["exact"]) if outcome == "curve" else run["test"][outcome][-1]


def _summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds, and the median first step at which exact match reaches each mark."""
    summary: dict[str, Any] = {outcome: fmean(_value(run, outcome) for run in runs) for outcome in OUTCOMES}
    summary |= {name: fmean(run["test"][name][-1] for run in runs) for name in ("no_number", "length")}
    summary["train_exact"] = fmean(run["train_exact"][-1] for run in runs)
    summary["digit_norm"] = fmean(run["digit_norm"][-1] for run in runs)
    for mark in MARKS:
        first = [
            next((s for s, e in zip(run["steps"], run["test"]["exact"], strict=True) if e >= mark), None)
            for run in runs
        ]
        reached = [step for step in first if step is not None]
        never = len(first) - len(reached)
        # Seeds that never reach the mark count as infinite: if most never do, there is no median.
        middle = median([*reached, *[float("inf")] * never])
        summary[f"steps_to_{mark}"] = {"reached": len(reached)} | ({"median": middle} if middle < float("inf") else {})
    return summary
