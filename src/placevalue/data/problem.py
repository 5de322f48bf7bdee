"""Problem: a question and its answer; lists of them as JSON lines, checksums and `datasets.Dataset`."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from placevalue.common.errors import PlacevalueError

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class Problem:
    """A problem; every data set of placevalue is a list of these."""

    id: str
    """Unique and stable within its data set: `mawps:12`, `fermat:Original:407`."""
    question: str
    answer: str
    equation: str | None = None
    """How the answer is computed, as its source writes it."""
    operation: str | None = None
    """`a+b`, `a-b`, `a*b` or `a/b` if it is one operator between two numbers."""


FIELDS = tuple(field.name for field in fields(Problem))


def to_dataset(problems: Iterable[Problem]) -> "Dataset":
    """Convert problems to a `datasets.Dataset` with one string column per field.

    Example:
        >>> to_dataset([Problem("1", "1 and 2?", "3")])["answer"][0]
        '3'
    """
    try:
        from datasets import Dataset, Features, Value
    except ImportError:
        raise PlacevalueError("datasets is missing: pip install 'placevalue[all]'") from None
    rows = list(problems)
    columns = {name: [getattr(row, name) for row in rows] for name in FIELDS}
    return Dataset.from_dict(columns, features=Features({name: Value("string") for name in FIELDS}))


def to_json_lines(problems: Iterable[Problem]) -> str:
    """One JSON object per line, with every field."""
    write = json.JSONEncoder(ensure_ascii=False).encode
    return "".join(f"{write(vars(problem))}\n" for problem in problems)


def checksum(problems: Iterable[Problem]) -> str:
    """The sha256 of the problems as JSON lines; it depends on every row and their order."""
    return hashlib.sha256(to_json_lines(problems).encode()).hexdigest()


def same_words(question: str) -> str:
    """A question normalised for case and spacing, to find questions with the same words."""
    return " ".join(question.lower().split())
