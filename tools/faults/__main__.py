"""Inject every fault and write the table: `python -m tools.faults [WORD ...]`, only those that contain the words.

The rows of the others stay as they are.
"""

import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch
import transformers

from placevalue.common.files import write_whole
from tools.faults import disk, foreign, hostile, kills, locks, resuming
from tools.faults.bench import Bench

SECTIONS: dict[str, Mapping[str, Callable[[Bench], str]]] = {
    "Files of others": foreign.FAULTS,
    "Damaged checkpoints and weights": resuming.FAULTS,
    "Killed processes": kills.FAULTS,
    "Several processes in one folder": locks.FAULTS,
    "Full disks": disk.FAULTS,
    "Input of others": hostile.FAULTS,
}
"""What the faults of each section of the table are."""
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- faults -->", "<!-- end of faults -->"
FAILED = "**not withstood**"


def inject(words: list[str], place: Path) -> Iterator[tuple[str, str]]:
    """Inject the faults that contain all words; yields the name of each and what came of it."""
    for section, faults in SECTIONS.items():
        for number, (name, fault) in enumerate(faults.items()):
            if not all(word in f"{section}: {name}" for word in words):
                continue
            try:
                outcome = fault(Bench(place / f"{section}-{number}"))
            except Exception as error:
                traceback.print_exc()
                outcome = f"{FAILED}: {type(error).__name__}"
            print(f"{name}: {outcome}", flush=True)
            yield name, outcome


def read_rows() -> dict[str, str]:
    """The outcomes of the page's table, by the name of the fault."""
    lines = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].splitlines()
    return {name: outcome for name, _, outcome in (line.strip("| ").partition(" | ") for line in lines) if outcome}


def write_rows(rows: Mapping[str, str]) -> None:
    """Write the table, in the order of the faults; rows of faults that are no more go."""
    parts = []
    for section, faults in SECTIONS.items():
        lines = "".join(f"| {name} | {rows[name]} |\n" for name in faults if name in rows)
        parts.append(f"### {section}\n\n| fault | outcome |\n|---|---|\n{lines}" if lines else "")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    table = "\n".join(part for part in parts if part)
    write_whole(PAGE, f"{before}{BEGIN}\n\n{table}\n{END}{after}")


def main(words: list[str]) -> int:
    """Inject faults and write their rows; the exit status is 1 if one was not withstood."""
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as place:
        seen = dict(inject(words, Path(place)))
    write_rows(read_rows() | seen)
    return 1 if any(outcome.startswith(FAILED) for outcome in seen.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
