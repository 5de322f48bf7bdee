"""Values, intervals, times and counts as text, written in one way everywhere."""

from collections.abc import Sequence

from placevalue.evaluation.metrics import METRICS


def format_number(number: float, digits: int = 1, signed: bool = False) -> str:
    """A number with a real minus sign, and a plus sign if `signed`."""
    return f"{number:{'+' if signed else ''}.{digits}f}".replace("-", "−")


def format_value(value: float, metric: str, signed: bool = False) -> str:
    """A score or a change: shares in percent, powers of ten as they are."""
    if not METRICS[metric].is_share:
        return format_number(value, 3, signed)
    return format_number(100 * value, 1, signed)


def format_interval(low: float | None, high: float | None, metric: str, signed: bool = False) -> str:
    """The interval of a score, or of a change if `signed`, in brackets; empty if it has no bounds.

    The interval of a score ends where the metric does: none is below 0, and no accuracy above 1.
    """
    if low is None or high is None:
        return ""
    direction = METRICS[metric].direction
    if not signed and direction != "zero":
        low, high = max(low, 0.0), min(high, 1.0) if direction == "higher" else high
    return f"[{format_value(low, metric, signed)}, {format_value(high, metric, signed)}]"


def duration(seconds: float) -> str:
    """A time in the unit that suits it: `45 s`, `10 min`, `2.0 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def counted(count: int, name: str, several: str = "") -> str:
    """A count with its noun: `1 seed`, `2 seeds`; `several` is a plural without s."""
    return f"{count:,} {name if count == 1 else several or f'{name}s'}"


def listed(names: Sequence[str]) -> str:
    """Names as a list in a sentence: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
