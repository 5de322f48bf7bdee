"""What a benchmark returns: ratios, each with its target, and a record of where and how they were measured."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from placevalue.common.files import write_json
from placevalue.common.records import provenance

RECORDS = Path(__file__).parent / "records"


@dataclass(frozen=True)
class Check:
    """A measured ratio and its target, if it has one."""

    name: str
    ratio: float
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return None if self.at_most is None else self.ratio <= self.at_most

    def row(self) -> tuple[str, str, str, str, str]:
        """Name, ratio, target, verdict and note."""
        target = f">= {self.at_least}" if self.at_least is not None else f"<= {self.at_most}"
        verdict = {True: "pass", False: "MISSED", None: ""}[self.passed]
        return self.name, f"{self.ratio:.3f}", "" if self.passed is None else target, verdict, self.note


@dataclass(frozen=True)
class Outcome:
    """The result of one benchmark."""

    config: dict[str, Any]
    """The settings, seeds included."""
    checks: Sequence[Check]
    raw: dict[str, Any]
    """The timings that the ratios come from, in seconds."""


def measure(name: str, run: Callable[[], Outcome], path: Path | None = None) -> int:
    """Run a benchmark, write its record, print its table, and return the number of missed targets."""
    load = os.getloadavg()
    outcome = run()
    path = write_record(name, outcome, load, path)
    print_table(name, outcome.checks)
    print(f"recorded in {path.parent.name}/{path.name}; the load average was {load[0]:.1f} at the start\n")
    return sum(check.passed is False for check in outcome.checks)


def print_table(title: str, checks: Sequence[Check]) -> None:
    """Print one aligned line per check."""
    rows = [(title, "ratio", "target", "", ""), *(check.row() for check in checks)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def write_record(name: str, outcome: Outcome, load_before: Sequence[float], path: Path | None = None) -> Path:
    """Write a record to `path` (default: `records/NAME.json`)."""
    origin = provenance()
    machine = origin["platform"]
    record = {
        "benchmark": name,
        "time": origin["time"],
        "config": outcome.config,
        "versions": origin["versions"],
        "git": origin.get("git", {}),
        "cpu": {"count": machine["cpus"], "machine": machine["machine"], "load_before": list(load_before)},
        "checks": [asdict(check) | {"passed": check.passed} for check in outcome.checks],
        "raw": outcome.raw,
    }
    return write_json(path or RECORDS / f"{name}.json", record)
