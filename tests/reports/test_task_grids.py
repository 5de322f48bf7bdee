"""Generated tasks by length: on the page, in the terminal and in Markdown."""

import math
import re

import pytest

from experiment_folders import make_experiment, problems, right_up_to
from placevalue.cli.main import main
from placevalue.data import load_data
from placevalue.data.numeracy import Cell
from placevalue.reports.breakdowns import break_down, task_grids
from placevalue.reports.page import make_page
from placevalue.reports.results import load_experiment
from placevalue.reports.tables import grids_to_markdown


def rows(level, *cells, count=10):
    """The first rows of some cells, as predictions name them."""
    found = {
        cell: [each for each in load_data(f"{level}:{cell[0]}") if Cell.of(each.id)[:2] == cell[1:]] for cell in cells
    }
    return [
        dict(id=each.id, set=f"{level}:{cell[0]}", question=each.question, answer=each.answer, operation=each.operation)
        for cell, problems in found.items()
        for each in problems[:count]
    ]  # fmt: skip


SETS = (("test", "add", 2), ("test", "add", 3), ("test", "sort", 3), ("longer", "add", 5))
ASKED = rows("numeracy-small", *SETS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of 40 answers: digits has 0 to 14 right, and the other numbers are ten times too large; pause has all right."""
    wrong = [each["answer"] if index < 15 else f"{each['answer']}0" for index, each in enumerate(ASKED)]
    wordy = [f"It is {each['answer']}" for each in ASKED]
    answers = {"digits": {1: wrong, 2: wrong}, "pause": {1: wordy, 2: wordy}}
    return make_experiment(tmp_path_factory.mktemp("runs") / "grid", answers, ASKED, train="numeracy-small:train")


def test_grids_by_hand(folder):
    test, longer = task_grids(load_experiment(folder))
    assert (test.title, test.tasks) == ("numeracy-small:test", ("add", "sort", "all"))
    assert test.columns == ("2", "3", "exact", "off by") and test.lengths == 2
    assert test.counts == ((10, 10, 20, 20), (0, 10, 10, 10), (10, 20, 30, 30))
    (two, three, exact, off), sort, every = test.scores["digits"]
    assert (two.value, three.value, exact.value) == (1.0, 0.5, 0.75) and two.n == 20
    assert off.value == pytest.approx(0.25) and every[3].value == pytest.approx(0.25), (
        "5 of 20 sums ten times too large"
    )
    assert sort[0] is None and sort[1].value == 0 and sort[3] is None, "a list has no magnitude"
    assert every[0].value == 1.0 and every[1].value == 0.25
    assert [each.value for each in test.scores["pause"][0]] == [1.0, 1.0, 0.0, 0.0], "right, but not a number alone"
    assert test.between("digits") == (1, 3) and test.between("pause") == (0, 3)
    assert (longer.tasks, longer.columns) == (("add", "all"), ("5", "exact", "off by"))
    assert longer.scores["digits"][0][2].value == pytest.approx(1)


def test_forms_have_columns_where_there_are_several(tmp_path):
    asked = rows("numeracy", ("test", "copy", 3), count=200)
    forms = [Cell.of(each["id"]).form for each in asked]
    texts = [each["answer"] if form == "integer" else "0" for each, form in zip(asked, forms, strict=True)]
    (grid,) = task_grids(load_experiment(make_experiment(tmp_path / "forms", {"digits": {1: texts}}, asked)))
    assert grid.columns == ("3", "integer", "decimal", "exact", "off by") and grid.lengths == 1
    assert [each.value for each in grid.scores["digits"][0][1:3]] == [1.0, 0.0]
    assert grid.counts[0][1:3] == (forms.count("integer"), forms.count("decimal"))


def test_other_problems_have_no_grid(tmp_path):
    asked = problems(8)
    experiment = load_experiment(make_experiment(tmp_path / "mawps", {"digits": {1: right_up_to(asked, 4)}}, asked))
    assert task_grids(experiment) == [] and grids_to_markdown([]) == ""
    assert "Tasks by length" not in make_page([experiment])
    assert [each.title for each in break_down(experiment)][-1] == "Accuracy by operation"


def test_the_page_has_a_heat_map_of_each_method_and_set(folder):
    experiment = load_experiment(folder)
    page = make_page([experiment])
    maps = re.findall(r'<figure data-method="(\w+)"><figcaption>\w+<small>(.*?)</small>(.*?)</figure>', page, re.DOTALL)
    assert [name for name, *_ in maps] == ["digits", "pause"] * 2
    assert maps[0][1] == "1 of 3 cells lie between 10% and 90%."
    assert re.search(
        r"<title>digits, add, 3: 50\.0% \[[0-9., ]+\], n=10</title><rect [^>]*fill-opacity=\"0\.50\"", maps[0][2]
    )
    assert "<title>digits, add, off by: 0.250 [" in maps[0][2] and maps[0][2].count("<rect") == 11 - 1
    assert page.count("<h3>Tasks by length: numeracy-small:") == 2
    assert "Accuracy by operation" not in [each.title for each in break_down(experiment)]


def test_tables_for_markdown_and_the_terminal(folder, capsys):
    assert main(["report", str(folder), "--format", "markdown"]) == 0
    told = capsys.readouterr().out
    assert "**numeracy-small:test: digits**. 1 of 3 cells lie between 10% and 90%." in told
    assert "|  | 2 | 3 | exact | off by |" in told and "| add | 100.0 | 50.0 | 75.0 | 0.250 |" in told
    assert "| sort |  | 0.0 | 0.0 |  |" in told and "| all | 100.0 | 25.0 | 50.0 | 0.250 |" in told
    assert main(["report", str(folder), "--format", "terminal"]) == 0
    told = capsys.readouterr().out
    assert "numeracy-small:longer: pause" in told and "off by" in told
    for flags in (["markdown", "--brief"], ["terminal", "--brief"], ["latex"], ["csv"]):
        assert main(["report", str(folder), "--format", *flags]) == 0
        assert "off by" not in capsys.readouterr().out


def test_a_magnitude_is_not_in_percent(folder):
    run = load_experiment(folder).runs[0]
    assert run.score.scores["numeracy-small:longer"]["magnitude_error"]["value"] == pytest.approx(math.log10(10))
