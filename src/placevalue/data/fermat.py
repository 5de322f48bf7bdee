"""FERMAT's 19 test sets: the same 1,111 problems, each set with its numbers written or drawn in another way."""

import json
from functools import cache
from typing import Any

from placevalue.data.arithmetic import operation_of
from placevalue.data.files import read_bundled
from placevalue.data.problem import Problem

PAPER_SETS = (
    "Original", "Commuted", "Integers_0_to_1000", "2_digit_integer", "3_digit_integer", "4_digit_integer", "1000+",
    "1000+_sam", "1dp_random", "2dp_random",
)  # fmt: skip
"""The ten sets that the paper reports, in its order."""
FERMAT_SETS = (
    *PAPER_SETS, "1000+_comma", "1000+_spac", "Original_as_1dp", "Original_as_2dp", "Original_made_1dp",
    "Original_made_1dp_without_0", "Original_made_2dp", "Original_made_2dp_without_0", "Worded",
)  # fmt: skip


def read_fermat(name: str) -> list[Problem]:
    """One test set in the order of its index; answers as published, such as `70.0`.

    Questions and answers are in separate files, so that web crawls do not pair them, and are matched by index. A row's
    operation is that of Original at the same index, since some sets rewrite the equation.
    """
    questions = {row["index"]: row["question"] for row in _rows(name, "q")}
    answers = {row["index"]: row for row in _rows(name, "a")}
    assert questions.keys() == answers.keys()
    operations = _operations()
    return [
        Problem(f"fermat:{name}:{index}", questions[index].strip(), row["answer"], row["equation"], operations[index])
        for index, row in sorted(answers.items())
    ]


def _rows(name: str, kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_bundled(f"fermat/{name}.{kind}.gz").splitlines()]


@cache
def _operations() -> dict[int, str | None]:
    return {row["index"]: operation_of(row["equation"]) for row in _rows("Original", "a")}
