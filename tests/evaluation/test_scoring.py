import ast
import inspect
import json
import tracemalloc

import numpy as np
import pytest

from placevalue.cli.main import main
from placevalue.common import records
from placevalue.common import validation as validation_module
from placevalue.common.errors import DataError
from placevalue.common.records import (
    Prediction,
    PredictionRecord,
    ScoreRecord,
    read_record,
    record_hash,
    write_predictions,
    write_record,
)
from placevalue.data import PAPER_SETS, load_data
from placevalue.data.leakage import check_leakage
from placevalue.evaluation import metrics
from placevalue.evaluation import scoring as scoring_module
from placevalue.evaluation import statistics as statistics_module
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.scoring import compare, evaluate, load_predictions, problem_units
from placevalue.evaluation.statistics import bootstrap
from placevalue.reports import terminal

ROWS = [
    Prediction("fermat:Original:1", "7.0", "7", "fermat:Original", "How many?", "a+b"),
    Prediction("fermat:Original:2", "12.0", "13", "fermat:Original", "How many?", "a-b"),
    Prediction("fermat:Original:3", "5.0", "", "fermat:Original", "How many?", "a+b"),
    Prediction("fermat:Original:4", "100.0", "it is 100", "fermat:Original", "How many?", "a*b"),
    Prediction("fermat:Commuted:1", "7.0", "7", "fermat:Commuted", "How many?", "a+b"),
    Prediction("fermat:Commuted:2", "Not commutable", "12", "fermat:Commuted", "How many?", "a-b"),
    Prediction("fermat:1000+:1", "439156969900.0", "439156969900", "fermat:1000+", "How many?", "a+b"),
    Prediction("fermat:1000+:2", "1234.0", "1234", "fermat:1000+", "How many?", None),
]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "220")


def write_folder(folder, rows=ROWS, trained_on=("fermat-templates",), **changes):
    checksum = write_predictions(rows, folder / "predictions.jsonl")
    values = dict(
        train="ab" * 32, model="m", method="digits", trained_on=trained_on, data={"fermat:Original": "cd" * 32},
        config={"beams": 3, "max_answer": 16}, counts={"problems": len(rows)}, durations={"generate": 1.0},
        predictions_file="predictions.jsonl", predictions_sha256=checksum, override_leakage=False, provenance={}, seed=42,
    )  # fmt: skip
    write_record(PredictionRecord(**(values | changes)), folder / "prediction.json")
    return folder


def test_memory_hardly_grows_with_the_predictions(tmp_path, monkeypatch):
    """What stays in memory of each prediction is small: bytes for its metrics, a key, its numbers of set and problem."""
    monkeypatch.setattr(scoring_module, "_BLOCK", 500)
    monkeypatch.setattr(statistics_module, "_PART", 10_000)

    def peak(count):
        rows = (
            Prediction(
                f"made:{n % 3}:{n}", f"{n % 50}", f"{n % 7}", f"made:{n % 3}", "How many apples?" * 4, "+-"[n % 2]
            )
            for n in range(count)
        )
        write_predictions(rows, tmp_path / f"{count}.jsonl")
        tracemalloc.start()
        evaluate(tmp_path / f"{count}.jsonl", draws=2)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(10)  # what is made once
    small, large = peak(3000), peak(9000)
    assert (large - small) / 6000 < 500


def value(scores, metric):
    return scores[metric]["value"], scores[metric]["n"]


def test_scores_by_hand(tmp_path):
    found = evaluate(write_folder(tmp_path))
    original, commuted, large = (found.scores[f"fermat:{name}"] for name in ("Original", "Commuted", "1000+"))
    assert value(original, "accuracy_paper") == (0.5, 4) and value(original, "accuracy_exact") == (0.25, 4)
    # 7 for 7.0: 2/3; 13 for 12.0: 3/4; nothing for 5.0: 1; `it is 100` for 100.0: 6 + 2 of 5
    assert value(original, "cer_written") == (pytest.approx((2 / 3 + 3 / 4 + 1 + 8 / 5) / 4), 4)
    assert value(original, "cer_shortest") == (pytest.approx((0 + 1 / 2 + 1 + 6 / 3) / 4), 4)
    assert value(original, "digit_length") == (0.75, 4) and value(original, "no_number") == (0.25, 4)
    assert value(original, "place_1") == (0.75, 4) and value(original, "place_2") == (0.5, 2)
    assert value(original, "place_3") == (1, 1) and "place_4" not in original
    assert value(original, "log_error") == (pytest.approx(np.log10(13 / 12) / 3), 3)
    assert value(commuted, "accuracy_paper") == (0.5, 2) and value(commuted, "accuracy_paper_numeric") == (1, 1)
    assert value(large, "accuracy_paper") == (1, 2) and value(large, "accuracy_paper_reachable") == (1, 1)


def test_operations_are_pooled_and_by_set_and_sets_are_averaged(tmp_path):
    found = evaluate(write_folder(tmp_path))
    assert value(found.operations["a+b"], "accuracy_paper") == (0.75, 4)
    assert value(found.operations["a-b"], "accuracy_paper") == (0, 2)
    assert set(found.operations) == {"a+b", "a-b", "a*b"}, "a row without operation is in none"
    assert value(found.set_operations["fermat:Original"]["a+b"], "accuracy_paper") == (0.5, 2)
    assert set(found.set_operations["fermat:1000+"]) == {"a+b"}
    assert value(found.averages, "accuracy_paper") == (pytest.approx((0.5 + 0.5 + 1) / 3), 3)
    assert value(found.averages, "place_3") == (1, 2), "only Original and 1000+ have a third digit"
    one = evaluate(write_folder(tmp_path / "one", ROWS[:4]))
    assert one.averages == {}


def test_the_record_says_what_was_scored_and_is_linked(tmp_path):
    found = evaluate(write_folder(tmp_path), draws=50, seed=3)
    prediction = read_record(tmp_path / "prediction.json", PredictionRecord)
    assert (found.prediction, found.train) == (record_hash(prediction), "ab" * 32)
    assert (found.model, found.method, found.seed, found.override_leakage) == ("m", "digits", 42, False)
    assert found.config["draws"] == 50 and found.config["seed"] == 3 and found.config["max_answer"] == 16
    assert found.config["extractions"] == ["paper", "exact"]
    assert found.config["predictions_sha256"] == prediction.predictions_sha256
    assert found == read_record(tmp_path / "score.json", ScoreRecord)
    assert evaluate(tmp_path, draws=50, seed=3) == found, "the first record stays"
    with pytest.raises(DataError, match=r"score\.json holds a different record \(it differs in config"):
        evaluate(tmp_path, draws=51, seed=3)
    assert evaluate(tmp_path, tmp_path / "other.json", draws=51).config["draws"] == 51
    with pytest.raises(DataError, match="draws=0"):
        evaluate(tmp_path, draws=0)


def test_the_records_own_answer_length_comes_first(tmp_path):
    found = evaluate(write_folder(tmp_path / "a"), draws=20)
    given = evaluate(write_folder(tmp_path / "b"), draws=20, max_answer=99)
    assert given.config["max_answer"] == 16 and given.scores == found.scores
    assert value(given.scores["fermat:1000+"], "accuracy_paper_reachable") == (1, 1)
    without = evaluate(write_folder(tmp_path / "c", config={"beams": 3}), draws=20, max_answer=99)
    assert without.config["max_answer"] == 99
    assert value(without.scores["fermat:1000+"], "accuracy_paper_reachable") == (1, 2)


def test_intervals_draw_problems_and_are_the_same_every_time(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        Prediction(f"fermat:{name}:{index}", "7", "7" if rng.random() < 0.5 else "8", f"fermat:{name}", None, "a+b")
        for name in ("Original", "1000+")
        for index in range(40)
    ]
    found = evaluate(write_folder(tmp_path, rows))
    right = np.array([[float(row.prediction == "7")] for row in rows])
    alone = bootstrap(right[:40])[0]
    assert found.scores["fermat:Original"]["accuracy_paper"] == pytest.approx(vars(alone))
    pooled = bootstrap(right, np.tile(np.arange(40), 2))[0]
    assert problem_units(rows).tolist() == [
        int(n) for n in np.unique([str(i) for i in range(40)] * 2, return_inverse=True)[1]
    ]
    ours = found.operations["a+b"]["accuracy_paper"]
    assert ours["value"] == pooled.value and ours["n"] == 80
    drawn = bootstrap(right, problem_units(rows))[0]
    assert (ours["low"], ours["high"]) == pytest.approx((drawn.low, drawn.high)), "two rows of a problem are one draw"
    average = found.averages["accuracy_paper"]
    assert (average["low"], average["high"]) == pytest.approx((ours["low"], ours["high"])), "sets of one size: the same"


def test_which_rows_are_one_problem():
    rows = [Prediction(id_, "7", "7", set_) for id_, set_ in (
        ("fermat:Original:1", "fermat:Original"), ("fermat:1000+:1", "fermat:1000+"), ("mawps:1", "mawps"),
        ("mawps:2", "mawps:test"), ("1", "all"), ("mine:1", "mine"),
    )]  # fmt: skip
    units = problem_units(rows)
    assert units[0] == units[1] and len(set(units)) == 5


def test_a_bare_file_of_anybodys_predictions(tmp_path):
    path = tmp_path / "gpt.jsonl"
    path.write_text('{"id": "1", "answer": "7", "prediction": "7"}\n{"id": "2", "answer": "7", "prediction": "8"}\n')
    found = evaluate(path)
    assert value(found.scores["all"], "accuracy_exact") == (0.5, 2) and found.operations == {} == found.set_operations
    assert found.prediction is None and found.train is None and found.model is None
    assert "unknown" in found.notes[0] and list(tmp_path.iterdir()) == [path], "nothing is written unasked"
    assert "accuracy_paper_reachable" not in found.scores["all"], "nobody said how long an answer may be"
    assert value(evaluate(path, max_answer=16).scores["all"], "accuracy_paper_reachable") == (0.5, 2)
    evaluate(path, tmp_path / "s.json")
    assert read_record(tmp_path / "s.json", ScoreRecord).scores == found.scores


def test_keys_of_other_tools_are_ignored(tmp_path):
    path = tmp_path / "gpt.jsonl"
    path.write_text('{"id": "1", "answer": "7", "prediction": "7", "logprobs": [-0.1], "model": {"name": "gpt"}}\n')
    assert value(evaluate(path).scores["all"], "accuracy_exact") == (1.0, 1)


def test_a_single_problem_has_no_interval(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": "1", "answer": "7", "prediction": "7"}\n')
    assert evaluate(path, draws=1).scores["all"]["accuracy_paper"] == {"value": 1.0, "low": None, "high": None, "n": 1}


def test_the_flag_on_a_prediction_comes_before_the_estimate(tmp_path):
    rows = [
        Prediction("a", "7", "7", reachable=False),
        Prediction("b", "439156969900.0", "1", reachable=True),
        Prediction("c", "7", "7"),
    ]
    found = evaluate(write_folder(tmp_path, rows, data={}))
    assert value(found.scores["all"], "accuracy_paper_reachable") == (0.5, 2)


@pytest.mark.parametrize(
    ("trained_on", "tested", "refused"),
    [
        (["mawps"], ["fermat:Original"], "1,104 of FERMAT's 1,111 original problems are MAWPS problems"),
        (["gsm8k", "MAWPS:train"], ["mawps:test", "fermat:1000+"], "1,104"),
        (["fermat:Original"], ["fermat:1000+"], "the problems it was trained on"),
        (["fermat"], ["mawps:test"], "1,104"),
        (["mawps"], ["mawps:test"], None),
        (["fermat-templates"], ["fermat:Original"], None),
        (["fermat-templates"], ["mawps"], None),
        (["gsm8k"], ["fermat:Original", "mawps"], None),
        ([], ["fermat:Original"], None),
        (["mawps:test"], ["mawps:test"], "500 of its 500 problems are among those it was trained on"),
        (["mawps:train"], ["mawps:test"], None),
        (["mawps:train"], ["mawps:dev", "mawps"], None),
        (["mawps-dedup:train"], ["mawps-dedup:test"], None),
        (["mawps-dedup:train"], ["mawps:train"], "1,380 of its 1,500 problems"),
        (["mawps-grouped:train"], ["mawps-grouped:test"], None),
        (["mawps-grouped:fold-2:train"], ["mawps-grouped:fold-2:test"], None),
        (["mawps-grouped:fold-2:train"], ["mawps-grouped:fold-1:test"], "of its 474 problems are among those"),
        (["mawps:train"], ["mawps-grouped:test"], "of its 500 problems are among those it was trained on"),
        (["mawps-grouped:train"], ["mawps:test"], "of its 500 problems are among those it was trained on"),
        (["mawps-grouped:train"], ["fermat:Original"], "1,104"),
        (["mawps"], ["mawps-grouped:test"], "its record names no part of mawps, so it counts as all of it"),
        (["mawps"], ["mawps:dev"], "counts as all of it"),
        (["mawps"], ["mawps-dedup:test"], None),
        (["mawps:gone"], ["mawps:test"], "this version does not know mawps:gone"),
        (["numeracy-small:train"], ["numeracy-small:test", "numeracy:test:add", "numeracy-medium:final"], None),
        (["numeracy-small:test"], ["numeracy-small:test:add"], "problems are among those it was trained on"),
        (["numeracy-small:longer"], ["numeracy-medium:longer:add"], "problems are among those it was trained on"),
        (["fermat-templates:train"], ["fermat-templates:test", "fermat:Original"], None),
        (["fermat-templates:test"], ["fermat-templates:test"], "these are the problems it was trained on"),
        (["fermat-templates:train"], ["fermat-held-out:test"], "drawn from the same templates"),
        (["fermat-templates"], ["fermat-templates:test"], "counts as all of it"),
    ],
)
def test_what_a_model_has_seen_it_is_not_scored_on(trained_on, tested, refused):
    if refused is None:
        assert check_leakage(trained_on, tested) == ((), ())
        return
    with pytest.raises(DataError, match=refused):
        check_leakage(trained_on, tested)
    allowed = check_leakage(trained_on, tested, allow=True)
    assert len(allowed.overridden) == 1 and refused in allowed.overridden[0]


def test_files_of_ones_own_are_noted():
    overridden, notes = check_leakage(["file:ab12", "fermat-templates"], ["fermat:Original"])
    assert overridden == () and "file:ab12" in notes[0] and "unknown" in notes[0]


def test_leaked_scores_are_refused_and_an_override_shows_in_the_record(tmp_path):
    write_folder(tmp_path, trained_on=("mawps",))
    for path in (tmp_path, tmp_path / "predictions.jsonl"):
        with pytest.raises(DataError, match="allow_leakage=True"):
            evaluate(path)
    assert not (tmp_path / "score.json").exists()
    found = evaluate(tmp_path, allow_leakage=True)
    assert found.override_leakage and "1,104" in found.notes[0]
    clean = evaluate(write_folder(tmp_path / "clean"), allow_leakage=True)
    assert not clean.override_leakage, "nothing was overridden"
    assert evaluate(write_folder(tmp_path / "before", override_leakage=True)).override_leakage, "when predicting"


@pytest.mark.parametrize("hidden", ["set", "id", "data"])
def test_whichever_way_the_corpus_is_named(tmp_path, hidden):
    row = {
        "set": Prediction("1", "7", "7", "fermat:Original"),
        "id": Prediction("fermat:Original:1", "7", "7", "Original"),
        "data": Prediction("1", "7", "7", "Original"),
    }[hidden]
    write_folder(tmp_path, [row], ("mawps",), data={"fermat:Original": "x"} if hidden == "data" else {})
    with pytest.raises(DataError, match="1,104"):
        evaluate(tmp_path)


def test_damage_is_named(tmp_path):
    with pytest.raises(DataError, match=r"has no prediction\.json"):
        evaluate(tmp_path)
    write_folder(tmp_path)
    with (tmp_path / "predictions.jsonl").open("a") as file:
        file.write('{"id": "x", "answer": "7", "prediction": "7"}\n')
    with pytest.raises(DataError, match=r"predictions\.jsonl is not the file its record names"):
        evaluate(tmp_path)
    record = json.loads((tmp_path / "prediction.json").read_text())
    (tmp_path / "prediction.json").write_text(json.dumps(record | {"trained_on": []}))
    with pytest.raises(DataError, match=r"prediction\.json: .*edited"):
        evaluate(tmp_path)
    assert not (tmp_path / "score.json").exists()
    with pytest.raises(FileNotFoundError):
        evaluate(tmp_path / "nothing.jsonl")


def test_two_runs_on_the_same_problems(tmp_path):
    better = [Prediction(**(vars(row) | {"prediction": row.answer})) for row in reversed(ROWS)]
    first = load_predictions(write_folder(tmp_path / "a"))
    second = load_predictions(write_folder(tmp_path / "b", better))
    found = compare(first, second)
    exact = found["fermat:Original"]["accuracy_exact"]
    assert (exact.test, exact.first, exact.second, exact.only_first, exact.only_second) == (
        "exact McNemar",
        0.25,
        1,
        0,
        3,
    )
    assert exact.p == pytest.approx(2 / 2**3)
    assert found["fermat:Original"]["cer_written"].second == 0
    assert found["fermat:Original"]["cer_written"].test == "permutation"
    assert found["all sets"]["accuracy_exact"].n == 8 and found["all sets"]["accuracy_exact"].test == "permutation"
    wide = found["all sets"]["cer_written"]
    apart = compare(first, second, seed=1)["all sets"]["cer_written"]
    assert compare(first, second)["all sets"]["cer_written"] == wide and (apart.low, apart.high) != (
        wide.low,
        wide.high,
    )
    same = compare(first, first)
    assert all(test.p == 1 and test.difference == 0 for tests in same.values() for test in tests.values())


def test_runs_on_other_problems_are_not_compared(tmp_path):
    first = load_predictions(write_folder(tmp_path / "a"))
    second = load_predictions(write_folder(tmp_path / "b", ROWS[:-1]))
    with pytest.raises(DataError, match=r"1 ids occur in only one, such as fermat:1000\+:2"):
        compare(first, second)
    third = [*ROWS[:-1], Prediction(**(vars(ROWS[-1]) | {"answer": "9"}))]
    with pytest.raises(DataError, match=r"1 problems have different answers .*, such as fermat:1000\+:2"):
        compare(first, load_predictions(write_folder(tmp_path / "c", third)))


def test_the_verb(tmp_path, capsys):
    a, b = write_folder(tmp_path / "a"), write_folder(tmp_path / "b")
    assert main(["evaluate", str(a), str(b), "--compare", "--draws", "20"]) == 0
    shown = capsys.readouterr().out
    for text in (
        "fermat:Original",
        "mean over sets",
        "a+b",
        "reachable ↑",
        "50.0",
        "exact McNemar",
        "permutation",
    ):
        assert text in shown
    assert read_record(a / "score.json", ScoreRecord).config["draws"] == 20
    assert main(["evaluate", str(a), "--out", str(tmp_path / "o.json"), "--metrics", "log_error", "place_1"]) == 0
    shown = capsys.readouterr().out
    assert "log error →0" in shown and "0.012" in shown, "the mean of 0, log10(13/12) and 0, no percentage"
    assert "accuracy" not in shown and (tmp_path / "o.json").exists()


def test_the_verb_refuses(tmp_path, capsys):
    leaked, clean = write_folder(tmp_path / "a", trained_on=("mawps",)), write_folder(tmp_path / "b")
    assert main(["evaluate", str(clean), str(leaked)]) == 1
    told = capsys.readouterr()
    assert "--allow-leakage" in told.err and "fermat:Original" not in told.out
    assert main(["evaluate", str(leaked), "--allow-leakage"]) == 0
    assert "note: the model was trained on mawps" in capsys.readouterr().out
    assert main(["evaluate", str(tmp_path / "none")]) == 1
    assert "none does not exist: give the folder" in capsys.readouterr().err
    assert main(["evaluate", str(clean), "--compare"]) == 1
    assert "expected two" in capsys.readouterr().err
    assert main(["evaluate", str(clean), str(clean), "--out", "x"]) == 1
    assert "--out works with one path only" in capsys.readouterr().err


def test_brackets_in_names_are_shown_as_written(tmp_path, capsys):
    path = tmp_path / "[bold]a.jsonl"
    write_predictions([Prediction("1", "7", "7", "[red]set", operation="[a+b]")], path)
    assert main(["evaluate", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "[bold]a.jsonl" in shown and "[red]set" in shown and "[a+b]" in shown


def test_the_papers_denominators_on_the_bundled_data(tmp_path):
    """Every answer predicted right, so that whatever is below 1 is the data's own doing."""
    rows = [
        Prediction(problem.id, problem.answer, problem.answer, f"fermat:{name}", operation=problem.operation)
        for name in PAPER_SETS
        for problem in load_data(f"fermat:{name}")
    ]
    found = evaluate(write_folder(tmp_path, rows), draws=2)
    assert all(scores["accuracy_paper"]["n"] == 1111 for scores in found.scores.values()) and len(found.scores) == 10
    commuted, large = found.scores["fermat:Commuted"], found.scores["fermat:1000+"]
    assert value(commuted, "accuracy_paper") == (611 / 1111, 1111)
    assert value(commuted, "accuracy_paper_numeric") == (1, 611)
    assert value(large, "accuracy_paper_reachable") == (1, 902) and value(large, "accuracy_paper") == (1, 1111)
    totals = {name: scores["accuracy_paper"]["n"] for name, scores in found.operations.items()}
    assert totals == {"a+b": 1540, "a-b": 1620, "a*b": 1130, "a/b": 1020}


@pytest.mark.parametrize("module", [validation_module, records, metrics, statistics_module, scoring_module, terminal])
def test_scoring_imports_nothing_that_loads_models(module):
    tree = ast.parse(inspect.getsource(module))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(name.startswith(("torch", "transformers", "placevalue.common.hub")) for name in named)


def test_every_metric_of_a_record_is_in_the_visible_dict(tmp_path):
    found = evaluate(write_folder(tmp_path))
    assert all(set(scores) <= set(METRICS) for scores in found.scores.values())
