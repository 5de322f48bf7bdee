"""Show how a text is tokenized: its pieces before and after, each number's digits and weights, and the cost."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedTokenizerBase

from placevalue.common.text import visible
from placevalue.numbers.aggregation import digit_weights
from placevalue.numbers.config import Decimals
from placevalue.numbers.numerals import Numeral, find_numerals
from placevalue.numbers.spans import find_digits
from placevalue.tokenizer.tokenizer import MARKER_NAMES, marker_ids, number_ids, number_layout

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_SPACES = str.maketrans({"Ġ": "␣", "▁": "␣", "Ċ": "⏎", "\n": "⏎"})
_TINTS = ("cyan", "blue")  # alternate, so that neighbouring pieces differ


@dataclass(frozen=True)
class Inspection:
    """A text's pieces in both tokenizers, without special tokens."""

    base: list[str]
    ours: list[str]
    numbers: list[tuple[Numeral, list[tuple[int, int, float]]]]
    """Each number as the model reads it: its digits with their places and weights."""


def inspect_text(
    text: str, base: PreTrainedTokenizerBase, tokenizer: PreTrainedTokenizerBase, decimals: Decimals = "places"
) -> Inspection:
    """Tokenize a text with a number tokenizer and its base; places and weights come from the ids, as in the model."""
    names = {marker: MARKER_NAMES[name] for name, marker in marker_ids(tokenizer).items()}
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    tokens = tokenizer.convert_ids_to_tokens(ids)
    pieces = [names.get(i, token.translate(_SPACES)) for i, token in zip(ids, tokens, strict=True)]
    layout = number_layout(tokenizer)
    found = find_digits(torch.tensor([ids], dtype=torch.long), number_ids(tokenizer), decimals)
    weights = digit_weights(found.places, found.leading, torch.float32)
    if found.negative is not None:
        weights = torch.where(found.negative, -weights, weights)
    digits: dict[int, list[tuple[int, int, float]]] = {}
    columns = (each[found.mask].tolist() for each in (found.numbers, found.values, found.places, weights))
    for slot, *digit in zip(*columns, strict=True):
        digits.setdefault(slot, []).append(tuple(digit))
    numbers = list(zip(find_numerals(text, layout.pattern, layout.ignore), digits.values(), strict=True))
    return Inspection([piece.translate(_SPACES) for piece in base.tokenize(text)], pieces, numbers)


def render(inspection: Inspection, title: str) -> "RenderableType":
    """Show an inspection in the terminal."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    before, after = len(inspection.base), len(inspection.ours)
    cost = f"{before} tokens before, {after} after"
    if before:
        cost += f": {after / before:.2f} times as many"
    parts: list[RenderableType] = [Text("before", "bold"), _coloured(inspection.base), "", Text("after", "bold")]
    parts += [_coloured(inspection.ours), "", _table(inspection), cost]
    return Group(Text(visible(title), no_wrap=True, overflow="ignore"), Panel(Group(*parts)))


def _coloured(pieces: list[str]) -> "Text":
    """Pieces in alternating colours, with dim markers and bold numbers."""
    from rich.text import Text

    line, inside = Text(), False
    for index, piece in enumerate(pieces):
        marker = piece in MARKER_NAMES.values()
        inside = (inside or piece == MARKER_NAMES["open"]) and piece != MARKER_NAMES["close"]
        line.append(visible(piece), "dim magenta" if marker else "bold green" if inside else _TINTS[index % 2])
        line.append(" ")
    return line


def _table(inspection: Inspection) -> "RenderableType":
    from rich.table import Table

    if not inspection.numbers:
        return "no numbers found\n"
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("number", "value", "digit", "place", "weight"):
        table.add_column(name, overflow="fold")
    for numeral, digits in inspection.numbers:
        for index, (digit, place, weight) in enumerate(digits):
            first = (numeral.text, f"{numeral.value:,}") if index == 0 else ("", "")
            table.add_row(*first, str(digit), f"10^{place}", f"{weight:.4g}")
    return table
