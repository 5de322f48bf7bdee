"""Records of training, prediction, scoring and sweeps: one immutable JSON file each, linked by hash.

A record holds what is needed to reproduce its results: the resolved config, seeds, versions, commit, data checksums,
device, durations and counts. The file includes the record's hash, so an edited record is noticed when it is read, and
each record names the one it was made from: score -> prediction -> train.
"""

import contextlib
import hashlib
import json
import math
import os
import platform
import re
import subprocess
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_origin, get_type_hints

from placevalue.common.errors import DataError
from placevalue.common.files import file_hash, read_json, read_json_lines, write_json, write_whole
from placevalue.common.ownership import read_mark
from placevalue.common.validation import find_faults, plain

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "peft", "accelerate", "rapidfuzz", "scipy", "optuna")
_OUTPUTS = ("results", "benchmarks/records")
_FAULTS_SHOWN = 8
PREDICTIONS, PREDICTION_RECORD, SCORE_RECORD = "predictions.jsonl", "prediction.json", "score.json"
"""The files in a folder of predictions."""
TRAINED_ON = "placevalue_trained_on"
"""The key in a model's config that lists the corpora its weights were trained on."""


@dataclass(frozen=True)
class _Record:
    """The base of all records: fields are validated and copied on creation and cannot be set afterwards."""

    schema: ClassVar[str]
    later: ClassVar[tuple[str, ...]] = ()
    """Fields that older records lack. They are left out while they are None, so that those keep their hashes."""

    def __post_init__(self) -> None:
        if faults := find_faults(type(self), vars(self)):
            raise DataError(f"not a {self.schema} record: {'; '.join(faults)}")
        hints = get_type_hints(type(self))
        for name, value in vars(self).copy().items():
            copied = plain(value)
            object.__setattr__(self, name, tuple(copied) if get_origin(hints[name]) is tuple else copied)

    def to_dict(self) -> dict[str, Any]:
        """The schema and all fields as plain JSON values, without the hash."""
        values = {field.name: plain(getattr(self, field.name)) for field in fields(self)}
        absent = [name for name in self.later if values[name] is None]
        return {"schema": self.schema} | {name: value for name, value in values.items() if name not in absent}


@dataclass(frozen=True)
class TrainRecord(_Record):
    """A trained checkpoint: what it was made from, and how training went."""

    schema: ClassVar[str] = "placevalue/train/1"
    later: ClassVar[tuple[str, ...]] = ("files",)
    config: dict[str, Any]
    seed: int
    method: str
    model: str  # the base model
    data: dict[str, str]  # the checksum of each data set by its name, and of the base model's weights as `model`
    trained_on: tuple[str, ...]
    """The corpora that the weights were trained on, including those of the base model if placevalue trained it."""
    steps: int
    epochs: float
    durations: dict[str, float]  # in seconds
    counts: dict[str, int]
    losses: tuple[dict[str, Any], ...]  # the logged rows: step, loss and its named parts
    selected: dict[str, Any] | None  # which checkpoint was kept, and why; None if there was no choice
    provenance: dict[str, Any]
    files: dict[str, str] | None = None
    """The checksum of each file of the model by its name; None in records of version 0.1.0."""


@dataclass(frozen=True)
class PredictionRecord(_Record):
    """A file of predictions: which model wrote them, how, and for which problems."""

    schema: ClassVar[str] = "placevalue/prediction/1"
    train: str | None  # the hash of the train record; None if placevalue did not train the model
    model: str
    method: str | None
    trained_on: tuple[str, ...]
    data: dict[str, str]
    config: dict[str, Any]  # beams, maximum lengths, batch size, dtype
    counts: dict[str, int]  # problems, truncated questions, and answers that do not fit into the allowed tokens
    durations: dict[str, float]
    predictions_file: str  # its name in the record's folder
    predictions_sha256: str
    override_leakage: bool  # whether problems were predicted although the model has seen them
    provenance: dict[str, Any]
    seed: int | None = None  # of the training run


@dataclass(frozen=True)
class ScoreRecord(_Record):
    """The scores of a file of predictions; each is `{"value", "low", "high", "n"}` under its metric's name."""

    schema: ClassVar[str] = "placevalue/score/1"
    prediction: str | None  # the hash of the prediction record; None for predictions without one
    train: str | None
    model: str | None
    method: str | None
    seed: int | None
    config: dict[str, Any]  # draws and seed of the bootstrap, extractions, and the checksum of the predictions
    scores: dict[str, dict[str, dict[str, Any]]]  # by set
    operations: dict[str, dict[str, dict[str, Any]]]  # by operation, over all sets
    set_operations: dict[str, dict[str, dict[str, dict[str, Any]]]]  # by set, then by operation
    averages: dict[str, dict[str, Any]]  # means over the sets, each with the same weight
    notes: tuple[str, ...]  # what a reader of the scores must know
    override_leakage: bool
    provenance: dict[str, Any]


@dataclass(frozen=True)
class SweepRecord(_Record):
    """A search for the best values of some fields by scores on dev; rewritten as its trials finish."""

    schema: ClassVar[str] = "placevalue/sweep/1"
    config: dict[str, Any]
    """The resolved recipe with its method and seeds; the searched fields, sampler, metric and data."""
    planned: int  # the number of trials to run
    trials: tuple[dict[str, Any], ...]
    """The finished trials: their values, the score of each seed with its interval, and the mean over seeds."""
    best: dict[str, Any] | None
    """The trial with the best mean, and its values as overrides; None until a trial is finished."""
    provenance: dict[str, Any]

    @property
    def winners(self) -> list[dict[str, Any]]:
        """The trials with the best mean: several if it is a tie, of which `best` is one."""
        best = math.nan if self.best is None else self.best["value"]
        return [trial for trial in self.trials if math.isclose(trial["value"], best, abs_tol=1e-12)]


R = TypeVar("R", bound=_Record)


def record_hash(record: _Record) -> str:
    """The sha256 of a record as canonical JSON: sorted keys, no white space."""
    return _hash(record.to_dict())


def _hash(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_record(record: _Record, path: str | os.PathLike[str], growing: bool = False) -> str:
    """Write a record atomically and return the hash of the record that is now in the file.

    A different record is never overwritten, unless `growing`. If the existing record differs only in when, where and
    how fast it was made, it is kept.
    """
    path = Path(path)
    if path.exists() and not growing:
        found = read_record(path, type(record))
        mine, theirs = record.to_dict(), found.to_dict()
        if changed := [key for key in mine if key not in ("provenance", "durations") and mine[key] != theirs[key]]:
            raise DataError(
                f"{path} holds a different record (it differs in {', '.join(changed)}), and records are never "
                "overwritten: choose another path, or remove the file"
            )
        return record_hash(found)
    write_json(path, record.to_dict() | {"hash": record_hash(record)})
    return record_hash(record)


def read_record(path: str | os.PathLike[str], kind: type[R]) -> R:
    """Read a record and check its schema and hash; all errors are reported together."""
    values = read_json(path)
    if not isinstance(values, dict):
        raise DataError(f"{path}: expected one {kind.schema} record, found {str(values)[:40]!r}")
    schema, stored = values.get("schema"), values.pop("hash", None)
    family, _, number = kind.schema.rpartition("/")
    newer = re.fullmatch(rf"{family}/(\d+)", str(schema))
    if newer and int(newer[1]) > int(number):
        raise DataError(f"{path} has the schema {schema!r}, newer than {kind.schema!r}: upgrade placevalue")
    if schema != kind.schema:
        raise DataError(f"{path} has the schema {schema!r}: expected {kind.schema!r}")
    edited = "the hash does not fit: the record was edited after it was written"
    faults = [] if stored == _hash(values) else ["hash is missing" if stored is None else edited]
    del values["schema"]
    if faults := faults + find_faults(kind, values):
        raise DataError(f"{path}: {'; '.join(faults)}. Restore the file or make it again")
    return kind(**values)


def is_record(path: Path, kind: type[_Record]) -> bool:
    """Whether a file is a record of this kind, of any version, by its schema alone."""
    return str(read_mark(path).get("schema")).rpartition("/")[0] == kind.schema.rpartition("/")[0]


def provenance(device: str | None = None) -> dict[str, Any]:
    """Where a record comes from: versions, platform, time, and the device and commit if known.

    Without git, or with `PLACEVALUE_COMMIT`, it has a digest of the source instead of whether anything was changed.
    """
    import placevalue

    versions = {"python": platform.python_version(), "placevalue": placevalue.__version__}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    found: dict[str, Any] = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "platform": {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()},
    }
    git = git_state()
    source = None if "dirty" in git else source_digest()  # what is not known to be a commit's is known by its digest
    known = {"device": device, "git": git or None, "source_sha256": source}
    return found | {name: value for name, value in known.items() if value is not None}


def git_state() -> dict[str, Any]:
    """The commit of the checkout that this code runs from, and whether anything except results differs from it.

    Empty outside a checkout, also for a copy installed inside another repository. If a checkout was copied without its
    history, set `PLACEVALUE_COMMIT`; whether anything differs is then unknown.
    """
    if commit := os.environ.get("PLACEVALUE_COMMIT"):
        return {"commit": commit}
    root = Path(__file__).resolve().parents[3]

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root:
            return {}
        changed = git("status", "--porcelain", "--", ":/", *(f":(exclude){folder}" for folder in _OUTPUTS))
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(changed)}
    except (OSError, subprocess.CalledProcessError):
        return {}


@cache
def source_digest() -> str:
    """The sha256 of the package's Python files, by their names: the same wherever the same version lies.

    `placevalue.common.records.source_digest()` in a checkout of a commit tells whether that is what ran.
    """
    root = Path(__file__).resolve().parents[1]
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    whole = hashlib.sha256()
    for name in files:
        whole.update(f"{name} {hashlib.sha256((root / name).read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


@dataclass(frozen=True)
class Prediction:
    """A problem and a model's answer: a line of `predictions.jsonl`."""

    id: str
    answer: str  # the correct answer as written in the data
    prediction: str  # the model's text without special tokens; may be empty
    set: str = "all"
    question: str | None = None
    operation: str | None = None
    reachable: bool | None = None
    """Whether the correct answer fits into the tokens that the model was allowed; None if unknown."""
    readable: bool | None = None
    """Whether its rewritten numbers could be read back; None if the method rewrites none."""


def write_predictions(predictions: Iterable[Prediction], path: str | os.PathLike[str]) -> str:
    """Write one JSON object per line, without absent fields; return the file's sha256 for the record."""
    write_whole(path, map(prediction_line, predictions))
    return file_hash(path)


def prediction_line(row: Prediction) -> str:
    """A prediction as one JSON object and a line break, without absent fields."""
    return (
        json.dumps({key: value for key, value in asdict(row).items() if value is not None}, ensure_ascii=False) + "\n"
    )


def read_predictions(path: str | os.PathLike[str], sha256: str | None = None) -> list[Prediction]:
    """All predictions of a JSONL file; see `each_prediction`."""
    return list(each_prediction(path, sha256))


def each_prediction(path: str | os.PathLike[str], sha256: str | None = None) -> Iterator[Prediction]:
    """Read the predictions of a JSONL file one by one, checking every line, and its checksum if one is given.

    After the last one, an error names all lines that are wrong. Other keys than those of `Prediction` are ignored:
    other tools write their own. Of what was read only eight bytes a line are kept, to notice an id that comes twice.
    """
    if sha256 is not None and file_hash(path) != sha256:
        raise DataError(f"{path} is not the file its record names: the checksum differs. Predict again")
    faults: dict[int, str] = {}
    seen = array("Q")
    for line, values in read_json_lines(path):
        values = {name: value for name, value in values.items() if name in Prediction.__dataclass_fields__}
        wrong = find_faults(Prediction, values)
        if not wrong and not values["answer"].strip():
            wrong.append("answer is empty")
        if wrong:
            faults[line] = ", ".join(wrong)
        else:
            seen.append(_short_hash(values["id"]))
            yield Prediction(**values)
    if not seen and not faults:
        raise DataError(f"{path} holds no predictions: expected one JSON object per line")
    faults |= _find_repeated(path, faults, seen)
    if faults:
        more = len(faults) - _FAULTS_SHOWN
        shown = "; ".join(f"line {line}: {faults[line]}" for line in sorted(faults)[:_FAULTS_SHOWN])
        shown += f"; and {more} more lines" if more > 0 else ""
        raise DataError(f"{path}, {shown}: correct or remove these lines")


def _short_hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _find_repeated(path: str | os.PathLike[str], faults: Mapping[int, str], seen: "array[int]") -> dict[int, str]:
    """The lines whose id is on an earlier line. The file is only read again if two ids have one hash."""
    import numpy as np

    hashes = np.sort(np.frombuffer(seen, dtype=np.uint64))
    shared = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    found: dict[int, str] = {}
    earlier: set[str] = set()
    for line, values in read_json_lines(path) if shared else ():
        if line not in faults and _short_hash(values["id"]) in shared:
            if values["id"] in earlier:
                found[line] = f"the id {values['id']!r} is also on an earlier line"
            earlier.add(values["id"])
    return found
