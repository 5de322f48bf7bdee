"""How numbers are written and folded: the settings that a tokenizer and a model carry with them."""

from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Literal, get_args

from placevalue.common.errors import ConfigError

Token = Literal["agg", "pause"]
Position = Literal["before", "after"]
Decimals = Literal["places", "ignore"]
Markers = Literal["drawn", "mean"]


@dataclass(frozen=True)
class Layout:
    """How a number is written as tokens: `[F] d1 .. dn [/F]`, with or without an extra token."""

    token: Token | None = None
    """The extra token each number gets: none, [AGG] or [PAUSE]."""
    position: Position = "before"
    """Whether the extra token stands before or after the digits."""
    pattern: str = "paper"
    """What counts as a number: `paper`, `extended`, or a regular expression."""
    ignore: str | None = None
    """A regular expression for text that is left alone, digits included."""

    def __post_init__(self) -> None:
        faults = []
        if self.token is not None and self.token not in get_args(Token):
            faults.append(f"token={self.token!r}: expected None, 'agg' or 'pause'")
        if self.position not in get_args(Position):
            faults.append(f"position={self.position!r}: expected 'before' or 'after'")
        if faults:
            raise ConfigError("; ".join(faults))


@dataclass(frozen=True)
class NumberIds:
    """The ids that make up numbers: what `spans` needs to read numbers off ids alone."""

    open: int
    close: int
    agg: int
    pause: int
    digits: tuple[int, ...]
    point: int
    minus: int = -1
    """Of this and the following, -1 or nothing where the pattern never writes them."""
    others: tuple[int, ...] = ()
    """Characters that are kept and have no place: thousands separators, plus signs."""
    exponents: tuple[int, ...] = ()
    """What begins an exponent."""

    @property
    def symbols(self) -> tuple[int, ...]:
        """All that can stand between a number's digits."""
        return (self.point, self.minus, *self.others, *self.exponents)

    @property
    def markers(self) -> dict[str, int]:
        """The four markers by name."""
        return {"open": self.open, "close": self.close, "agg": self.agg, "pause": self.pause}


@dataclass(frozen=True)
class NumberConfig:
    """Everything a model must know about numbers; it lives in the model's own `config.json`."""

    layout: Layout
    ids: NumberIds
    probe: tuple[int, ...]
    """How the tokenizer wrote a fixed text when it was made, to tell it from another."""
    aggregation: str | None
    """The aggregation behind [AGG], by its name in `AGGREGATIONS`; none where the layout has no [AGG]."""
    decimals: Decimals = "places"
    """`places` gives digits after the point places of their own; `ignore` reads 12.5 as 125."""

    def __post_init__(self) -> None:
        if self.decimals not in get_args(Decimals):
            raise ConfigError(f"decimals={self.decimals!r}: expected 'places' or 'ignore'")

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "NumberConfig":
        """Back from `to_dict`, or from the JSON it was written as."""
        layout = _build(Layout, values.get("layout", {}), "layout")
        ids = _build(NumberIds, _with_tuples(values.get("ids", {})), "ids")
        return _build(cls, _with_tuples(values) | {"layout": layout, "ids": ids}, "placevalue")


def _with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def _build(cls: Any, values: dict[str, Any], path: str) -> Any:
    """`cls(**values)`, with unknown and missing keys reported together by their dotted path."""
    known = {field.name: field for field in fields(cls)}
    faults = [f"{path}.{key} is unknown" for key in values if key not in known]
    required = (name for name, field in known.items() if field.default is MISSING)
    faults += [f"{path}.{name} is missing" for name in required if name not in values]
    if faults:
        raise ConfigError(f"{'; '.join(faults)}: expected the keys {sorted(known)}")
    return cls(**values)
