"""Which problems a model has seen in training, so that it is not scored on them."""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from placevalue.common.errors import ConfigError, DataError
from placevalue.data.corpora import CORPORA, load_data
from placevalue.data.fermat_templates import SOURCE

_SHARED = "1,104 of FERMAT's 1,111 original problems are MAWPS problems"
LEAKS = {
    ("mawps", "fermat"): _SHARED,
    ("fermat", "fermat"): "these are the problems it was trained on",
    ("fermat", "mawps"): _SHARED,
}
"""Why a model trained on anything of the first corpus may not be scored on the second."""
OWN_TESTS = {"mawps": ("mawps:test", "mawps-dedup:test")}
"""Records of version 0.1.0 name a corpus without its part: all of it counts, but for the test set of that time."""


class Leakage(NamedTuple):
    """What is known about test problems that a model has seen in training."""

    overridden: tuple[str, ...]
    """Why the scores would have been refused."""
    notes: tuple[str, ...]
    """What is unknown."""


def check_leakage(trained_on: Iterable[str], data_sources: Iterable[str], allow: bool = False) -> Leakage:
    """Refuse to test a model on problems it has seen, problem by problem.

    Args:
        trained_on: What the model was trained on: `mawps:train`, `mawps-grouped:fold-1:train`, `file:ab12`, or in old
            records `mawps`, which counts as every problem of it.
        data_sources: What it is to be tested on: `fermat:Original`, `mawps:test`.
        allow: Return the reasons for the record instead of refusing.
    """
    seen, tested = sorted(set(trained_on)), sorted({each.lower() if ":" not in each else each for each in data_sources})
    found = [
        (name, _corpus(test) if (_source(name), _source(test)) in LEAKS else test, why)
        for name in seen
        for test in tested
        if (why := _why(name, test))
    ]
    reasons = tuple(
        dict.fromkeys(f"the model was trained on {name} and is tested on {test}: {why}" for name, test, why in found)
    )
    if reasons and not allow:
        raise DataError(
            f"{'; '.join(reasons)}. Such scores say nothing about problems the model has not seen; "
            "pass allow_leakage=True (--allow-leakage) to get them anyway, marked in the record"
        )
    own = [name for name in seen if name.lower().startswith("file:")]
    notes = (f"trained on {', '.join(own)}: whether it holds any of these problems is unknown",) if own else ()
    return Leakage(reasons, notes)


def _why(name: str, test: str) -> str | None:
    """Why a model trained on a data set may not be tested on another; None if it may."""
    source = _source(name)
    if why := LEAKS.get((source, _source(test))):
        return why
    if source != _source(test) or ":" not in test or _corpus(test) not in CORPORA:
        return None
    if ":" not in name:
        own = test in OWN_TESTS.get(source, ())
        return None if own else f"its record names no part of {name}, so it counts as all of it"
    return _shared_templates(name, test) if source == SOURCE else _shared_problems(name, test)


def _shared_problems(name: str, test: str) -> str | None:
    asked = _problem_ids(test)
    try:
        count = len(_problem_ids(f"{_corpus(name)}:{name.partition(':')[2]}") & asked)
    except ConfigError:
        return f"this version does not know {name}, so it counts as the whole corpus"
    return f"{count:,} of its {len(asked):,} problems are among those it was trained on" if count else None


def _shared_templates(name: str, test: str) -> str | None:
    """Of one corpus no part has rows of another, and two corpora share templates."""
    if name == test:
        return "these are the problems it was trained on"
    if _corpus(name) != _corpus(test):
        return "both are drawn from the same templates, each without regard to the other"
    return None


@cache
def _problem_ids(spec: str) -> frozenset[str]:
    return frozenset(problem.id for problem in load_data(spec))


def _corpus(name: str) -> str:
    return name.partition(":")[0].lower()


def _source(name: str) -> str:
    corpus = _corpus(name)
    return CORPORA[corpus].source if corpus in CORPORA else corpus
