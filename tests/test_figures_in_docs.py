"""Every figure in the documents is a record's, or known to be a definition, an example or somebody else's."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from placevalue.common.hub import BUNDLED_FOLDER, TINY
from placevalue.common.records import SweepRecord, TrainRecord, read_record
from placevalue.data import load_data
from placevalue.evaluation.metrics import metric_values, read_answer
from placevalue.evaluation.trivial import trivial_answers
from placevalue.reports.results import load_experiment
from placevalue.reports.summary import summarise

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "results" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FIGURE = re.compile(r"(?<![\w./-])[+−]?\d[\d,]*\.\d+%?(?![\d.]*\w)|(?<![\w.])\d+(?:\.\d+)?%")
CHANGE = re.compile(r"([+−]?\d+\.\d)(?: points)? \[([+−]\d+\.\d), ([+−]\d+\.\d)\]")
GENERATED = {
    "methods.md": r"<!-- (methods) -->.*?<!-- end of \1 -->",
    "numbers.md": r"<!-- (\w+) -->.*?<!-- end of \1 -->",
    "README.md": r"<!-- results -->.*?<!-- end of results -->",
}
"""Parts that another test writes out from code or records."""
DEFINED = {
    "*": ["95%", "2.0"],  # intervals; Apache-2.0
    "aggregation.md": ["1.5", "0.25", "2.4", "0.6", "0.1", "1.25", "12.5", "0.5", "2.9", "3.0", "0.9"],
    "data.md": ["0.12", "0.4", "7.3", "5.2", "77492.7", "25%", "2175.75", "0.24"],
    "evaluation.md": ["7.0", "0.0625"],
    "glossary.md": ["1250.5"],
    "loss.md": ["0.3", "0.01", "1.2", "0.2", "0.1", "12.5", "1.02", "0.9"],
    "numbers.md": [],
    "report.md": ["0.05", "0.01", "10%", "90%"],
    "results/README.md": ["0.4", "0.8"],
    "sweep.md": ["0.4", "0.8", "0.05"],
    "choosing.md": ["0.6", "0.8", "0.4"],  # lambdas
    "tiny.md": ["15%", "70%"],  # of what it is trained on
    "tokenizer.md": ["12.5"],
    "training.md": ["0.005"],
}
"""Settings, definitions and examples, by page."""
RESULTS = ("flan-t5-small-title-mawps", "smollm2-135m-mawps", "quick")


@cache
def summaries():
    experiments = [load_experiment(ROOT / "results" / name) for name in RESULTS]
    metrics = ("accuracy_paper", "accuracy_paper_reachable")
    return [summarise(experiment, None, metric) for experiment in experiments for metric in metrics]


def points(value):
    return f"{100 * value:+.1f}".replace("-", "−")


@cache
def changes():
    """Every change of the committed results with its interval, as the documents write it."""
    cells = [cell for summary in summaries() for row in summary.rows for cell in row.cells if cell and cell.change]
    return {(points(each.change.value), points(each.change.low), points(each.change.high)) for each in cells}


def committed_scores():
    """Tokens of each method, scores of trivial answers, the paper's gains, and what sweeps found on dev."""
    found = set()
    for name in RESULTS:
        for run in load_experiment(ROOT / "results" / name).runs:
            counts = run.train.counts
            found |= {f"{counts[each] / counts['problems']:.1f}" for each in ("question_tokens", "answer_tokens")}
    found |= {
        f"{100 * score.value:.1f}"
        for each in summaries()
        for row in each.trivial.scores.values()
        for score in row
        if score
    }
    paper = json.loads((ROOT / "src/placevalue/reports/paper.json").read_text())
    found |= {f"{number:+.1f}" for number in numbers(paper)}
    for path in (ROOT / "results" / "sweeps").glob("*/sweep.json"):
        values = [100 * trial["value"] for trial in read_record(path, SweepRecord).trials]
        found |= {text for value in values for text in (f"{value:.1f}", f"{value:.1f}%", f"{value:.0f}%")}
    return found


def numbers(value):
    """Every number in JSON values."""
    if isinstance(value, dict | list):
        return [each for part in (value.values() if isinstance(value, dict) else value) for each in numbers(part)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def number_spaces():
    found = set()
    for path in (ROOT / "results" / "neighbours").glob("*/record.json"):
        parts = json.loads(path.read_text())["parts"]
        found |= {f"{number:.{places}f}" for number in numbers(parts) for places in (1, 2) if 0 <= number <= 1}
    return found


def checks(*names):
    """The ratios of benchmarks."""
    records = [json.loads((ROOT / "benchmarks" / "records" / f"{name}.json").read_text()) for name in names]
    return [check["ratio"] for record in records for check in record["checks"]]


def copied():
    """What trivial answers get on both splits of MAWPS."""
    found = set()
    for corpus in ("mawps", "mawps-grouped"):
        problems = load_data(f"{corpus}:test")
        for texts in trivial_answers([each.question for each in problems], load_data(f"{corpus}:train")).values():
            answers = [read_answer(each.answer, text) for each, text in zip(problems, texts, strict=True)]
            found.add(f"{100 * metric_values(answers, ['accuracy_paper']).mean():.1f}%")
    return found


def bundled():
    record = read_record(BUNDLED_FOLDER / TINY / "train.json", TrainRecord)
    last = [row for row in record.losses if "eval_accuracy" in row][-1]
    parameters = record.counts["parameters"] / 1e6
    return {f"{100 * last['eval_accuracy']:.1f}%", f"{last['eval_loss']:.2f}", f"{parameters:.1f}"} | copied()


MEASURED = {
    "aggregation.md": number_spaces,
    "choosing.md": committed_scores,
    "data.md": copied,
    "loss.md": lambda: {f"{ratio:.3f}" for ratio in checks("loss", "loss_h200")},
    "numbers.md": lambda: {f"{abs(100 * (ratio - 1)):.0f}%" for ratio in checks("patterns")},
    "tiny.md": bundled,
}
"""The records that the figures of a page come from."""


def name_of(page):
    return "results/README.md" if page.parent.name == "results" else page.name


def figures(text, page):
    """The decimals and percentages of a page outside code, and the changes with intervals apart from them."""
    text = re.sub(GENERATED.get(page.name, r"(?!)"), "", text, flags=re.DOTALL)
    text = re.sub(
        r"```.*?```|^    .*?$|`[^`]*`|\]\([^)]*\)|\[[0-9.]+\]|arXiv [0-9.]+", "", text, flags=re.DOTALL | re.MULTILINE
    )
    told = CHANGE.findall(text)
    return told, [each.replace(",", "") for each in FIGURE.findall(CHANGE.sub("", text))]


def without_record(text, page):
    """The figures of a page that are neither measured nor defined."""
    told, alone = figures(text, page)
    signed = [(value if value[0] in "+−" else f"+{value}", low, high) for value, low, high in told]
    known = {*DEFINED["*"], *DEFINED.get(name_of(page), ()), *MEASURED.get(page.name, set)()}
    return [each for each in signed if each not in changes()] + [each for each in alone if each not in known]


SLOW = "choosing.md"  # which needs the summaries of all committed results


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.name == SLOW else [], id=name_of(page)) for page in PAGES],
)
def test_every_figure_has_a_record(page):
    missing = without_record(page.read_text(), page)
    assert not missing, f"give them a record in MEASURED, or say in DEFINED that they are none: {missing}"


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [pytest.param(SLOW, "It is 3.9 points [+1.8, +5.9] better.", [], marks=pytest.mark.slow),
     pytest.param(SLOW, "It is 3.9 points [+1.8, +6.0] better.", [("+3.9", "+1.8", "+6.0")], marks=pytest.mark.slow),
     pytest.param(SLOW, "It reaches 61.7% on dev.", ["61.7%"], marks=pytest.mark.slow),
     ("loss.md", "A run before gave 0.959.", ["0.959"]),
     ("serving.md", "It takes 12.7 ms and `12.8` is code.", ["12.7"]),
     ("numbers.md", "It takes 57% longer.", ["57%"])],
)  # fmt: skip
def test_a_figure_without_a_record_is_found(name, text, found):
    assert without_record(text, ROOT / "docs" / name) == found
