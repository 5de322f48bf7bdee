"""Tables for the terminal: at 80 columns and below no figure is cut, and names are shown as they are."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from experiment_folders import make_experiment, problems, right_up_to
from placevalue.cli.console import make_console
from placevalue.common.records import ScoreRecord, read_record
from placevalue.data import PAPER_SETS
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.scoring import compare, load_predictions
from placevalue.reports.results import load_experiment
from placevalue.reports.summary import summarise
from placevalue.reports.tables import make_table
from placevalue.reports.terminal import (
    FittedTable,
    comparison_table,
    count_table,
    score_table,
    space_tables,
    terminal_table,
)

SPACE = Path(__file__).parents[2] / "results" / "neighbours" / "flan-t5-small-title" / "record.json"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Each kind of table with many columns, by name."""
    asked = [each for name in PAPER_SETS for each in problems(4, name)]
    answers = {name: {1: right_up_to(asked, right)} for name, right in (("digits", 20), ("agg-before", 25))}
    folder = make_experiment(tmp_path_factory.mktemp("a") / "mine", answers, asked, train="fermat-templates:train")
    runs = [folder / f"{name}-1" / "predictions" for name in answers]
    record = read_record(runs[0] / "score.json", ScoreRecord)
    counts = {f"{name}:{each}": 1234567 for each in PAPER_SETS for name in ("problems", "cut_questions", "unreachable")}
    found = {
        "scores": score_table(record, "digits"),
        "every metric": score_table(record, "digits", list(METRICS)),
        "paper": terminal_table(make_table(summarise(load_experiment(folder)))),
        "comparison": comparison_table(compare(*map(load_predictions, runs), 20, 0), "first", "second"),
        "counts": count_table(dict.fromkeys(("problems", "cut_questions", "unreachable"), 7654321) | counts, "counts"),
    }
    return found | dict(zip(("space", "precision"), space_tables(json.loads(SPACE.read_text())), strict=True))


def shown(table, width):
    """What a terminal of this width shows."""
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(table, crop=False)
    return captured.get()


def figures(text):
    """Every figure, interval and arrow, and how often it is there."""
    return Counter(re.findall(r"[↑↓]|→0|\[?[+−-]?\d[\d.,e-]*\]?", text))


NAMES = ("scores", "every metric", "paper", "comparison", "counts", "space", "precision")


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_whole_and_fits(name, width, tables):
    wide, narrow = shown(tables[name], 10_000), shown(tables[name], width)
    assert figures(wide) and not figures(wide) - figures(narrow)
    assert "…" not in narrow
    assert max(map(len, narrow.splitlines()[1:])) <= width  # below the title


def test_a_part_repeats_what_a_row_is(tables):
    assert shown(tables["scores"], 10_000).count(f" {PAPER_SETS[0]} ") == 1
    assert shown(tables["scores"], 80).count(f" {PAPER_SETS[0]} ") > 1


def test_a_long_title_is_the_name_of_a_file_and_stays_on_one_line(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    name = f"{'folder/' * 20}[red]:smile:.jsonl"
    console = make_console()
    console.print(FittedTable(name, ["set", "n"], [[["a", "1"]]]))
    console.print(f"wrote {name}")
    told = capsys.readouterr().out.splitlines()
    assert name in told and f"wrote {name}" in told
