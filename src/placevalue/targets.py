"""The whole numbers in targets, and what each would be with one token another: what the auxiliary loss compares."""

from dataclasses import dataclass

import torch
from torch import Tensor

from placevalue.config import NumberIds
from placevalue.spans import Digits, digit_tensor, find_digits

LONGEST = 32
"""Numbers of more tokens than this are left to cross-entropy."""
CHOICES = 12
"""What can stand at a number's position: the ten digits, the point, and anything else, which ends the number."""
OUTSIDE = -2
"""The id of no token: neither -100 nor -1, which stands for symbols that a pattern never writes."""
_SHORT = 64  # targets this long are searched without asking an accelerator how many numbers they hold


@dataclass(frozen=True)
class Numbers:
    """Numbers in a batch of targets, one a row; `width` is that of the longest, its markers included."""

    rows: Tensor
    """The target each number stands in: `(numbers,)`."""
    starts: Tensor
    """Where in it the open marker is predicted: `(numbers,)`, -1 where it is not."""
    window: Tensor
    """The tokens from the open to the close marker, `OUTSIDE` beyond: `(numbers, width)`."""
    inside: Tensor
    """Where behind the open marker the window still is in the number, its close included: `(numbers, width - 1)`."""
    valid: Tensor
    """Whether there is a number at all: `(numbers,)`."""

    def read(self, values: Tensor) -> Tensor:
        """What stands at the positions behind the open markers: `(batch, length, k)` to `(numbers, width - 1, k)`."""
        steps = torch.arange(1, self.window.shape[1], device=values.device)
        positions = (self.starts[:, None] + steps).clamp(max=values.shape[1] - 1)
        return values[self.rows[:, None], positions]


def find_numbers(targets: Tensor, ids: NumberIds, behind: int = 0, packed: bool | None = None) -> Numbers:
    """Every number in targets `(batch, length)` that is there from its open to its close marker.

    One that was cut off, or holds labels that do not count, has no value to be compared with; one with an exponent is
    left to cross-entropy, since a digit there is worth another power of ten.

    Args:
        targets: `(batch, length)`.
        ids: From `tokenization.number_ids`.
        behind: How many positions before what they predict predictions stand.
        packed: Whether there is a row for each number found, or room for all there could be. To ask an accelerator how
            many there are would wait for all it has yet to do, so None packs only where that is no loss.
    """
    batch, length = targets.shape
    opens, device = targets == ids.open, targets.device
    if packed is None:
        packed = device.type == "cpu" or length > _SHORT
    if packed:
        rows, starts = opens.nonzero(as_tuple=True)
    else:
        room = max(length // 3, 1)
        positions = torch.arange(length, device=device).expand_as(targets)
        starts = torch.where(opens, positions, length).sort(1).values[:, :room].flatten()
        rows = torch.arange(batch, device=device).repeat_interleave(room, output_size=batch * room)
    steps = torch.arange(min(LONGEST + 2, length), device=device)
    at = starts[:, None] + steps
    window = torch.where(at < length, targets[rows[:, None], at.clamp(max=length - 1)], OUTSIDE)
    is_digit = (window.unsqueeze(-1) == digit_tensor(ids.digits, device)).any(-1)
    part = is_digit | (window.unsqueeze(-1) == digit_tensor(ids.symbols, device)).any(-1)
    close = (part[:, 1:].long().cumprod(1).sum(1) + 1).clamp(max=len(steps) - 1)
    valid = (window.gather(1, close[:, None]).squeeze(1) == ids.close) & is_digit.any(1) & (starts < length)
    if ids.exponents:
        valid = valid & ~(window.unsqueeze(-1) == digit_tensor(ids.exponents, device)).any(-1).any(1)
    if packed:
        rows, starts, window, close, valid = (each[valid] for each in (rows, starts, window, close, valid))
        steps = steps[: int(close.max()) + 1 if len(rows) else 2]
    window = torch.where((steps <= close[:, None]) & valid[:, None], window[:, : len(steps)], OUTSIDE)
    return Numbers(rows, starts - behind, window, steps[1:] <= close[:, None], valid)


@dataclass(frozen=True)
class Variants:
    """What each number would be with one token another; `positions` is `width - 1`."""

    gold: Digits
    """Of every number as it should be: `(numbers, width)`."""
    digits: Digits
    """Of every variant: `(numbers * positions * CHOICES, positions)`, each folded into one slot."""
    right: Tensor
    """Which choice is the gold one: `(numbers, positions, CHOICES)`."""
    same_length: Tensor
    """Where one digit stands for another, the rest of the number as it is: `(numbers, positions, CHOICES)`."""


def make_variants(numbers: Numbers, ids: NumberIds, decimals: str) -> Variants:
    """Every number with every choice at every position.

    A digit for a digit leaves the rest of the number as it is. Anything else ends the number before that position, and
    a digit where the point, a separator or the close marker should stand carries on what was written so far.
    """
    gold = find_digits(numbers.window, ids, decimals)
    tokens, mantissa = numbers.window[:, 1:], gold.mask[:, 1:]
    values, places = gold.values[:, 1:], gold.places[:, 1:]
    device = tokens.device
    order = torch.arange(tokens.shape[1], device=device)
    choice = torch.arange(CHOICES, device=device)
    symbols = digit_tensor((*ids.digits, ids.point, OUTSIDE), device)
    right = tokens.unsqueeze(-1) == symbols
    right = torch.cat([right[..., :-1], ~right[..., :-1].any(-1, keepdim=True)], -1)

    point = (tokens == ids.point) & (decimals == "places")
    behind_point = point.long().cumsum(1) - point.long() > 0
    whole = mantissa & ~behind_point
    lost = whole.long().sum(1, keepdim=True) - whole.long().cumsum(1) + whole.long()  # places gone if it ends here
    rank = mantissa.long().cumsum(1) - mantissa.long()
    leading = torch.where(mantissa, places, torch.iinfo(places.dtype).min).amax(1, keepdim=True) + 1

    same = mantissa.unsqueeze(-1) & (choice < 10)
    longer = ~mantissa.unsqueeze(-1) & (choice < 10)
    shift = torch.where(same, 0, longer * (~behind_point).unsqueeze(-1).long() - lost.unsqueeze(-1))
    here = order[:, None] == order
    at = here[:, None, :]
    new_place = (leading - 1 - rank)[..., None, None] + shift[..., None]
    written = torch.where(at & (choice < 10)[:, None], choice[:, None], values[:, None, None, :])
    moved = torch.where(at & longer[..., None], new_place, places[:, None, None, :] + shift[..., None])
    kept = mantissa[:, None, None, :] & (same[..., None] | (order < order[:, None])[:, None, :])
    mask = kept | (at & longer[..., None])
    lead = (leading[..., None] + shift)[..., None].expand_as(mask).clamp(min=1)
    values, places, lead, mask = (each.expand_as(mask).flatten(0, 2) for each in (written, moved, lead, mask))
    return Variants(gold, Digits(values, places, lead, torch.zeros_like(values), mask, slots=1), right, same)
