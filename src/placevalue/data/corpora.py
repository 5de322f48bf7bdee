"""Every data set by the name that recipes give it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from placevalue.common.errors import ConfigError
from placevalue.common.validation import nearest, one_of
from placevalue.data.columns import SUFFIXES, names_file
from placevalue.data.copies import find_copies, pairs
from placevalue.data.fermat import FERMAT_SETS, PAPER_SETS, read_fermat
from placevalue.data.fermat_templates import HELD_OUT, PARTS, SOURCE, FermatConfig, Templates, generate_fermat
from placevalue.data.files import content_hash, made_from, read_bundled, read_problems
from placevalue.data.mawps import GROUPED, SPLITS, read_grouped, read_mawps
from placevalue.data.numeracy import FINAL, LEVELS, count_numeracy, read_numeracy
from placevalue.data.numeracy import PARTS as NUMERACY_PARTS
from placevalue.data.numeracy import SOURCE as NUMERACY
from placevalue.data.problem import Problem, checksum


@cache
def _generated(templates: Templates) -> dict[str, list[Problem]]:
    return generate_fermat(FermatConfig(templates=templates))


@dataclass(frozen=True)
class Corpus:
    """A corpus inside the package."""

    about: str
    parts: tuple[str, ...]
    source: str
    """The name it counts as when models are checked for test problems they have seen."""
    load: Callable[[str], list[Problem]]
    tasks: tuple[str, ...] = ()
    """What a part can be narrowed to: `numeracy:test:add`."""


CORPORA = {
    "mawps": Corpus("MAWPS, a seeded split", tuple(SPLITS), "mawps", read_mawps),
    "mawps-dedup": Corpus(
        "MAWPS without questions that a later part repeats",
        tuple(SPLITS),
        "mawps",
        partial(read_mawps, deduplicated=True),
    ),
    "mawps-grouped": Corpus("MAWPS without copies of questions across parts", GROUPED, "mawps", read_grouped),
    "fermat": Corpus("FERMAT's test sets", FERMAT_SETS, "fermat", read_fermat),
    SOURCE: Corpus(
        "FERMAT's templates, each in all parts, with other numbers",
        PARTS,
        SOURCE,
        lambda part: list(_generated("shared")[part]),
    ),
    HELD_OUT: Corpus(
        "FERMAT's templates, each in one part only", PARTS, SOURCE, lambda part: list(_generated("held-out")[part])
    ),
    **{
        name: Corpus(
            f"Generated tasks, {level.about}", NUMERACY_PARTS, NUMERACY, partial(read_numeracy, name), level.tasks
        )
        for name, level in LEVELS.items()
    },
}
SHORTHANDS = {
    "fermat": tuple(f"fermat:{name}" for name in PAPER_SETS),
    "fermat-all": tuple(f"fermat:{name}" for name in FERMAT_SETS),
}
"""Names for several sets: the paper's ten, and all of FERMAT."""
SEEDED = ("mawps", "mawps-dedup")
"""Corpora with test questions that copy training questions; `mawps-grouped` has none."""
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
        names = one_of(("fermat", "mawps"), name)
        raise ConfigError(f"no corpus {name!r}: expected {names}; for your own file, use read_problems")
    if name == "fermat" and (split is not None or deduplicated):
        raise ConfigError("fermat has no split: it is all test; give set=, one of " + ", ".join(FERMAT_SETS))
    if name == "mawps" and set is not None:
        raise ConfigError(f"mawps has no set={set!r}: give split=, one of {', '.join(SPLITS)}")
    part = _check("set", set, FERMAT_SETS) if name == "fermat" else _check("split", split, tuple(SPLITS))
    return CORPORA["mawps-dedup" if deduplicated else name].load(part)


def load_data(spec: str | os.PathLike[str]) -> list[Problem]:
    """Load problems by one string: `mawps:train`, `mawps-dedup:test`, `fermat:1000+`, or a file of your own.

    The parts of `fermat-templates` and `fermat-held-out` are generated on first use, with the settings of
    `FermatConfig()`, and so are the parts of `numeracy`, of which `numeracy:test:add` is a single task.

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
    return made_from(spec) or (f"file:{content_hash(spec)[:12]}",)


def problem_sources(spec: str | os.PathLike[str]) -> tuple[str, ...]:
    """What a record names as trained on or tested: a data set with its part, or what a file of your own comes from.

    Example:
        >>> problem_sources("mawps-grouped:train")
        ('mawps-grouped:train',)
    """
    return (os.fspath(spec),) if _named(spec) else data_sources(spec)


def data_size(spec: str | os.PathLike[str]) -> int:
    """The number of problems."""
    corpus, _, part = os.fspath(spec).partition(":")
    return count_numeracy(LEVELS[corpus], part) if corpus in LEVELS and part in NUMERACY_PARTS else len(load_data(spec))


def copy_note(spec: str | os.PathLike[str]) -> str:
    """How many questions of a part of MAWPS's seeded split copy its training part; empty for other data."""
    corpus, _, part = os.fspath(spec).partition(":")
    if corpus not in SEEDED or part not in SPLITS or part == "train":
        return ""
    return describe_copies(spec, f"{corpus}:train")


def describe_copies(test: str | os.PathLike[str], train: str | os.PathLike[str]) -> str:
    """How many questions of one data set copy another's."""
    asked, known = (pairs(load_data(spec)) for spec in (test, train))
    return f"copies of {train} among the {len(asked):,} questions of {test}: {find_copies(asked, known)}"


def is_made(spec: str | os.PathLike[str]) -> bool:
    """Whether the problems are generated on first use, which takes a while."""
    return os.fspath(spec).partition(":")[0] in (SOURCE, HELD_OUT, *LEVELS)


def is_final(spec: str | os.PathLike[str]) -> bool:
    """Whether the problems are kept for the last test, so that nothing may be trained on or chosen by them."""
    corpus, *part = os.fspath(spec).split(":")
    return corpus in LEVELS and part[:1] == [FINAL]


def data_checksum(spec: str | os.PathLike[str]) -> str:
    """The sha256 of the problems in order; it does not depend on the file that holds them."""
    return checksum(load_data(spec))


def corpus_licence(name: str) -> str:
    """Licence and copyright holder of a corpus, from its bundled licence file; numeracy is placevalue's own."""
    if CORPORA[name].source == NUMERACY:
        return "Apache License 2.0, as placevalue"
    text = read_bundled(f"{name.partition('-')[0]}/LICENSE").decode()
    return ", ".join([line.strip() for line in text.splitlines() if line.strip()][:2])


def _named(spec: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Corpus and part, or None for a file."""
    text = os.fspath(spec)
    corpus, colon, part = text.partition(":")
    if corpus in CORPORA and colon:
        whole, narrowed, task = part.partition(":")
        if not narrowed or not CORPORA[corpus].tasks:
            return corpus, _check("part", part, CORPORA[corpus].parts, f"{corpus}:")
        _check("part", whole, CORPORA[corpus].parts, f"{corpus}:")
        _check("task", task, CORPORA[corpus].tasks, f"{corpus}:{whole}:")
        return corpus, part
    if corpus in MOVED and colon:
        raise ConfigError(
            f"{text!r} is no longer part of placevalue, it moved to tools/tiny_model of its repository: run `python -m "
            "tools.tiny_model prepare runs/tiny` there and give runs/tiny/train.jsonl or runs/tiny/dev.jsonl"
        )
    if not names_file(text):
        known = "; ".join(f"{name}:{' '.join(corpus.parts)}" for name, corpus in CORPORA.items())
        near = nearest(text, [f"{name}:{part}" for name, corpus in CORPORA.items() for part in corpus.parts])
        raise ConfigError(
            f"no data {text!r}: expected a file that ends in {' or '.join(SUFFIXES)}, a "
            f"folder that datasets saved, or one of {known}" + (f" (is {near} meant?)" if near else "")
        )
    return None


def _check(what: str, given: str | None, known: tuple[str, ...], prefix: str = "") -> str:
    if given is None or given not in known:
        names = [prefix + name for name in known]
        raise ConfigError(f"{what}={given!r}: expected {one_of(names, f'{prefix}{given}')}")
    return given
