"""Show how a text is tokenized: its pieces before and after, each number's digits and weights, and the cost."""

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedTokenizerBase

from placevalue.common.hub import load_tokenizer
from placevalue.common.text import visible
from placevalue.numbers.aggregation import digit_weights
from placevalue.numbers.config import Decimals
from placevalue.numbers.numerals import Numeral, find_numerals
from placevalue.numbers.spans import find_digits, read_tokens
from placevalue.tokenizer.tokenizer import (
    MARKER_NAMES,
    SETTINGS,
    is_number_tokenizer,
    marker_ids,
    number_ids,
    number_layout,
    number_tokenizer,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_SPACES = str.maketrans({"Ġ": "␣", "▁": "␣", "Ċ": "⏎", "\n": "⏎"})
_TINTS = ("cyan", "blue")  # alternate, so that neighbouring pieces differ


_STYLES = {
    "marker": "color:#a3a;opacity:.8",
    "number": "background:rgba(40,160,80,.25);font-weight:bold",
    "text": "background:rgba(128,128,128,.15)",
}
_HEADER = ("number", "value", "digit", "place", "weight")


@dataclass(frozen=True, repr=False)
class Inspection:
    """A text's pieces in both tokenizers, without special tokens; print it, or let a notebook show it."""

    base: list[str] | None
    """None if the base tokenizer was not given."""
    ours: list[str]
    numbers: list[tuple[Numeral, list[tuple[int, int, float]]]]
    """Each number as the model reads it: its digits with their places and weights."""
    inside: frozenset[int] = frozenset()
    """Which of our pieces belong to a number."""

    @property
    def cost(self) -> str:
        """How many tokens there are, before and after."""
        after = len(self.ours)
        if self.base is None:
            return f"{after} tokens"
        times = f": {after / len(self.base):.2f} times as many" if self.base else ""
        return f"{len(self.base)} tokens before, {after} after{times}"

    @property
    def lines(self) -> dict[str, list[str]]:
        """The pieces before, if known, and after."""
        return ({} if self.base is None else {"before": self.base}) | {"after": self.ours}

    def __repr__(self) -> str:
        shown = [f"{name:<6}  {' '.join(map(visible, pieces))}" for name, pieces in self.lines.items()]
        table = [_HEADER, *_rows(self)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table if self.numbers else ():
            shown.append("  ".join(map(str.ljust, row, widths)).rstrip())
        return "\n".join([*shown, *([] if self.numbers else ["no numbers found"]), self.cost])

    def __rich__(self) -> "RenderableType":
        return _rich(self)

    def _repr_html_(self) -> str:
        """What Jupyter shows; its colours suit dark and light pages."""
        shown = []
        for name, pieces in self.lines.items():
            kinds = _kinds(pieces, self.inside if name == "after" else frozenset())
            spans = (f'<span style="padding:0 .25em;{_STYLES[kind]}">{_cell(piece)}</span>' for piece, kind in kinds)
            shown.append(f'<div style="line-height:1.8"><b>{name}</b> <code>{" ".join(spans)}</code></div>')
        rows = ("".join(f'<td style="text-align:right">{_cell(cell)}</td>' for cell in row) for row in _rows(self))
        head = "".join(f"<th>{name}</th>" for name in _HEADER)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        table = f"<table><tr>{head}</tr>{body}</table>" if self.numbers else "<p>no numbers found</p>"
        return f"<div>{''.join(shown)}{table}<p>{self.cost}</p></div>"


def inspect(
    text: str,
    tokenizer: PreTrainedTokenizerBase | str | os.PathLike[str],
    base: PreTrainedTokenizerBase | None = None,
) -> Inspection:
    """Show what a text becomes: its tokens, each number's digits, places, weights and value, and the cost.

    A notebook shows the result in colour, and so does `rich.print`; `print` shows it as plain text.

    Args:
        text: What to look at.
        tokenizer: From `number_tokenizer`; or a plain tokenizer or its name, to see what
            `number_tokenizer(tokenizer, token="agg")` would do to it.
        base: The tokenizer that a number tokenizer was made from, to see the text before too.

    Example:
        >>> inspect("It cost 12.5", "placevalue-tiny")  # doctest: +SKIP
    """
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        tokenizer = load_tokenizer(tokenizer)
    if not is_number_tokenizer(tokenizer):
        base, tokenizer = tokenizer, number_tokenizer(tokenizer, token="agg")
    settings = tokenizer.init_kwargs[SETTINGS]
    return inspect_text(text, base, tokenizer, (settings.get("attach", {}) | settings).get("decimals", "places"))


def inspect_text(
    text: str, base: PreTrainedTokenizerBase | None, tokenizer: PreTrainedTokenizerBase, decimals: Decimals = "places"
) -> Inspection:
    """Tokenize a text with a number tokenizer and its base; places and weights come from the ids, as in the model."""
    names = {marker: MARKER_NAMES[name] for name, marker in marker_ids(tokenizer).items()}
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    tokens = tokenizer.convert_ids_to_tokens(ids)
    pieces = [names.get(i) or _friendly(token) for i, token in zip(ids, tokens, strict=True)]
    layout = number_layout(tokenizer)
    row, known = torch.tensor([ids], dtype=torch.long), number_ids(tokenizer)
    found = find_digits(row, known, decimals)
    weights = digit_weights(found.places, found.leading, torch.float32)
    if found.negative is not None:
        weights = torch.where(found.negative, -weights, weights)
    digits: dict[int, list[tuple[int, int, float]]] = {}
    columns = (each[found.mask].tolist() for each in (found.numbers, found.values, found.places, weights))
    for slot, *digit in zip(*columns, strict=True):
        digits.setdefault(slot, []).append(tuple(digit))
    numerals = find_numerals(text, layout.pattern, layout.ignore)
    if len(numerals) != len(digits):  # the base makes digits of other characters, which no markers set apart
        numerals = find_numerals(str(tokenizer.decode(ids)), layout.pattern)
    numbers = list(zip(numerals, digits.values(), strict=True))
    before = None if base is None else [_friendly(piece) for piece in base.tokenize(text)]
    inside = read_tokens(row, known).member[0].nonzero().flatten().tolist()
    return Inspection(before, pieces, numbers, frozenset(inside))


def _friendly(token: str) -> str:
    """A token with signs for spaces, and with the codes of characters that no font has."""
    shown = token.translate(_SPACES)
    return "".join(c.encode("unicode_escape").decode() if unicodedata.category(c) in ("Co", "Cn") else c for c in shown)


def _kinds(pieces: list[str], inside: frozenset[int]) -> Iterator[tuple[str, str]]:
    """Each piece, and whether it is a marker, part of a number or other text."""
    for at, piece in enumerate(pieces):
        marker = piece in MARKER_NAMES.values()
        yield piece, "marker" if marker else "number" if at in inside else "text"


def _rows(inspection: Inspection) -> Iterator[tuple[str, ...]]:
    """The cells of each digit; numeral and value are in the first row of a number."""
    for numeral, digits in inspection.numbers:
        for index, (digit, place, weight) in enumerate(digits):
            first = (visible(numeral.text), f"{numeral.value:,}") if index == 0 else ("", "")
            yield (*first, str(digit), f"10^{place}", f"{weight:.4g}")


def _cell(text: str) -> str:
    return escape(visible(text))


def render(inspection: Inspection, title: str) -> "RenderableType":
    """Show an inspection in the terminal, in a panel under a title."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    return Group(Text(visible(title), no_wrap=True, overflow="ignore"), Panel(_rich(inspection)))


def _rich(inspection: Inspection) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for name, pieces in inspection.lines.items():
        parts += [Text(name, "bold"), _coloured(pieces, inspection.inside if name == "after" else frozenset()), ""]
    return Group(*parts, _table(inspection), inspection.cost)


def _coloured(pieces: list[str], inside: frozenset[int]) -> "Text":
    """Pieces in alternating colours, with dim markers and bold numbers."""
    from rich.text import Text

    line, styles = Text(), {"marker": "dim magenta", "number": "bold green"}
    for index, (piece, kind) in enumerate(_kinds(pieces, inside)):
        line.append(visible(piece), styles.get(kind, _TINTS[index % 2]))
        line.append(" ")
    return line


def _table(inspection: Inspection) -> "RenderableType":
    from rich.table import Table

    if not inspection.numbers:
        return "no numbers found\n"
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in _HEADER:
        table.add_column(name, overflow="fold")
    for row in _rows(inspection):
        table.add_row(*row)
    return table
