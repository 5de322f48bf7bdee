import json
from pathlib import Path

import numpy as np
import pytest
import torch

from placevalue import AGGREGATIONS
from placevalue.cli.main import main
from placevalue.common.errors import CheckpointError, DataError
from placevalue.common.hub import weights_hash
from placevalue.evaluation.number_space import (
    _rounded_f1,
    _share,
    layer_f1,
    load_digit_rows,
    load_number_tokens,
    read_space,
    survey,
)
from placevalue.numbers.aggregation import FALL
from placevalue.numbers.neighbours import digits_of, number_vectors, search_vectors
from placevalue.numbers.spans import Digits
from placevalue.reports.figures import draw_all, markdown
from zoo import build

RESULTS = Path(__file__).parents[2] / "results" / "neighbours"
RECORDS = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*/record.json"))]


@pytest.fixture
def model(tmp_path):
    model, base = build("llama")
    model.save_pretrained(tmp_path / "model")
    base.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def quick(monkeypatch):
    """Surveys of numbers up to three digits."""
    monkeypatch.setattr("placevalue.evaluation.number_space.LENGTHS", range(1, 4))
    monkeypatch.setattr("placevalue.evaluation.number_space.FALLS", (10.0, FALL))
    monkeypatch.setattr(
        "placevalue.evaluation.number_space._tradeoff",
        lambda rows, fall: {"f1": {"2": 1, "3": 1, "5": 1}, "bfloat16": {"2": 1, "3": 1, "5": 1}, "drift_6": 6},
    )
    monkeypatch.setattr(
        "placevalue.evaluation.number_space._rounded_f1", lambda rows, function, kind: {"f1": {"1": 0.5}}
    )
    monkeypatch.setattr(
        "placevalue.evaluation.number_space._claims",
        lambda rows: {"neighbours_sharing_all_but_the_last_digit": 9.0, "distance_of_0_over_distance_of_others": 1.0},
    )
    monkeypatch.setattr("placevalue.evaluation.number_space._rank", lambda rows, function: {"6": 0.5})


def test_a_survey_is_taken_up_where_it_stopped(model, quick, tmp_path):
    record, seen = tmp_path / "out" / "record.json", []

    def stop_at_third(part):
        seen.append(part)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey(model, record, stop_at_third, ["weighted", "sum"])
    kept = json.loads(record.read_text())
    assert list(kept["parts"]) == ["f1/weighted", "drift/weighted"]
    whole = survey(model, record, seen.append, ["weighted", "sum"])
    assert {name: whole["parts"][name] for name in kept["parts"]} == kept["parts"]
    assert json.loads(record.read_text()) == whole and not list(record.parent.glob("*.part"))


def test_a_damaged_record_is_named(model, tmp_path):
    (tmp_path / "record.json").write_text("{")
    with pytest.raises(DataError, match=r"record\.json, line 1: not JSON"):
        survey(model, tmp_path / "record.json", print)
    (tmp_path / "record.json").write_text("{}")
    with pytest.raises(CheckpointError, match="schema None"):
        survey(model, tmp_path / "record.json", print)


def test_a_record_says_what_was_measured_by_what_and_is_not_edited(model, tmp_path):
    path = tmp_path / "out" / "record.json"
    survey(model, path, print, ["sum"])
    found = read_space(path)
    assert found["weights_sha256"] == weights_hash(model) and len(found["hash"]) == 64
    assert {"time", "versions"} <= found["provenance"].keys()
    assert {"git", "source_sha256"} & found["provenance"].keys(), "a commit, or what the source was"
    path.write_text(path.read_text().replace('"model": "model"', '"model": "other"'))
    with pytest.raises(CheckpointError, match="the hash does not fit"):
        survey(model, path, print, ["sum"])
    path.write_text(path.read_text().replace('"model": "other"', '"model": "model"'))
    weights = Path(model) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + bytes(4))
    with pytest.raises(CheckpointError, match="measured other weights"):
        survey(model, path, print, ["sum"])


def test_the_command_writes_records_figures_and_the_page(model, quick, tmp_path, capsys):
    assert main(["neighbours", "--model", model, "--out", str(tmp_path / "out")]) == 0
    folder = tmp_path / "out" / "model"
    names = {path.name for path in folder.iterdir()}
    for stem in ("f1-paper", "f1-all", "tradeoff", "map-55"):
        assert {f"{stem}.png", f"{stem}.svg"} <= names
    page = (tmp_path / "out" / "README.md").read_text()
    assert "| weighted | " in page and "## model" in page
    assert "wrote" in capsys.readouterr().out


def test_a_layer_of_the_model(model, capsys):
    found = layer_f1(model, "weighted", 0, 2)
    rows = load_digit_rows(model)
    assert found == pytest.approx(search_vectors(number_vectors(rows, "weighted", 2).numpy(), 10).f1([1, 2]), abs=0.02)
    assert main(["neighbours", "--model", model, "--layer", "1", "--digits", "2"]) == 0
    assert "2 digits: " in capsys.readouterr().out
    assert main(["neighbours", "--model", model, "--layer", "99", "--digits", "2"]) == 1


def test_number_tokens_of_the_vocabulary(model):
    tokens = load_number_tokens(model)
    assert 7 in tokens and tokens[7].shape == (16,)


def test_a_sampled_share_is_the_exact_one():
    rows = torch.randn(10, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    vectors = number_vectors(rows, "weighted", 3)
    exact = search_vectors(vectors.numpy(), 10).shares
    for number in (0, 7, 55, 500, 999):
        distances = (vectors - vectors[number]).norm(dim=1).numpy()
        assert _share(number, distances, 1e-9) == pytest.approx(exact[number])


def test_coarser_precision_is_never_better_than_chance_allows():
    rows = torch.randn(10, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 2
    fine = _rounded_f1(rows, AGGREGATIONS["interpolated"], "float32", longest=4, queries=50)["f1"]
    coarse = _rounded_f1(rows, AGGREGATIONS["interpolated"], "bfloat16", longest=4, queries=50)["f1"]
    assert coarse["4"] <= fine["4"] + 0.02


def decimals_of(hundredths):
    """Numbers with two decimals, from hundredths."""
    whole = digits_of(hundredths)
    length = whole.values.shape[1]
    return Digits(
        whole.values, whole.places - 2, torch.full_like(whole.values, max(length - 2, 1)), whole.numbers, whole.mask, 1
    )


def test_no_two_numbers_with_two_decimals_share_a_vector():
    rows = (torch.randn(10, 24, generator=torch.Generator().manual_seed(0)) + 2).float()
    parts = [torch.arange(100, 1000), torch.arange(1000, 10_000), torch.arange(10_000, 100_000)]
    vectors = torch.cat([AGGREGATIONS["interpolated"](decimals_of(part), rows)[:, 0] for part in parts]).numpy()
    assert len(np.unique(vectors, axis=0)) == len(vectors)


def test_decimals_stand_in_order():
    """Between 3 and 4, the further a number is in value the further its vector, a carry or not."""
    rows = torch.randn(10, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 2
    vectors = AGGREGATIONS["interpolated"](decimals_of(torch.arange(300, 400)), rows)[:, 0]
    distances = (vectors - vectors[0]).norm(dim=1)
    assert (distances[10::10].diff() > 0).all() and distances[5] < distances[25] < distances[55]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["model"])
class TestCommittedRecords:
    """The documents' claims agree with the records of real models."""

    def test_the_papers_claims(self, record):
        f1 = {name: record["parts"][f"f1/{name}"]["f1"] for name in AGGREGATIONS}
        assert all(0.69 < f1["weighted"][n] < 0.73 for n in "23456")
        assert f1["sum"]["2"] > 0.2 and f1["sum"]["6"] < 0.01
        assert all(f1[name][n] < 0.05 for name in ("max", "min", "mean", "median") for n in "23456")

    def test_interpolated_beats_it(self, record):
        parts = record["parts"]
        f1, drift, weighted = parts["f1/interpolated"]["f1"], parts["drift/interpolated"], parts["drift/weighted"]
        assert f1["2"] >= 0.84 and f1["3"] >= 0.95 and min(f1[n] for n in "456") >= 0.98
        assert all(drift[n] <= 1.05 * weighted[n] for n in "345")
        assert all(drift[str(n)] <= weighted[str(n)] / 2 for n in range(6, 16))
        assert parts["f1/interpolated"]["closest"] > 0

    def test_the_page_is_made_from_the_records(self, record):
        page = (RESULTS / "README.md").read_text()
        assert page == markdown(RECORDS)


def test_three_real_models_are_recorded():
    assert {record["model"] for record in RECORDS} >= {"flan-t5-small-title", "smollm2-135m", "gemma3-270m"}


def test_drawing_without_number_tokens(tmp_path):
    rows = torch.randn(10, 12, dtype=torch.float64)
    record = {"model": "m", "parts": {"f1/weighted": {"f1": {"1": 0.5, "2": 0.6}}}}
    assert len(draw_all(record, rows, {}, tmp_path)) == 6
