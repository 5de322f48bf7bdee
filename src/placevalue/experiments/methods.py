"""METHODS: how numbers are written, what [AGG] holds, and what the loss adds.

Recipes name methods, and the rest of the code does not know which one it runs. To add your own, add an entry.
"""

from dataclasses import dataclass
from typing import Literal

from placevalue.common.errors import ConfigError
from placevalue.numbers.config import Position, Token


@dataclass(frozen=True)
class Method:
    """One way to give a model numbers."""

    about: str
    """A short description."""
    digits: bool = True
    """Whether numbers are split into digits; if not, the model keeps its own tokenizer."""
    markers: bool = True
    """Whether each number stands between [F] and [/F]."""
    rewrite: str | None = None
    """How numerals are written in the text, by its name in `REWRITES`."""
    pauses: int = 0
    """How many [PAUSE] follow each question."""
    token: Token | None = None
    """The extra token of each number."""
    position: Position = "before"
    """Where the extra token is, before or after the digits."""
    aggregation: str | None = None
    """What [AGG] holds, by its name in `AGGREGATIONS`."""
    vector: str | None = None
    """What else the model reads of a number, by its name in `VECTORS`."""
    loss: str | None = None
    """What training adds for numbers: `soft` or `hard`, modes of the auxiliary loss, or a name in `NUMBER_LOSSES`."""
    loss_weight: float | None = None
    """The weight of a loss that is added, if `training.loss_weight` gives none; None takes its authors'."""
    mix: Literal["share", "add"] = "share"
    """Whether the loss takes a `share` of each target from cross-entropy, or is added to it, as `NUMBER_LOSSES` are."""
    loss_aggregation: str = "weighted"
    """The aggregation that the auxiliary loss compares."""

    def __post_init__(self) -> None:
        if self.loss is not None and not self.digits:
            raise ConfigError(
                f"the method {self.about!r} has loss={self.loss!r} and digits=False: a loss on numbers needs numbers "
                "whose digits are tokens. With digits=True and markers=False, a tokenizer that splits digits already "
                "keeps its ids"
            )
        added = self.loss not in (None, "soft", "hard")
        if added != (self.mix == "add") or (self.loss_weight is not None and not added):
            raise ConfigError(
                f"the method {self.about!r} has loss={self.loss!r}, mix={self.mix!r} and "
                f"loss_weight={self.loss_weight!r}: expected mix='add' and, if you like, a weight with a loss of "
                "NUMBER_LOSSES, and neither with any other"
            )


METHODS: dict[str, Method] = {
    "untouched": Method("the model with its own tokenizer", digits=False),
    "digits": Method("each number as its digits between [F] and [/F]"),
    "bare": Method("each number as its digits, without [F] and [/F]", markers=False),
    "agg-before": Method("[AGG] before the digits, their weighted sum", token="agg", aggregation="weighted"),
    "agg-bare": Method("[AGG] before bare digits", markers=False, token="agg", aggregation="weighted"),
    "agg-after": Method("[AGG] after the digits", token="agg", position="after", aggregation="weighted"),
    "interpolated": Method("[AGG] before the digits, interpolated", token="agg", aggregation="interpolated"),
    "pause": Method("[PAUSE], which carries no information, in place of [AGG]", token="pause"),
    "pause-after": Method("[PAUSE] after the digits", token="pause", position="after"),
    "pause-10": Method("digits, and ten [PAUSE] after each question", pauses=10),
    "aux-hard": Method("digits, and the paper's auxiliary loss", loss="hard"),
    "aux-soft": Method("digits, and the differentiable auxiliary loss", loss="soft"),
    "aux-bare": Method("bare digits, and the differentiable auxiliary loss", markers=False, loss="soft"),
    "aux-interpolated": Method("as aux-soft, comparing interpolated", loss="soft", loss_aggregation="interpolated"),
    "ntl-was": Method("digits, and the expected distance from the right digit", loss="ntl-was", mix="add"),
    "ntl-mse": Method("digits, and the squared distance of the expected digit", loss="ntl-mse", mix="add"),
    "del": Method("digits, and a decision for or against each of the ten", loss="del", mix="add"),
    "smmd": Method("digits, and a kernel of their distances", loss="smmd", mix="add"),
    "ntil": Method("digits, and the distances of digits by place and of numbers", loss="ntil", mix="add"),
    "dist2": Method("digits, and a bell around the right one", loss="dist2", mix="add"),
    "magnitude-probe": Method(
        "digits, and the question's numbers read off hidden states", loss="magnitude-probe", mix="add"
    ),
    "agg-aux": Method("[AGG] and aux-soft together", token="agg", aggregation="weighted", loss="soft"),
    "reversed": Method("digits, and answers with their units first", rewrite="reversed"),
    "reversed-both": Method("digits, and units first in questions too", rewrite="reversed-both"),
    "numerologic": Method("digits after their count", rewrite="numerologic"),
    "commas": Method("digits with a comma before every third from the right", rewrite="commas"),
    "10e": Method("each digit with its power of ten", rewrite="10e"),
    "words": Method("numbers in English words", rewrite="words"),
    "place-names": Method("each digit with the name of its place, units first", rewrite="place-names"),
    "scientific": Method("all digits, and the power of ten of the first", rewrite="scientific"),
    "place": Method("bare digits, each with a learned vector of its place", markers=False, vector="place"),
    "residual": Method(
        "bare digits, each with its number's weighted sum", markers=False, vector="residual", aggregation="weighted"
    ),
    "abacus": Method(
        "bare digits, units first, each with a learned vector of its rank",
        markers=False,
        rewrite="reversed-both",
        vector="abacus",
    ),
    "value-aware": Method("[AGG] before the digits, a network of the value", token="agg", vector="value-aware"),
    "fone-in": Method("[AGG] before the digits, of the value's Fourier features", token="agg", vector="fone-in"),
    "bits-in": Method("[AGG] before the digits, of the value's bits", token="agg", vector="bits-in"),
    "xval-in": Method("[AGG] before the digits, its own embedding times the value", token="agg", vector="xval-in"),
    "dice": Method("[AGG] before the digits, the value as an angle", token="agg", vector="dice"),
}
