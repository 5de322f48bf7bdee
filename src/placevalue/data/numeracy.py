"""numeracy: generated tasks that need numbers and little else, in levels of difficulty, exact and the same everywhere.

The problems of one task, length and form are a cell. Their order is that of hashes, so it never changes: `test`, `dev`,
`reworded` and `final` have 300 each from its beginning, or an eighth of all there are, and `train` continues behind
them. So no part shares operands with another, at any level: what a small level is tested on, no larger level trains on.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Context, DivisionByZero, Inexact, InvalidOperation, localcontext
from functools import cache
from hashlib import blake2b
from itertools import accumulate, islice, product
from math import prod
from typing import Literal, NamedTuple, get_args

from placevalue.common.errors import ConfigError
from placevalue.data.numeracy_tasks import TASKS, Solved
from placevalue.data.problem import Problem

SOURCE = "numeracy"
Form = Literal["integer", "decimal"]
FORMS: tuple[Form, ...] = get_args(Form)
HELD_OUT = ("test", "dev", "reworded", "final")
"""The parts that are cut from a cell before `train`, in this order."""
PARTS = ("train", "dev", "test", "longer", "reworded", "final")
FINAL = "final"
SEED = 42
MOST = 300
"""Problems of a cell in one held-out part."""
FEWEST = 32
"""A cell with fewer problems is left out: one digit has nothing to round."""
LISTED = 10_000
"""Up to this many draws, a cell's problems are all listed; beyond, they are drawn until there are enough."""
MOST_PLACES = 3
"""Decimals of a number."""
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation, DivisionByZero])  # a quotient without an end is an error
_ID = re.compile(rf"{SOURCE}:([a-z]+):([0-9]+):({'|'.join(FORMS)}):[0-9]+")


class Cell(NamedTuple):
    """What a row is: its task, the digits of its longest operand, and whether its operands have decimals."""

    task: str
    length: int
    form: Form

    @classmethod
    def of(cls, id_: str) -> "Cell | None":
        """The cell of a row by its id; None for a problem of another corpus."""
        found = _ID.fullmatch(id_)
        return found and cls(found[1], int(found[2]), found[3])  # type: ignore[arg-type]


@dataclass(frozen=True)
class Level:
    """A difficulty: what is asked, and how much of it."""

    about: str
    lengths: range
    """Digits of the longest operand, in every part but `longer`."""
    longer: range
    """Digits of the longest operand in `longer`."""
    forms: tuple[Form, ...]
    train: int
    """Rows of `train` for each task and length; the other parts have `MOST`."""
    tasks: tuple[str, ...] = tuple(TASKS)


LEVELS = {
    "numeracy-small": Level("integers of 1 to 4 digits", range(1, 5), range(5, 7), ("integer",), 500),
    "numeracy-medium": Level("integers and decimals of 1 to 4 digits", range(1, 5), range(5, 9), FORMS, 600),
    "numeracy": Level("integers and decimals of 1 to 6 digits", range(1, 7), range(7, 11), FORMS, 1700),
}


def generate_numeracy(level: Level, part: str, seed: int = SEED) -> list[Problem]:
    """All rows of one part, by task and length.

    Args:
        level: An entry of `LEVELS`, or your own.
        part: One of `PARTS`.
        seed: Of the order of the problems, and so of what is in which part.

    Example:
        >>> generate_numeracy(LEVELS["numeracy-small"], "test")[0].operation
        'copy'
    """
    with localcontext(_EXACT):
        return [row for cell, chosen in _chosen(level, part, seed) for row in _rows(cell, chosen, part, seed)]


def count_numeracy(level: Level, part: str, seed: int = SEED) -> int:
    """The number of rows of one part, without making them."""
    with localcontext(_EXACT):
        return sum(len(chosen) for _, chosen in _chosen(level, part, seed))


def read_numeracy(name: str, part: str) -> list[Problem]:
    """A part of a level, or one task of it: `test`, `test:add`."""
    return list(_generated(name, *part.split(":")))


@cache
def _generated(name: str, part: str, task: str | None = None) -> list[Problem]:
    level = LEVELS[name]
    return generate_numeracy(level if task is None else replace(level, tasks=(task,)), part)


def _chosen(level: Level, part: str, seed: int) -> Iterator[tuple[Cell, range]]:
    """The cells of a part with the rows that it takes: of each form as many as of the others, as far as they go."""
    if part not in PARTS:
        raise ConfigError(f"part={part!r}: expected one of {', '.join(PARTS)}")
    for task, length in product(level.tasks, level.longer if part == "longer" else level.lengths):
        cells = [Cell(task, length, form) for form in level.forms]
        extents = [_extent(cell, part, seed) for cell in cells]
        wanted = _shares(level.train if part == "train" else MOST, [extent.stop - extent.start for extent in extents])
        yield from ((cell, extent[:number]) for cell, extent, number in zip(cells, extents, wanted, strict=True))


def _rows(cell: Cell, chosen: range, part: str, seed: int) -> Iterator[Problem]:
    """Rows of a cell, by their places in its order."""
    task = TASKS[cell.task]
    sentences = task.reworded if part == "reworded" else task.sentences
    for index, (solved, turn) in enumerate(islice(_problems(cell, seed), chosen.start, chosen.stop), chosen.start):
        question = sentences[turn % len(sentences)].format(**solved.gaps)
        yield Problem(":".join(map(str, (SOURCE, *cell, index))), question, solved.answer, operation=cell.task)


def _shares(wanted: int, have: list[int]) -> list[int]:
    """How much to take of each: the same of all, as far as they go."""
    taken = [0] * len(have)
    for done, index in enumerate(sorted(range(len(have)), key=have.__getitem__)):
        taken[index] = min(have[index], (wanted - sum(taken)) // (len(have) - done))
    return taken


@cache
def _size(cell: Cell, seed: int) -> int:
    """The number of problems of a cell; of a large one its draws, of which far more differ than any part takes."""
    draws = sum(prod(map(len, ranges)) for _, ranges in _spaces(cell))
    return draws if draws > LISTED else sum(1 for _ in _problems(cell, seed))


def _extent(cell: Cell, part: str, seed: int) -> range:
    """Where a part lies in the order of a cell's problems."""
    size = _size(cell, seed)
    each = min(MOST, size // (2 * len(HELD_OUT))) if size >= FEWEST else 0  # so `train` has at least half
    if part == "train":
        return range(len(HELD_OUT) * each, size if each else 0)
    number = HELD_OUT.index("test" if part == "longer" else part)
    return range(number * each, (number + 1) * each)


def _spaces(cell: Cell) -> list[tuple[int, tuple[range, ...]]]:
    """The ranges to draw from, for each number of decimals."""
    places = range(1) if cell.form == "integer" else range(1, min(cell.length, MOST_PLACES + 1))
    return [(each, TASKS[cell.task].space(cell.length, each)) for each in places]


def _problems(cell: Cell, seed: int) -> Iterator[tuple[Solved, int]]:
    """Every problem of a cell once, in the order of hashes, each with a number that chooses its sentence."""
    task, spaces = TASKS[cell.task], _spaces(cell)
    ends = list(accumulate((prod(map(len, ranges)) for _, ranges in spaces), initial=0))
    total = ends[-1]
    name = ":".join(map(str, (seed, *cell)))
    hashes = (int.from_bytes(blake2b(f"{name}:{each}".encode()).digest(), "big") for each in range(20 * total))
    if total > LISTED:
        draws: Iterable[tuple[int, int]] = ((each, each % total) for each in hashes)
    else:
        draws = sorted((next(hashes), index) for index in range(total))
    seen = set()
    for chosen, index in draws:
        space = bisect_right(ends, index) - 1
        places, ranges = spaces[space]
        rest, drawn = index - ends[space], []
        for each in ranges:
            rest, position = divmod(rest, len(each))
            drawn.append(each[position])
        if places and drawn[0] % 10 == 0:  # it would be written with fewer decimals
            continue
        solved = task.solve(chosen >> 256, places, *drawn)
        if solved is not None and solved.operands not in seen:
            seen.add(solved.operands)
            yield solved, chosen >> 384
