"""Every data set by the name that recipes give it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from placevalue.common.errors import ConfigError
from placevalue.common.files import file_hash
from placevalue.data.fermat import FERMAT_SETS, PAPER_SETS, read_fermat
from placevalue.data.fermat_templates import SOURCE, FermatConfig, generate_fermat
from placevalue.data.files import READERS, made_from, read_bundled, read_problems
from placevalue.data.mawps import SPLITS, read_mawps
from placevalue.data.problem import Problem, checksum


@cache
def _generated() -> dict[str, list[Problem]]:
    return generate_fermat(FermatConfig())


@dataclass(frozen=True)
class Corpus:
    """A corpus inside the package."""

    about: str
    parts: tuple[str, ...]
    source: str
    """The name it counts as when models are checked for test problems they have seen."""
    load: Callable[[str], list[Problem]]


CORPORA = {
    "mawps": Corpus("MAWPS, a seeded split", tuple(SPLITS), "mawps", read_mawps),
    "mawps-dedup": Corpus(
        "MAWPS without questions that a later part repeats",
        tuple(SPLITS),
        "mawps",
        partial(read_mawps, deduplicated=True),
    ),
    "fermat": Corpus("FERMAT's test sets", FERMAT_SETS, "fermat", read_fermat),
    SOURCE: Corpus(
        "FERMAT's training and dev sets, generated", ("train", "dev"), SOURCE, lambda part: list(_generated()[part])
    ),
}
SHORTHANDS = {
    "fermat": tuple(f"fermat:{name}" for name in PAPER_SETS),
    "fermat-all": tuple(f"fermat:{name}" for name in FERMAT_SETS),
}
"""Names for several sets: the paper's ten, and all of FERMAT."""
MOVED = ("gsm8k", "pretraining")
"""Corpora that moved to `tools/tiny_model`."""


def load_problems(
    name: str, *, set: str | None = None, split: str | None = None, deduplicated: bool = False
) -> list[Problem]:
    """Load a corpus that comes with placevalue.

    Args:
        name: `fermat` or `mawps`.
        set: For FERMAT, one of `FERMAT_SETS`.
        split: For MAWPS, `train`, `dev` or `test`.
        deduplicated: For MAWPS, leave out questions that a later part repeats word for word; test stays the same.

    Example:
        >>> load_problems("mawps", split="test")[0].answer
        '4.6'
    """
    if name not in ("fermat", "mawps"):
        raise ConfigError(f"no corpus {name!r}: expected fermat or mawps; for your own file, use read_problems")
    if name == "fermat" and (split is not None or deduplicated):
        raise ConfigError("fermat has no split: it is all test; give set=, one of " + ", ".join(FERMAT_SETS))
    if name == "mawps" and set is not None:
        raise ConfigError(f"mawps has no set={set!r}: give split=, one of {', '.join(SPLITS)}")
    part = _check("set", set, FERMAT_SETS) if name == "fermat" else _check("split", split, tuple(SPLITS))
    return CORPORA["mawps-dedup" if deduplicated else name].load(part)


def load_data(spec: str | os.PathLike[str]) -> list[Problem]:
    """Load problems by one string: `mawps:train`, `mawps-dedup:test`, `fermat:1000+`, or a `.jsonl` or `.csv` file.

    `fermat-templates:train` and `:dev` are generated on first use, with the settings of `FermatConfig()`.

    Example:
        >>> len(load_data("fermat:Original"))
        1111
    """
    named = _named(spec)
    return CORPORA[named[0]].load(named[1]) if named else read_problems(spec)


def expand_data(data: Sequence[str]) -> list[str]:
    """The names of single sets, without repeats, in order."""
    if isinstance(data, str):
        raise ConfigError(f"data is a list of names: put {data!r} into a list")
    if not data:
        raise ConfigError("data names no problems: give at least one set, such as mawps:test")
    return list(dict.fromkeys(name for spec in data for name in SHORTHANDS.get(spec, (spec,))))


def data_sources(spec: str | os.PathLike[str]) -> tuple[str, ...]:
    """Which corpora the text comes from, to check whether a model is tested on what it was trained on.

    Example:
        >>> data_sources("mawps-dedup:train")
        ('mawps',)
    """
    if named := _named(spec):
        return (CORPORA[named[0]].source,)
    return made_from(spec) or (f"file:{file_hash(spec)[:12]}",)


def data_size(spec: str | os.PathLike[str]) -> int:
    """The number of problems."""
    return len(load_data(spec))


def is_made(spec: str | os.PathLike[str]) -> bool:
    """Whether the problems are generated on first use, which takes a while."""
    return os.fspath(spec).startswith(f"{SOURCE}:")


def data_checksum(spec: str | os.PathLike[str]) -> str:
    """The sha256 of the problems in order; it does not depend on the file that holds them."""
    return checksum(load_data(spec))


def corpus_licence(name: str) -> str:
    """Licence and copyright holder of a corpus, from its bundled licence file."""
    text = read_bundled(f"{name.partition('-')[0]}/LICENSE").decode()
    return ", ".join([line.strip() for line in text.splitlines() if line.strip()][:2])


def _named(spec: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Corpus and part, or None for a file."""
    text = os.fspath(spec)
    corpus, colon, part = text.partition(":")
    if corpus in CORPORA and colon:
        return corpus, _check("part", part, CORPORA[corpus].parts, f"{corpus}:")
    if corpus in MOVED and colon:
        raise ConfigError(
            f"{text!r} is no longer part of placevalue, it moved to tools/tiny_model of its repository: run `python -m "
            "tools.tiny_model prepare runs/tiny` there and give runs/tiny/train.jsonl or runs/tiny/dev.jsonl"
        )
    if not text.endswith(tuple(READERS)):
        known = "; ".join(f"{name}:{' '.join(corpus.parts)}" for name, corpus in CORPORA.items())
        raise ConfigError(f"no data {text!r}: expected a file that ends in {' or '.join(READERS)}, or one of {known}")
    return None


def _check(what: str, given: str | None, known: tuple[str, ...], prefix: str = "") -> str:
    if given is None or given not in known:
        raise ConfigError(f"{what}={given!r}: expected one of {', '.join(prefix + name for name in known)}")
    return given
