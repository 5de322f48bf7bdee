"""Which corpora share problems, so that nothing is scored on what it was trained on."""

from collections.abc import Iterable
from typing import NamedTuple

from placevalue.common.errors import DataError

LEAKS = {
    ("mawps", "fermat"): "1,104 of FERMAT's 1,111 original problems are MAWPS problems",
    ("fermat", "fermat"): "these are the problems it was trained on",
    ("fermat", "mawps"): "1,104 of FERMAT's 1,111 original problems are MAWPS problems",
}
"""Why what was trained on the first corpus may not be scored on the second."""


class Leakage(NamedTuple):
    """What is known of the problems that a model has seen before it was tested on them."""

    overridden: tuple[str, ...]
    """The reasons for which the scores would have been refused."""
    notes: tuple[str, ...]
    """What cannot be told."""


def check_leakage(trained_on: Iterable[str], data_sources: Iterable[str], allow: bool = False) -> Leakage:
    """Refuse to test a model on problems that it has seen.

    Args:
        trained_on: The corpora behind the weights: `mawps`, `fermat-templates`, `file:ab12`.
        data_sources: What it is to be tested on: `fermat:Original`, `mawps:test`.
        allow: Test it all the same; the reasons come back instead, for the record.

    Example:
        >>> check_leakage(["fermat-templates"], ["fermat:Original"])
        Leakage(overridden=(), notes=())
    """
    seen, tested = sorted(set(trained_on)), sorted({source.partition(":")[0].lower() for source in data_sources})
    reasons = tuple(
        f"the model was trained on {name} and is tested on {corpus}: {LEAKS[name.partition(':')[0].lower(), corpus]}"
        for name in seen
        for corpus in tested
        if (name.partition(":")[0].lower(), corpus) in LEAKS
    )
    if reasons and not allow:
        raise DataError(
            f"{'; '.join(reasons)}. Such scores say nothing about problems the model has not seen; "
            "pass allow_leakage=True (--allow-leakage) to have them all the same, marked in the record"
        )
    own = [name for name in seen if name.lower().startswith("file:")]
    notes = (f"trained on {', '.join(own)}: whether it holds any of these problems is unknown",) if own else ()
    return Leakage(reasons, notes)
