"""Problem: a question, its answer and how it is computed; as JSON lines, as a checksum, as a `datasets.Dataset`."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import TYPE_CHECKING

from placevalue.common.errors import PlacevalueError
from placevalue.numbers.numerals import shortest_form

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class Problem:
    """One problem; every data set of placevalue is a list of these."""

    id: str
    """Unique in its data set, and the same whenever it is loaded: `mawps:12`, `fermat:Original:407`."""
    question: str
    """What is asked."""
    answer: str
    """What the answer is, as text."""
    equation: str | None = None
    """How the answer is computed, as its source writes it."""
    operation: str | None = None
    """`a+b`, `a-b`, `a*b` or `a/b` where it is one operator between two numbers."""


FIELDS = tuple(field.name for field in fields(Problem))


def to_dataset(problems: Iterable[Problem]) -> "Dataset":
    """The problems as a `datasets.Dataset`, one string column a field.

    Example:
        >>> to_dataset([Problem("1", "1 and 2?", "3")])["answer"][0]
        '3'
    """
    try:
        from datasets import Dataset, Features, Value
    except ImportError:
        raise PlacevalueError("datasets is missing: pip install 'placevalue[data]'") from None
    rows = [asdict(problem) for problem in problems]
    columns = {name: [row[name] for row in rows] for name in FIELDS}
    return Dataset.from_dict(columns, features=Features({name: Value("string") for name in FIELDS}))


def to_json_lines(problems: Iterable[Problem]) -> str:
    """One JSON object a line, with every field."""
    write = json.encoder.encode_basestring
    lines = []
    for problem in problems:
        values = ((name, getattr(problem, name)) for name in FIELDS)
        pairs = [f'"{name}": {"null" if value is None else write(value)}' for name, value in values]
        lines.append("{" + ", ".join(pairs) + "}\n")
    return "".join(lines)


def checksum(problems: Iterable[Problem]) -> str:
    """The sha256 of the problems as JSON lines: it changes whenever a row or their order does."""
    return hashlib.sha256(to_json_lines(problems).encode()).hexdigest()


def shortest(number: str | int | float) -> str:
    """A number without exponent and without zeros that say nothing.

    Example:
        >>> shortest(504.0), shortest("14.750"), shortest(1e-05)
        ('504', '14.75', '0.00001')
    """
    return shortest_form(Decimal(number if isinstance(number, str) else repr(number)))


def same_words(question: str) -> str:
    """A question without regard to case and spacing: two with the same words are the same question."""
    return " ".join(question.lower().split())
