"""How each run of an experiment was trained: settings, size, speed and memory, and the command that repeats it.

Everything is from the records. What a record does not have is left out.
"""

import csv
import io
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from placevalue.experiments.comparison import CE_WEIGHT, LOSS_WEIGHT, weight_of
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import to_yaml
from placevalue.experiments.run_folder import RECIPE
from placevalue.reports.formatting import duration
from placevalue.reports.results import Experiment, Run


class Fact(NamedTuple):
    """A column: what it holds, and its name in CSV, where the name does not say it."""

    about: str = ""
    unit: str = ""


FACTS = {
    "method": Fact(),
    "seed": Fact(),
    "parameters": Fact("of the model, without those that a loss adds"),
    "trained parameters": Fact("of the adapter"),
    "steps": Fact(),
    "epochs": Fact(),
    "kept": Fact("the checkpoint that was kept, and by what"),
    "time": Fact("of training, evaluation on dev included", "seconds"),
    "problems/s": Fact("problems trained on per second, evaluation on dev included"),
    "device memory": Fact("the peak that PyTorch allocated on the device in training, of one process", "device bytes"),
    "process memory": Fact("the peak of the process in training on the CPU", "process bytes"),
    "device": Fact(),
    "processes": Fact(),
    "date": Fact(),
    "commit": Fact(),
}
"""What the page shows of each run; settings that differ between runs follow."""
COMMAND = "command"
_ALWAYS = {*FACTS, COMMAND} - {"device", "processes", "date", "commit"}  # these are columns only if runs differ
_IDENTITY = {"model", "data", "method", "seed"}  # of a config: told elsewhere


@dataclass(frozen=True)
class RunTable:
    """The runs of one experiment, a row each."""

    columns: tuple[str, ...]  # those that some run has; the command is last, if there is a recipe
    rows: tuple[tuple[Any, ...], ...]  # "" where a record has nothing
    settings: dict[str, Any]  # what all runs share, settings by their dotted paths
    recipe: str  # the resolved recipe as YAML; empty if the folder has none


def run_table(experiment: Experiment) -> RunTable:
    """The runs in the order of the experiment."""
    found = [_facts(run) | _settings(run) for run in experiment.runs]
    if experiment.recipe is not None:
        found = [row | {COMMAND: command(run)} for row, run in zip(found, experiment.runs, strict=True)]
    names = dict.fromkeys([*FACTS, *(name for row in found for name in row if name != COMMAND), COMMAND])
    shared = {name for name in names if name not in _ALWAYS and len({str(row.get(name)) for row in found}) == 1}
    columns = tuple(name for name in names if name not in shared and any(name in row for row in found))
    rows = tuple(tuple(row.get(name, "") for name in columns) for row in found)
    settings = {name: found[0][name] for name in names if name in shared and name in found[0]}
    recipe = "" if experiment.recipe is None else to_yaml(asdict(experiment.recipe))
    return RunTable(columns, rows, settings, recipe)


def command(run: Run) -> str:
    """The command that trains a run again, with the experiment's recipe."""
    return shlex.join(["placevalue", "train", RECIPE, "--method", run.method, "--seed", str(run.seed)])


def fact_text(name: str, value: Any) -> str:
    """A value of a column for people."""
    if value == "" or name not in FACTS or name == "seed":
        return str(value)
    if name == "time":
        return duration(value)
    if FACTS[name].unit.endswith("bytes"):
        return f"{value / 1e9:.2f} GB"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)


def runs_to_csv(table: RunTable) -> str:
    """The runs as CSV, with the settings that all share; times in seconds, memory in bytes."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = [FACTS[name].unit or name if name in FACTS else name for name in table.columns]
    writer.writerow([*names, *table.settings])
    for row in table.rows:
        writer.writerow([*row, *table.settings.values()])
    return file.getvalue()


def _facts(run: Run) -> dict[str, Any]:
    """What the record of a run says of its training, by column."""
    train, made = run.train, run.train.provenance
    seconds, problems = train.durations.get("train"), train.counts.get("problems")
    peak, git = (made.get(name) or {} for name in ("peak_memory", "git"))
    found = {
        "method": run.method,
        "seed": run.seed,
        "parameters": train.counts.get("parameters"),
        "trained parameters": train.counts.get("trained_parameters"),
        "steps": train.steps,
        "epochs": round(train.epochs, 4),
        "kept": f"{train.selected['checkpoint']} by {train.selected['by']}" if train.selected else None,
        "time": seconds,
        "problems/s": round(problems * train.epochs / seconds, 1) if seconds and problems else None,
        "device memory": peak.get("device"),
        "process memory": peak.get("process"),
        "device": made.get("device"),
        "processes": made.get("processes"),
        "date": str(made.get("time", ""))[:10] or None,
        "commit": git["commit"][:10] + " with changes" * bool(git.get("dirty")) if "commit" in git else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _settings(run: Run) -> dict[str, str]:
    """Every setting that had a part in a run, as text by its dotted path."""
    config = {name: value for name, value in run.train.config.items() if name not in _IDENTITY}
    vain = {CE_WEIGHT, LOSS_WEIGHT} - {weight_of(run.method)} if run.method in METHODS else set()
    leaves = {path: value for path, value in _leaves(config) if path not in vain}
    return {path: value if isinstance(value, str) else json.dumps(value) for path, value in leaves.items()}


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
