"""Which corpora share problems, so that no model is scored on problems it was trained on."""

from collections.abc import Iterable
from typing import NamedTuple

from placevalue.common.errors import DataError

_SHARED = "1,104 of FERMAT's 1,111 original problems are MAWPS problems"
LEAKS = {
    ("mawps", "fermat"): _SHARED,
    ("fermat", "fermat"): "these are the problems it was trained on",
    ("fermat", "mawps"): _SHARED,
}
"""Why a model trained on the first corpus may not be scored on the second."""


class Leakage(NamedTuple):
    """What is known about test problems that a model has seen in training."""

    overridden: tuple[str, ...]
    """Why the scores would have been refused."""
    notes: tuple[str, ...]
    """What is unknown."""


def check_leakage(trained_on: Iterable[str], data_sources: Iterable[str], allow: bool = False) -> Leakage:
    """Refuse to test a model on problems it has seen.

    Args:
        trained_on: The corpora that the model was trained on: `mawps`, `fermat-templates`, `file:ab12`.
        data_sources: What it is to be tested on: `fermat:Original`, `mawps:test`.
        allow: Return the reasons for the record instead of refusing.
    """
    seen, tested = sorted(set(trained_on)), sorted({source.partition(":")[0].lower() for source in data_sources})
    reasons = tuple(
        f"the model was trained on {name} and is tested on {corpus}: {why}"
        for name in seen
        for corpus in tested
        if (why := LEAKS.get((name.partition(":")[0].lower(), corpus)))
    )
    if reasons and not allow:
        raise DataError(
            f"{'; '.join(reasons)}. Such scores say nothing about problems the model has not seen; "
            "pass allow_leakage=True (--allow-leakage) to get them anyway, marked in the record"
        )
    own = [name for name in seen if name.lower().startswith("file:")]
    notes = (f"trained on {', '.join(own)}: whether it holds any of these problems is unknown",) if own else ()
    return Leakage(reasons, notes)
