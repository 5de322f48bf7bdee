"""The settings of numbers: those a user chooses, and those an attached model keeps in its `config.json`."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from placevalue.common.errors import ConfigError
from placevalue.common.validation import build, find_faults
from placevalue.numbers.ignore import Ignore, check_ignore
from placevalue.numbers.numerals import DEFAULT_PATTERN, pattern_regex, pattern_symbols
from placevalue.numbers.rewrites import find_rewrite, keeps_values
from placevalue.numbers.spelling import Spelling, check_bare

Token = Literal["agg", "pause"]
Position = Literal["before", "after"]
Decimals = Literal["places", "ignore"]
Negatives = Literal["opposite", "ignore"]
NewRows = Literal["drawn", "mean"]

FORMER: dict[str, Any] = {"pattern": "paper", "negatives": "ignore", "new_rows": "mean"}
"""What a setting was where a saved file does not name it: from before it existed or had its present default."""


HELD = ("aggregation", "decimals", "negatives", "vector")
"""The settings of what is read of numbers, which `attach` takes from the tokenizer and notes there."""


@dataclass(frozen=True)
class Layout:
    """How a number is written as tokens: `[F] d1 .. dn [/F]`, with or without markers and an extra token."""

    token: Token | None = None
    """The extra token of each number: None, `agg` for [AGG], or `pause` for [PAUSE]."""
    position: Position = "before"
    """Whether the extra token comes `before` or `after` the digits."""
    pattern: str = DEFAULT_PATTERN
    """What counts as a number: `extended`, another name in `PATTERNS`, or a regular expression."""
    ignore: Ignore | None = None
    """Text to leave alone, including its digits: a name in `IGNORE_PRESETS`, a regular expression, or several."""
    rewrite: str | None = field(default=None, kw_only=True)
    """How numerals are written in text before it is encoded, by a name in `REWRITES`; None leaves them as they are."""
    pauses: int = field(default=0, kw_only=True)
    """How many [PAUSE] follow each question, to give the model time before it answers."""
    markers: bool = field(default=True, kw_only=True)
    """Whether each number stands between [F] and [/F]."""

    def __post_init__(self) -> None:
        if isinstance(self.ignore, list):  # from JSON
            object.__setattr__(self, "ignore", tuple(self.ignore))
        if faults := self._find_faults():
            raise ConfigError("; ".join(faults))

    def _find_faults(self) -> list[str]:
        faults = find_faults(type(self), vars(self))
        parts = self.ignore if isinstance(self.ignore, tuple) else (self.ignore,)
        for check, regex in ((pattern_regex, self.pattern), *((check_ignore, each) for each in parts)):
            try:
                if isinstance(regex, str):
                    check(regex)
            except ConfigError as error:
                faults.append(str(error))
        if isinstance(self.pauses, int) and self.pauses < 0:
            faults.append(f"pauses={self.pauses}: expected 0 or more")
        if self.markers is False:
            faults += check_bare(self.pattern, self.ignore)
        return faults or self._rewrite_faults()

    def _rewrite_faults(self) -> list[str]:
        if self.rewrite is None:
            return []
        try:
            rewrite = find_rewrite(self.rewrite)
        except ConfigError as error:
            return [str(error)]
        if pattern_symbols(self.pattern).point != ".":
            return [
                f"rewrite={self.rewrite!r} with pattern={self.pattern!r}, whose numerals have a decimal comma: "
                "rewrites write and read a decimal point. Choose another pattern"
            ]
        if self.token == "agg" and rewrite.where == "both" and not self.keeps_values:
            return [
                f"rewrite={self.rewrite!r} with token='agg': the digits of a rewritten number do not have their "
                "places, so [AGG] would hold another number. Leave the token out, or rewrite answers alone"
            ]
        return []

    @property
    def needs_rows(self) -> bool:
        """Whether it writes any token that the base tokenizer does not have."""
        return self.markers or self.token is not None or self.pauses > 0

    @property
    def keeps_values(self) -> bool:
        """Whether digits in ids have the places that they have in the number: not if they are rewritten."""
        return self.rewrite is None or keeps_values(self.rewrite, self.pattern)


@dataclass(frozen=True)
class NumberConfig(Layout):
    """How numbers are written and what [AGG] holds: one object for `number_tokenizer`, `attach` and the loss.

    `number_tokenizer(base, config)` stores it with the tokenizer, from which `attach` takes the rest.

    Example:
        >>> NumberConfig(token="agg", aggregation="interpolated").decimals
        'places'
    """

    aggregation: str | None = None
    """What [AGG] holds, or the vector `residual` adds, by its name in `AGGREGATIONS`; None means `weighted`."""
    decimals: Decimals = "places"
    """How digits after the point count: `places` gives them places below 0, `ignore` reads 12.5 as 125."""
    negatives: Negatives = "opposite"
    """What [AGG] holds for -5: `opposite` is the negative of the vector of 5, `ignore` the same vector."""
    vector: str | None = field(default=None, kw_only=True)
    """What else a model reads of a number, by its name in `VECTORS`."""

    def _find_faults(self) -> list[str]:
        faults = super()._find_faults()
        if self.aggregation is not None and self.token != "agg" and self.vector is None:
            faults.append(
                f"aggregation={self.aggregation!r} with token={self.token!r}, which has no [AGG] to hold it: make the "
                "tokenizer with token='agg', or leave the aggregation out"
            )
        return faults


@dataclass(frozen=True)
class NumberIds:
    """The ids that numbers consist of; -1 is one that the layout never writes."""

    open: int
    close: int
    agg: int
    pause: int
    digits: tuple[int, ...]
    point: int
    minus: int = -1
    """-1, and the following two empty, if the pattern never writes them."""
    others: tuple[int, ...] = ()
    """Characters that do not change the value: thousands separators, plus signs, what stands around a number."""
    exponents: tuple[int, ...] = ()
    """The letters that begin an exponent."""
    bracket: int = -1
    """The opening bracket that makes a number negative; -1 if the pattern writes none."""
    spelling: Spelling | None = field(default=None, compare=False, repr=False)
    """What numbers without markers are found by; never stored, since it comes from the tokenizer."""

    @property
    def marked(self) -> bool:
        """Whether numbers stand between markers."""
        return self.open != -1

    @property
    def symbols(self) -> tuple[int, ...]:
        """Everything but digits that a number may contain."""
        return (self.point, self.minus, *self.others, *self.exponents, self.bracket)


@dataclass(frozen=True)
class AttachedConfig:
    """Everything an attached model must know about numbers, as stored in its `config.json`."""

    layout: Layout
    ids: NumberIds
    probe: tuple[int, ...]
    """A fixed text as the tokenizer encoded it when it was made, to recognise another tokenizer."""
    aggregation: str | None
    """What [AGG] holds or the vector is made from, by its name in `AGGREGATIONS`; None if that is not an aggregate."""
    decimals: Decimals = "places"
    """See `NumberConfig`, also for the following."""
    negatives: Negatives = FORMER["negatives"]
    vector: str | None = None

    @property
    def needs_us(self) -> bool:
        """Whether the model answers wrongly where placevalue is left out."""
        held = self.aggregation is not None or self.vector is not None
        return held or self.layout.rewrite is not None or self.layout.pauses > 0

    def to_dict(self) -> dict[str, Any]:
        """The entry of a model's `config.json`."""
        values = asdict(self)
        del values["ids"]["spelling"]
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "AttachedConfig":
        """Read the entry of a model's `config.json`."""
        if faults := find_faults(cls, values):
            raise ConfigError(
                f"{'; '.join(faults)}: expected the settings that attach writes into a model's config.json. "
                "Restore the file, or delete its 'placevalue' entry to attach the model anew"
            )
        layout = {"pattern": FORMER["pattern"]} | values["layout"]
        config: AttachedConfig = build(cls, values | {"layout": layout})
        return config
