"""MAWPS's 2,373 problems in a split of our own, since the paper does not publish which problems it held out."""

import hashlib
import json
from itertools import accumulate

from placevalue.data.arithmetic import operation_of
from placevalue.data.files import read_bundled
from placevalue.data.problem import Problem, same_words
from placevalue.numbers.numerals import shortest_form

FILE = "mawps/mawps.json.gz"
SPLIT_SEED = 42
SPLITS = {"train": 1500, "dev": 373, "test": 500}


def read_mawps(split: str, deduplicated: bool = False) -> list[Problem]:
    """One part of the split.

    Problems are sorted by the sha256 of `42:ID` and cut into train, dev and test, so the split is the same everywhere.

    Args:
        split: A key of `SPLITS`.
        deduplicated: Leave out questions that a later part repeats word for word, apart from case and spacing. The test
            part is the same either way.
    """
    rows = json.loads(read_bundled(FILE))
    rows.sort(key=lambda row: hashlib.sha256(f"{SPLIT_SEED}:{row['id']}".encode()).digest())
    assert len(rows) == sum(SPLITS.values())
    end = dict(zip(SPLITS, accumulate(SPLITS.values()), strict=True))[split]
    later = {same_words(row["original_text"]) for row in rows[end:]} if deduplicated else set()
    return [
        Problem(
            f"mawps:{row['id']}",
            row["original_text"].strip(),
            shortest_form(row["ans"]),
            row["equation"],
            operation_of(row["equation"]),
        )
        for row in rows[end - SPLITS[split] : end]
        if same_words(row["original_text"]) not in later
    ]
