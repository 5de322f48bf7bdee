"""The generated tasks: exact answers, checked from the questions' words alone, and parts that share nothing."""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import ROUND_DOWN, localcontext
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from placevalue.common.errors import ConfigError
from placevalue.data import data_checksum, data_size, data_sources, is_made, load_data
from placevalue.data.corpora import is_final
from placevalue.data.numeracy import FORMS, LEVELS, MOST, PARTS, Cell, count_numeracy, generate_numeracy, read_numeracy
from placevalue.data.numeracy_tasks import TASKS, UNITS

TIMES = {(given, wanted): Fraction(factor) for given, wanted, factor in UNITS}
_PARTS = ("thousandth", "hundredth", "tenth", "one", "ten", "hundred", "thousand", "ten thousand", "hundred thousand",
          "million", "ten million", "hundred million", "billion")  # fmt: skip
POWERS = {name: Fraction(10) ** power for power, name in enumerate(_PARTS, start=-3)} | {"whole number": Fraction(1)}
SYMMETRIC = ("add", "subtract", "multiply", "compare", "largest", "sort")
HELD_OUT = [part for part in PARTS if part != "train"]


@cache
def part(level, name):
    return load_data(f"{level}:{name}")


def written(question):
    """The numbers of a question, as written."""
    return re.findall(r"[0-9]+(?:\.[0-9]+)?", question)


def named(question, names):
    """The longest of some names that occurs in a question."""
    return max((name for name in names if name in question), key=len)


def units(question):
    """What is given and what is wanted: the unit right behind the number is given."""
    given = re.search(r"[0-9] ([a-z]+)", question)[1]
    (wanted,) = {name for pair in TIMES for name in pair if re.search(rf"\b{name}\b", question)} - {given}
    return given, wanted


def solve(task, question):
    """The answer, worked out from the words of a question with fractions; the slow twin of `numeracy_tasks`."""
    texts = written(question)
    numbers = [Fraction(text) for text in texts]
    first, *rest = numbers
    if task == "copy":
        return [first]
    if task == "add":
        return [sum(numbers)]
    if task == "subtract":
        backwards = re.search("Subtract|Take", question)
        return [rest[0] - first if backwards else first - rest[0]]
    if task == "multiply":
        return [first * rest[0]]
    if task == "divide":
        return [rest[0] / first if "go into" in question else first / rest[0]]
    if task == "compare":
        return [max(numbers) if "larger" in question else min(numbers)]
    if task == "largest":
        return [max(numbers)]
    if task == "sort":
        return sorted(numbers)
    if task == "percent":
        share, whole = (rest[0], first) if question.startswith("The whole") else (first, rest[0])
        return [share * whole / 100]
    if task == "convert":
        return [first * TIMES[units(question)]]
    if task == "count":
        whole, _, decimals = texts[0].partition(".")
        return [Fraction(len(decimals) if "point" in question else len(whole))]
    unit = POWERS[named(question, POWERS)]
    if task == "digit":
        return [Fraction(first // unit % 10)]
    assert task == "round" and first % unit * 2 != unit, "a tie"
    return [round(first / unit) * unit]


def operands(task, question):
    """What may not occur in two parts: numbers, places and units, without order where it does not matter."""
    numbers = written(question)
    if task in SYMMETRIC:
        return frozenset(Counter(numbers).items())
    if task in ("round", "digit"):
        return *numbers, named(question, POWERS)
    if task == "convert":
        return *numbers, units(question)
    backwards = "go into" if task == "divide" else "The whole"
    return tuple(numbers[::-1] if backwards in question else numbers)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PARTS)
def test_every_answer_is_what_the_question_asks_for(level, name):
    for problem in part(level, name)[::3]:
        cell = Cell.of(problem.id)
        assert cell.task == problem.operation and problem.equation is None
        assert [Fraction(text) for text in problem.answer.split(", ")] == solve(cell.task, problem.question), problem
        assert all(re.fullmatch(r"(0|[1-9][0-9]*)(\.[0-9]*[1-9])?", each) for each in problem.answer.split(", "))


@pytest.mark.parametrize("level", LEVELS)
def test_rows_have_the_length_and_form_of_their_cell(level):
    for name, lengths in (("test", LEVELS[level].lengths), ("longer", LEVELS[level].longer)):
        rows = part(level, name)
        for problem in rows[::3]:
            cell, texts = Cell.of(problem.id), written(problem.question)
            assert max(len(text.replace(".", "")) for text in texts) == cell.length, problem
            assert any("." in text for text in texts) == (cell.form == "decimal"), problem
        cells = {Cell.of(problem.id) for problem in rows}
        assert {cell.length for cell in cells} == set(lengths) and {cell.task for cell in cells} == set(TASKS)
        assert {cell.form for cell in cells} == set(LEVELS[level].forms)


def test_no_task_has_the_same_operands_in_two_parts_of_any_level():
    """`longer` of a small level is among the tests of a larger one, so the two count as one part."""
    found = defaultdict(set)
    for level in LEVELS:
        for name in PARTS:
            keys = {(problem.operation, operands(problem.operation, problem.question)) for problem in part(level, name)}
            assert len(keys) == len(part(level, name)), f"{level}:{name} has a problem twice"
            found["test" if name == "longer" else name] |= keys
    assert sum(map(len, found.values())) == len(set().union(*found.values()))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", HELD_OUT)
def test_every_task_and_length_has_300_distinct_rows_or_its_share_of_half(level, name):
    rows = part(level, name)
    counts = Counter(Cell.of(problem.id)[:2] for problem in rows)
    assert len({problem.question for problem in rows}) == len({problem.id for problem in rows}) == len(rows)
    assert max(counts.values()) == MOST == 300
    whole = replace(LEVELS[level], train=10**6, longer=range(0))
    for (task, length), count in counts.items():
        if count == MOST:
            continue
        assert length < 4, "only short numbers are few"
        narrow = replace(whole, tasks=(task,), lengths=range(length, length + 1))
        left = len(generate_numeracy(narrow, "train"))
        everything = left + 4 * count
        assert left >= everything / 2 and 8 * (count + len(FORMS)) > everything, (task, length)


def test_counts_by_hand():
    counts = Counter(Cell.of(problem.id) for problem in part("numeracy", "test"))
    assert counts["add", 1, "integer"] == 45 // 8 and counts["copy", 2, "integer"] == 90 // 8
    assert counts["round", 2, "integer"] == (90 - 9) // 8, "without the nine ties"
    assert counts["compare", 1, "integer"] == (9 * 8 // 2) // 8 and ("copy", 1, "integer") not in counts
    assert counts["copy", 3, "integer"] == 900 // 8 and counts["copy", 3, "decimal"] == 300 - 900 // 8
    assert counts["add", 6, "integer"] == counts["add", 6, "decimal"] == 150
    assert len(part("numeracy", "train")) > 100_000 > len(part("numeracy-medium", "train"))


@pytest.mark.parametrize(
    ("name", "sha256"),
    [
        ("numeracy-small:train", "6708ac6f47f5f2e8e92a03d5d04bc81cf7a978a8b35e6df6bb49a010201df535"),
        ("numeracy-small:reworded", "f51ef7f7a52097093860548fb8a4d8213dc30a273b8dfdd83e61908d06f451c6"),
        ("numeracy-medium:dev", "e6d94a3f229e9e332e1e823add152f73e2082d66f73043ad20bc666ff539079d"),
        ("numeracy:longer", "7644b9ddf0d2d387038089ff5a5d52d2e8e5d50e74b16e23e0adef0e5af0b056"),
    ],
)
def test_the_rows_are_the_same_everywhere(name, sha256):
    assert data_checksum(name) == sha256


def test_a_seed_gives_other_rows_and_the_users_decimal_settings_none():
    level = replace(LEVELS["numeracy-small"], tasks=("divide", "percent"))
    with localcontext() as settings:
        settings.prec, settings.rounding = 2, ROUND_DOWN
        assert generate_numeracy(level, "test") == [
            each for each in part("numeracy-small", "test") if each.operation in level.tasks
        ]
    assert not {each.question for each in generate_numeracy(level, "test", seed=1)} >= {
        each.question for each in generate_numeracy(level, "test", seed=2)
    }
    with pytest.raises(ConfigError, match="part='all': expected one of train, dev"):
        generate_numeracy(level, "all")


def pattern(sentence):
    """A sentence as a regular expression, with anything in its gaps."""
    return re.compile(re.sub(r"\\\{[a-z]+\\\}", ".*", re.escape(sentence)))


@pytest.mark.parametrize("task", TASKS)
def test_reworded_questions_have_sentences_of_their_own(task):
    trained, reworded = (list(map(pattern, each)) for each in (TASKS[task].sentences, TASKS[task].reworded))
    assert len(trained) == 4 and len(reworded) == 2
    for name, own, others in (("test", trained, reworded), ("reworded", reworded, trained)):
        questions = [each.question for each in load_data(f"numeracy-small:{name}:{task}")]
        used = [[bool(sentence.fullmatch(question)) for sentence in own] for question in questions]
        assert all(map(any, used)) and all(map(any, zip(*used, strict=True))), "every sentence is used"
        assert not any(sentence.fullmatch(question) for sentence in others for question in questions)


def test_names_of_single_tasks():
    whole = part("numeracy", "test")
    assert load_data("numeracy:test:add") == [each for each in whole if each.operation == "add"]
    assert data_sources("numeracy-small:train:add") == ("numeracy",) and is_made("numeracy-small:dev")
    for spec, says in (
        ("numeracy:test:ad", "task='ad': expected one of numeracy:test:copy, numeracy:test:add"),
        ("numeracy-small:tests", "part='tests': expected one of numeracy-small:train"),
        ("numeracy:tests:add", "part='tests'"),
        ("mawps:test:add", "part='test:add': expected one of mawps:train"),
        ("numeracy-tiny:test", "numeracy-small:train dev test"),
    ):
        with pytest.raises(ConfigError, match=re.escape(says)):
            load_data(spec)


def test_a_row_says_its_cell_and_other_rows_have_none():
    assert Cell.of("numeracy:sort:4:decimal:17") == ("sort", 4, "decimal")
    for other in ("mawps:17", "numeracy:sort:4:decimal", "numeracy:sort:four:decimal:1", "mine:sort:4:decimal:17"):
        assert Cell.of(other) is None


def test_the_final_part_is_known_by_its_name():
    assert is_final("numeracy:final") and is_final("numeracy-small:final:add")
    assert not any(map(is_final, ("numeracy:test", "final.jsonl", "mawps:final", "numeracy:test:add")))


def test_the_documented_levels_have_these_rows():
    told = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    for level in LEVELS:
        counts = " | ".join(f"{len(part(level, name)):,}" for name in ("train", "test", "longer"))
        assert re.search(rf"^\| `{level}` \| .* \| {counts} \|$", told, re.MULTILINE)
    examples = re.findall(r"^\| `[^|]*\| ([^|]*[?.0-9]) \| ([0-9., ]+) \|$", told, re.MULTILINE)
    assert len(examples) == 11
    for question, answer in examples:
        found = [each for each in part("numeracy", "test") if each.question == question]
        assert [each.answer for each in found] == [answer], question


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("part", PARTS)
def test_rows_are_counted_without_making_them(name, part):
    assert count_numeracy(LEVELS[name], part) == len(read_numeracy(name, part)) == data_size(f"{name}:{part}")
