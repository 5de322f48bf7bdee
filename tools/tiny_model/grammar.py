"""The grammar of generated word problems: texts with alternatives and slots, and numbers that fit an equation.

In a text such as `{N} [has|owns] {a} {xs}.`, brackets hold alternatives, which may be nested, and braces hold slots.
`{a}` to `{d}` are the numbers of the equation; every other slot is drawn from `WORDS` when it first occurs.
"""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

from tools.tiny_model.vocabulary import WORDS

T = TypeVar("T")
Node = str | list[list["Node"]]


class Draw:
    """Random draws that are the same under every version of Python, since all derive from `random()` alone."""

    def __init__(self, seed: str) -> None:
        self.uniform = random.Random(seed).random
        self.decimals = 0

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[int(self.uniform() * len(items))]

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self.uniform() * (high - low + 1))

    def amount(self, low: int, high: int) -> int:
        """A number between the two with `decimals` decimal places, in units of the last place."""
        return self.whole(low * 10**self.decimals, high * 10**self.decimals)


class Numbers(NamedTuple):
    """The numbers of an equation and its answer: counts are whole, amounts are in units of their last place."""

    given: dict[str, int]
    answer: int
    counts: str = ""
    """The names of those that are counts; `=` where the answer is one."""


def _size(draw: Draw) -> int:
    """An amount of a primary-school problem: mostly below 100, sometimes large."""
    kind = draw.uniform()
    if kind < 0.4:
        return draw.amount(1, 20)
    if kind < 0.8:
        return draw.amount(2, 99)
    return draw.amount(100, 999) if kind < 0.95 else draw.amount(1000, 9999)


def _few(draw: Draw) -> int:
    """A count to multiply with or to divide by."""
    return draw.whole(2, 9) if draw.uniform() < 0.85 else draw.whole(10, 30)


def _part(draw: Draw) -> int:
    """An amount to multiply, or each share of a division: small enough to work out."""
    return draw.amount(2, 12) if draw.uniform() < 0.6 else draw.amount(2, 99)


def _plus(draw: Draw) -> Numbers:
    a, b = _size(draw), _size(draw)
    return Numbers({"a": a, "b": b}, a + b)


def _minus(draw: Draw) -> Numbers:
    b, rest = _size(draw), _size(draw)
    return Numbers({"a": b + rest, "b": b}, rest)


def _times(draw: Draw) -> Numbers:
    a, b = _part(draw), _few(draw)
    return Numbers({"a": a, "b": b}, a * b, "b")


def _shared(draw: Draw) -> Numbers:
    b, each = _few(draw), _part(draw)
    return Numbers({"a": each * b, "b": b}, each, "b")


def _fitted(draw: Draw) -> Numbers:
    b, times = draw.amount(2, 12), _few(draw)
    return Numbers({"a": times * b, "b": b}, times, "=")


def _plus_plus(draw: Draw) -> Numbers:
    a, b, c = _size(draw), _size(draw), _size(draw)
    return Numbers({"a": a, "b": b, "c": c}, a + b + c)


def _plus_minus(draw: Draw) -> Numbers:
    a, b = _size(draw), _size(draw)
    c = draw.whole(1, a + b - 1)
    return Numbers({"a": a, "b": b, "c": c}, a + b - c)


def _minus_plus(draw: Draw) -> Numbers:
    b, c, rest = _size(draw), _size(draw), _size(draw)
    return Numbers({"a": b + rest, "b": b, "c": c}, rest + c)


def _minus_minus(draw: Draw) -> Numbers:
    b, c, rest = _size(draw), _size(draw), _size(draw)
    return Numbers({"a": b + c + rest, "b": b, "c": c}, rest)


def _sum_times(draw: Draw) -> Numbers:
    a, b, c = draw.whole(1, 15), draw.whole(1, 15), draw.amount(2, 12)
    return Numbers({"a": a, "b": b, "c": c}, (a + b) * c, "ab")


def _rest_times(draw: Draw) -> Numbers:
    b, rest, c = draw.whole(1, 20), draw.whole(2, 15), draw.amount(2, 12)
    return Numbers({"a": b + rest, "b": b, "c": c}, rest * c, "ab")


def _sum_shared(draw: Draw) -> Numbers:
    c, each = _few(draw), draw.amount(2, 15)
    a = draw.whole(1, c * each - 1)
    return Numbers({"a": a, "b": c * each - a, "c": c}, each, "c")


def _rest_shared(draw: Draw) -> Numbers:
    c, each, b = _few(draw), draw.amount(2, 15), _size(draw)
    return Numbers({"a": b + c * each, "b": b, "c": c}, each, "c")


def _rest_fitted(draw: Draw) -> Numbers:
    c, times, b = draw.amount(2, 12), _few(draw), _size(draw)
    return Numbers({"a": b + c * times, "b": b, "c": c}, times, "=")


def _sum_fitted(draw: Draw) -> Numbers:
    c, times = draw.amount(2, 12), _few(draw)
    a = draw.whole(1, c * times - 1)
    return Numbers({"a": a, "b": c * times - a, "c": c}, times, "=")


def _times_plus(draw: Draw) -> Numbers:
    a, b, c = draw.amount(2, 15), _few(draw), draw.amount(1, 60)
    return Numbers({"a": a, "b": b, "c": c}, a * b + c, "b")


def _times_minus(draw: Draw) -> Numbers:
    a, b = draw.amount(2, 15), _few(draw)
    c = draw.whole(1, a * b - 1)
    return Numbers({"a": a, "b": b, "c": c}, a * b - c, "b")


def _minus_times(draw: Draw) -> Numbers:
    b, c, rest = draw.amount(2, 12), _few(draw), draw.amount(1, 60)
    return Numbers({"a": b * c + rest, "b": b, "c": c}, rest, "c")


def _times_shared(draw: Draw) -> Numbers:
    b, c, each = _few(draw), draw.whole(2, 9), draw.amount(2, 15)
    return Numbers({"a": c * each, "b": b, "c": c}, each * b, "bc")


def _times_times(draw: Draw) -> Numbers:
    a, b, c = draw.amount(2, 12), draw.whole(2, 9), draw.whole(2, 6)
    return Numbers({"a": a, "b": b, "c": c}, a * b * c, "bc")


def _products(draw: Draw) -> Numbers:
    a, b, c, d = draw.amount(2, 12), draw.whole(2, 9), draw.amount(2, 12), draw.whole(2, 9)
    return Numbers({"a": a, "b": b, "c": c, "d": d}, a * b + c * d, "bd")


EQUATIONS: dict[str, Callable[[Draw], Numbers]] = {
    "a+b": _plus,
    "a-b": _minus,
    "a*b": _times,
    "a/b": _shared,
    "a:b": _fitted,
    "a+b+c": _plus_plus,
    "a+b-c": _plus_minus,
    "a-b+c": _minus_plus,
    "a-b-c": _minus_minus,
    "(a+b)*c": _sum_times,
    "(a-b)*c": _rest_times,
    "(a+b)/c": _sum_shared,
    "(a-b)/c": _rest_shared,
    "(a+b):c": _sum_fitted,
    "(a-b):c": _rest_fitted,
    "a*b+c": _times_plus,
    "a*b-c": _times_minus,
    "a-b*c": _minus_times,
    "a*b/c": _times_shared,
    "a*b*c": _times_times,
    "a*b+c*d": _products,
}
"""How to draw numbers that fit an equation: no answer is negative and no quotient has a remainder.

`/` shares an amount among a count; `:` asks how often one amount goes into another.
"""


def write_decimal(value: int, decimals: int, padded: bool = False) -> str:
    """Write an integer in units of `10**-decimals`; `padded` keeps trailing zeros.

    Example:
        >>> write_decimal(450, 2), write_decimal(450, 2, padded=True), write_decimal(400, 2)
        ('4.5', '4.50', '4')
    """
    if decimals == 0:
        return str(value)
    text = f"{value // 10**decimals}.{value % 10**decimals:0{decimals}d}"
    return text if padded else text.rstrip("0").rstrip(".")


class Scene(dict[str, str]):
    """The words of one problem; each is drawn when it is first used and then kept."""

    def __init__(self, draw: Draw, numbers: dict[str, str]) -> None:
        super().__init__(numbers)
        self.draw = draw

    def __missing__(self, slot: str) -> str:
        slots, rows = WORDS[slot]
        row = self.draw.pick(rows)
        while row[0] in self.values():  # two names in one problem are two people
            row = self.draw.pick(rows)
        self.update(zip(slots, row, strict=True))
        return self[slot]


@cache
def _parse(text: str) -> list[Node]:
    """A text as plain pieces and lists of alternatives."""
    stack: list[list[list[Node]]] = [[[]]]
    for piece in re.split(r"([\[\]|])", text):
        if piece == "[":
            stack.append([[]])
        elif piece == "]":
            done = stack.pop()
            stack[-1][-1].append(done)
        elif piece == "|":
            stack[-1].append([])
        elif piece:
            stack[-1][-1].append(piece)
    assert len(stack) == 1 and len(stack[0]) == 1, text
    return stack[0][0]


def _expand(nodes: list[Node], draw: Draw) -> str:
    return "".join(node if isinstance(node, str) else _expand(draw.pick(node), draw) for node in nodes)


_GAPS = re.compile(r" {2,}| (?=[.,?!])")
_STARTS = re.compile(r"(?:^|(?<=[.?!] ))[a-z]")


def write_text(text: str, numbers: dict[str, str], draw: Draw) -> str:
    """Write one of the sentences that a text describes."""
    written = _expand(_parse(text), draw).format_map(Scene(draw, numbers))
    written = _GAPS.sub(lambda gap: " " if gap[0].startswith("  ") else "", written).strip()
    return _STARTS.sub(lambda start: start[0].upper(), written)


def draw_numbers(equation: str, draw: Draw, decimals: int = 0, padded: bool = False) -> tuple[dict[str, str], str]:
    """The numbers of a problem as text, by their slots, and its answer."""
    draw.decimals = decimals
    numbers = EQUATIONS[equation](draw)
    places = {name: 0 if name in numbers.counts else decimals for name in (*numbers.given, "=")}
    given = {name: write_decimal(value, places[name], padded) for name, value in numbers.given.items()}
    return given, write_decimal(numbers.answer, places["="])
