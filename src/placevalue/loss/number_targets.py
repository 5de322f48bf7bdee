"""The numbers in targets, and each of them with one token changed: what the auxiliary loss compares.

On an accelerator a small step costs more to launch than to compute, so a few products of small matrices handle all
tokens at once.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from placevalue.numbers.config import NumberIds
from placevalue.numbers.spans import KINDS, Digits, Tokens, constant, read_tokens

LONGEST = 32
"""Numbers of more tokens than this are left to cross-entropy."""
CHOICES = 12
"""The choices for a token of a number: the ten digits, the point, and anything else, which ends the number."""
OUTSIDE = -2
"""An id that no token has; -100 is an ignored label and -1 a symbol that the pattern never writes."""
_WEIGHTS = {"close": LONGEST + 1.0, "part": -1.0, "exponent": -2.0 * LONGEST, "extra": -2.0 * LONGEST}
_WHOLE = tuple(_WEIGHTS.get(kind, 0.0) for kind in KINDS)
"""Sums to more than 0 over the tokens of a number that is closed, not too long, and has no exponent or [AGG]."""
_CLOSE = tuple(float(kind in ("close", "inner")) for kind in KINDS)
_SHORT = 64  # up to this length, targets on an accelerator are not packed


@dataclass(frozen=True)
class Numbers:
    """Numbers in lines of tokens: a line is a target or, if packed, one number."""

    lines: Tensor
    """The ids: `(lines, width)`."""
    tokens: Tokens
    """What each token is."""
    members: Tensor
    """1 if a token belongs to a number, including its close but not its open marker: `(lines, numbers, width)`."""
    valid: Tensor
    """Whether there is a number: `(lines, numbers)`; unpacked, there is an entry for every position."""
    shift: int
    """How many positions a prediction comes before the token it predicts."""
    rows: Tensor | None = None
    """The target of each number, if packed: `(lines,)`."""
    starts: Tensor | None = None
    """The position of its open marker in the target, if packed: `(lines,)`."""

    def read(self, values: Tensor) -> Tensor:
        """The predictions of each token: `(batch, length, k)` to `(lines, width, k)`; a line's first is arbitrary."""
        if self.rows is None or self.starts is None:
            return values.roll(self.shift, 1) if self.shift else values
        steps = torch.arange(self.lines.shape[1], device=values.device) - self.shift
        return values[self.rows[:, None], (self.starts[:, None] + steps).clamp(0, values.shape[1] - 1)]

    def by_target(self, amounts: Tensor, batch: int, dtype: torch.dtype) -> Tensor:
        """Amounts `(lines, numbers)` summed over each target: `(batch,)`."""
        sums = amounts.sum(1, dtype=dtype)
        return sums if self.rows is None else sums.new_zeros(batch).index_add(0, self.rows, sums)


def find_numbers(targets: Tensor, ids: NumberIds, shift: int = 0, packed: bool | None = None) -> Numbers:
    """Find every complete number in targets, from its open to its close marker.

    A number without markers is complete if a token follows that belongs to no other: that counts as its close marker.

    A number that was cut off or contains ignored labels has no value to compare with. One with an exponent is left to
    cross-entropy, since changing a digit of the exponent changes all places.

    Args:
        targets: `(batch, length)`.
        ids: From `tokenizer.number_ids`.
        shift: How many positions a prediction comes before the token it predicts.
        packed: Whether each number gets its own line. Counting the numbers makes the program wait for an accelerator,
            so None packs on a CPU and for long targets only.
    """
    length = targets.shape[1]
    if packed is None:
        packed = targets.device.type == "cpu" or length > _SHORT
    if not packed:
        tokens = read_tokens(targets, ids) if ids.marked else _read_bare(targets, ids, shift)
        return Numbers(targets, tokens, *_find_members(tokens, length), shift)
    if not ids.marked:
        return _pack_bare(targets, _read_bare(targets, ids, shift), shift)
    rows, starts = (targets == ids.open).nonzero(as_tuple=True)
    at = starts[:, None] + torch.arange(min(LONGEST + 2, length), device=targets.device)
    lines = torch.where(at < length, targets[rows[:, None], at.clamp(max=length - 1)], OUTSIDE)
    tokens = read_tokens(lines, ids)
    members, valid = _find_members(tokens, 1)
    kept = valid[:, 0]
    members = members[kept]
    width = int(members.sum(2).max()) + 1 if len(members) else 1
    tokens = tokens.at(kept, width)
    return Numbers(lines[kept, :width], tokens, members[..., :width], valid[kept], shift, rows[kept], starts[kept])


def _read_bare(targets: Tensor, ids: NumberIds, shift: int) -> Tokens:
    """What each token of targets without markers is; the token after a number is its close marker."""
    tokens = read_tokens(targets, ids)
    none = tokens.member[:, :1] & False
    before = torch.cat([none, tokens.member[:, :-1]], 1)
    start = torch.cat([tokens.start[:, :1], tokens.start[:, :-1]], 1)
    close = before & ~tokens.member & (targets >= 0)
    start = torch.where(close, start, tokens.start)
    member = tokens.member | close
    if shift:  # what comes first of all is predicted from nothing
        member = member & (start > 0)
    kinds = tokens.kinds + close.unsqueeze(-1) * constant(torch.tensor, _CLOSE, targets.device)
    return replace(tokens, kinds=kinds, start=start, member=member)


def _pack_bare(targets: Tensor, tokens: Tokens, shift: int) -> Numbers:
    """Each complete number without markers in a line of its own, which begins with its first token."""
    rows, ends = (tokens.member & (tokens.kind("close") > 0)).nonzero(as_tuple=True)
    starts = tokens.start[rows, ends]
    at = starts[:, None] + torch.arange(min(LONGEST + 2, targets.shape[1]), device=targets.device)
    rows_at = rows[:, None], at.clamp(max=targets.shape[1] - 1)
    mine = (at <= ends[:, None]) & (tokens.start[rows_at] == starts[:, None]) & tokens.member[rows_at]
    lines = torch.where(mine, targets[rows_at], OUTSIDE)
    found, kinds = tokens.found[rows_at] & mine.unsqueeze(-1), tokens.kinds[rows_at] * mine.unsqueeze(-1)
    packed = Tokens(found, kinds, torch.zeros_like(at), mine, marked=False)
    members, valid = _find_members(packed, 1)
    kept = valid[:, 0]
    members, rows, starts = members[kept], rows[kept], starts[kept]
    width = int(members.sum(2).max()) if len(members) else 1
    tokens = packed.at(kept, width)
    return Numbers(lines[kept, :width], tokens, members[..., :width], valid[kept], shift, rows, starts)


def _find_members(tokens: Tokens, count: int) -> tuple[Tensor, Tensor]:
    """`members` and `valid` of `Numbers`, with an entry for each of the first `count` positions."""
    opens = constant(torch.arange, count, tokens.start.device).unsqueeze(1)
    members = (tokens.start.unsqueeze(1) == opens) * tokens.member.unsqueeze(1).float()
    counts = members @ tokens.kinds
    whole = counts @ constant(torch.tensor, _WHOLE, counts.device)
    valid = torch.minimum(counts[..., 0], whole) > 0
    return members * valid.unsqueeze(2), valid


@dataclass(frozen=True)
class Variants:
    """Every number with one token changed."""

    digits: Digits
    """The digits of every variant: `(lines * width * CHOICES, width)`, with one slot each."""
    gold: Tensor
    """The position of each token's close marker, whose last choice is the number itself: `(lines, width)`."""
    together: Tensor
    """1 if two tokens belong to the same number: `(lines, width, width)`."""
    same_length: Tensor
    """Whether a choice replaces a digit by a digit: `(lines, width, CHOICES)`."""


def make_variants(numbers: Numbers, decimals: str) -> Variants:
    """Make every number with every choice at every position.

    Replacing a digit by a digit keeps the rest of the number. A digit in place of the point, a separator or the close
    marker is appended to the digits before it, and any other choice ends the number before its position.
    """
    digit, values, close = (numbers.tokens.kind(name) for name in ("digit", "value", "close"))
    is_digit, device, width = digit > 0, digit.device, digit.shape[1]
    here = constant(torch.eye, width, device, torch.bool)
    together = numbers.members.mT @ numbers.members
    before = together.tril(-1)
    rank, points = (before @ numbers.tokens.kinds[..., :2]).unbind(-1)
    whole = (points == 0).float() if decimals == "places" else torch.ones_like(points)
    # The choices keep digits in two ways only: with a digit here, and with the number ended: `(.., width, 2, width)`.
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
