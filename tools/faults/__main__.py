"""Inject every fault and write the table: `python -m tools.faults [WORD ...]`, only those that contain the words."""

import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path

import torch
import transformers

from placevalue.common.files import write_whole
from tools.faults import foreign, kills, locks, resuming
from tools.faults.bench import Bench

SECTIONS = {
    "Files of others": foreign.FAULTS,
    "Damaged checkpoints and weights": resuming.FAULTS,
    "Killed processes": kills.FAULTS,
    "Several processes in one folder": locks.FAULTS,
}
"""What the faults of each section of the table are."""
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- faults -->", "<!-- end of faults -->"


def inject(words: list[str], place: Path) -> tuple[dict[str, dict[str, str]], int]:
    """Inject the faults that contain all words; return what was seen, by section, and how many were not withstood."""
    seen: dict[str, dict[str, str]] = {}
    failed = 0
    for section, faults in SECTIONS.items():
        for number, (name, fault) in enumerate(faults.items()):
            if not all(word in name for word in words):
                continue
            try:
                outcome = fault(Bench(place / f"{section}-{number}"))
            except Exception as error:
                traceback.print_exc()
                failed, outcome = failed + 1, f"**not withstood**: {type(error).__name__}"
            print(f"{name}: {outcome}", flush=True)
            seen.setdefault(section, {})[name] = outcome
    return seen, failed


def tables(seen: Mapping[str, Mapping[str, str]]) -> str:
    """What was seen, as Markdown."""
    parts = []
    for section, outcomes in seen.items():
        rows = "".join(f"| {name} | {outcome} |\n" for name, outcome in outcomes.items())
        parts.append(f"### {section}\n\n| fault | outcome |\n|---|---|\n{rows}")
    return "\n".join(parts)


def main(words: list[str]) -> int:
    """Inject faults and, if these are all, write the table; the exit status is 1 if any was not withstood."""
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as place:
        seen, failed = inject(words, Path(place))
    if not words:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        write_whole(PAGE, f"{before}{BEGIN}\n\n{tables(seen)}\n{END}{after}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
