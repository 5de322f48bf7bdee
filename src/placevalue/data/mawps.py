"""MAWPS: 2,373 problems in a seeded split of our own, since the paper does not say which problems it held out."""

import hashlib
import json
from typing import Any

from placevalue.data.arithmetic import operation_of
from placevalue.data.files import read_bundled
from placevalue.data.problem import Problem, same_words, shortest

FILE = "mawps/mawps.json.gz"
SPLIT_SEED = 42
SPLITS = {"train": 1500, "dev": 373, "test": 500}


def read_mawps(split: str, deduplicated: bool = False) -> list[Problem]:
    """One part of the split.

    The problems are put in the order of the sha256 of `42:ID`, so that the split is the same on every machine and
    under every version of every library; train, dev and test are cut from that order.

    Args:
        split: Of `SPLITS`.
        deduplicated: Leave out of train what dev or test ask word for word, whatever its case and spacing, and out of
            dev what test asks. The test questions are the same either way.
    """
    parts = _split()
    if not deduplicated:
        return parts[split]
    later = list(SPLITS)[list(SPLITS).index(split) + 1 :]
    held_out = {same_words(problem.question) for part in later for problem in parts[part]}
    return [problem for problem in parts[split] if same_words(problem.question) not in held_out]


def _split() -> dict[str, list[Problem]]:
    rows = json.loads(read_bundled(FILE))
    rows.sort(key=lambda row: hashlib.sha256(f"{SPLIT_SEED}:{row['id']}".encode()).digest())
    problems = iter([_problem(row) for row in rows])
    parts = {split: [next(problems) for _ in range(size)] for split, size in SPLITS.items()}
    assert next(problems, None) is None
    return parts


def _problem(row: dict[str, Any]) -> Problem:
    equation = row["equation"]
    return Problem(
        f"mawps:{row['id']}", row["original_text"].strip(), shortest(row["ans"]), equation, operation_of(equation)
    )
