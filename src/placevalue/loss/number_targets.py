"""The whole numbers in targets, and what each would be with one token another: what the auxiliary loss compares.

On an accelerator a small step costs more to launch than to compute, so what a few products of small matrices can say
about every token at once is not worked out step by step.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from placevalue.numbers.config import NumberIds
from placevalue.numbers.spans import KINDS, Digits, Tokens, constant, read_tokens

LONGEST = 32
"""Numbers of more tokens than this are left to cross-entropy."""
CHOICES = 12
"""What can stand at a number's position: the ten digits, the point, and anything else, which ends the number."""
OUTSIDE = -2
"""The id of no token: neither -100 nor -1, which stands for symbols that a pattern never writes."""
_WEIGHTS = {"close": LONGEST + 1.0, "part": -1.0, "exponent": -2.0 * LONGEST, "extra": -2.0 * LONGEST}
_WHOLE = tuple(_WEIGHTS.get(kind, 0.0) for kind in KINDS)
"""Sums to more than 0 over the tokens of a number that is closed, not too long, and has no exponent or [AGG]."""
_SHORT = 64  # targets this long are searched without asking an accelerator how many numbers they hold


@dataclass(frozen=True)
class Numbers:
    """Numbers in lines of tokens: in the targets as they are or, packed, each in a line of its own."""

    lines: Tensor
    """The tokens: `(lines, width)`."""
    tokens: Tokens
    """What each token is."""
    members: Tensor
    """1 where a token belongs to a number, its close included, its open not: `(lines, numbers, width)`."""
    valid: Tensor
    """Whether there is a number at all: `(lines, numbers)`; unpacked, a number stands where it opens."""
    behind: int
    """How many positions before what they predict predictions stand."""
    rows: Tensor | None = None
    """Packed, the target each number stands in: `(lines,)`."""
    starts: Tensor | None = None
    """Packed, where in it the open marker is: `(lines,)`."""

    def read(self, values: Tensor) -> Tensor:
        """What predicts each token: `(batch, length, k)` to `(lines, width, k)`; of the first in a line, anything."""
        if self.rows is None or self.starts is None:
            return values.roll(self.behind, 1) if self.behind else values
        steps = torch.arange(self.lines.shape[1], device=values.device) - self.behind
        return values[self.rows[:, None], (self.starts[:, None] + steps).clamp(0, values.shape[1] - 1)]

    def by_target(self, amounts: Tensor, batch: int, dtype: torch.dtype) -> Tensor:
        """Amounts `(lines, numbers)` summed over each target: `(batch,)`."""
        sums = amounts.sum(1, dtype=dtype)
        return sums if self.rows is None else sums.new_zeros(batch).index_add(0, self.rows, sums)


def find_numbers(targets: Tensor, ids: NumberIds, behind: int = 0, packed: bool | None = None) -> Numbers:
    """Every number in targets `(batch, length)` that is there from its open to its close marker.

    One that was cut off, or holds labels that do not count, has no value to be compared with; one with an exponent is
    left to cross-entropy, since a digit there is worth another power of ten.

    Args:
        targets: `(batch, length)`.
        ids: From `tokenization.number_ids`.
        behind: How many positions before what they predict predictions stand.
        packed: Whether each number gets a line. To ask an accelerator how many there are would wait for all it has yet
            to do, so None packs only where that is no loss.
    """
    length = targets.shape[1]
    if packed is None:
        packed = targets.device.type == "cpu" or length > _SHORT
    if not packed:
        tokens = read_tokens(targets, ids)
        return Numbers(targets, tokens, *_find_members(tokens), behind)
    rows, starts = (targets == ids.open).nonzero(as_tuple=True)
    at = starts[:, None] + torch.arange(min(LONGEST + 2, length), device=targets.device)
    lines = torch.where(at < length, targets[rows[:, None], at.clamp(max=length - 1)], OUTSIDE)
    tokens = read_tokens(lines, ids)
    members, valid = _find_members(tokens)
    kept = valid[:, 0]
    members = members[kept, :1]
    width = int(members.sum(2).max()) + 1 if len(members) else 1
    tokens = Tokens(*(each[kept, :width] for each in vars(tokens).values()))
    return Numbers(lines[kept, :width], tokens, members[..., :width], valid[kept, :1], behind, rows[kept], starts[kept])


def _find_members(tokens: Tokens) -> tuple[Tensor, Tensor]:
    """`members` and `valid` of `Numbers`, with a number for every position."""
    opens = constant(torch.arange, tokens.start.shape[1], tokens.start.device).unsqueeze(1)
    members = (tokens.start.unsqueeze(1) == opens) * tokens.member.unsqueeze(1).float()
    counts = members @ tokens.kinds
    whole = counts @ constant(torch.tensor, _WHOLE, counts.device)
    valid = torch.minimum(counts[..., 0], whole) > 0
    return members * valid.unsqueeze(2), valid


@dataclass(frozen=True)
class Variants:
    """What each number would be with one token another."""

    digits: Digits
    """Of every variant: `(lines * width * CHOICES, width)`, each folded into one slot."""
    gold: Tensor
    """At which position the last choice leaves the token's number as it is: `(lines, width)`."""
    together: Tensor
    """1 where two tokens belong to one number: `(lines, width, width)`."""
    same_length: Tensor
    """Where one digit stands for another, the rest of the number as it is: `(lines, width, CHOICES)`."""


def make_variants(numbers: Numbers, decimals: str) -> Variants:
    """Every number with every choice at every position.

    A digit for a digit leaves the rest of the number as it is. Anything else ends the number before that position, and
    a digit where the point, a separator or the close marker should stand carries on what was written so far.
    """
    digit, values, close = (numbers.tokens.kind(name) for name in ("digit", "value", "close"))
    is_digit, device, width = digit > 0, digit.device, digit.shape[1]
    here = constant(torch.eye, width, device, torch.bool)
    together = numbers.members.mT @ numbers.members
    before = together.tril(-1)
    rank, points = (before @ numbers.tokens.kinds[..., :2]).unbind(-1)
    whole = (points == 0).float() if decimals == "places" else torch.ones_like(points)
    # All ten digits leave the same of a number, and so does what ends it: two kinds of choice, `(.., width, 2, width)`.
    ended = before * digit.unsqueeze(1)
    written = torch.where(is_digit.unsqueeze(-1), together * digit.unsqueeze(1), ended + here)
    kept = torch.stack([written, ended], 2)
    leading = (kept.flatten(1, 2) @ whole.unsqueeze(-1)).view(*digit.shape, 2)
    kind = constant(torch.tensor, (0,) * 10 + (1,) * (CHOICES - 10), device)
    choice = constant(torch.arange, CHOICES, device)
    leading, mask = (each.index_select(2, kind) for each in (leading.long(), kept > 0))
    places = leading.unsqueeze(-1) - (rank + 1).long()[:, None, None, :]
    worth = torch.where(here[:, None, :], choice[:, None], values.long()[:, None, None, :])
    worth, places, mask = (each.flatten(0, 2) for each in (worth, places, mask))
    leading = leading.clamp(min=1).view(-1, 1).expand_as(mask)
    one_slot = constant(torch.tensor, (0,), device).expand_as(mask)
    same_length = is_digit.unsqueeze(-1) & (kind == 0)
    gold = (together * close.unsqueeze(1)).argmax(-1)
    return Variants(Digits(worth, places, leading, one_slot, mask, slots=1), gold, together, same_length)
