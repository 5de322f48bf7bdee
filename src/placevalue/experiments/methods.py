"""METHODS: how numbers are written, what [AGG] holds, and what the loss adds.

Recipes name methods, and the rest of the code does not know which one it runs. To add your own, add an entry.
"""

from dataclasses import dataclass
from typing import Literal

from placevalue.numbers.config import Position, Token


@dataclass(frozen=True)
class Method:
    """One way to give a model numbers."""

    about: str
    """A short description."""
    digits: bool = True
    """Whether numbers are split into digits; if not, the model keeps its own tokenizer."""
    token: Token | None = None
    """The extra token of each number."""
    position: Position = "before"
    """Where the extra token is, before or after the digits."""
    aggregation: str | None = None
    """What [AGG] holds, by its name in `AGGREGATIONS`."""
    loss: Literal["soft", "hard"] | None = None
    """The mode of the auxiliary loss, if there is one."""
    loss_aggregation: str = "weighted"
    """The aggregation that the auxiliary loss compares."""


METHODS: dict[str, Method] = {
    "untouched": Method("the model with its own tokenizer", digits=False),
    "digits": Method("each number as its digits between [F] and [/F]"),
    "agg-before": Method("[AGG] before the digits, their weighted sum", token="agg", aggregation="weighted"),
    "agg-after": Method("[AGG] after the digits", token="agg", position="after", aggregation="weighted"),
    "interpolated": Method("[AGG] before the digits, interpolated", token="agg", aggregation="interpolated"),
    "pause": Method("[PAUSE], which carries no information, in place of [AGG]", token="pause"),
    "pause-after": Method("[PAUSE] after the digits", token="pause", position="after"),
    "aux-hard": Method("digits, and the paper's auxiliary loss", loss="hard"),
    "aux-soft": Method("digits, and the differentiable auxiliary loss", loss="soft"),
    "aux-interpolated": Method("as aux-soft, comparing interpolated", loss="soft", loss_aggregation="interpolated"),
    "agg-aux": Method("[AGG] and aux-soft together", token="agg", aggregation="weighted", loss="soft"),
}
