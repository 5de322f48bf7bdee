"""MAWPS's 2,373 problems in splits of our own, since the paper does not publish which problems it held out.

The seeded split is for comparison with the paper: many of its test questions copy training questions. In the grouped
splits no question copies one of another part.
"""

import json
from functools import cache
from itertools import accumulate

from placevalue.data.arithmetic import operation_of
from placevalue.data.copies import fill_parts, group_copies, pairs, seeded_key
from placevalue.data.files import read_bundled
from placevalue.data.problem import Problem, same_words
from placevalue.numbers.numerals import shortest_form

FILE = "mawps/mawps.json.gz"
SPLIT_SEED = 42
SPLITS = {"train": 1500, "dev": 373, "test": 500}
FOLDS = 5
GROUPED = (*SPLITS, *(f"fold-{fold}:{part}" for fold in range(1, FOLDS + 1) for part in SPLITS))
"""The parts of the grouped split: one split of the same sizes, and five folds."""


def read_mawps(split: str, deduplicated: bool = False) -> list[Problem]:
    """One part of the seeded split.

    Problems are sorted by the sha256 of `42:ID` and cut into train, dev and test, so the split is the same everywhere.

    Args:
        split: A key of `SPLITS`.
        deduplicated: Leave out questions that a later part repeats word for word, apart from case and spacing. The test
            part is the same either way.
    """
    problems = sorted(_all_problems(), key=_seeded)
    end = dict(zip(SPLITS, accumulate(SPLITS.values()), strict=True))[split]
    later = {same_words(problem.question) for problem in problems[end:]} if deduplicated else set()
    chosen = problems[end - SPLITS[split] : end]
    return [problem for problem in chosen if same_words(problem.question) not in later]


def read_grouped(part: str) -> list[Problem]:
    """One part of the grouped splits; see `copies.group_copies`.

    The groups are shuffled like the problems of the seeded split, and each goes as a whole to the first part with room
    for it: to train, dev or test of 1,500, 373 and 500, or to one of five blocks. Of fold 1, block 1 is the test part,
    block 2 the dev part and the rest the training part; every problem is in the test part of one fold.

    Args:
        part: One of `GROUPED`, such as `test` or `fold-1:test`.
    """
    fold, colon, name = part.rpartition(":")
    if not colon:
        return list(_blocks(tuple(SPLITS.values()))[list(SPLITS).index(part)])
    total = sum(SPLITS.values())
    blocks = _blocks(tuple((total + block) // FOLDS for block in range(FOLDS)))
    test = int(fold.removeprefix("fold-")) - 1
    dev = (test + 1) % FOLDS
    chosen = {"test": {test}, "dev": {dev}, "train": set(range(FOLDS)) - {test, dev}}[name]
    return [problem for block in sorted(chosen) for problem in blocks[block]]


@cache
def _all_problems() -> tuple[Problem, ...]:
    """All problems in the order of their ids."""
    rows = sorted(json.loads(read_bundled(FILE)), key=lambda row: int(row["id"]))
    assert len(rows) == sum(SPLITS.values())
    return tuple(
        Problem(
            f"mawps:{row['id']}",
            row["original_text"].strip(),
            shortest_form(row["ans"]),
            row["equation"],
            operation_of(row["equation"]),
        )
        for row in rows
    )


def _seeded(problem: Problem) -> bytes:
    """The key that puts problems into the seeded order."""
    return seeded_key(SPLIT_SEED, problem.id.removeprefix("mawps:"))


@cache
def _blocks(sizes: tuple[int, ...]) -> list[list[Problem]]:
    """The problems in parts of these sizes.

    A group is ordered by its problem with the lowest id, so that large groups come neither early nor late.
    """
    problems = _all_problems()
    groups = sorted(group_copies(pairs(problems)), key=lambda group: _seeded(problems[group[0]]))
    return [[problems[index] for index in part] for part in fill_parts(groups, sizes)]
