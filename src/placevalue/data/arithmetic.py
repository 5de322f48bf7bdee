"""Arithmetic in text, read by a small parser and never by `eval`: what templates and equations compute.

An expression has numbers, the names `num1` .. `numN`, `+ - * /`, a leading minus and parentheses. Everything else is
refused: other names, calls, attributes, powers. What is read becomes a postfix program, which is run on exact values:
one at a time on fractions, or on whole columns of scaled integers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placevalue.common.errors import DataError

LONGEST, DEEPEST = 1000, 50
TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)|(?P<name>[^\W\d]\w*)|(?P<sign>[-+*/()]))")
NUMBER_NAME = re.compile(r"num([1-9][0-9]?)")
NEGATE = "~"
OPERATIONS = ("a+b", "a-b", "a*b", "a/b")
Column = NDArray[Any]


@dataclass(frozen=True)
class Program:
    """An expression as a postfix program: an int is the number of a name, a Fraction a constant, a str an operator."""

    steps: tuple[int | Fraction | str, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Which of `num1` .. `numN` it reads, in order."""
        return tuple(sorted({step for step in self.steps if isinstance(step, int)}))

    @property
    def operation(self) -> str | None:
        """`a+b`, `a-b`, `a*b` or `a/b` where it is one operator between two numbers."""
        if len(self.steps) == 3 and self.steps[-1] != NEGATE:
            return f"a{self.steps[-1]}b"
        return None

    def evaluate(self, values: Mapping[int, Fraction]) -> Fraction:
        """The exact result for one value of each number.

        Example:
            >>> parse_expression("( num1-num2 )/ 4").evaluate({1: Fraction(5), 2: Fraction(2)})
            Fraction(3, 4)
        """
        stack: list[Fraction] = []
        for step in self.steps:
            if isinstance(step, str):
                _apply(stack, step)
            else:
                stack.append(values[step] if isinstance(step, int) else step)
        return stack.pop()


def parse_expression(text: str, where: str = "expression") -> Program:
    """Read an expression; what is no arithmetic is refused with `where` it stands.

    Example:
        >>> parse_expression("num1 * 2").steps
        (1, Fraction(2, 1), '*')
    """
    return Program(tuple(_Parser(text, where).read()))


def operation_of(equation: str) -> str | None:
    """The operation of an equation such as `x=56*9`; none where it is not one operator between two numbers.

    Example:
        >>> operation_of("X=(27.0*16.0)")
        'a*b'
    """
    try:
        return parse_expression(re.sub(r"^\s*[xX]\s*=", "", equation)).operation
    except DataError:
        return None


def evaluate_columns(
    program: Program, columns: Mapping[int, Column], scale: int, largest: int
) -> tuple[Column, Column, Column]:
    """Run a program on columns of integers that stand for `column / scale`, exactly.

    Args:
        program: What to compute.
        columns: One column of integers from 0 up for each number that the program reads, and at least one.
        scale: What the columns' integers must be divided by, a power of ten.
        largest: No integer in the columns is larger; where 64 bits may not hold all results, Python's integers do.

    Returns:
        Numerators, denominators above 0, and where the result exists: nothing was divided by 0.
    """
    kind = np.int64 if _bound(program, scale, largest) < 2**63 else object
    return _run(program, {number: column.astype(kind, copy=False) for number, column in columns.items()}, scale)


def _run(program: Program, columns: Mapping[int, Column], scale: int) -> tuple[Column, Column, Column]:
    first = next(iter(columns.values()))
    exists = np.ones(first.shape, dtype=bool)
    stack: list[tuple[Any, Any]] = []
    for step in program.steps:
        if isinstance(step, int):
            stack.append((columns[step], scale))
        elif isinstance(step, Fraction):
            stack.append((step.numerator, step.denominator))
        elif step == NEGATE:
            top, below = stack.pop()
            stack.append((-top, below))
        else:
            right, left = stack.pop(), stack.pop()
            if step == "/":
                exists &= np.asarray(right[0] != 0, dtype=bool)
            stack.append(_combine(step, left, right))
    numerator, denominator = (_as_column(part, first) for part in stack.pop())
    if not exists.all():
        denominator = np.where(exists, denominator, 1)
    if (negative := denominator < 0).any():
        numerator, denominator = np.where(negative, -numerator, numerator), np.abs(denominator)
    return numerator, denominator, exists


def _as_column(part: Any, like: Column) -> Column:
    return part if isinstance(part, np.ndarray) else np.full_like(like, part)


def _combine(step: str, left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
    """Two values as numerator and denominator, each a column or one int, under an operator."""
    (top, below), (other_top, other_below) = left, right
    if step == "*":
        return top * other_top, below * other_below
    alike = isinstance(below, int) and isinstance(other_below, int) and below == other_below
    if step == "/":
        return (top, other_top) if alike else (top * other_below, other_top * below)
    if not alike:
        top, other_top, below = top * other_below, other_top * below, below * other_below
    return (top + other_top if step == "+" else top - other_top), below


@cache
def _bound(program: Program, scale: int, largest: int) -> int:
    """No integer met on the way is larger: all is added, nothing is below 1, so what is met never shrinks again."""
    steps = [abs(step) or Fraction(1) if isinstance(step, Fraction) else step for step in program.steps]
    growing = Program(tuple("+" if step == "-" else step for step in steps if step != NEGATE))
    columns = {number: np.array([max(largest, 1)], dtype=object) for number in program.numbers}
    numerator, denominator, _ = _run(growing, columns or {0: np.array([1], dtype=object)}, scale)
    return max(int(numerator[0]), int(denominator[0]), scale ** len(steps))


def _apply(stack: list[Fraction], step: str) -> None:
    right = stack.pop()
    if step == NEGATE:
        stack.append(-right)
        return
    left = stack.pop()
    result = {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__}[step](right)
    stack.append(result)


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        if len(text) > LONGEST:
            raise self._fault(f"{len(text)} characters, expected at most {LONGEST}")
        self.tokens = self._tokens()
        self.at = 0

    def read(self) -> Sequence[int | Fraction | str]:
        """The whole expression as postfix steps."""
        steps = self._sum(0)
        if self.at < len(self.tokens):
            raise self._unexpected()
        return steps

    def _tokens(self) -> list[tuple[str, str]]:
        found, at, text = [], 0, self.text.rstrip()
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise self._fault(f"unexpected {text[at:].lstrip()[0]!r}")
            found.append((str(match.lastgroup), match[str(match.lastgroup)]))
            at = match.end()
        return found

    def _sum(self, depth: int) -> list[int | Fraction | str]:
        steps = self._product(depth)
        while (sign := self._take("+-")) is not None:
            steps += [*self._product(depth), sign]
        return steps

    def _product(self, depth: int) -> list[int | Fraction | str]:
        steps = self._operand(depth)
        while (sign := self._take("*/")) is not None:
            steps += [*self._operand(depth), sign]
        return steps

    def _operand(self, depth: int) -> list[int | Fraction | str]:
        if depth > DEEPEST:
            raise self._fault(f"nested more than {DEEPEST} deep")
        if self._take("-"):
            return [*self._operand(depth + 1), NEGATE]
        if self._take("("):
            steps = self._sum(depth + 1)
            if not self._take(")"):
                raise self._unexpected("')'")
            return steps
        kind, token = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        name = NUMBER_NAME.fullmatch(token)
        if kind == "name" and name is None:
            raise self._fault(f"the name {token!r}, expected only num1, num2, ..")
        if kind not in ("number", "name"):
            raise self._unexpected("a number or '('")
        self.at += 1
        return [int(name[1])] if name else [Fraction(token)]

    def _take(self, signs: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "sign" and self.tokens[self.at][1] in signs:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def _unexpected(self, expected: str = "an operator") -> DataError:
        found = repr(self.tokens[self.at][1]) if self.at < len(self.tokens) else "its end"
        return self._fault(f"{found} where {expected} should stand")

    def _fault(self, what: str) -> DataError:
        return DataError(f"{self.where}: {self.text[:80]!r} is no arithmetic that can be read: {what}")
