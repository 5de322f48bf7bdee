"""The settings of numbers: those a user chooses, and those an attached model keeps in its `config.json`."""

from dataclasses import dataclass
from typing import Any, Literal

from placevalue.common.errors import ConfigError
from placevalue.common.validation import build, find_faults
from placevalue.numbers.numerals import check_ignore, pattern_regex

Token = Literal["agg", "pause"]
Position = Literal["before", "after"]
Decimals = Literal["places", "ignore"]
Markers = Literal["drawn", "mean"]


@dataclass(frozen=True)
class Layout:
    """How a number is written as tokens: `[F] d1 .. dn [/F]`, with or without an extra token."""

    token: Token | None = None
    """The extra token of each number: None, `agg` for [AGG], or `pause` for [PAUSE]."""
    position: Position = "before"
    """Whether the extra token comes `before` or `after` the digits."""
    pattern: str = "paper"
    """What counts as a number: `paper`, `extended`, or a regular expression."""
    ignore: str | None = None
    """A regular expression for text to leave alone, including its digits (years, identifiers)."""

    def __post_init__(self) -> None:
        if faults := self._find_faults():
            raise ConfigError("; ".join(faults))

    def _find_faults(self) -> list[str]:
        faults = find_faults(type(self), vars(self))
        for check, regex in ((pattern_regex, self.pattern), (check_ignore, self.ignore)):
            try:
                if isinstance(regex, str):
                    check(regex)
            except ConfigError as error:
                faults.append(str(error))
        return faults


@dataclass(frozen=True)
class NumberConfig(Layout):
    """How numbers are written and what [AGG] holds: one object for `number_tokenizer`, `attach` and the loss.

    `number_tokenizer(base, config)` stores it with the tokenizer, from which `attach` takes the rest.

    Example:
        >>> NumberConfig(token="agg", aggregation="interpolated").decimals
        'places'
    """

    aggregation: str | None = None
    """What [AGG] holds, by its name in `AGGREGATIONS`; None means `weighted`."""
    decimals: Decimals = "places"
    """How digits after the point count: `places` gives them places below 0, `ignore` reads 12.5 as 125."""

    def _find_faults(self) -> list[str]:
        faults = super()._find_faults()
        if self.aggregation is not None and self.token != "agg":
            faults.append(
                f"aggregation={self.aggregation!r} with token={self.token!r}, which has no [AGG] to hold it: make the "
                "tokenizer with token='agg', or leave the aggregation out"
            )
        return faults


@dataclass(frozen=True)
class NumberIds:
    """The ids that numbers consist of."""

    open: int
    close: int
    agg: int
    pause: int
    digits: tuple[int, ...]
    point: int
    minus: int = -1
    """-1, and the following two empty, if the pattern never writes them."""
    others: tuple[int, ...] = ()
    """Characters without a place: thousands separators and plus signs."""
    exponents: tuple[int, ...] = ()
    """The letters that begin an exponent."""

    @property
    def symbols(self) -> tuple[int, ...]:
        """Everything but digits that a number may contain."""
        return (self.point, self.minus, *self.others, *self.exponents)


@dataclass(frozen=True)
class AttachedConfig:
    """Everything an attached model must know about numbers, as stored in its `config.json`."""

    layout: Layout
    ids: NumberIds
    probe: tuple[int, ...]
    """A fixed text as the tokenizer encoded it when it was made, to recognise another tokenizer."""
    aggregation: str | None
    """What [AGG] holds, by its name in `AGGREGATIONS`; None if the layout has no [AGG]."""
    decimals: Decimals = "places"
    """See `NumberConfig`."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "AttachedConfig":
        """Read the entry of a model's `config.json`."""
        if faults := find_faults(cls, values):
            raise ConfigError(
                f"{'; '.join(faults)}: expected the settings that attach writes into a model's config.json. "
                "Restore the file, or delete its 'placevalue' entry to attach the model anew"
            )
        return build(cls, values)
