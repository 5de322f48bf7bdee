"""All data by name: what there is, and how a recipe names it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from placevalue.common.errors import ConfigError
from placevalue.common.files import file_hash
from placevalue.data.fermat import FERMAT_SETS, PAPER_SETS, read_fermat
from placevalue.data.fermat_templates import SOURCE, FermatConfig, generate_fermat
from placevalue.data.files import READERS, made_from, read_bundled, read_problems
from placevalue.data.gsm8k import read_gsm8k
from placevalue.data.mawps import SPLITS, read_mawps
from placevalue.data.pretraining import ROWS, generate_pretraining
from placevalue.data.problem import Problem, checksum


@dataclass(frozen=True)
class Corpus:
    """A corpus inside the package, by the name that recipes give it."""

    about: str
    parts: tuple[str, ...]
    folder: str
    """Where its files and its licence lie."""
    sources: tuple[str, ...]
    """The corpora that the text counts as, to tell what a model has seen."""


CORPORA = {
    "mawps": Corpus("MAWPS, a seeded split", tuple(SPLITS), "mawps", ("mawps",)),
    "mawps-dedup": Corpus("MAWPS without what a later part asks word for word", tuple(SPLITS), "mawps", ("mawps",)),
    "fermat": Corpus("FERMAT's test sets", FERMAT_SETS, "fermat", ("fermat",)),
    "gsm8k": Corpus("GSM8K's training problems", ("train",), "gsm8k", ("gsm8k",)),
    "pretraining": Corpus(
        "GSM8K's questions with gaps, made-up word problems", tuple(ROWS), "gsm8k", ("gsm8k", "word-problems")
    ),
    SOURCE: Corpus("FERMAT's training and dev sets, made from its templates", ("train", "dev"), "fermat", (SOURCE,)),
}
SHORTHANDS = {
    "fermat": tuple(f"fermat:{name}" for name in PAPER_SETS),
    "fermat-all": tuple(f"fermat:{name}" for name in FERMAT_SETS),
}
"""Names for several sets: the paper's ten, and all of FERMAT."""


def load_problems(
    name: str, *, set: str | None = None, split: str | None = None, deduplicated: bool = False
) -> list[Problem]:
    """The problems of a corpus that comes with placevalue.

    Args:
        name: `fermat` or `mawps`.
        set: For FERMAT, of `FERMAT_SETS`.
        split: For MAWPS, `train`, `dev` or `test`.
        deduplicated: For MAWPS, without what a later part asks word for word; test is the same either way.

    Example:
        >>> load_problems("mawps", split="test")[0].answer
        '4.6'
    """
    if name == "fermat":
        if split is not None or deduplicated:
            raise ConfigError("fermat has no split: it is all test; give set=, one of " + ", ".join(FERMAT_SETS))
        _check("set", set, FERMAT_SETS)
        return read_fermat(str(set))
    if name == "mawps":
        if set is not None:
            raise ConfigError(f"mawps has no set={set!r}: give split=, one of {', '.join(SPLITS)}")
        _check("split", split, tuple(SPLITS))
        return read_mawps(str(split), deduplicated)
    raise ConfigError(f"no corpus {name!r}: expected fermat or mawps; for a file of your own, read_problems")


def load_data(spec: str | os.PathLike[str]) -> list[Problem]:
    """Problems by one string: `mawps:train`, `mawps-dedup:test`, `fermat:1000+`, or a `.jsonl` or `.csv` file.

    `fermat-templates:train` and `:dev` are made when they are asked for, as `FermatConfig()` says, and so are
    `pretraining:train` and `:dev`, what the bundled model was pre-trained on. `gsm8k:train` is all there is of it.

    Example:
        >>> len(load_data("fermat:Original"))
        1111
    """
    named = _named(spec)
    if named is None:
        return read_problems(spec)
    corpus, part = named
    if corpus == SOURCE:
        return list(_generated()[part])
    if corpus == "pretraining":
        return list(_pretraining(part))
    if corpus == "gsm8k":
        return read_gsm8k()
    if corpus == "fermat":
        return load_problems("fermat", set=part)
    return load_problems("mawps", split=part, deduplicated=corpus == "mawps-dedup")


def expand_data(data: Sequence[str]) -> list[str]:
    """The names of single sets, each once, in the order they are first named."""
    if isinstance(data, str):
        raise ConfigError(f"data is a list of names: put {data!r} into a list")
    if not data:
        raise ConfigError("data names no problems: give at least one set, such as mawps:test")
    return list(dict.fromkeys(name for spec in data for name in SHORTHANDS.get(spec, (spec,))))


@cache
def _generated() -> dict[str, list[Problem]]:
    return generate_fermat(FermatConfig())


@cache
def _pretraining(part: str) -> list[Problem]:
    return list(generate_pretraining(part))


def data_sources(spec: str | os.PathLike[str]) -> tuple[str, ...]:
    """Which corpora the text comes from, to tell whether something is trained on what it is tested on.

    Example:
        >>> data_sources("mawps-dedup:train")
        ('mawps',)
    """
    named = _named(spec)
    if named is not None:
        return CORPORA[named[0]].sources
    return made_from(spec) or (f"file:{file_hash(spec)[:12]}",)


def data_size(spec: str | os.PathLike[str]) -> int:
    """How many problems there are; what is made when it is asked for need not be made for this."""
    named = _named(spec)
    if named is not None and named[0] == "pretraining":
        return ROWS[named[1]]
    return len(load_data(spec))


def is_made(spec: str | os.PathLike[str]) -> bool:
    """Whether the problems are made when they are asked for, which takes a while."""
    named = _named(spec)
    return named is not None and named[0] in (SOURCE, "pretraining")


def data_checksum(spec: str | os.PathLike[str]) -> str:
    """The sha256 of the problems themselves, in order; the same rows have it in any file."""
    return checksum(load_data(spec))


def corpus_licence(name: str) -> str:
    """Licence and holder of a corpus, from the licence file that comes with it."""
    text = read_bundled(f"{CORPORA[name].folder}/LICENSE").decode()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{lines[0]}, {lines[1]}"


def _named(spec: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Corpus and part; none where it is a file."""
    text = os.fspath(spec)
    corpus, colon, part = text.partition(":")
    if corpus in CORPORA and colon:
        _check("part", part, CORPORA[corpus].parts, f"{corpus}:")
        return corpus, part
    if not text.endswith(tuple(READERS)):
        known = "; ".join(f"{name}:{' '.join(corpus.parts)}" for name, corpus in CORPORA.items())
        raise ConfigError(f"no data {text!r}: expected a file that ends in {' or '.join(READERS)}, or one of {known}")
    return None


def _check(what: str, given: str | None, known: tuple[str, ...], prefix: str = "") -> None:
    if given not in known:
        raise ConfigError(f"{what}={given!r}: expected one of {', '.join(prefix + name for name in known)}")
