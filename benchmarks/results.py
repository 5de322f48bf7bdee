"""What a benchmark hands over: checks against targets, and a record that says where the figures come from."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import placevalue
from placevalue.common.files import write_json
from placevalue.common.records import git_state

FOLDER = Path(__file__).parent
RECORDS = FOLDER / "records"


@dataclass(frozen=True)
class Check:
    """One measured ratio, and the target it is held against, if any."""

    name: str
    ratio: float
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return None if self.at_most is None else self.ratio <= self.at_most

    def row(self) -> tuple[str, str, str, str, str]:
        """Name, ratio, target, verdict and note, for a table."""
        target = f">= {self.at_least}" if self.at_least is not None else f"<= {self.at_most}"
        verdict = {True: "pass", False: "MISSED", None: ""}[self.passed]
        return self.name, f"{self.ratio:.3f}", "" if self.passed is None else target, verdict, self.note


@dataclass(frozen=True)
class Outcome:
    """All that one benchmark found."""

    config: dict[str, Any]
    """What was run, seeds included."""
    checks: Sequence[Check]
    raw: dict[str, Any]
    """The timings the ratios were taken from, in seconds."""


def print_table(title: str, checks: Sequence[Check]) -> None:
    """One line a check, in columns."""
    rows = [(title, "ratio", "target", "", ""), *(check.row() for check in checks)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def write_record(name: str, outcome: Outcome, load_before: Sequence[float], path: Path | None = None) -> Path:
    """Write `records/NAME.json`, or the file named, whole or not at all."""
    record = {
        "benchmark": name,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": outcome.config,
        "versions": {"python": platform.python_version(), "placevalue": placevalue.__version__}
        | {package: version(package) for package in ("torch", "transformers", "tokenizers")},
        "git": git_state(),
        "cpu": {"count": os.cpu_count(), "machine": platform.machine(), "load_before": list(load_before)},
        "checks": [asdict(check) | {"passed": check.passed} for check in outcome.checks],
        "raw": outcome.raw,
    }
    return write_json(path or RECORDS / f"{name}.json", record)
