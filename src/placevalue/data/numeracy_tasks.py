"""The tasks of `numeracy`: the numbers that they take, the sentences that they ask, and the exact answer.

To add a task, add an entry to `TASKS`. A problem is drawn as whole numbers from the ranges of its `space`; `solve`
turns them into words and an answer, or into None where the question would be ambiguous or trivial.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from placevalue.numbers.numerals import shortest_form

SEPARATOR = ", "
"""What stands between the numbers of a list, in questions and in the answers of `sort`."""
UNITS = (
    ("kilometres", "metres", 1000), ("metres", "centimetres", 100), ("centimetres", "millimetres", 10),
    ("kilograms", "grams", 1000), ("litres", "millilitres", 1000), ("hours", "minutes", 60), ("minutes", "seconds", 60),
    ("days", "hours", 24), ("weeks", "days", 7), ("years", "months", 12), ("metres", "kilometres", Decimal("0.001")),
    ("centimetres", "metres", Decimal("0.01")), ("millimetres", "centimetres", Decimal("0.1")),
    ("grams", "kilograms", Decimal("0.001")), ("millilitres", "litres", Decimal("0.001")),
)  # fmt: skip
"""Conversions whose result always ends."""
_WHOLE = ("one", "ten", "hundred", "thousand", "ten thousand", "hundred thousand", "million", "ten million",
          "hundred million", "billion")  # fmt: skip
_PARTS = ("tenth", "hundredth", "thousandth")


class Solved(NamedTuple):
    """A problem without its sentence."""

    gaps: dict[str, str]
    """What stands in the gaps of the sentences."""
    answer: str
    operands: tuple[object, ...]
    """What makes it the same problem as another, whatever its sentence and the order of its numbers."""


@dataclass(frozen=True)
class Task:
    """One thing to do with numbers."""

    space: Callable[[int, int], tuple[range, ...]]
    """The ranges of the numbers drawn, by the digits and the decimals of the longest, which comes first."""
    solve: Callable[..., Solved | None]
    """Takes an integer that chooses between equal ways to ask, the number of decimals, and the numbers drawn."""
    sentences: tuple[str, ...]
    reworded: tuple[str, ...]
    """Sentences that are never trained on."""


def longest(length: int, places: int) -> range:
    """The numbers with `length` digits, `places` of them after the point, in units of the last place."""
    return range(1 if length - places == 1 else 10 ** (length - 1), 10**length)


def up_to(length: int, first: int = 1) -> range:
    """The numbers with at most `length` digits."""
    return range(first, 10**length)


def _half(length: int) -> range:
    """The factors and divisors that go with a number: half as many digits, and not 1."""
    return up_to((length + 1) // 2, 2)


def _number(drawn: int, places: int) -> Decimal:
    return Decimal(drawn).scaleb(-places)


def _write(**gaps: Decimal | str) -> dict[str, str]:
    return {name: each if isinstance(each, str) else shortest_form(each) for name, each in gaps.items()}


def _copy(_turn: int, places: int, drawn: int) -> Solved:
    number = _number(drawn, places)
    return Solved(_write(a=number), shortest_form(number), (number,))


def _add(turn: int, places: int, first: int, second: int) -> Solved:
    low, high = sorted((_number(first, places), _number(second, places)))
    a, b = (low, high) if turn % 2 else (high, low)
    return Solved(_write(a=a, b=b), shortest_form(low + high), (low, high))


def _subtract(_turn: int, places: int, first: int, second: int) -> Solved | None:
    low, high = sorted((_number(first, places), _number(second, places)))
    return Solved(_write(a=high, b=low), shortest_form(high - low), (low, high)) if low < high else None


def _multiply(turn: int, places: int, first: int, factor: int) -> Solved:
    low, high = sorted((_number(first, places), Decimal(factor)))
    a, b = (low, high) if turn % 2 else (high, low)
    return Solved(_write(a=a, b=b), shortest_form(low * high), (low, high))


def _divide(_turn: int, places: int, drawn: int, divisor: int) -> Solved | None:
    """The number drawn, made smaller until the quotient has no more decimals than it has."""
    whole = drawn - drawn % divisor
    if len(str(whole)) < len(str(drawn)) or not whole or (places and whole % 10 == 0):
        return None
    number = _number(whole, places)
    return Solved(_write(a=number, b=Decimal(divisor)), shortest_form(number / divisor), (number, divisor))


def _compare(turn: int, places: int, first: int, second: int) -> Solved | None:
    low, high = sorted((_number(first, places), _number(second, places)))
    a, b = (low, high) if turn % 2 else (high, low)
    larger = turn // 2 % 2
    gaps = _write(a=a, b=b, which="larger" if larger else "smaller")
    return Solved(gaps, shortest_form(high if larger else low), (low, high)) if low < high else None


def _listed(turn: int, places: int, drawn: tuple[int, ...]) -> tuple[str, list[Decimal]] | None:
    """The numbers as a list in some order, and in ascending order; None if two are equal."""
    left = sorted(set(drawn))
    if len(left) < len(drawn):
        return None
    numbers, mixed = [_number(each, places) for each in left], []
    while left:
        turn, chosen = divmod(turn, len(left))
        mixed.append(shortest_form(_number(left.pop(chosen), places)))
    return SEPARATOR.join(mixed), numbers


def _largest(turn: int, places: int, *drawn: int) -> Solved | None:
    found = _listed(turn, places, drawn)
    return found and Solved({"list": found[0]}, shortest_form(found[1][-1]), tuple(found[1]))


def _sort(turn: int, places: int, *drawn: int) -> Solved | None:
    found = _listed(turn, places, drawn)
    return found and Solved({"list": found[0]}, SEPARATOR.join(map(shortest_form, found[1])), tuple(found[1]))


def _round(_turn: int, places: int, drawn: int, power: int) -> Solved | None:
    """Ties are left out, since people round them in several ways, and so is what rounds to 0."""
    power = -power if places else power + 1
    number, unit = _number(drawn, places), Decimal(1).scaleb(power)
    rest = number % unit
    rounded = number - rest + (unit if 2 * rest > unit else 0)
    name = "whole number" if power == 0 else _WHOLE[power] if power > 0 else _PARTS[-power - 1]
    if 2 * rest == unit or not rounded:
        return None
    return Solved(_write(a=number, unit=name), shortest_form(rounded), (number, power))


def _digit(_turn: int, places: int, drawn: int, index: int) -> Solved:
    power = index - places
    name = _WHOLE[power] if power >= 0 else _PARTS[-power - 1]
    number = _number(drawn, places)
    return Solved(_write(a=number, place=f"{name}s"), str(drawn // 10**index % 10), (number, power))


def _count(_turn: int, places: int, drawn: int) -> Solved:
    number = _number(drawn, places)
    where = " after the decimal point" if places else ""
    return Solved(_write(a=number, where=where), str(places or len(str(drawn))), (number,))


def _percent(_turn: int, places: int, drawn: int, twentieths: int) -> Solved:
    number, share = _number(drawn, places), Decimal(5 * twentieths)
    return Solved(_write(a=number, b=share), shortest_form(number * share / 100), (number, share))


def _convert(_turn: int, places: int, drawn: int, unit: int) -> Solved | None:
    number, (given, wanted, factor) = _number(drawn, places), UNITS[unit]
    if number == 1:  # "1 metres"
        return None
    return Solved(_write(a=number, given=given, wanted=wanted), shortest_form(number * factor), (number, unit))


TASKS: dict[str, Task] = {
    "copy": Task(
        lambda length, places: (longest(length, places),),
        _copy,
        ("Repeat the number {a}.", "Copy this number: {a}", "Write {a} once more.", "Write down the number {a}."),
        ("The number is {a}. What is the number?", "Say {a} again."),
    ),
    "add": Task(
        lambda length, places: (longest(length, places), up_to(length)),
        _add,
        ("What is {a} plus {b}?", "Add {a} and {b}.", "What is the sum of {a} and {b}?", "{a} + {b} = ?"),
        ("Put {a} and {b} together. How much is that?", "Increase {a} by {b}. What do you get?"),
    ),
    "subtract": Task(
        lambda length, places: (longest(length, places), up_to(length)),
        _subtract,
        ("What is {a} minus {b}?", "Subtract {b} from {a}.", "Take {b} away from {a}. What is left?", "{a} - {b} = ?"),
        ("Reduce {a} by {b}. What do you get?", "How much larger is {a} than {b}?"),
    ),
    "multiply": Task(
        lambda length, places: (longest(length, places), _half(length)),
        _multiply,
        ("What is {a} times {b}?", "Multiply {a} by {b}.", "What is the product of {a} and {b}?", "{a} * {b} = ?"),
        ("If {a} is taken {b} times, how much is that?", "Find the result of {a} multiplied by {b}."),
    ),
    "divide": Task(
        lambda length, places: (longest(length, places), _half(length)),
        _divide,
        ("What is {a} divided by {b}?", "Divide {a} by {b}.", "How many times does {b} go into {a}?", "{a} / {b} = ?"),
        ("Split {a} into {b} equal parts. How large is each?", "What is the quotient of {a} and {b}?"),
    ),
    "compare": Task(
        lambda length, places: (longest(length, places), up_to(length)),
        _compare,
        ("Which is {which}, {a} or {b}?", "Which number is {which}: {a} or {b}?",
         "Of {a} and {b}, which is the {which} one?", "Give the {which} of the two numbers {a} and {b}."),
        ("There are two numbers, {a} and {b}. Name the {which} one.", "Is {a} or {b} the {which} number?"),
    ),
    "largest": Task(
        lambda length, places: (longest(length, places), *[up_to(length)] * 3),
        _largest,
        ("Which is the largest of these numbers: {list}?", "Find the largest number: {list}",
         "What is the largest number in the list {list}?", "Give the largest of {list}."),
        ("Look at {list}. Which number is the biggest?", "{list}: which of them is greater than all others?"),
    ),
    "sort": Task(
        lambda length, places: (longest(length, places), *[up_to(length)] * 2),
        _sort,
        ("Sort these numbers from smallest to largest: {list}", "Put {list} in order, the smallest first.",
         "Write {list} in increasing order.", "Sort {list}, smallest first."),
        ("Begin with the smallest and list {list} by size.", "Arrange {list} from low to high."),
    ),
    "round": Task(
        lambda length, places: (longest(length, places), range(places or length - 1)),
        _round,
        ("Round {a} to the nearest {unit}.", "What is {a} rounded to the nearest {unit}?",
         "Give {a} to the nearest {unit}.", "Round to the nearest {unit}: {a}"),
        ("To the nearest {unit}, how much is {a}?", "If {a} is rounded, what is it to the nearest {unit}?"),
    ),
    "digit": Task(
        lambda length, places: (longest(length, places), range(length if length > 1 else 0)),
        _digit,
        ("What is the {place} digit of {a}?", "Which digit of {a} is in the {place} place?",
         "Give the {place} digit of {a}.", "In {a}, which digit is the {place} digit?"),
        ("Look at the {place} place of {a}. Which digit is there?", "Name the digit {a} has in the {place} place."),
    ),
    "count": Task(
        lambda length, places: (longest(length, places),),
        _count,
        ("How many digits does {a} have{where}?", "Count the digits of {a}{where}.",
         "How many digits are in {a}{where}?", "What is the number of digits of {a}{where}?"),
        ("If you write {a}, how many digits does it have{where}?", "Say how many digits {a} has got{where}."),
    ),
    "percent": Task(
        lambda length, places: (longest(length, places), range(1, 20 if length > 1 else 1)),
        _percent,
        ("What is {b}% of {a}?", "Find {b} percent of {a}.", "How much is {b}% of {a}?", "Give {b} percent of {a}."),
        ("Take {b} percent of {a}. How much is that?", "The whole is {a}. What is {b}% of the whole?"),
    ),
    "convert": Task(
        lambda length, places: (longest(length, places), range(len(UNITS))),
        _convert,
        ("How many {wanted} are {a} {given}?", "Convert {a} {given} to {wanted}.", "Write {a} {given} in {wanted}.",
         "{a} {given} are how many {wanted}?"),
        ("Something measures {a} {given}. What is that in {wanted}?", "Express {a} {given} as {wanted}."),
    ),
}  # fmt: skip
