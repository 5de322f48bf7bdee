"""The addition study at toy size, through the functions that run the large one."""

import json
from statistics import stdev

import pytest
import torch

from benchmarks.addition.__main__ import HERE, main
from benchmarks.addition.grid import CE, Arm, Cell, Grid, Settings
from benchmarks.addition.intervals import paired_difference, surviving
from benchmarks.addition.page import render_page
from benchmarks.addition.record import build_record
from benchmarks.addition.sums import build_tokenizer, draw_pairs, encode_sums, score_answers
from benchmarks.addition.training import batches, build_model
from placevalue.common.errors import DataError
from placevalue.common.files import write_json

TINY = Settings(dim=16, layers=1, heads=2, warmup=2, batch=16, test=20, train_sample=10, checkpoints=(0.5, 1.0))


def tiny(seeds=(0,), **changes):
    return Grid([Cell(2, 40, 4)], [CE, Arm(0.6)], seeds, Settings(**vars(TINY) | changes))


def test_a_study_runs_continues_and_reports(tmp_path, capsys):
    runs, to = tmp_path / "runs", tmp_path / "report"
    assert main(["run", "--runs", str(runs), "--deadline", "0"], tiny()) == 1
    assert not runs.exists()
    assert main(["run", "--runs", str(runs)], tiny()) == 0
    first = {path.name: path.read_text() for path in runs.iterdir()}
    assert sorted(first) == ["2-digit-40-ce-seed-0.json", "2-digit-40-soft-weighted-0.6-seed-0.json"]
    assert main(["run", "--runs", str(runs)], tiny(seeds=(0, 1))) == 0
    assert len(list(runs.iterdir())) == 4
    assert all((runs / name).read_text() == text for name, text in first.items())

    assert main(["report", "--runs", str(runs), "--to", str(to)], tiny(seeds=(0, 1))) == 0
    record = json.loads((to / "record.json").read_text())
    assert record["comparisons"] == 3 and record["missing"] == 0 and len(record["runs"]) == 4
    page = (to / "README.md").read_text()
    assert page == render_page(record) and "There are 3 comparisons" in page and "`soft-weighted-0.6`" in page
    with pytest.raises(DataError, match="other settings"):
        main(["report", "--runs", str(runs), "--to", str(to)], tiny(learning_rate=1e-3))


def test_the_page_lists_the_differences(tmp_path):
    grid = tiny(seeds=(0, 1, 2))
    for run in grid.runs():
        gain = 0.5 + 0.01 * run.seed if run.arm != CE else 0.0
        checkpoint = {"step": 4, "train": {"exact": 1.0}, "digit_norm": 1.0, "ce": 0.1}
        test = {"exact": 0.3 + gain, "error": 5.0 + 10 * gain, "no_number": 0.0, "length": 1.0}
        origin = {"versions": {"torch": "1", "transformers": "2"}}
        outcome = {"schema": 1, "config": run.config(), "checkpoints": [checkpoint | {"test": test}], "seconds": 1.0}
        write_json(tmp_path / f"{run.name}.json", outcome | {"parameters": 9, "provenance": origin})
    page = render_page(build_record(grid, tmp_path))
    assert "In 2 of them the arm is better and in 1 worse" in page and "2 remain better and 1 worse" in page
    assert "- 2 digits, 40 pairs, exact match: `soft-weighted-0.6`*" in page
    assert "| `soft-weighted-0.6` | 1 | 1 / 0 | 0 / 1 | 1 / 0 |" in page
    assert "**+5.10 (+4.85 to +5.35)***" in page


def test_the_committed_page_matches_the_committed_record():
    assert (HERE / "README.md").read_text() == render_page(json.loads((HERE / "record.json").read_text()))


def test_arms_of_a_seed_share_weights_and_batches():
    tokenizer = build_tokenizer()
    one, same, other = (build_model(tokenizer, TINY, seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)
    cell = Cell(2, 40, 4)
    passes = list(batches(cell, TINY, 0))
    assert all(torch.equal(a, b) for a, b in zip(passes, batches(cell, TINY, 0), strict=True))
    assert len(torch.cat(passes[:2]).unique()) == 32


def test_test_pairs_are_not_trained_on_in_either_order_and_are_the_same_for_every_size():
    small, test = draw_pairs(2, 1000, 1000, seed=3)
    large, same = draw_pairs(2, 3000, 1000, seed=3)
    assert test == same and large[:1000] == small and len(set(large)) == 3000
    assert not {frozenset(pair) for pair in large} & {frozenset(pair) for pair in test}
    assert all(10 <= number <= 99 for pair in large + test for number in pair)
    with pytest.raises(ValueError, match="too few"):
        draw_pairs(1, 80, 10, seed=0)


def test_sums_are_encoded_digit_by_digit_in_their_usual_order():
    tokenizer = build_tokenizer()
    sums = encode_sums(tokenizer, [(12, 34), (99, 10)])
    tokens = [token for token in tokenizer.convert_ids_to_tokens(sums.labels[0][:-1].tolist()) if token.isdigit()]
    assert tokens == ["4", "6"] and sums.labels[0, -1] == -100
    assert tokenizer.decode(sums.questions[0], skip_special_tokens=True) == "12 + 34"


def test_scores_by_hand():
    scores = score_answers(["46", "100", "", "4 6", "50"], [(12, 34), (99, 2), (10, 10), (12, 34), (12, 34)])
    assert scores == {"exact": 0.2, "error": (1 + 20 + 46 + 4) / 5, "no_number": 0.4, "length": 0.6}


def test_student_t_against_its_table():
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 30: 2.042}
    for freedom, t in table.items():
        gaps = [float(gap) for gap in range(freedom + 1)]
        found, error = paired_difference(gaps, [0.0] * len(gaps)), stdev(gaps) / len(gaps) ** 0.5
        assert (found.high - found.mean) / error == pytest.approx(t, abs=5e-4)
    difference = paired_difference([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    assert difference.mean == 2 and difference.high - 2 == pytest.approx(4.3027 / 3**0.5, abs=1e-4)
    assert not difference.is_clear and difference.chance == pytest.approx(0.0742, abs=1e-4)
    assert paired_difference([1.0], [0.0]) is None
    assert paired_difference([1.0, 1.0], [1.0, 1.0]).chance == 1
    assert surviving([0.02, 0.001, 0.3, 0.04]) == [False, True, False, False]
