import dataclasses
import json
import os
import signal
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

import placevalue
from placevalue.common import records
from placevalue.common.errors import DataError
from placevalue.common.records import (
    Prediction,
    PredictionRecord,
    ScoreRecord,
    TrainRecord,
    git_state,
    provenance,
    read_predictions,
    read_record,
    record_hash,
    source_digest,
    write_predictions,
    write_record,
)


def train_record(**changes):
    values = dict(
        config={"lr": 1e-4, "lengths": (128, 16), "nested": {"ce_weight": 0.6}},
        seed=42,
        method="agg-before",
        model="flan-t5-small-title",
        data={"mawps:train": "ab" * 32},
        trained_on=("mawps",),
        steps=10,
        epochs=1.5,
        durations={"train": 3.2},
        counts={"problems": 1500},
        losses=({"step": 5, "loss": 2.5, "aux": None}, {"step": 10, "loss": 2.0}),
        selected={"step": 10, "why": "last"},
        provenance=provenance("cpu"),
    )
    return TrainRecord(**(values | changes))


def prediction_record(**changes):
    values = dict(
        train="cd" * 32, model="m", method="digits", trained_on=("fermat-templates",), data={"fermat:Original": "ef" * 32},
        config={"beams": 3}, counts={"problems": 2, "unreachable": 0}, durations={}, predictions_file="predictions.jsonl",
        predictions_sha256="0" * 64, override_leakage=False, provenance={},
    )  # fmt: skip
    return PredictionRecord(**(values | changes))


def score_record(**changes):
    score = {"cer": {"value": 0.5, "low": 0.25, "high": 0.75, "n": 4}}
    values = dict(
        prediction=None, train=None, model=None, method=None, seed=None, config={"draws": 1000}, scores={"a": score},
        operations={}, set_operations={"a": {"a+b": score}}, averages=score, notes=("note",), override_leakage=False,
        provenance={},
    )  # fmt: skip
    return ScoreRecord(**(values | changes))


@pytest.mark.parametrize("make", [train_record, prediction_record, score_record])
def test_a_record_comes_back_as_it_was_written(tmp_path, make):
    record = make()
    assert write_record(record, tmp_path / "r.json") == record_hash(record)
    assert read_record(tmp_path / "r.json", type(record)) == record
    assert json.loads((tmp_path / "r.json").read_text())["hash"] == record_hash(record)


def test_a_record_cannot_be_changed_by_whom_it_was_made():
    config = {"nested": {"lr": 1}}
    record = train_record(config=config)
    before = record_hash(record)
    config["nested"]["lr"] = 2
    assert record_hash(record) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.seed = 1
    record.to_dict()["config"]["nested"]["lr"] = 3
    assert record_hash(record) == before


def test_a_record_without_a_later_field_keeps_its_hash(tmp_path):
    record = train_record()
    assert record.files is None and "files" not in record.to_dict()
    write_record(record, tmp_path / "r.json")
    assert "files" not in json.loads((tmp_path / "r.json").read_text())
    assert record_hash(read_record(tmp_path / "r.json", TrainRecord)) == record_hash(record)
    assert record_hash(train_record(files={"config.json": "ab"})) != record_hash(record)


def test_the_hash_goes_by_content_and_not_by_order_or_white_space(tmp_path):
    one, other = (
        train_record(config={"a": 1, "b": 2}, provenance={}),
        train_record(config={"b": 2, "a": 1}, provenance={}),
    )
    assert record_hash(one) == record_hash(other) != record_hash(train_record(provenance={}))
    assert record_hash(one) != record_hash(train_record(config={"a": 1, "b": 3}, provenance={}))
    write_record(one, tmp_path / "r.json")
    values = json.loads((tmp_path / "r.json").read_text())
    (tmp_path / "r.json").write_text(json.dumps(dict(reversed(values.items())), indent=7))
    assert read_record(tmp_path / "r.json", TrainRecord) == one


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_any_json_survives_with_its_hash(tmp_path_factory, config):
    record = prediction_record(config=config)
    path = tmp_path_factory.mktemp("r") / "r.json"
    if any(0xD800 <= ord(c) < 0xE000 for c in json.dumps(config, ensure_ascii=False)):
        return  # half a surrogate pair is not valid text
    write_record(record, path)
    assert read_record(path, PredictionRecord) == record


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (lambda v: v.update(seed=43), "edited after it was written"),
        (lambda v: v["config"].update(lr=2), "edited after it was written"),
        (lambda v: v.pop("hash"), "hash is missing"),
        (lambda v: v.pop("steps"), "steps is missing"),
        (lambda v: v.update(extra=1), "extra is unknown"),
        (lambda v: v.update(seed="x"), "seed: expected a whole number, found 'x'"),
        (lambda v: v.update(seed=True), "seed: expected a whole number, found True"),
        (lambda v: v["durations"].update(train=None), "durations.train: expected a finite number, found None"),
        (lambda v: v["trained_on"].append(3), r"trained_on\[1\]: expected a text, found 3"),
        (lambda v: v.update(data=[]), r"data: expected an object, found \[\]"),
        (lambda v: v["losses"][0].update(loss=float("nan")), r"losses\[0\].loss: expected a JSON value"),
    ],
)
def test_an_edited_record_is_found_out_and_named(tmp_path, edit, fault):
    path = tmp_path / "train.json"
    write_record(train_record(), path)
    values = json.loads(path.read_text())
    edit(values)
    path.write_text(json.dumps(values))
    with pytest.raises(DataError, match=rf"train\.json: .*{fault}"):
        read_record(path, TrainRecord)


def test_all_faults_are_reported_together(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"schema": TrainRecord.schema, "seed": "x", "epochs": [], "other": 1}))
    with pytest.raises(DataError) as caught:
        read_record(path, TrainRecord)
    for fault in ("hash is missing", "seed: ", "epochs: ", "other is unknown", "losses is missing"):
        assert fault in str(caught.value)
    with pytest.raises(DataError, match="seed: .*; .*epochs: "):
        train_record(seed="x", epochs="y")
    with pytest.raises(DataError, match="config.lr: .*nan"):
        train_record(config={"lr": float("nan")})
    with pytest.raises(DataError, match="config: expected a text as key, found 3"):
        train_record(config={3: 4})
    with pytest.raises(DataError, match="config.path: "):
        train_record(config={"path": object()})


def test_other_schemas_are_told_apart(tmp_path):
    path = tmp_path / "r.json"
    write_record(train_record(), path)
    with pytest.raises(DataError, match=r"'placevalue/train/1': expected 'placevalue/score/1'"):
        read_record(path, ScoreRecord)
    path.write_text('{"schema": "placevalue/train/2"}')
    with pytest.raises(DataError, match="upgrade placevalue"):
        read_record(path, TrainRecord)
    path.write_text("{}")
    with pytest.raises(DataError, match="schema None"):
        read_record(path, TrainRecord)
    path.write_text("[]")
    with pytest.raises(DataError, match="expected one placevalue/train/1 record"):
        read_record(path, TrainRecord)
    path.write_text('{"schema": ')
    with pytest.raises(DataError, match=r"r\.json, line 1"):
        read_record(path, TrainRecord)


def test_a_different_record_is_never_overwritten(tmp_path):
    path = tmp_path / "r.json"
    first = train_record(provenance={"time": "then"})
    write_record(first, path)
    again = train_record(provenance={"time": "now"}, durations={"train": 9.0})
    assert write_record(again, path) == record_hash(first)
    assert read_record(path, TrainRecord) == first
    with pytest.raises(DataError, match="differs in seed, steps"):
        write_record(train_record(seed=1, steps=2), path)
    assert read_record(path, TrainRecord) == first
    with pytest.raises(DataError, match="expected 'placevalue/score/1'"):
        write_record(score_record(), path)


def test_a_killed_write_leaves_no_record(tmp_path, monkeypatch):
    monkeypatch.setattr("placevalue.common.files.os.fsync", lambda _: os.kill(os.getpid(), signal.SIGKILL))
    child = os.fork()
    if not child:
        write_record(train_record(), tmp_path / "r.json")
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    monkeypatch.undo()
    assert not (tmp_path / "r.json").exists()
    write_record(train_record(), tmp_path / "r.json")
    read_record(tmp_path / "r.json", TrainRecord)


def test_provenance_says_what_ran_where():
    found = provenance("cpu")
    assert found["device"] == "cpu" and "device" not in provenance()
    assert found["versions"]["placevalue"] == placevalue.__version__
    assert {"python", "torch", "transformers", "tokenizers"} <= set(found["versions"])
    assert found["time"].endswith("+00:00")


def test_without_git_a_record_has_a_digest_of_the_source(tmp_path, monkeypatch):
    module = tmp_path / "placevalue" / "common" / "records.py"
    module.parent.mkdir(parents=True)
    module.write_text("one = 1")
    monkeypatch.setattr(records, "__file__", str(module))

    def digest():
        source_digest.cache_clear()
        return provenance().get("source_sha256")

    monkeypatch.setattr(records, "git_state", dict)
    first = digest()
    assert len(first) == 64 and "git" not in provenance()
    (tmp_path / "placevalue" / "notes.txt").write_text("no source")
    assert digest() == first
    (tmp_path / "placevalue" / "more.py").write_text("")
    assert digest() != first, "a file more"
    (tmp_path / "placevalue" / "more.py").unlink()
    module.write_text("one = 2")
    assert digest() != first, "another line"
    module.write_text("one = 1")
    assert digest() == first
    monkeypatch.setattr(records, "git_state", lambda: {"commit": "ab" * 20})
    assert digest() == first, "a commit that somebody names may be changed"
    monkeypatch.setattr(records, "git_state", lambda: {"commit": "ab" * 20, "dirty": False})
    assert digest() is None
    source_digest.cache_clear()


def test_a_copy_inside_another_repository_has_no_commit(tmp_path, monkeypatch):
    def git(*arguments, at):
        settings = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *settings, *arguments], cwd=at, check=True, capture_output=True)

    module = tmp_path / "src" / "placevalue" / "common" / "records.py"
    module.parent.mkdir(parents=True)
    module.write_text("")
    monkeypatch.setattr(records, "__file__", str(module))
    assert git_state() == {}
    git("init", at=tmp_path)
    git("add", ".", at=tmp_path)
    git("commit", "-m", "x", at=tmp_path)
    assert git_state()["dirty"] is False and len(git_state()["commit"]) == 40
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.json").write_text("{}")
    assert git_state()["dirty"] is False
    (tmp_path / "new.py").write_text("")
    assert git_state()["dirty"] is True
    installed = tmp_path / ".venv" / "lib" / "placevalue" / "common" / "records.py"
    installed.parent.mkdir(parents=True)
    monkeypatch.setattr(records, "__file__", str(installed))
    assert git_state() == {}


ROWS = [
    Prediction("fermat:Original:1", "7.0", "7", "fermat:Original", "½ of 14?", "a/b", True),
    Prediction("mine", "3", ""),
]


def test_predictions_come_back_and_match_their_checksum(tmp_path):
    path = tmp_path / "predictions.jsonl"
    checksum = write_predictions(ROWS, path)
    assert read_predictions(path) == read_predictions(path, checksum) == ROWS
    assert "reachable" not in path.read_text().splitlines()[1]
    with path.open("a") as file:
        file.write("\n")
    with pytest.raises(DataError, match=r"predictions\.jsonl is not the file its record names"):
        read_predictions(path, checksum)


def test_two_ids_with_one_hash_are_two(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_short_hash", lambda _text: 7)
    write_predictions(ROWS, tmp_path / "p.jsonl")
    assert read_predictions(tmp_path / "p.jsonl") == ROWS
    write_predictions([*ROWS, ROWS[1]], tmp_path / "p.jsonl")
    with pytest.raises(DataError, match=f"line {len(ROWS) + 1}: the id '{ROWS[1].id}' is also on an earlier line"):
        read_predictions(tmp_path / "p.jsonl")


def test_damaged_predictions_are_named_by_file_and_line(tmp_path):
    path = tmp_path / "p.jsonl"
    good = '{"id": "a", "answer": "7", "prediction": "7"}\n'
    cases = {
        '{"id": "a", "answer"': "line 2: not a JSON object",
        '{"id": "b", "answer": "7"}': "line 2: prediction is missing",
        '{"id": "b", "answer": 7, "prediction": null}': "line 2: answer: expected a text, found 7, prediction: expected a text",
        '{"id": "a", "answer": "7", "prediction": "8"}': "line 2: the id 'a' is also on an earlier line",
        '{"id": "b", "answer": " ", "prediction": "8"}': "line 2: answer is empty",
        '{"id": "b", "answer": "7", "prediction": "8", "reachable": 1}': "line 2: reachable: expected true or false",
    }
    for line, fault in cases.items():
        path.write_text(good + line)
        with pytest.raises(DataError, match=rf"p\.jsonl, {fault}"):
            read_predictions(path)
    path.write_text(good + '{"id": 1}\n' + good + good.replace('"a"', '"b"') + good)
    with pytest.raises(DataError, match=r"line 2: id: .*; line 3: the id 'a' is also .*; line 5: the id 'a' is also"):
        read_predictions(path)
    path.write_text(good * 20)
    with pytest.raises(DataError, match="line 2: .*; line 9: .*; and 11 more lines"):
        read_predictions(path)
    path.write_text("\n")
    with pytest.raises(DataError, match="holds no predictions"):
        read_predictions(path)
