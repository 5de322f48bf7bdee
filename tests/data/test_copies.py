"""Copies of questions, and the splits of MAWPS that keep them on one side."""

from itertools import combinations

import pytest

from placevalue.cli.main import main
from placevalue.data import copies, data_checksum, load_data
from placevalue.data.copies import answer_value, find_copies, group_copies, likeness, pairs, word_trigrams
from placevalue.data.corpora import copy_note
from placevalue.data.mawps import FOLDS, SPLITS

SPLIT_PREFIXES = ["", *(f"fold-{fold}:" for fold in range(1, FOLDS + 1))]


def asked(name):
    return pairs(load_data(name))


def test_trigrams_and_likeness_by_hand():
    assert word_trigrams("Ann has 3.5 apples.") == {
        ("ann", "has", "3.5"),
        ("has", "3.5", "apples"),
        ("3.5", "apples", "."),
    }
    assert word_trigrams("12 + 30") == {("12", "30")} and word_trigrams("?") == {()}
    assert likeness("Ann has 3 apples", "ann  has 3 Pears") == 1 / 3 and likeness("a b c", "x y z") == 0
    assert likeness("Сколько будет 2 и 3", "сколько будет 2 и 4") == 0.5, "words of any script"


@pytest.mark.parametrize(
    ("question", "answer", "kind"),
    [
        ("ann has 3 apples and 4 pears .  How many has she in all ?", "12", "repeated"),
        ("Ann has 3 apples and 4 pears . How many fruits has she in all ?", "7.0", "reworded"),
        ("Ann has 4 apples and 3 pears . How many has she in all ?", "7", "reworded"),
        ("Ann has 3 apples and 5 pears . How many has she in all ?", "7", None),
        ("Ann has 3 apples and 4 pears . How many has she in all , now ?", "8", None),
        ("A farmer keeps 3 cows and 4 horses in his stable . Count the animals !", "7", None),
    ],
)  # fmt: skip
def test_a_copy_has_the_same_words_or_the_same_numbers_and_answer(question, answer, kind):
    known = [("What is 1 ?", "1"), ("Ann has 3 apples and 4 pears . How many has she in all ?", "7")]
    found = find_copies([("What is 9 ?", "9"), (question, answer)], known)
    assert (found.repeated, found.reworded) == ((1,) if kind == "repeated" else (), (1,) if kind == "reworded" else ())


def test_groups_hold_copies_of_copies():
    rows = [
        ("Ann and Bob keep 3 cats", "3"),
        ("How tall is a house of 3 floors", "3"),
        ("While Tom has dogs and 3 birds", "3"),
        ("Bob keep 3 cats while Tom has dogs", "3.0"),
        ("HOW tall is a house of 3 floors", "9"),
    ]
    assert likeness(rows[0][0], rows[2][0]) == 0, "only what both copy makes them one group"
    assert group_copies(rows) == [[0, 2, 3], [1, 4]] and group_copies([]) == []


def test_answers_are_compared_by_value():
    assert answer_value(" 7.0") == answer_value("7") and answer_value("Not commutable") == "Not commutable"
    assert answer_value("7 apples") == "7 apples"


@pytest.mark.parametrize("alike", [0.12, copies.ALIKE, 0.4])
def test_the_seeded_split_has_37_reworded_test_questions_at_any_fitting_threshold(alike, monkeypatch):
    monkeypatch.setattr(copies, "ALIKE", alike)
    found = find_copies(asked("mawps:test"), asked("mawps:train"))
    assert (len(found.repeated), len(found.reworded)) == (67, 37)


def test_the_seeded_dev_set_has_copies_too():
    found = find_copies(asked("mawps:dev"), asked("mawps:train"))
    assert (len(found.repeated), len(found.reworded)) == (50, 31)


@pytest.mark.parametrize("prefix", SPLIT_PREFIXES)
def test_no_question_of_a_grouped_part_copies_one_of_another(prefix):
    parts = {part: asked(f"mawps-grouped:{prefix}{part}") for part in SPLITS}
    for one, other in combinations(parts, 2):
        found = find_copies(parts[one], parts[other])
        assert not found.repeated and not found.reworded
    assert {question for part in parts.values() for question, _ in part} == {
        question for part in SPLITS for question, _ in asked(f"mawps:{part}")
    }
    assert sum(map(len, parts.values())) == sum(SPLITS.values())
    if not prefix:
        assert {part: len(rows) for part, rows in parts.items()} == SPLITS


def test_every_problem_is_tested_in_one_fold():
    tests = [load_data(f"mawps-grouped:fold-{fold}:test") for fold in range(1, FOLDS + 1)]
    ids = [problem.id for rows in tests for problem in rows]
    assert sorted(ids) == sorted(f"mawps:{number}" for number in range(1, 2374))
    assert [len(rows) for rows in tests] == [474, 474, 475, 475, 475]
    assert load_data("mawps-grouped:fold-5:dev") == tests[0]


def test_every_part_has_its_share_of_copies():
    """A split that dealt with large groups first would leave them out of the test part."""
    parts = [asked(f"mawps-grouped:{part}") for part in SPLITS]
    shares = [len(group_copies(part)) / len(part) for part in parts]
    assert max(shares) - min(shares) < 0.03


@pytest.mark.parametrize(
    ("part", "sha256"),
    [
        ("test", "3d85701adb344071800d3af5f1337fe6e9d7101431bd79c2dc750d1719780801"),
        ("fold-1:train", "a2fa29e283d6364aa3220a3f85654eb41d052999cc1ad88c4a67fcfe66cece8d"),
    ],
)
def test_the_grouped_splits_are_what_they_always_were(part, sha256):
    assert data_checksum(f"mawps-grouped:{part}") == sha256


def test_the_seeded_split_is_shown_with_its_copies(capsys):
    assert main(["data", "show", "mawps:test", "--rows", "0"]) == 0
    told = "copies of mawps:train among the 500 questions of mawps:test: 104 (67 word for word, 37 reworded"
    assert told in capsys.readouterr().out and told in copy_note("mawps:test")
    assert "mawps-dedup:dev: 32 (0 word for word" in copy_note("mawps-dedup:dev")
    for name in ("mawps:train", "mawps-grouped:test", "fermat:Original", "mine.csv"):
        assert copy_note(name) == ""
