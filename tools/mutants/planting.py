"""Small bugs that could be planted in a module: another operator, a number off by one, a statement left out.

What no test should notice stays as it is: docstrings, messages and logs, annotations, decorators, assertions.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_PAIRS = {
    "min": "max",
    "any": "all",
    "amin": "amax",
    "argmin": "argmax",
    "cummin": "cummax",
    "minimum": "maximum",
    "floor": "ceil",
    "tril": "triu",
    "zeros": "ones",
    "new_zeros": "new_ones",
    "startswith": "endswith",
    "log2": "log",
    "exp2": "exp",
}
_TWINS = _PAIRS | {other: one for one, other in _PAIRS.items()} | {"log1p": "log"}
_NOT_RUN = {"annotation", "returns", "decorator_list"}
_OPAQUE = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom, ast.Raise)


@dataclass(frozen=True)
class Mutant:
    """One bug in one module."""

    module: str
    """The module's path from the root."""
    line: int
    was: str
    """The lines that it changes, in one line."""
    becomes: str
    start: int
    """Where in the module's bytes the text that it replaces begins."""
    end: int
    text: str
    """What it puts there."""
    lines: tuple[int, int]
    """The first and last line of its statement; of a compound statement, of its head."""

    def plant(self, source: bytes) -> bytes:
        """The module with this bug."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def find_mutants(module: str, source: bytes) -> list[Mutant]:
    """Every bug that could be planted in a module, in the order of its text."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {}
    for node, text, lines in _visit(ast.parse(source), (1, 1)):
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        first, last = starts[node.lineno - 1], starts[node.end_lineno]
        lines_then = source[first:start] + text.encode() + source[end:last]
        was, becomes = (" ".join(each.decode().split()) for each in (source[first:last], lines_then))
        found[start, end, text] = Mutant(module, node.lineno, was, becomes, start, end, text, lines)
    return [found[key] for key in sorted(found)]


def _visit(node: Any, lines: tuple[int, int]) -> Iterator[tuple[Any, str, tuple[int, int]]]:
    """Each part of a module that could be replaced, by what, and the lines of its statement."""
    if isinstance(node, ast.stmt):
        inner = getattr(node, "body", None)
        lines = node.lineno, max(node.lineno, inner[0].lineno - 1) if inner else int(node.end_lineno or 0)
    if _is_message(node):
        return
    yield from ((node, text, lines) for text in _statements(node))
    yield from ((node, f"({ast.unparse(changed)})", lines) for changed in _expressions(node))
    if isinstance(node, ast.comprehension):
        yield from ((test, "True", lines) for test in node.ifs)
    if isinstance(node, ast.If | ast.While | ast.IfExp) and isinstance(node.test, ast.Name | ast.Call | ast.Attribute):
        yield node.test, f"(not {ast.unparse(node.test)})", lines
    if isinstance(node, ast.With):
        managers = [item.context_expr for item in node.items if item.optional_vars is None]
        yield from ((manager, "__import__('contextlib').nullcontext()", lines) for manager in managers)
    if isinstance(node, _OPAQUE):
        return
    for child in [node.args[0]] if _calls(node, "isinstance") else _children(node):
        yield from _visit(child, lines)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name not in _NOT_RUN:
            yield from (
                child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)
            )


def _calls(node: Any, *names: str) -> bool:
    """Whether a node is a call of one of these functions, or of a method of one of these objects."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return isinstance(function, ast.Name) and function.id in names


def _is_message(node: Any) -> bool:
    """Docstrings, logs, warnings, and what only type checkers read."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _calls(node.value, "logger", "warnings")
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _statements(node: Any) -> Iterator[str]:
    """What could stand in place of a statement."""
    if isinstance(node, ast.Raise | ast.AugAssign | ast.Delete | ast.Break | ast.Continue):
        yield "pass"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "pass"
    if isinstance(node, ast.Assign):
        # Without its only assignment, a name would fail at once.
        kinds = {type(target) for target in node.targets}
        if kinds <= {ast.Attribute, ast.Subscript} or set().union(*map(_names, node.targets)) <= _names(node.value):
            yield "pass"
    if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield "return None"
    if isinstance(node, ast.Continue):
        yield "break"


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _expressions(node: Any) -> Iterator[ast.expr]:
    """What could stand in place of an expression."""
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                yield _with(node, ops=[*node.ops[:index], other(), *node.ops[index + 1 :]])
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for index in range(len(node.values)):
            rest = [*node.values[:index], *node.values[index + 1 :]]
            yield _with(node, values=rest) if len(rest) > 1 else rest[0]
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and not _is_text_or_items(node):
        yield _with(node, op=_OPERATORS[type(node.op)]())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield from (ast.Constant(node.value + step) for step in ((1, -1) if node.value else (1,)))
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield ast.Constant(2 * node.value if node.value else 1.0)
    elif isinstance(node, ast.IfExp):
        yield _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Call):
        for index, keyword in enumerate(node.keywords):
            if keyword.arg is not None:
                yield _with(node, keywords=[*node.keywords[:index], *node.keywords[index + 1 :]])
        if isinstance(node.func, ast.Attribute) and node.func.attr in _TWINS:
            yield _with(node, func=_with(node.func, attr=_TWINS[node.func.attr]))
        elif isinstance(node.func, ast.Name) and node.func.id in _TWINS:
            yield _with(node, func=ast.Name(_TWINS[node.func.id]))
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        for bound in ("lower", "upper"):
            if getattr(node.slice, bound) is not None:
                yield _with(node, slice=_with(node.slice, **{bound: None}))


def _is_text_or_items(node: ast.BinOp) -> bool:
    """Whether an operand is a text, list, tuple or dictionary, for which any other operator fails at once."""
    text = ast.JoinedStr | ast.List | ast.Tuple | ast.Dict | ast.ListComp
    return any(
        isinstance(side, text) or (isinstance(side, ast.Constant) and not isinstance(side.value, int | float))
        for side in (node.left, node.right)
    )


def _with(node: Any, **values: Any) -> Any:
    """A copy of a node with other fields."""
    changed = copy.copy(node)
    for name, value in values.items():
        setattr(changed, name, value)
    return changed
