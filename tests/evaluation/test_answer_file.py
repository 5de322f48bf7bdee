"""Predictions as ids and answers: nothing is lost, and what no longer fits is noticed."""

import gzip
import json
import shutil

import pytest

from experiment_folders import make_experiment, right_up_to
from placevalue.common.errors import DataError
from placevalue.common.records import PREDICTION_RECORD, PredictionRecord, read_record
from placevalue.data import load_data
from placevalue.evaluation import answer_file
from placevalue.evaluation.answer_file import PACKED, pack_answers
from placevalue.evaluation.scoring import evaluate, load_predictions
from placevalue.reports.results import load_experiment


@pytest.fixture
def folder(tmp_path):
    """The answers of one run to problems of two corpora, the second without questions, as FERMAT's are."""
    asked = [
        dict(id=each.id, set=name, answer=each.answer, operation=each.operation, reachable=index % 2 == 0)
        | ({"question": each.question} if name.startswith("numeracy") else {})
        for name in ("numeracy-small:test:add", "fermat:Original")
        for index, each in enumerate(load_data(name)[:30])
    ]
    texts = ["1\u2028½ \n", *right_up_to(asked, 20)[1:]]  # whatever a model may write
    made = make_experiment(tmp_path / "mine", {"digits": {1: texts}}, asked, train="fermat-templates:train")
    return made / "digits-1" / "predictions"


def test_nothing_is_lost(folder):
    before, score = load_predictions(folder).rows, (folder / "score.json").read_text()
    size = (folder / "predictions.jsonl").stat().st_size
    assert pack_answers(folder) == folder / PACKED and not (folder / "predictions.jsonl").exists()
    assert load_predictions(folder).rows == before and (folder / PACKED).stat().st_size < size / 5
    assert load_experiment(folder.parents[1]).runs[0].rows == before
    (folder / "score.json").unlink()
    evaluate(folder, draws=50)
    ours, theirs = json.loads((folder / "score.json").read_text()), json.loads(score)
    assert ours["scores"] == theirs["scores"] and ours["config"] == theirs["config"]
    assert pack_answers(folder) == folder / PACKED, "a second time there is nothing to do"


def test_the_same_answers_make_the_same_file(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "again")
    assert pack_answers(folder).read_bytes() == pack_answers(tmp_path / "again").read_bytes()


def test_what_the_data_does_not_have_stays_as_it_is(folder, monkeypatch):
    real = answer_file.load_data
    monkeypatch.setattr(answer_file, "load_data", lambda name: real(name)[1:])
    before = (folder / "predictions.jsonl").read_bytes()
    assert pack_answers(folder) is None and not (folder / PACKED).exists()
    assert (folder / "predictions.jsonl").read_bytes() == before


def test_changed_data_and_changed_answers_are_noticed(folder, monkeypatch):
    pack_answers(folder)
    lines = gzip.decompress((folder / PACKED).read_bytes()).decode()
    (folder / PACKED).write_bytes(gzip.compress(lines.replace("nothing", "12", 1).encode()))
    with pytest.raises(DataError, match="these are other predictions"):
        load_predictions(folder)
    (folder / PACKED).write_bytes(gzip.compress(lines.encode()))
    assert load_predictions(folder).rows
    real = answer_file.load_data
    monkeypatch.setattr(answer_file, "load_data", lambda name: real(name)[1:])
    with pytest.raises(DataError, match="has no problem .* any more"):
        load_predictions(folder)


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b"no json"), gzip.compress(b'{"schema": "other"}\n')],
    ids=["no gzip", "no json", "another schema"],  # a compressed file holds the time
)
def test_a_damaged_file_is_named(folder, content):
    pack_answers(folder)
    (folder / PACKED).write_bytes(content)
    with pytest.raises(DataError, match=PACKED):
        load_predictions(folder)


def test_the_record_still_names_the_whole_predictions(folder):
    before = read_record(folder / PREDICTION_RECORD, PredictionRecord)
    pack_answers(folder)
    assert read_record(folder / PREDICTION_RECORD, PredictionRecord) == before
