"""Records of training, prediction and scoring: one immutable JSON each, linked by hash.

A record says all that is needed to make its figures again: the resolved config, seeds, versions, commit, data
checksums, device, durations and counts. Its hash stands in the file, so an edited record is noticed when it is read,
and the next room's record names it: score -> prediction -> train.
"""

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_origin, get_type_hints

from placevalue.common.errors import DataError
from placevalue.common.files import file_hash, read_json, read_json_lines, write_json, write_whole
from placevalue.common.validation import find_faults, plain

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "peft", "accelerate", "rapidfuzz", "scipy", "optuna")
_OUTPUTS = ("results", "benchmarks/records")
_FAULTS_SHOWN = 8
PREDICTIONS, PREDICTION_RECORD, SCORE_RECORD = "predictions.jsonl", "prediction.json", "score.json"
"""What a folder of predictions holds."""


@dataclass(frozen=True)
class _Record:
    """What all records share: fields are checked and copied when one is made, and none is set afterwards."""

    schema: ClassVar[str]

    def __post_init__(self) -> None:
        if faults := find_faults(type(self), vars(self)):
            raise DataError(f"no {self.schema} record: {'; '.join(faults)}")
        hints = get_type_hints(type(self))
        for name, value in vars(self).copy().items():
            copied = plain(value)
            object.__setattr__(self, name, tuple(copied) if get_origin(hints[name]) is tuple else copied)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, with the schema and without the hash."""
        return {"schema": self.schema} | {field.name: plain(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True)
class TrainRecord(_Record):
    """A trained checkpoint: what it was made from, and how it went."""

    schema: ClassVar[str] = "placevalue/train/1"
    config: dict[str, Any]
    """The resolved config."""
    seed: int
    method: str
    model: str
    """The base model."""
    data: dict[str, str]
    """The checksum of each data set that was used, by its spec, and of the base model's weights, as `model`."""
    trained_on: tuple[str, ...]
    """The corpora behind the weights, those that the base model was trained on by us included."""
    steps: int
    epochs: float
    durations: dict[str, float]
    """In seconds."""
    counts: dict[str, int]
    losses: tuple[dict[str, Any], ...]
    """The logged rows: step, loss and its named parts."""
    selected: dict[str, Any] | None
    """Which checkpoint was kept, and why; none where there was no choice."""
    provenance: dict[str, Any]


@dataclass(frozen=True)
class PredictionRecord(_Record):
    """A file of predictions: which model wrote them, how, and on which problems."""

    schema: ClassVar[str] = "placevalue/prediction/1"
    train: str | None
    """The hash of the train record; none for a model that we did not train."""
    model: str
    method: str | None
    trained_on: tuple[str, ...]
    data: dict[str, str]
    config: dict[str, Any]
    """Beams, longest question and answer, batch size, dtype."""
    counts: dict[str, int]
    """Problems, questions that were cut, answers that cannot be written in the tokens allowed."""
    durations: dict[str, float]
    predictions_file: str
    """Its name, in the record's own folder."""
    predictions_sha256: str
    override_leakage: bool
    """Whether problems were predicted although the model has seen them."""
    provenance: dict[str, Any]
    seed: int | None = None
    """The seed of the training run."""


@dataclass(frozen=True)
class ScoreRecord(_Record):
    """The scores of a file of predictions; each is `{"value", "low", "high", "n"}` under its metric's name."""

    schema: ClassVar[str] = "placevalue/score/1"
    prediction: str | None
    """The hash of the prediction record; none for predictions that came without one."""
    train: str | None
    model: str | None
    method: str | None
    seed: int | None
    config: dict[str, Any]
    """Draws and seed of the bootstrap, extractions, and the checksum of the predictions."""
    scores: dict[str, dict[str, dict[str, Any]]]
    """By set."""
    operations: dict[str, dict[str, dict[str, Any]]]
    """By operation, all sets pooled."""
    set_operations: dict[str, dict[str, dict[str, dict[str, Any]]]]
    """By set, then by operation."""
    averages: dict[str, dict[str, Any]]
    """Means over the sets, each set counting the same."""
    notes: tuple[str, ...]
    """What a reader of the scores must know."""
    override_leakage: bool
    provenance: dict[str, Any]


@dataclass(frozen=True)
class SweepRecord(_Record):
    """A search for the best values of some fields, by scores on dev; written again as its trials finish."""

    schema: ClassVar[str] = "placevalue/sweep/1"
    config: dict[str, Any]
    """The resolved recipe with its method and seeds, what is searched, by which sampler, metric and data."""
    planned: int
    """How many trials there are to be."""
    trials: tuple[dict[str, Any], ...]
    """The finished ones: their values, the score of each seed with its interval, and the mean over seeds."""
    best: dict[str, Any] | None
    """The trial with the best mean, and its values as overrides; none while no trial is finished."""
    provenance: dict[str, Any]


R = TypeVar("R", TrainRecord, PredictionRecord, ScoreRecord, SweepRecord)


def record_hash(record: _Record) -> str:
    """The sha256 of a record as canonical JSON: sorted keys, no white space."""
    return _hash(record.to_dict())


def _hash(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_record(record: _Record, path: str | os.PathLike[str], growing: bool = False) -> str:
    """Write a record with its hash, whole or not at all, and return the hash of the record that now stands there.

    A different record is never overwritten, but where it is `growing`. One that differs only in when, where and how
    fast it was made is the same: the older one stays.
    """
    path = Path(path)
    if path.exists() and not growing:
        found = _read(path, type(record))
        mine, theirs = record.to_dict(), found.to_dict()
        if changed := [key for key in mine if key not in ("provenance", "durations") and mine[key] != theirs[key]]:
            raise DataError(
                f"{path} holds another record (it differs in {', '.join(changed)}), and records are never "
                "overwritten: write to another place, or remove it yourself"
            )
        return record_hash(found)
    write_json(path, record.to_dict() | {"hash": record_hash(record)})
    return record_hash(record)


def read_record(path: str | os.PathLike[str], kind: type[R]) -> R:
    """A record, checked against its schema and its hash; all faults are reported together.

    Example:
        >>> read_record("run/train.json", TrainRecord).trained_on  # doctest: +SKIP
        ('fermat-templates',)
    """
    record: R = _read(path, kind)
    return record


def _read(path: str | os.PathLike[str], kind: type[Any]) -> Any:
    values = read_json(path)
    if not isinstance(values, dict):
        raise DataError(f"{path}: expected one {kind.schema} record, found {str(values)[:40]!r}")
    _check_schema(path, values.get("schema"), kind.schema)
    stored = values.pop("hash", None)
    faults = ["hash is missing"] if stored is None else []
    if stored is not None and stored != _hash(values):
        faults.append("the hash does not fit: the record was edited after it was written")
    del values["schema"]
    faults += find_faults(kind, values)
    if faults:
        raise DataError(f"{path}: {'; '.join(faults)}. Restore the file or make it again")
    return kind(**values)


def _check_schema(path: str | os.PathLike[str], found: object, expected: str) -> None:
    if found == expected:
        return
    family, _, number = expected.rpartition("/")
    its_family, _, its_number = str(found).rpartition("/")
    if its_family == family and its_number.isdecimal() and int(its_number) > int(number):
        raise DataError(
            f"{path} has the schema {found!r}, and this placevalue reads up to {expected!r}: upgrade placevalue"
        )
    raise DataError(f"{path} has the schema {found!r}: expected {expected!r}")


def provenance(device: str | None = None) -> dict[str, Any]:
    """Where a record comes from: versions, platform, time, the device if given, and the commit if there is one."""
    import placevalue

    versions = {"python": platform.python_version(), "placevalue": placevalue.__version__}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    found: dict[str, Any] = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "platform": {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()},
    }
    if device is not None:
        found["device"] = device
    if state := git_state():
        found["git"] = state
    return found


def git_state() -> dict[str, Any]:
    """The commit of the checkout this code runs from, and whether anything but results differs from it.

    Absent outside a checkout: an installed copy inside somebody else's repository has no commit. Where a checkout was
    copied without its history, `PLACEVALUE_COMMIT` says which one it is; nothing is then said of changes.
    """
    if told := os.environ.get("PLACEVALUE_COMMIT"):
        return {"commit": told}
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


@dataclass(frozen=True)
class Prediction:
    """One problem and what a model answered: a line of `predictions.jsonl`."""

    id: str
    answer: str
    """The gold answer as it is written in the data."""
    prediction: str
    """The model's text, without special tokens; empty where it wrote nothing."""
    set: str = "all"
    question: str | None = None
    operation: str | None = None
    reachable: bool | None = None
    """Whether the answer can be written in the tokens the model was allowed; none where nobody looked."""


def write_predictions(predictions: Iterable[Prediction], path: str | os.PathLike[str]) -> str:
    """One JSON object a line, what is absent left out; returns the sha256 for the record."""
    rows = ({key: value for key, value in asdict(row).items() if value is not None} for row in predictions)
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return file_hash(path)


def read_predictions(path: str | os.PathLike[str], sha256: str | None = None) -> list[Prediction]:
    """All predictions of a JSONL file, checked line by line, and against the record's checksum if one is given."""
    if sha256 is not None and file_hash(path) != sha256:
        raise DataError(f"{path} is not the file its record names: the checksum differs. Predict again")
    found: dict[str, Prediction] = {}
    faults: list[str] = []
    for line, values in read_json_lines(path):
        wrong = find_faults(Prediction, values)
        if not wrong and not values["answer"].strip():
            wrong.append("answer is empty")
        if not wrong and values["id"] in found:
            wrong.append(f"the id {values['id']!r} stands on an earlier line too")
        if wrong:
            faults.append(f"line {line}: {', '.join(wrong)}")
        else:
            found[values["id"]] = Prediction(**values)
    if faults:
        raise DataError(f"{path}, {_shortened(faults)}")
    if not found:
        raise DataError(f"{path} holds no predictions: expected one JSON object a line")
    return list(found.values())


def _shortened(faults: Sequence[str]) -> str:
    more = len(faults) - _FAULTS_SHOWN
    return "; ".join(faults[:_FAULTS_SHOWN]) + (f"; and {more} lines more" if more > 0 else "")
