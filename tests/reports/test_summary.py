import json
import shutil

import numpy as np
import pytest

from experiment_folders import make_experiment, problems, right_up_to
from placevalue.common.errors import ConfigError, DataError
from placevalue.common.records import TrainRecord, read_record, write_record
from placevalue.data import data_checksum, load_data
from placevalue.data.copies import Copies
from placevalue.evaluation.statistics import Interval, crossed_interval, holm, smallest_visible, spread
from placevalue.evaluation.trivial import FREQUENT, NEAREST
from placevalue.reports.conclusions import conclusion
from placevalue.reports.results import load_experiment
from placevalue.reports.summary import Change, is_gain, summarise
from placevalue.reports.trivial_rows import TrivialRows

ASKED = problems(20)


def column(summary, name):
    index = [each.name for each in summary.columns].index(name)
    return {row.method: row.cells[index] for row in summary.rows}


@pytest.fixture
def folder(tmp_path):
    answers = {
        "untouched": {1: right_up_to(ASKED, 5), 2: right_up_to(ASKED, 6)},
        "digits": {1: right_up_to(ASKED, 8), 2: right_up_to(ASKED, 10)},
        "agg-before": {1: right_up_to(ASKED, 12), 2: None},
    }
    return make_experiment(tmp_path / "mine", answers, ASKED)


def test_an_experiment_is_read_in_the_recipes_order_and_says_what_is_missing(folder):
    found = load_experiment(folder)
    assert [(run.method, run.seed) for run in found.runs] == [
        ("untouched", 1), ("untouched", 2), ("digits", 1), ("digits", 2), ("agg-before", 1),
    ]  # fmt: skip
    assert found.missing == ("agg-before-2: not started",) and found.name == "mine" and found.seeds == [1, 2]
    (folder / "untouched-2" / "predictions" / "score.json").unlink()
    assert "untouched-2: no predictions/score.json" in load_experiment(folder).missing


def test_scores_and_changes_by_hand(folder):
    summary = summarise(load_experiment(folder))
    assert [row.method for row in summary.rows] == ["digits", "untouched", "agg-before"], "the baseline comes first"
    cells = column(summary, "mawps:test")
    assert cells["digits"].score.value == pytest.approx(0.45) and cells["digits"].change is None
    assert cells["untouched"].change.value == pytest.approx(5.5 / 20 - 9 / 20) and cells["untouched"].change.seeds == 2
    alone = cells["agg-before"]
    assert alone.score.value == pytest.approx(0.6) and alone.change.seeds == 1
    assert alone.change.value == pytest.approx(4 / 20), "against the one seed that both have"
    assert alone.best and not cells["digits"].best
    assert alone.change.p == pytest.approx(0.125), "exact McNemar of 4 to 0, the larger of the two"
    assert summary.rows[0].seconds == 60.0 and [each.n for each in summary.columns] == [20, 5, 5, 5, 5]


def test_the_first_method_is_the_baseline_where_there_are_no_digits(tmp_path):
    answers = {"pause": {1: right_up_to(ASKED, 5)}, "agg-after": {1: right_up_to(ASKED, 5)}}
    found = load_experiment(make_experiment(tmp_path, answers, ASKED))
    assert summarise(found).baseline == "pause" and summarise(found, "agg-after").rows[0].method == "agg-after"
    cell = column(summarise(found), "mawps:test")["agg-after"]
    assert cell.change.p == 1 and cell.change.value == 0 and cell.best
    with pytest.raises(ConfigError, match="'digits' has no finished run.*pause, agg-after"):
        summarise(found, "digits")
    with pytest.raises(ConfigError, match="accuracy_paper"):
        summarise(found, metric="accuracy")


def test_sets_are_averaged_and_a_cell_without_a_value_is_empty(tmp_path):
    asked = problems(8, "fermat:Original") + problems(4, "fermat:1000+")
    texts = [each["answer"] for each in asked[:8]] + ["nothing"] * 4
    answers = {"digits": {1: texts}, "pause": {1: texts[::-1]}}
    found = load_experiment(make_experiment(tmp_path, answers, asked, train="fermat-templates:train"))
    summary = summarise(found)
    assert column(summary, "mean over sets")["digits"].score.value == pytest.approx(0.5)
    assert summary.columns[2].kind == "mean" and summary.columns[2].n == 2
    assert column(summarise(found, metric="log_error"), "fermat:1000+")["digits"] is None


@pytest.mark.parametrize("seeds", [1, 2])
def test_questions_of_the_training_data_are_left_out_of_a_column(tmp_path, seeds):
    train = tmp_path / "train.csv"
    train.write_text("question,answer\nwhat  DO 0 and 0 make?,1\nSo what do 3 and 3 make?,103\nanother?,1\n")
    answers = {
        method: {seed: right_up_to(ASKED, right) for seed in range(seeds)}
        for method, right in (("digits", 8), ("pause", 4))
    }
    known = dict(train=str(train), checksum=data_checksum(train))
    summary = summarise(load_experiment(make_experiment(tmp_path / "mine", answers, ASKED, **known)))
    cells = column(summary, "unseen")
    assert cells["digits"].score.value == pytest.approx(6 / 18) and cells["pause"].score.value == pytest.approx(2 / 18)
    assert cells["digits"].score.low < 6 / 18 < cells["digits"].score.high
    assert cells["pause"].change.value == pytest.approx(-4 / 18) and cells["digits"].score.n == 18 * seeds
    told = (
        "Copies of training questions among the 20 test questions: 2 (1 word for word, 1 reworded with the same numbers"
    )
    assert told in conclusion(summary)
    copied = {each.name: each.copies for each in summary.columns}
    assert copied == {"mawps:test": 2, "unseen": 0, "a+b": 1, "a-b": 0, "a*b": 0, "a/b": 1}
    every = tmp_path / "every.csv"
    every.write_text("question,answer\n" + "".join(f"{each['question']},1\n" for each in ASKED))
    known = dict(train=str(every), checksum=data_checksum(every))
    told = summarise(load_experiment(make_experiment(tmp_path / "all", answers, ASKED, **known)))
    assert all(each.kind != "unseen" for each in told.columns)
    assert "among the 20 test questions: 20 (20 word for word" in conclusion(told)
    train.write_text(train.read_text() + "one more?,1\n")  # not what was trained on
    assert all(each.kind != "unseen" for each in summarise(load_experiment(tmp_path / "mine")).columns)
    train.unlink()
    assert "Copies" not in conclusion(summarise(load_experiment(tmp_path / "mine")))


def test_copies_of_questions_that_the_predictions_omit_are_found_in_the_data(tmp_path, monkeypatch):
    """FERMAT's predictions have no questions; here 2 of them are trained on."""
    original = load_data("fermat:Original")[:8]
    asked = [dict(id=each.id, set="fermat:Original", answer=each.answer, question=None) for each in original]
    train = tmp_path / "train.jsonl"
    train.write_text("".join(json.dumps({"question": each.question, "answer": "1"}) + "\n" for each in original[:2]))
    known = dict(train=str(train), checksum=data_checksum(train), tested=data_checksum("fermat:Original"))
    folder = make_experiment(tmp_path / "mine", {"digits": {1: right_up_to(asked, 3)}}, asked, **known)
    assert load_experiment(folder).copies.repeated == (0, 1)
    unknown = make_experiment(
        tmp_path / "other", {"digits": {1: right_up_to(asked, 3)}}, asked, **known | {"tested": "0"}
    )
    assert load_experiment(unknown).copies == Copies((), ()), "other data under the same name"


@pytest.mark.parametrize("seeds", [1, 2])
def test_unseen_questions_are_averaged_over_sets_as_all_are(tmp_path, seeds):
    asked = [*problems(10), *problems(100, "fermat:Original")]
    train = tmp_path / "train.csv"
    train.write_text(f"question,answer\n{asked[0]['question']},1\n")
    texts = [each["answer"] if each["set"] == "mawps:test" else "no" for each in asked]
    known = dict(train=str(train), checksum=data_checksum(train))
    answers = {"digits": dict.fromkeys(range(seeds), texts), "pause": dict.fromkeys(range(seeds), texts)}
    summary = summarise(load_experiment(make_experiment(tmp_path / "mine", answers, asked, **known)))
    assert column(summary, "mean over sets")["digits"].score.value == pytest.approx(0.5)
    assert column(summary, "unseen")["digits"].score.value == pytest.approx(0.5)


def known_to_half(tmp_path):
    """Methods with 12, 19 and 2 of 20 right, and training data with the answers to 10 of the questions."""
    rows = (f'"Now, {each["question"]}",{each["answer"] if index < 10 else 0}' for index, each in enumerate(ASKED))
    train = tmp_path / "train.csv"
    train.write_text("\n".join(["question,answer", *rows]))
    right = {"digits": 12, "pause": 19, "untouched": 2}
    answers = {method: {1: right_up_to(ASKED, count, wrong="")} for method, count in right.items()}
    known = dict(train=str(train), checksum=data_checksum(train))
    return load_experiment(make_experiment(tmp_path / "half", answers, ASKED, **known))


def test_methods_are_compared_with_the_best_trivial_answers(tmp_path):
    experiment = known_to_half(tmp_path)
    summary = summarise(experiment)
    names = [column.name for column in summary.columns]
    scores = {name: dict(zip(names, found, strict=True)) for name, found in summary.trivial.scores.items()}
    assert set(scores) == {NEAREST, FREQUENT}, "no equation is known"
    assert scores[NEAREST]["mawps:test"].value == 0.5 and scores[NEAREST]["unseen"].value == 0
    assert scores[FREQUENT]["mawps:test"].value == 0
    unbeaten = {method: dict(zip(names, each, strict=True)) for method, each in summary.trivial.unbeaten.items()}
    assert {method: each["mawps:test"] for method, each in unbeaten.items()} == {
        "digits": NEAREST, "pause": "", "untouched": NEAREST,
    }  # fmt: skip
    assert unbeaten["digits"]["unseen"] and not unbeaten["pause"]["unseen"], "2 of 10 could be luck, 9 are not"
    told = "digits and untouched do not beat the best trivial row, nearest question (50.0), with one seed each."
    assert told in conclusion(summary)
    errors = summarise(experiment, metric="cer_written").trivial
    assert 0.3 < errors.scores[NEAREST][0].value < 0.4, "10 of 20 are wrong, but a 0 may stand in their answers"
    assert errors.unbeaten["untouched"] == (NEAREST,) * 6 and not errors.unbeaten["pause"][0], "lower is better"
    signed = summarise(experiment, metric="log_error")
    assert not signed.trivial.scores and "trivial" not in conclusion(signed)


def test_a_remark_names_all_methods_or_none():
    score = Interval(0.25, 0.2, 0.3, 100)
    for unbeaten, told in (
        (("", ""), "Every method beats the best trivial row, copy (25.0)."),
        (("copy", "copy"), "No method beats the best trivial row, copy (25.0)."),
        (("", "copy"), "b does not beat the best trivial row, copy (25.0)."),
    ):
        rows = TrivialRows({"copy": (score,), "worse": (None,)}, {"a": unbeaten[:1], "b": unbeaten[1:]})
        assert rows.remark(0, "accuracy_paper") == told
    assert TrivialRows({}, {"a": ("",)}).remark(0, "accuracy_paper") == ""


def test_what_omits_its_questions_has_the_most_frequent_answer_alone(tmp_path):
    asked = [each | {"question": None} for each in problems(8, "fermat:Original")]
    train = tmp_path / "train.csv"
    train.write_text("question,answer\n1 and 2,10.0\n2 and 3,10.0\n3 and 4,7\n")
    known = dict(train=str(train), checksum=data_checksum(train))
    folder = make_experiment(tmp_path / "mine", {"digits": {1: right_up_to(asked, 3)}}, asked, **known)
    scores = summarise(load_experiment(folder)).trivial.scores
    assert set(scores) == {FREQUENT} and scores[FREQUENT][0].value == 1 / 8


def test_the_best_is_by_the_problems_that_both_have(tmp_path):
    """Of what each can write, digits have 8 of 10; of these ten, untouched has 9, and of the others none."""
    few = [each | {"reachable": index < 10} for index, each in enumerate(ASKED)]
    free = [each | {"reachable": True} for each in ASKED]
    folder = make_experiment(tmp_path / "mine", {"digits": {1: right_up_to(few, 8)}}, few)
    other = make_experiment(tmp_path / "other", {"untouched": {1: right_up_to(free, 9)}}, free)
    shutil.copytree(other / "untouched-1", folder / "untouched-1")
    (folder / "recipe.yaml").unlink()
    cells = column(summarise(load_experiment(folder), metric="accuracy_paper_reachable"), "mawps:test")
    assert cells["digits"].score.value == 0.8 and cells["untouched"].score.value == 0.45
    assert cells["untouched"].change.value == pytest.approx(0.1) and cells["untouched"].best
    assert not cells["digits"].best


def times(factors):
    """Answers that are so many times too large, one for each of `ASKED`."""
    return [str(float(each["answer"]) * factor) for each, factor in zip(ASKED, factors, strict=True)]


@pytest.fixture
def biased(tmp_path):
    """Mean signed errors of -1, -0.1, 0.5 and 2, a bit more or less by problem and seed."""
    powers = {"digits": -1, "untouched": -0.1, "pause": 0.5, "agg-before": 2}
    answers = {
        method: {seed: times([10 ** (power + 0.01 * (index % 2 - seed)) for index in range(20)]) for seed in (0, 1)}
        for method, power in powers.items()
    }
    return load_experiment(make_experiment(tmp_path / "biased", answers, ASKED))


def test_the_best_of_a_signed_error_is_the_closest_to_zero(biased):
    cells = column(summarise(biased, metric="log_error"), "mawps:test")
    assert [cells[each].score.value for each in ("digits", "untouched")] == pytest.approx([-1, -0.1], abs=0.02)
    assert [method for method, cell in cells.items() if cell.best] == ["untouched"]


@pytest.mark.parametrize(
    ("metric", "base", "change", "gain"),
    [("log_error", -1.0, 0.9, True), ("log_error", -1.0, 1.5, True), ("log_error", -1.0, 3.0, False),
     ("log_error", -1.0, -0.1, False), ("log_error", 1.0, -0.9, True), ("log_error", 1.0, 0.1, False),
     ("accuracy_paper", 0.5, 0.1, True), ("accuracy_paper", 0.5, -0.1, False), ("cer_written", 0.5, 0.1, False),
     ("cer_written", 0.5, -0.1, True)],
)  # fmt: skip
def test_a_gain_is_a_change_for_the_better(metric, base, change, gain):
    assert is_gain(Change(change, None, None, 0.01, 1), metric, base) == gain


def test_a_conclusion_from_a_signed_error(biased):
    told = conclusion(summarise(biased, metric="log_error"))
    assert "untouched is better than digits (+0.900 [" in told and "pause is better than digits (+1.500 [" in told
    assert "agg-before is worse than digits (+3.000 [" in told and "points" not in told
    told = conclusion(summarise(biased, "agg-before", "log_error"))
    assert "digits is better than agg-before (−3.000 [" in told


def test_nothing_is_compared_with_a_baseline_that_has_no_value(tmp_path):
    """Each seed of the baseline wrote a number where the other did not."""
    asked = problems(4)
    some, others = ([each["answer"] if index % 2 == odd else "" for index, each in enumerate(asked)] for odd in (0, 1))
    answers = {"digits": {1: some, 2: others}, "pause": {1: right_up_to(asked, 4)}}
    summary = summarise(load_experiment(make_experiment(tmp_path, answers, asked)), metric="log_error")
    cells = column(summary, "mawps:test")
    assert cells["digits"] is None and cells["pause"].change is None and not cells["pause"].best
    assert "nothing to compare digits with" in conclusion(summary)


def test_the_p_of_a_column_are_corrected_for_its_methods(tmp_path):
    """Exact McNemar of 8, 6 and 5 to 0 is 2/2^8, 2/2^6, 2/2^5; by Holm three, two and one times that, never falling."""
    counts = {"digits": 4, "untouched": 12, "pause": 10, "agg-before": 9}
    answers = {method: {1: right_up_to(ASKED, count)} for method, count in counts.items()}
    cells = column(summarise(load_experiment(make_experiment(tmp_path, answers, ASKED))), "mawps:test")
    found = [cells[method].change.p for method in ("untouched", "pause", "agg-before")]
    assert found == pytest.approx([3 * 2 / 2**8, 2 * 2 / 2**6, 2 * 2 / 2**6])
    del answers["pause"], answers["agg-before"]
    cells = column(summarise(load_experiment(make_experiment(tmp_path / "two", answers, ASKED))), "mawps:test")
    assert cells["untouched"].change.p == pytest.approx(2 / 2**8), "one comparison needs no correction"


@pytest.mark.parametrize("seeds", [1, 2])
def test_the_same_problems_in_other_sets_make_nothing_surer(tmp_path, seeds):
    """Two sets with the same answers to the same twelve problems: as sure as one set, by operation and in the mean."""
    names = ("Original", "Commuted")
    asked = {name: problems(12, f"fermat:{name}") for name in names}
    right = {"digits": (1, 2), "pause": (9, 12)}

    def summary(names):
        texts = {
            method: {
                seed: [t for name in names for t in right_up_to(asked[name], counts[seed])] for seed in range(seeds)
            }
            for method, counts in right.items()
        }
        every = [each for name in names for each in asked[name]]
        folder = make_experiment(tmp_path / str(len(names)), texts, every, train="fermat-templates:train")
        return summarise(load_experiment(folder))

    one, two = summary(names[:1]), summary(names)
    pairs = [("a+b", "a+b"), ("fermat:Original", "mean over sets")] if seeds > 1 else [("a+b", "a+b")]
    for alone, together in pairs:
        first, second = column(one, alone), column(two, together)
        for cell, other in ((first[method], second[method]) for method in right):
            assert (other.score.low, other.score.high) == pytest.approx((cell.score.low, cell.score.high))
        change, other = first["pause"].change, second["pause"].change
        assert (other.value, other.low, other.high) == pytest.approx((change.value, change.low, change.high))
        assert other.p == pytest.approx(change.p, abs=0.05)


def test_a_conclusion_says_who_cannot_write_all_answers(tmp_path):
    asked = [each | {"reachable": index > 2} for index, each in enumerate(ASKED)]
    free = [each | {"reachable": True} for each in ASKED]
    folder = make_experiment(tmp_path / "mine", {"digits": {1: right_up_to(asked, 8)}}, asked)
    for method in ("pause", "untouched"):
        other = make_experiment(tmp_path / method, {method: {1: right_up_to(free, 8)}}, free)
        shutil.copytree(other / f"{method}-1", folder / f"{method}-1")
    (folder / "recipe.yaml").unlink()
    experiment = load_experiment(folder)
    told = "Answers longer than the token limit count as wrong: 0 for pause and untouched, 3 for digits."
    assert told in conclusion(summarise(experiment))
    for metric in ("accuracy_paper_reachable", "cer_written"):
        assert "longer" not in conclusion(summarise(experiment, metric=metric))


def test_changed_records_are_refused_all_together(folder):
    score = folder / "digits-1" / "predictions" / "score.json"
    score.write_bytes((folder / "digits-2" / "predictions" / "score.json").read_bytes())
    lines = folder / "untouched-1" / "predictions" / "predictions.jsonl"
    lines.write_text(lines.read_text().replace("nothing", "12"))
    with pytest.raises(DataError) as error:
        load_experiment(folder)
    for part in ("score.json is of other predictions", "different seeds", "untouched-1", "checksum differs"):
        assert part in str(error.value)


def test_an_edited_training_record_breaks_the_chain(folder):
    path = folder / "digits-1" / "train.json"
    record = read_record(path, TrainRecord)
    path.unlink()
    write_record(TrainRecord(**{**vars(record), "steps": 99}), path)
    with pytest.raises(DataError, match="digits-1: prediction.json is of another training"):
        load_experiment(folder)


def test_runs_of_another_recipe_count_as_missing(folder):
    recipe = folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("epochs: 10.0", "epochs: 99"))
    with pytest.raises(DataError, match="no finished run.*of another recipe .training.epochs"):
        load_experiment(folder)


def test_other_problems_and_the_same_run_twice_are_refused(folder, tmp_path):
    (folder / "recipe.yaml").unlink()
    other = make_experiment(tmp_path / "other", {"pause": {1: right_up_to(ASKED[:9], 5)}}, ASKED[:9])
    (other / "pause-1").rename(folder / "pause-1")
    with pytest.raises(DataError, match="pause-1 and agg-before-1 do not answer the same problems"):
        load_experiment(folder)
    (folder / "pause-1").rename(tmp_path / "away")
    shutil.copytree(folder / "digits-1", folder / "digits-again")
    with pytest.raises(DataError, match="digits-1 and digits-again are both digits with seed 1"):
        load_experiment(folder)


def test_what_is_no_experiment_is_refused(tmp_path):
    with pytest.raises(DataError, match="no folder"):
        load_experiment(tmp_path / "nothing")
    with pytest.raises(DataError, match="no finished run"):
        load_experiment(tmp_path)


def test_conclusions_say_no_more_than_the_intervals(tmp_path):
    asked = problems(200)
    once = {"digits": {1: right_up_to(asked, 60)}, "pause": {1: right_up_to(asked, 61)}}
    said = conclusion(summarise(load_experiment(make_experiment(tmp_path / "a", once, asked))))
    assert "one seed shows no method to be better; the change from digits is pause +0.5 [" in said
    assert "trained once" in said and "is better" not in said and "one seed shows none" in said
    alone = conclusion(summarise(load_experiment(make_experiment(tmp_path / "c", {"pause": once["pause"]}, asked))))
    assert alone.startswith("On mawps:test there is nothing to compare pause with.")
    apart = {"digits": {1: right_up_to(asked, 20)}, "pause": {1: right_up_to(asked, 90)}}
    far = summarise(load_experiment(make_experiment(tmp_path / "d", apart, asked)))
    assert "is better" not in conclusion(far) and "the change from digits is pause +35.0 [" in conclusion(far)
    assert column(far, "mawps:test")["pause"].change.p < 0.01, "not even from one that is sure of its problems"
    rng = np.random.default_rng(0)
    answers = {
        method: {seed: [each["answer"] if rng.random() < rate else "0" for each in asked] for seed in (1, 2, 3, 4)}
        for method, rate in (("digits", 0.3), ("agg-before", 0.6), ("pause", 0.3), ("aux-soft", 0.05))
    }
    found = load_experiment(make_experiment(tmp_path / "b", answers, asked))
    said = conclusion(summarise(found))
    assert "agg-before is better than digits (+" in said and "aux-soft is worse than digits (−" in said
    assert "pause does not differ" in said and "4 per method" in said and "missing" not in said
    visible = {
        method: 100 * cell.change.visible
        for method, cell in column(summarise(found), "mawps:test").items()
        if cell.change
    }
    least, most = min(visible, key=visible.get), max(visible, key=visible.get)
    told = f"is {visible[least]:.1f} ({least}) to {visible[most]:.1f} points ({most})."
    assert f"The smallest difference that these 4 seeds and 200 problems could have shown {told}" in said
    assert "agg-before is better than digits (−" in conclusion(summarise(found, metric="cer_written")), (
        "lower is better"
    )


def test_a_crossed_interval_covers_both_problems_and_seeds():
    rng = np.random.default_rng(0)
    inside = {"crossed": 0, "seeds": 0}
    for _ in range(400):
        values = rng.normal(0, 1, (60, 1)) + rng.normal(0, 0.15, (1, 5)) + rng.normal(0, 1, (60, 5))
        found = crossed_interval(values)[0]
        inside["crossed"] += found.low <= 0 <= found.high
        only = crossed_interval(values.mean(0, keepdims=True))[0]
        inside["seeds"] += only.low <= 0 <= only.high
    assert 0.92 <= inside["crossed"] / 400 <= 0.99 and inside["seeds"] / 400 < 0.9


def test_crossed_intervals_at_their_edges():
    one = crossed_interval(np.array([[0.0], [1.0], [1.0]]))
    assert one[0].value == pytest.approx(2 / 3) and one[0].low < 0 < 1 < one[0].high
    assert crossed_interval(np.zeros((4, 2)))[1] == 1.0
    assert crossed_interval(np.ones((4, 2)))[1] == 2**-3
    assert crossed_interval(np.ones((1, 1)))[0].low is None


def test_spread_keeps_the_mean_over_groups_and_rows_of_a_problem_together():
    values = np.array([[1.0], [0.0], [1.0], [np.nan]])
    rows = [(np.array([0, 1]), np.array([0, 1])), (np.array([2, 3]), np.array([0, 1]))]
    drawn = spread(values, rows)
    assert drawn.shape == (2, 1) and drawn.mean() == pytest.approx(0.75)
    assert spread(np.full((2, 1), np.nan), [(np.array([0, 1]), np.array([0, 1]))]) is None


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06]) and holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_answers_by_other_settings_count_as_missing(tmp_path):
    asked = problems(8)
    folder = make_experiment(
        tmp_path / "e", {"digits": {1: right_up_to(asked, 4)}, "pause": {1: right_up_to(asked, 5)}}, asked
    )
    assert not load_experiment(folder).missing
    recipe = (folder / "recipe.yaml").read_text()
    (folder / "recipe.yaml").write_text(recipe.replace("mawps:test", "mawps-dedup:test"))
    with pytest.raises(DataError, match="of another recipe"):
        load_experiment(folder)


def test_a_conclusion_says_which_changes_rest_on_one_seed(tmp_path):
    asked = problems(40)
    answers = {
        "digits": {seed: right_up_to(asked, 10 + seed) for seed in (1, 2, 3)},
        "agg-before": {seed: right_up_to(asked, 12 + seed) for seed in (1, 2, 3)},
        "pause": {1: right_up_to(asked, 35)},
    }
    told = conclusion(summarise(load_experiment(make_experiment(tmp_path / "e", answers, asked))))
    assert "of seeds (3 per method); those of pause rest on one seed and account for the problems only." in told


def test_the_smallest_visible_difference_by_hand():
    """Ten problems, two seeds, all variance between seeds: t of 1 degree of freedom; and at the level of two contrasts."""
    values = np.tile([0.1, 0.3], (10, 1))
    groups = [(np.arange(10), np.arange(10))]
    assert smallest_visible(values, groups) == pytest.approx(12.706 * 0.1, rel=1e-3)
    assert smallest_visible(values, groups, comparisons=2) == pytest.approx(25.452 * 0.1, rel=1e-3)
    assert smallest_visible(np.full((1, 1), 0.5), [(np.arange(1), np.arange(1))]) is None, "nothing varies"


@pytest.fixture
def contrasted(tmp_path):
    """Four methods over three seeds, of which two pairs were fixed beforehand."""
    rng = np.random.default_rng(1)
    asked = problems(200)
    answers = {
        method: {seed: [each["answer"] if rng.random() < rate else "0" for each in asked] for seed in (1, 2, 3)}
        for method, rate in (("untouched", 0.3), ("digits", 0.6), ("agg-before", 0.7), ("pause", 0.3))
    }
    settings = {"baseline": "untouched", "contrasts": [["digits", "untouched"], ["agg-before", "pause"]]}
    return load_experiment(make_experiment(tmp_path / "mine", answers, asked, settings=settings))


def test_p_is_corrected_over_the_contrasts_alone(contrasted):
    summary = summarise(contrasted)
    assert summary.baseline == "untouched" and [each.name for each in summary.contrasts] == ["agg-before − pause"]
    cells = column(summary, "mawps:test")
    ours, theirs = cells["digits"].change, summary.contrasts[0].changes[0]
    runs = {method: np.stack([run.values("accuracy_paper") for run in contrasted.of(method)], 1) for method in cells}
    raw = [
        crossed_interval(runs[first] - runs[second])[1]
        for first, second in (("digits", "untouched"), ("agg-before", "pause"))
    ]
    assert [ours.p, theirs.p] == pytest.approx(holm(raw))
    assert theirs.value == pytest.approx(runs["agg-before"].mean() - runs["pause"].mean())
    other = cells["agg-before"].change
    assert other.exploratory and other.p == pytest.approx(
        crossed_interval(runs["agg-before"] - runs["untouched"])[1]
    ), "what was not fixed is not corrected, and not counted"
    assert not ours.exploratory and not theirs.exploratory and not other.is_shown and ours.is_shown
    told = conclusion(summary)
    assert "digits is better than untouched (+" in told and "agg-before is better than pause (+" in told
    assert "Exploratory, since the recipe did not fix these contrasts: agg-before +" in told
    assert "agg-before is better than untouched" not in told


def test_a_contrast_that_names_the_baseline_first_is_the_same(tmp_path):
    answers = {
        "untouched": {1: right_up_to(ASKED, 3), 2: right_up_to(ASKED, 4)},
        "digits": {1: right_up_to(ASKED, 9), 2: right_up_to(ASKED, 9)},
    }
    found = []
    for pair in (["digits", "untouched"], ["untouched", "digits"]):
        settings = {"baseline": "untouched", "contrasts": [pair]}
        found.append(summarise(load_experiment(make_experiment(tmp_path / pair[0], answers, ASKED, settings=settings))))
    assert found[0].rows == found[1].rows and not found[1].contrasts
