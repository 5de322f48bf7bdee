import csv
import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from experiment_folders import make_experiment, problems, right_up_to
from placevalue.common.errors import ConfigError
from placevalue.data import PAPER_SETS, data_checksum
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.trivial import ABOUT, FREQUENT, NEAREST, OPERATION
from placevalue.reports.conclusions import conclusion
from placevalue.reports.formatting import duration, format_interval, format_value
from placevalue.reports.page import make_page
from placevalue.reports.paper_results import METHODS, MODELS, SETS, TABLES, paper_tables, published_rows
from placevalue.reports.results import load_experiment
from placevalue.reports.summary import Column, summarise
from placevalue.reports.tables import (
    LEGEND,
    PERCENTAGES,
    SHOWN,
    make_table,
    to_csv,
    to_latex,
    to_markdown,
    without_operations,
)
from placevalue.reports.terminal import terminal_table

ASKED = problems(100)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    answers = {
        "untouched": {1: right_up_to(ASKED, 20), 2: right_up_to(ASKED, 22)},
        "digits": {1: right_up_to(ASKED, 40), 2: right_up_to(ASKED, 42)},
        "agg-before": {1: right_up_to(ASKED, 41), 2: right_up_to(ASKED, 42)},
        "pause": {1: None, 2: right_up_to(ASKED, 42)},
        "aux-hard": {3: right_up_to(ASKED, 50)},
    }
    return load_experiment(make_experiment(tmp_path_factory.mktemp("a") / "mine", answers, ASKED))


def entries(table, label):
    (line,) = [line for line in table.lines if line.label == label]
    return dict(zip(table.headers, line.entries, strict=True))


def test_the_baseline_is_absolute_and_the_rest_are_signed_changes(experiment):
    table = make_table(summarise(experiment))
    assert table.headers == ("MAWPS", "a*b", "a+b", "a-b", "a/b") and table.lines[0].label == "digits"
    assert entries(table, "digits")["MAWPS"].text == "41.0" and entries(table, "digits")["MAWPS"].tone == "plain"
    before, untouched = entries(table, "agg-before")["MAWPS"], entries(table, "untouched")["MAWPS"]
    assert (before.text, before.tone, before.large, before.mark) == ("+0.5", "plain", False, "")
    assert (untouched.text, untouched.tone, untouched.large, untouched.mark) == ("−20.0", "loss", True, "‡")
    assert entries(table, "pause")["MAWPS"].text == "0.0" and entries(table, "pause")["MAWPS"].tone == "plain"
    alone = entries(table, "aux-hard")["MAWPS"]
    assert alone.text == "(50.0)" and alone.best and "no seed in common" in alone.about
    assert table.lines[0].time == "60 s" and table.lines[0].seeds == 2


def test_only_significant_changes_have_a_colour(tmp_path):
    """23 against 20 of 100 is nothing, 60 is over two seeds; on the page and in every other format."""
    for seeds in ([1], [1, 2]):
        right = {"digits": 20, "agg-before": 23, "pause": 60, "untouched": 0, "aux-hard": 17}
        texts = {name: {seed: right_up_to(ASKED, count) for seed in seeds} for name, count in right.items()}
        experiment = load_experiment(make_experiment(tmp_path / str(len(seeds)), texts, ASKED))
        summary = summarise(experiment)
        table = make_table(summary)
        for line, row in zip(table.lines, summary.rows, strict=False):
            for entry, cell in zip(line.entries, row.cells, strict=True):
                sure = bool(cell.change and cell.change.p < 0.05 and len(seeds) > 1)
                assert (entry.tone != "plain") == sure == bool(set("†‡") & set(entry.mark)) and entry.large <= sure
        tones = {label: entries(table, label)["MAWPS"].tone for label in right}
        shown = {"pause": "gain", "untouched": "loss"} if len(seeds) > 1 else {}
        assert tones == dict.fromkeys(right, "plain") | shown
        theirs = [entry for line in table.lines if line.group == "paper" for entry in line.entries if entry]
        assert theirs and {entry.tone for entry in theirs} == {"plain"}, "they have no test"
        page = make_page([experiment])
        assert len(re.findall(r'<td class="(?:gain|loss)', page)) == sum(
            entry.tone != "plain" for metric in SHOWN for line in make_table(summarise(experiment, metric=metric)).lines
            for entry in line.entries if entry
        )  # fmt: skip
        rows = tuple(
            replace(row, cells=tuple(replace(cell, change=cell.change and replace(cell.change, exploratory=True)) for cell in row.cells))
            for row in summary.rows
        )  # fmt: skip
        wondered = make_table(replace(summary, rows=rows))
        assert {entry.tone for line in wondered.lines for entry in line.entries if entry} == {"plain"}, "exploratory"
        body = to_latex([table])
        assert body.count("7FBF7B") + body.count("EF8A62") == sum(
            entry.tone != "plain" for line in table.lines for entry in line.entries if entry
        )


def test_columns_say_how_many_problems_they_have(tmp_path):
    """10 of 100 answers are too long, and 40 operations unknown."""
    asked = [
        each | {"reachable": index >= 10, "operation": "a+b" if index < 60 else None}
        for index, each in enumerate(ASKED)
    ]
    folder = make_experiment(tmp_path / "mine", {"digits": {1: right_up_to(asked, 30)}}, asked)
    summary = summarise(load_experiment(folder), metric="accuracy_paper_reachable")
    table = make_table(summary)
    assert [table.size(column) for column in table.columns] == ["100 problems", "60 of 100 problems"]
    assert [entry.part for entry in table.lines[0].entries] == ["90 of 100", "50 of 60"]
    assert "The columns of operations have 60 of the 100 problems" in table.words
    assert "(90 of 100) |" in to_markdown([table]) and "90 of 100}" in to_latex([table])
    console = Console(width=140, record=True)
    console.print(terminal_table(table))
    assert "90 of 100" in console.export_text()
    assert [row["covered"] for row in csv.DictReader(io.StringIO(to_csv([summary])))][:2] == ["90", "50"]
    page = make_page([load_experiment(folder)], metrics=["accuracy_paper_reachable"])
    assert "<small>60 of 100 problems</small>" in page and "<small>50 of 60</small>" in page
    assert "Accuracy by operation<small>60 of 100 problems</small>" in page
    whole = make_table(summarise(load_experiment(folder)))
    assert not any(entry.part for entry in whole.lines[0].entries)


def test_error_rates_are_coloured_the_other_way_round(experiment):
    cell = entries(make_table(summarise(experiment, metric="cer_written")), "untouched")["MAWPS"]
    assert cell.text.startswith("+") and cell.tone == "loss" and cell.large


def test_the_papers_figures_are_shown_below_where_the_model_is_the_same(experiment, tmp_path):
    table = make_table(summarise(experiment))
    theirs = [line for line in table.lines if line.group == "paper"]
    assert [line.label for line in theirs] == list(METHODS.values())
    assert theirs[0].entries[0].text == "23.0" and theirs[0].entries[1] is None, "its operations are FERMAT's"
    other = make_experiment(tmp_path, {"digits": {1: right_up_to(ASKED, 3)}}, ASKED, model="a/b")
    assert all(line.group != "paper" for line in make_table(summarise(load_experiment(other))).lines)


def test_every_name_of_the_paper_is_matched():
    for metric, names in TABLES.items():
        tables = [paper_tables()[name] for name in names]
        for model in MODELS.values():
            rows = {row for table in tables for row in table[model]}
            assert rows <= set(METHODS.values()) and (metric == "cer_written" or rows == set(METHODS.values()))
            columns = set(tables[0][model]["Digits"])
            assert columns == {*SETS.values(), "a+b", "a-b", "a*b", "a/b"}
    assert list(SETS) == ["mawps:test", *(f"fermat:{name}" for name in PAPER_SETS)]


def test_the_papers_operations_need_its_ten_sets():
    ten = tuple(Column("set", name, 1111) for name in SETS if name != "mawps:test")
    rest = (Column("mean", "mean over sets", 10), Column("operation", "a+b", 1540))
    digits = published_rows("facebook/bart-base", "accuracy_paper", ten + rest)["digits"]
    assert digits[-1] == 40.91 and digits[-2] == pytest.approx(sum(digits[:10]) / 10)
    assert published_rows("facebook/bart-base", "accuracy_paper", ten[1:] + rest)["digits"][-1] is None
    assert published_rows("facebook/bart-base", "no_number", ten) == {}


def test_terminal(experiment):
    console = Console(width=140, record=True, color_system="truecolor", force_terminal=True)
    console.print(terminal_table(make_table(summarise(experiment))))
    text = console.export_text(clear=False)
    assert "−20.0‡" in text and "paper: [AGG] + Digits" in text and "n=100" in text and "2 seeds" in text
    assert "color: #800000; text-decoration-color: #800000; font-weight: bold" in console.export_html()


def test_markdown(experiment):
    text = to_markdown([make_table(summarise(experiment, metric=name)) for name in ("accuracy_paper", "cer_written")])
    assert "| digits | 41.0 [" in text and "| **(50.0)** |" in text and "| paper: Digits | 23.0 |  |" in text
    assert "paper: \\[AGG\\] + Digits" in text and text.count("| --- |") == 2 and "Holm" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1


def test_markdown_says_what_may_be_concluded(experiment):
    summary = summarise(experiment)
    assert conclusion(summary) in to_markdown([make_table(summary)]).replace("\\", "")


def test_a_brief_table_has_no_operations(experiment):
    table = make_table(summarise(experiment))
    brief = without_operations(table)
    kept = [column for column in table.columns if column.kind != "operation"]
    assert brief.columns == tuple(kept) and len(kept) < len(table.columns)
    found = dict(zip(table.headers, table.lines[1].entries, strict=True))
    assert [found[header] for header in brief.headers] == list(brief.lines[1].entries)


def test_latex(experiment):
    text = to_latex([make_table(summarise(experiment))])
    assert r"\cellcolor[HTML]{EF8A62}$-$20.0\textsuperscript{\ddag}" in text and r"\textbf{(50.0)}" in text
    assert text.count("{") == text.count("}") and "95\\%" in text and "−" not in text
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len({line.count(" & ") for line in body}) == 1


def test_csv(experiment):
    rows = list(csv.DictReader(io.StringIO(to_csv([summarise(experiment)]))))
    assert len(rows) == 5 * 5
    found = {(row["method"], row["column"]): row for row in rows}
    assert float(found["untouched", "mawps:test"]["change"]) == pytest.approx(-0.2)
    assert found["digits", "mawps:test"]["change"] == "" and found["aux-hard", "mawps:test"]["p"] == ""


def test_every_table_says_how_many_questions_are_copies(tmp_path):
    train = tmp_path / "train.csv"
    train.write_text(f'question,answer\n{ASKED[0]["question"]},1\n"Now, {ASKED[1]["question"]}",101\n')
    known = dict(train=str(train), checksum=data_checksum(train))
    texts = {"digits": {1: right_up_to(ASKED, 3)}}
    summary = summarise(load_experiment(make_experiment(tmp_path / "mine", texts, ASKED, **known)))
    table = make_table(summary)
    remark = "among the 100 test questions: 2 (1 word for word, 1 reworded with the same numbers and answer)."
    assert remark in to_latex([table]) and remark in to_markdown([table]).replace("\\", "")
    console = Console(width=140, record=True)
    console.print(terminal_table(table))
    assert "2 copies" in console.export_text() and remark in table.words
    page = make_page([load_experiment(tmp_path / "mine")])
    assert "<small>100 problems</small><small>2 copies</small>" in page and "<small>98 of 100 problems</small>" in page
    rows = list(csv.DictReader(io.StringIO(to_csv([summary]))))
    assert [(row["column"], row["copies"]) for row in rows][:2] == [("mawps:test", "2"), ("unseen", "0")]


def test_every_format_has_trivial_rows_and_marks_who_does_not_beat_them(tmp_path):
    train = tmp_path / "train.csv"
    train.write_text("question,answer,equation\n" + "".join(f"{i} {i}?,{2 * i},x={i}+{i}\n" for i in range(1, 9)))
    known = dict(train=str(train), checksum=data_checksum(train))
    sums = [each | {"answer": str(2 * index)} for index, each in enumerate(ASKED)]
    texts = {"digits": {1: right_up_to(sums, 3)}, "pause": {1: right_up_to(sums, 100)}}
    summary = summarise(load_experiment(make_experiment(tmp_path / "mine", texts, sums, **known)))
    table = make_table(summary)
    assert [(line.label, line.group) for line in table.lines[:5]] == [
        ("digits", "baseline"), ("pause", "method"),
        (NEAREST, "trivial"), (FREQUENT, "trivial"), (OPERATION, "trivial"),
    ]  # fmt: skip
    sums_row = entries(table, OPERATION)["MAWPS"]
    assert (sums_row.text, sums_row.mark, sums_row.best) == ("100.0", "", False)
    digits, pause = entries(table, "digits")["MAWPS"], entries(table, "pause")["MAWPS"]
    assert digits.mark == "°" and digits.about.endswith("not significantly better than best operation")
    assert pause.mark == "°", "as good is not better, and one seed has no mark"
    assert "| trivial: best operation | 100.0 [" in to_markdown([table]) and "| digits | 3.0° [" in to_markdown([table])
    assert r"trivial: best operation & \cellcolor[HTML]{D9D9D9}100.0 " in to_latex([table])
    assert r"3.0\textsuperscript{$\circ$}" in to_latex([table]) and "°" not in to_latex([table])
    console = Console(width=140, record=True)
    console.print(terminal_table(table))
    assert "trivial: best operation" in (shown := console.export_text()) and "3.0°" in shown
    page = make_page([load_experiment(tmp_path / "mine")])
    assert "trivial answers, which need no model</th>" in page and "<sup>°</sup>" in page
    assert f'<th scope="row" title="{ABOUT[FREQUENT]}">frequent answer' in page
    rows = {(row["method"], row["column"]): row for row in csv.DictReader(io.StringIO(to_csv([summary])))}
    trivial = rows["trivial: best operation", "mawps:test"]
    assert float(trivial["score"]) == 1.0 and trivial["seeds"] == trivial["change"] == trivial["train_seconds"] == ""
    assert rows["digits", "mawps:test"]["unbeaten"] == OPERATION


def test_what_is_no_percentage_is_refused(experiment):
    with pytest.raises(ConfigError, match="log_error is not a percentage"):
        make_table(summarise(experiment, metric="log_error"))
    assert all(METRICS[name].direction in ("higher", "lower") for name in PERCENTAGES)


def test_csv_marks_what_is_closest_to_zero(tmp_path):
    asked = problems(4)
    factors = {"digits": 0.5, "pause": 0.9, "untouched": 3}
    texts = {name: {1: [str(float(each["answer"]) * times) for each in asked]} for name, times in factors.items()}
    summary = summarise(load_experiment(make_experiment(tmp_path, texts, asked)), metric="log_error")
    rows = csv.DictReader(io.StringIO(to_csv([summary])))
    assert {row["method"] for row in rows if row["best"] == "1"} == {"pause"}


def test_durations():
    assert [duration(each) for each in (59.6, 600, 7300)] == ["60 s", "10 min", "2.0 h"]
    assert "Holm" in LEGEND


def test_values_and_intervals_are_written_in_one_way():
    assert (
        format_value(0.1234, "accuracy_paper") == "12.3" and format_value(-0.1, "cer_written", signed=True) == "−10.0"
    )
    assert format_interval(-0.02, 1.04, "accuracy_paper") == "[0.0, 100.0]", "no accuracy is below 0 or above 1"
    assert format_interval(-0.02, 1.04, "cer_written") == "[0.0, 104.0]"
    assert format_interval(-0.02, 1.04, "accuracy_paper", signed=True) == "[−2.0, +104.0]"
    assert format_interval(-0.5, 0.25, "log_error") == "[−0.500, 0.250]"
    assert format_interval(None, None, "accuracy_paper") == ""


def test_every_format_labels_what_is_exploratory_and_has_the_contrasts(tmp_path):
    counts = {"untouched": 10, "digits": 60, "agg-before": 70, "pause": 20}
    answers = {
        method: {seed: right_up_to(ASKED, count + seed) for seed in (1, 2, 3)} for method, count in counts.items()
    }
    settings = {"baseline": "untouched", "contrasts": [["digits", "untouched"], ["agg-before", "pause"]]}
    experiment = load_experiment(make_experiment(tmp_path / "mine", answers, ASKED, settings=settings))
    summary = summarise(experiment)
    table = make_table(summary)
    names = ["untouched", "digits", "agg-before − pause", "exploratory: agg-before", "exploratory: pause"]
    assert [line.name for line in table.lines[:5]] == names
    marks = {line.name: line.entries[0].mark.replace("°", "") for line in table.lines[:5]}
    assert marks == dict(zip(names, ["", "‡", "‡", "", ""], strict=True))
    assert "exploratory" in entries(table, "pause")["MAWPS"].about
    console = Console(width=140, record=True)
    console.print(terminal_table(table))
    page = make_page([experiment])
    for text in (to_markdown([table]), console.export_text()):
        assert all(name in text for name in names)
        assert "Exploratory, since the recipe did not fix" in " ".join(text.split())
    assert r"exploratory: agg-before & " in to_latex([table]) and "agg-before $-$ pause & " in to_latex([table])
    assert '<tr class="exploratory">' in page and "exploratory: not fixed beforehand" in page
    assert "Exploratory, since the recipe did not fix" in page and "agg-before − pause" in page
    rows = list(csv.DictReader(io.StringIO(to_csv([summary]))))
    told = {(row["method"], row["exploratory"]) for row in rows if row["column"] == "mawps:test" and row["change"]}
    assert told == {("digits", "0"), ("agg-before", "1"), ("pause", "1"), ("contrast: agg-before − pause", "0")}
    (found,) = {row["smallest_visible"] for row in rows if row["method"] == "digits" and row["column"] == "mawps:test"}
    assert float(found) == summary.rows[1].cells[0].change.visible
