"""Exact arithmetic on the expressions of templates and equations, parsed with `ast` and never evaluated by Python.

An expression has numbers, the names `num1` to `num99`, `+ - * /`, a leading minus and parentheses. Everything else is
refused: other names, calls, attributes, powers. An expression becomes a postfix program that runs exactly on whole
columns of scaled integers.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placevalue.common.errors import DataError

LONGEST, DEEPEST = 1000, 50
REFUSED = re.compile(r"[^\w .+*/()-]", re.ASCII)
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")
NAME = re.compile(r"num([1-9][0-9]?)")
NEGATE = "~"
SIGNS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
OPERATIONS = tuple(f"a{sign}b" for sign in SIGNS.values())
Column = NDArray[Any]
Step = int | Fraction | str


@dataclass(frozen=True)
class Program:
    """An expression in postfix order: an int N is the name `numN`, a Fraction a constant, a str an operator."""

    steps: tuple[Step, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The N of every `numN` that it reads, in ascending order."""
        return tuple(sorted({step for step in self.steps if isinstance(step, int)}))

    @property
    def operation(self) -> str | None:
        """`a+b`, `a-b`, `a*b` or `a/b` if it is one operator between two numbers, else None."""
        return f"a{self.steps[2]}b" if len(self.steps) == 3 and self.steps[2] != NEGATE else None


def parse_expression(text: str, where: str = "expression") -> Program:
    """Parse an expression; `where` is named in the error if it is not arithmetic."""
    try:
        return Program(_steps(" ".join(text.split())))
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        what = error.msg if isinstance(error, SyntaxError) else str(error) or "too complex"
        raise DataError(f"{where}: {text[:80]!r} is not arithmetic that placevalue can read: {what}") from None


def _steps(text: str) -> tuple[Step, ...]:
    if len(text) > LONGEST:
        raise ValueError(f"{len(text)} characters, expected at most {LONGEST}")
    if refused := REFUSED.search(text):
        raise ValueError(f"unexpected {refused[0]!r}")
    if max(accumulate((sign == "(") - (sign == ")") for sign in "+" + text)) > DEEPEST:
        raise ValueError(f"nested more than {DEEPEST} deep")
    found: list[Step] = []
    nodes = [(ast.parse(text, mode="eval").body, 0)]
    while nodes:  # from right to left: operator, right side, left side
        node, depth = nodes.pop()
        source = text[node.col_offset : node.end_col_offset]
        if isinstance(node, ast.BinOp) and (sign := SIGNS.get(type(node.op))):
            found.append(sign)
            nodes += [(node.left, depth), (node.right, depth)]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and depth < DEEPEST:
            found.append(NEGATE)
            nodes.append((node.operand, depth + 1))
        elif isinstance(node, ast.Constant) and NUMBER.fullmatch(source):
            found.append(Fraction(source))
        elif isinstance(node, ast.Name) and (name := NAME.fullmatch(source)):
            found.append(int(name[1]))
        else:
            raise ValueError(f"found {source[:40]!r}, expected only numbers, num1, num2, .., + - * / and parentheses")
    return tuple(reversed(found))


def operation_of(equation: str) -> str | None:
    """The operation of an equation: `a*b` for `x=56*9`; None unless it is one operator between two numbers."""
    try:
        return parse_expression(re.sub(r"^\s*[xX]\s*=", "", equation)).operation
    except DataError:
        return None


def evaluate_columns(
    program: Program, columns: Mapping[int, Column], scale: int, largest: int
) -> tuple[Column, Column, Column]:
    """Run a program exactly on columns of integers that mean `column / scale`, from 0 to `largest`.

    Returns numerators, positive denominators, and whether each result exists, that is, nothing was divided by 0. Where
    64 bits may not hold all results, Python's integers are used.
    """
    kind = np.int64 if _bound(program, scale, largest) < 2**63 else object
    return _run(program, {number: column.astype(kind, copy=False) for number, column in columns.items()}, scale)


def _run(program: Program, columns: Mapping[int, Column], scale: int) -> tuple[Column, Column, Column]:
    first = next(iter(columns.values()), np.ones(1, dtype=object))
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
    numerator, denominator = (np.broadcast_to(np.asarray(part, first.dtype), first.shape) for part in stack.pop())
    if not exists.all():
        denominator = np.where(exists, denominator, 1)
    if (negative := denominator < 0).any():
        numerator, denominator = np.where(negative, -numerator, numerator), np.abs(denominator)
    return numerator, denominator, exists


def _combine(step: str, left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
    """Combine two fractions, whose numerators and denominators are columns or ints."""
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
    """A bound for every intermediate integer: with only additions and factors of 1 or more, values never shrink."""
    steps = [abs(step) or Fraction(1) if isinstance(step, Fraction) else step for step in program.steps]
    growing = Program(tuple("+" if step == "-" else step for step in steps if step != NEGATE))
    columns = {number: np.array([max(largest, 1)], dtype=object) for number in program.numbers}
    numerator, denominator, _ = _run(growing, columns, scale)
    return max(int(numerator[0]), int(denominator[0]), scale ** len(steps))
