"""The page: what is in it, that nothing in it can run, and in headless Chromium that it works."""

import csv
import html
import io
import json
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiment_folders import make_experiment, problems, right_up_to
from placevalue.cli.main import main
from placevalue.common.errors import ConfigError, DataError
from placevalue.data import data_checksum
from placevalue.evaluation.metrics import metric_values, read_answer
from placevalue.experiments.methods import METHODS
from placevalue.reports import page as page_module
from placevalue.reports import results
from placevalue.reports.breakdowns import LONGEST, answer_length, break_down, learning_curves
from placevalue.reports.charts import further_colours, method_class
from placevalue.reports.page import write_report
from placevalue.reports.results import load_experiment, load_experiments
from placevalue.reports.runs import run_table, runs_to_csv
from placevalue.reports.summary import summarise
from placevalue.reports.tables import SHOWN, to_csv

HOSTILE = '</script><img src=x onerror="document.title=1"><!--<script>'
TEMPLATED = "{{ 7*7 }}{% raw %}{# note #}\" onclick='x' \u2028&amp;"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ASKED = problems(60, digits=3)
ASKED[0] = ASKED[0] | {"question": f"Is {HOSTILE} worth 10?", "operation": "<b>a+b</b>"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of 60 problems: digits get 0 to 29 right, agg-before 0 to 35 but not 3, aux-soft with seed 2 alone."""
    fixed = right_up_to(ASKED, 36)
    fixed[3] = HOSTILE
    answers = {
        "digits": {1: right_up_to(ASKED, 30), 2: right_up_to(ASKED, 32)},
        "agg-before": {1: fixed, 2: right_up_to(ASKED, 33)},
        "aux-soft": {2: right_up_to(ASKED, 20, wrong="")},
    }
    return make_experiment(tmp_path_factory.mktemp("runs") / "first", answers, ASKED)


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    asked = [each | {"question": None} for name in ("Original", "1000+") for each in problems(10, f"fermat:{name}")]
    answers = {"digits": {42: right_up_to(asked, 9)}, "pause": {42: right_up_to(asked, 4)}}
    return make_experiment(
        tmp_path_factory.mktemp("more") / "<i>second", answers, asked, model="<u>mine", train="fermat-templates:train"
    )


@pytest.fixture(scope="module")
def page(folder, second):
    return write_report([folder, second])


class Reader(HTMLParser):
    """The elements, attributes and texts of a page, and its data."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.data, self.inside, self.links, self.attributes = [], "", None, [], []
        self.by_tag = defaultdict(list)
        self.feed(text)

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        self.attributes += dict(attributes)
        self.inside = dict(attributes).get("id") if name == "script" else self.inside
        self.links += [value for key, value in attributes if key in ("src", "href", "srcset", "action", "data")]

    def handle_endtag(self, name):
        self.inside = None

    def handle_data(self, text):
        if self.inside == "data":
            self.data += text
        elif self.tags and self.tags[-1] not in ("script", "style"):
            self.by_tag[self.tags[-1]].append(text)


def test_the_page_is_one_file_that_fetches_nothing(page, folder):
    assert page == folder / "report.html"
    found = Reader(page.read_text())
    assert all(link.startswith("#") for link in found.links) and not {"link", "img", "iframe"} & set(found.tags)
    assert "http" not in re.sub(r"http-equiv", "", page.read_text()), "no address at all"
    assert "default-src 'none'" in page.read_text() and found.tags.count("script") == 2


def test_hostile_text_stays_text(page):
    text = page.read_text()
    assert "<img" not in text and "<i>second" not in text and "<u>mine" not in text and "<b>a+b" not in text
    found = json.loads(Reader(text).data)
    assert found[0]["questions"][0] == f"Is {HOSTILE} worth 10?" and found[0]["runs"][2]["texts"][3] == HOSTILE
    assert html.escape("<i>second") in text


@pytest.mark.parametrize("text", [HOSTILE, TEMPLATED])
def test_no_name_or_text_becomes_markup_or_template(text, tmp_path, monkeypatch):
    """In a question, a gold answer, a prediction, a set, an operation, a model, a method and a folder."""
    monkeypatch.setitem(METHODS, text, replace(METHODS["digits"], about=text))
    asked = [each | {"question": text, "operation": text, "set": text} for each in problems(4)]
    asked[0] |= {"answer": text, "id": text}
    answers = {name: {1: [text, "1", "2", "3"]} for name in ("digits", "pause")}
    experiment = load_experiment(make_experiment(tmp_path / "one", answers, asked, model=text))
    runs = tuple(replace(run, train=replace(run.train, method=text)) for run in experiment.runs[:1])
    runs += experiment.runs[1:]
    experiment = replace(experiment, name=text, runs=runs, missing=(text,))
    made = page_module.make_page([experiment, replace(experiment, name="other")])
    plain = page_module.make_page([load_experiment(tmp_path / "one")])
    found, expected = Reader(made), Reader(plain)
    assert set(found.tags) <= {*expected.tags, "details", "summary", "ul", "li"} and found.tags.count("script") == 2
    assert not {"onclick", "onerror", "src"} & set(found.attributes)
    for name in ("title", "h2", "a", "td", "th", "i", "li", "dd", "text"):
        assert text in "".join(found.by_tag[name]), name
    (data, _) = json.loads(found.data)
    assert data["name"] == text == data["questions"][0] == data["answers"][0] == data["ids"][0] == data["sets"][0][0]
    assert data["operations"] == [text] and data["runs"][0]["texts"][0] == text == data["runs"][0]["method"]


def test_tables_conclusion_facts_and_what_is_missing(page):
    text = page.read_text()
    first, other = text.split('id="e1"')
    assert 'class="baseline"><th scope="row" title="each number' in first and ">51.7" in first
    assert "published in the paper for this model" in first and ">23.0<" in first
    assert "published in the paper" not in other.split('id="predictions"')[0], "another model"
    assert "aux-soft-1: not started" in first and "ababababab" in first and "On mawps:test, " in first
    assert '<td class="plain best edge"' in first and "trained once" in other
    assert "mean over sets" in other and text.count("<caption>") == 4


def test_a_cell_without_a_record_is_empty(page):
    rows = re.findall(r'<tr class="paper">.*?</tr>', page.read_text())
    assert rows and all("<td></td>" in row for row in rows), "the paper has no operations on MAWPS"
    assert not re.search(r">(nan|None|inf)<", page.read_text())


def test_charts_have_both_loss_parts_lengths_places_and_operations(page):
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page.read_text().split('id="e1"')[0])
    points = ["Accuracy by length", "Right digits by place", "Accuracy by operation"]
    assert captions == [*points, "Cross-entropy per token", "Auxiliary loss"], "no tokens are counted"


def test_every_method_has_a_colour_of_its_own():
    colours = [method_class(name) for name in METHODS]
    style = Path(page_module.__file__).with_name("template").joinpath("page.css").read_text() + further_colours()
    hues = dict(re.findall(r"--(m\d+): light-dark\((.*?\)?, .*?)\);", style))
    assert len(set(hues.values())) == len(hues) >= len(METHODS)
    assert len(set(colours)) == len(METHODS) and all(
        f".{name} {{" in style and f"--{name}: " in style for name in colours
    )


def test_breakdowns_by_hand(folder):
    lengths, places, operations = break_down(load_experiment(folder))
    assert lengths.categories == ("2", "3", "4") and sum(lengths.counts) == 60
    right = [int(each["answer"][:-2] != "" and len(each["answer"]) == 4) for each in ASKED]
    rate = sum(right[:20]) / sum(right)
    assert lengths.scores["aux-soft"][0].value == pytest.approx(rate)
    assert places.categories == ("1", "2", "3", "4") and places.scores["aux-soft"][0].value == pytest.approx(20 / 60)
    assert set(operations.categories) == {"a+b", "a-b", "a*b", "a/b", "<b>a+b</b>"}
    assert [answer_length(read_answer(gold, "")) for gold in ("7.0", "0.25", "-12.50", "Not commutable", "1" * 30)] == [
        1, 3, 3, None, LONGEST,
    ]  # fmt: skip


def test_curves_take_each_part_from_where_it_is_logged(tmp_path):
    losses = [
        {"step": 1, "loss": 5.0},
        {"step": 2, "loss": "inf"},
        {"step": 2, "eval_loss": 1.0},
        {"step": 3, "loss": 1.0},
    ]
    texts = {1: right_up_to(ASKED, 3), 2: right_up_to(ASKED, 4)}
    found = learning_curves(load_experiment(make_experiment(tmp_path / "a", {"digits": texts}, ASKED, losses=losses)))
    (entropy,) = found
    assert entropy.means == {"digits": [(1, 5.0), (3, 1.0)]} and len(entropy.seeds["digits"]) == 2
    losses = [{"step": step, "loss": 9.0, "ce": float(step), "aux": -1.0} for step in range(1, 500)]
    found = learning_curves(load_experiment(make_experiment(tmp_path / "b", {"aux-soft": texts}, ASKED, losses=losses)))
    assert [each.title for each in found] == ["Cross-entropy per token", "Auxiliary loss"]
    assert found[0].means["aux-soft"][0] == (1, 1.0) and found[0].means["aux-soft"][-1] == (499, 499.0)
    assert len(found[1].means["aux-soft"]) <= 121, "more than a screen shows"


def test_accuracy_on_dev_is_a_learning_curve(tmp_path):
    losses = [{"step": s, "loss": 1.0} for s in (1, 2)] + [{"step": s, "eval_accuracy": s / 10} for s in (1, 2)]
    folder = make_experiment(tmp_path, {"digits": {1: right_up_to(ASKED, 3)}}, ASKED, losses=losses)
    dev, _ = learning_curves(load_experiment(folder))
    assert dev.title == "Accuracy on dev" and dev.share and dev.means == {"digits": [(1, 0.1), (2, 0.2)]}
    text = write_report([folder]).read_text()
    assert "<figcaption>Accuracy on dev</figcaption>" in text and "<title>digits, step 2: 20.0%</title>" in text


def test_the_loss_of_an_answer_is_that_of_all_its_tokens(tmp_path):
    """Two methods with the same loss a token, one with twice the tokens: an answer costs it twice as much."""
    losses = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 0.5}]
    for method, tokens in (("digits", 32), ("pause", 16)):
        counts = {"problems": 8, "answer_tokens": tokens}
        texts = {method: {1: right_up_to(ASKED, 3)}}
        make_experiment(tmp_path / "mine", texts, ASKED, losses=losses, counts=counts)
    (tmp_path / "mine" / "recipe.yaml").unlink()
    answers, tokens = learning_curves(load_experiment(tmp_path / "mine"))
    assert (answers.title, tokens.title) == ("Cross-entropy per answer", "Cross-entropy per token")
    assert answers.means == {"digits": [(1, 8.0), (2, 2.0)], "pause": [(1, 4.0), (2, 1.0)]}
    assert tokens.means["digits"] == tokens.means["pause"] == [(1, 2.0), (2, 0.5)]


def test_a_run_of_one_step_and_one_method_has_a_page_too(tmp_path):
    folder = make_experiment(tmp_path, {"pause": {1: right_up_to(ASKED, 0)}}, ASKED, losses=[{"step": 1, "loss": 2.0}])
    text = write_report([folder], tmp_path / "deep" / "page.html").read_text()
    assert "there is nothing to compare pause with" in text and "nan" not in text.lower().replace("nanoseconds", "")


def test_predictions_beyond_what_a_page_holds_are_those_of_later_seeds(folder, monkeypatch):
    monkeypatch.setattr(page_module, "MOST_PREDICTIONS", 200)
    data = json.loads(Reader(page_module.make_page([load_experiment(folder)])).data)[0]
    assert {run["seed"] for run in data["runs"]} == {1} and data["unlisted"] == 3


def test_values_of_a_problem_are_computed_once_for_each_metric(folder, monkeypatch):
    asked = Counter()

    def count(answers, names):
        asked[id(answers), *names] += 1
        return metric_values(answers, names)

    monkeypatch.setattr(results, "metric_values", count)
    experiment = load_experiment(folder)
    page_module.make_page([experiment])
    assert set(asked.values()) == {1} and {name for _, name in asked} >= {"accuracy_paper", "cer_written", "place_1"}


def test_folders_with_the_same_name_get_distinct_names(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "other" / "first")
    found = load_experiments([folder, tmp_path / "other" / "first"])
    assert [each.name for each in found] == [f"{folder.parent.name}/first", "other/first"]
    with pytest.raises(DataError, match="twice"):
        load_experiments([folder, folder])


def test_a_page_of_signed_errors_is_refused_and_nothing_is_written(folder, tmp_path):
    with pytest.raises(ConfigError, match="log_error is not a percentage"):
        write_report([folder], tmp_path / "page.html", metrics=["log_error"])
    assert not list(tmp_path.iterdir())


def test_the_command(folder, second, tmp_path, capsys):
    assert main(["report", str(folder), "--out", str(tmp_path / "a.html")]) == 0
    assert "a.html: 0." in capsys.readouterr().out and (tmp_path / "a.html").exists()
    assert main(["report", str(folder), str(second), "--format", "markdown", "--baseline", "digits"]) == 0
    assert capsys.readouterr().out.count("| --- |") == 4
    flags = ["--format", "csv", "--metric", "accuracy_exact", "--out", str(tmp_path / "a.csv")]
    assert main(["report", str(folder), *flags]) == 0
    assert (tmp_path / "a.csv").read_text().count("accuracy_exact") == 3 * 6
    assert main(["report", str(folder), "--format", "markdown", "--brief"]) == 0
    assert "a-b" not in capsys.readouterr().out
    assert main(["report", str(folder), "--brief"]) == 1 and "--brief is for tables" in capsys.readouterr().err
    assert main(["report", str(folder), "--format", "latex"]) == 0 and "tabular" in capsys.readouterr().out
    assert main(["report", str(folder), "--format", "terminal"]) == 0 and "On mawps:test" in capsys.readouterr().out
    page = tmp_path / "README.md"
    page.write_text("above\n<!-- results -->\nolder tables\n<!-- end of results -->\nbelow\n")
    written = []
    for _ in range(2):
        assert main(["report", str(folder), "--format", "markdown", "--into", str(page)]) == 0
        written.append(page.read_text())
    assert written[0] == written[1] and "older tables" not in written[0] and "| MAWPS" in written[0]
    assert written[0].startswith("above\n<!-- results -->\n\n") and written[0].endswith("below\n")
    page.write_text("no marks")
    assert main(["report", str(folder), "--format", "markdown", "--into", str(page)]) == 1
    assert "has no place for tables" in capsys.readouterr().err and page.read_text() == "no marks"
    assert main(["report", str(tmp_path / "none")]) == 1 and "no folder" in capsys.readouterr().err


@pytest.fixture(scope="module")
def browse(page, tmp_path_factory):
    """The page as Chromium has it once its script has run, with the filters of an address."""
    if CHROMIUM is None:
        pytest.skip("no chromium, chromium-browser or google-chrome here: install one to test the page in a browser")

    def view(place="", *flags, clicks=None, page=page):
        shown = page
        if clicks is not None:  # a user's hand: a second script, which the page's own policy would not let in
            policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
            shown = tmp_path_factory.mktemp("clicked") / "page.html"
            text = policy.sub("", page.read_text(encoding="utf-8"))
            shown.write_text(text.replace("</body>", f"<script>{clicks}</script></body>"), encoding="utf-8")
        quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000"]
        quiet.append(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
        done = subprocess.run(
            [CHROMIUM, *quiet, *flags, "--dump-dom", f"{shown.as_uri()}{place}"],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return done.stdout

    return view


def listed(dom):
    count = re.search(r'<p id="count"[^>]*>(.*?)</p>', dom).group(1)
    return count, re.findall(r'<p class="question">(.*?)</p>', dom)


def test_the_browser_lists_problems_as_text(browse):
    dom = browse()
    count, questions = listed(dom)
    assert count == "60 of 60 problems." and len(questions) == 20 and "page 1 of 3" in dom
    assert "<img" not in dom and "<title>placevalue: first, &lt;i&gt;second</title>" in dom
    assert questions[0] == f"Is {html.escape(HOSTILE, quote=False)} worth 10?"


def test_a_link_gives_the_same_view_again(browse):
    count, questions = listed(browse("#predictions&experiment=first&method=agg-before&seed=1&outcome=fixed"))
    assert count == "6 of 60 problems; against digits, agg-before fixed 6 and broke 1."
    assert questions == [f"What do {index} and {index} make?" for index in range(30, 36)]
    count, questions = listed(browse("#predictions&experiment=first&method=agg-before&seed=1&outcome=broken"))
    assert count.startswith("1 of 60") and questions == ["What do 3 and 3 make?"]


def test_answers_of_all_seeds_are_shown_together(browse):
    dom = browse("#predictions&text=What+do+31+and".replace("+", "%20"))
    assert listed(dom)[0].startswith("1 of 60")
    chips = [
        re.sub(r"<[^>]+>", " ", chip).split()
        for chip in re.findall(r'<span class="answer .*?(?=<span class="answer|</div>)', dom)
    ]
    gold = ASKED[31]["answer"]
    assert chips[0][-4:] == ["digits", "nothing", gold, "1/2"], "the seeds differ: the wrong one said the word nothing"
    assert chips[1][-5:] == ["agg-before", gold, "2/2", "fixed", "1"]
    assert chips[2][-3:] == ["aux-soft", "nothing", "broken"], "it wrote nothing, and digits had it with this seed"


def test_the_other_filters(browse):
    assert listed(browse("#predictions&method=digits&seed=2&outcome=wrong&operation=a-b"))[0].startswith("7 of 60")
    dom = browse("#predictions&experiment=first&page=3&operation=no-such&seed=9")
    assert "page 3 of 3" in dom and listed(dom)[0] == "60 of 60 problems.", "what is unknown is left out"
    other = "#predictions&experiment=" + "%3Ci%3Esecond" + "&set=fermat%3A1000%2B"
    count, questions = listed(browse(other))
    assert count.startswith("10 of 20") and questions[0] == "fermat:1000+:0", "no question: its id is shown instead"
    assert listed(browse("#predictions&text=onerror"))[0].startswith("2 of 60")


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A page of an experiment whose first question copies one of the training data, and whose second rewords one."""
    home = tmp_path_factory.mktemp("copied")
    rows = [f"{ASKED[1]['question']},{ASKED[1]['answer']}", f'"Now, {ASKED[2]["question"]}",{ASKED[2]["answer"]}']
    (home / "train.csv").write_text("\n".join(["question,answer", *rows, "What else?,1"]))
    known = dict(train=str(home / "train.csv"), checksum=data_checksum(home / "train.csv"))
    texts = {name: {1: right_up_to(ASKED, 3, wrong='7, "or" 8')} for name in ("digits", "pause")}
    return write_report([make_experiment(home / "mine", texts, ASKED, **known)])


def test_seen_and_unseen_questions_are_told_apart(browse, copied):
    wanted = {"seen": [1, 2], "repeated": [1], "reworded": [2], "unseen": [0, *range(3, 60)]}
    for name, indices in wanted.items():
        count, questions = listed(browse(f"#predictions&seen={name}", page=copied))
        assert count == f"{len(indices)} of 60 problems.", name
        assert questions[0] == html.escape(ASKED[indices[0]]["question"], quote=False)
    dom = browse("#predictions&seen=seen", page=copied)
    assert re.findall(r'<span class="copy">(.*?)</span>', dom) == [
        "copies a training question", "rewords a training question",
    ]  # fmt: skip


def test_without_the_training_data_nobody_knows_what_was_seen(browse):
    dom = browse("#predictions&seen=seen")
    assert listed(dom)[0] == "60 of 60 problems." and re.search(r'<select name="seen" disabled', dom)
    assert "training question" not in re.search(r'<ol id="list">(.*?)</ol>', dom, re.DOTALL)[1]


SAVED = """
    const texts = [], names = [];
    URL.createObjectURL = (blob) => { texts.push(blob.text()); return "#"; };
    HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
    document.querySelectorAll("[data-file], #save").forEach((button) => button.click());
    Promise.all(texts).then((all) => { document.title = JSON.stringify(Object.fromEntries(names.map((name, i) => [name, all[i]]))); });
"""


def test_every_table_and_list_can_be_saved_without_a_network(browse, copied):
    dom = browse(
        "#predictions&method=digits&seen=seen", "--host-resolver-rules=MAP * ~NOTFOUND", clicks=SAVED, page=copied
    )
    saved = json.loads(html.unescape(re.search("<title>(.*?)</title>", dom, re.DOTALL)[1]))
    experiment = load_experiment(copied.parent)
    assert set(saved) == {"mine-tables.csv", "mine-runs.csv", "mine-recipe.yaml", "mine-predictions.csv"}
    assert saved["mine-tables.csv"] == to_csv([summarise(experiment, metric=name) for name in SHOWN])
    assert saved["mine-runs.csv"] == runs_to_csv(run_table(experiment))
    assert saved["mine-recipe.yaml"] == (copied.parent / "recipe.yaml").read_text()
    rows = list(csv.DictReader(io.StringIO(saved["mine-predictions.csv"])))
    assert [(row["id"], row["copy"], row["method"], row["right"]) for row in rows] == [
        ("mawps:1", "repeated", "digits", "1"), ("mawps:2", "reworded", "digits", "1"),
    ]  # fmt: skip
    dom = browse("#predictions&method=digits&seed=1&outcome=wrong", clicks=SAVED, page=copied)
    saved = json.loads(html.unescape(re.search("<title>(.*?)</title>", dom, re.DOTALL)[1]))
    rows = list(csv.DictReader(io.StringIO(saved["mine-predictions.csv"])))
    assert len(rows) == 57 and {row["prediction"] for row in rows} == {'7, "or" 8'}


@pytest.mark.parametrize("width", [375, 1280])
def test_nothing_is_wider_than_the_window(browse, width):
    """Wide tables scroll in their frames. A window cannot be as narrow as a phone, so the page is in a frame that is."""
    framed = f"""
        document.querySelectorAll("details").forEach((each) => {{ each.open = true; }});
        const frame = document.createElement("iframe");
        frame.width = {width}; frame.height = 800; frame.srcdoc = document.documentElement.outerHTML.replaceAll("<script", "<template");
        frame.addEventListener("load", () => {{
            const root = frame.contentDocument.documentElement, narrow = frame.contentWindow.matchMedia("(max-width: 40rem)");
            document.title = [root.clientWidth, root.scrollWidth, narrow.matches].join(" ");
        }});
        document.body.replaceChildren(frame);
    """
    dom = browse("", "--window-size=1600,1000", "--hide-scrollbars", clicks=framed)
    client, scrolled, narrow = re.search("<title>(.*?)</title>", dom).group(1).split()
    assert int(client) >= width - 20 and int(scrolled) <= int(client) and narrow == str(width == 375).lower()


def test_dark_by_address_and_nothing_is_fetched(browse):
    dom = browse("#e0&theme=dark", "--host-resolver-rules=MAP * ~NOTFOUND")
    assert re.search(r'<html[^>]*data-theme="dark"', dom) and listed(dom)[0].startswith("60 of 60")


def test_clicks_turn_pages_filter_and_reset(browse):
    choose = """
        const field = (name) => document.getElementById("filters").elements[name];
        const choose = (name, value) => {
            field(name).value = value; field(name).dispatchEvent(new Event("input", { bubbles: true }));
        };
    """
    dom = browse(clicks="document.getElementById('next').click();" * 2)
    assert "page 3 of 3" in dom and re.search(r'<button id="next"[^>]*disabled', dom)
    assert "page 2 of 3" in browse("#predictions&page=3", clicks="document.getElementById('previous').click();")
    picked = choose + "choose('method', 'agg-before'); choose('seed', '1'); choose('outcome', 'fixed');"
    address = "document.title = location.hash;"
    dom = browse("#predictions&page=2", clicks=picked + address)
    count, questions = listed(dom)
    assert count == "6 of 60 problems; against digits, agg-before fixed 6 and broke 1." and len(questions) == 6
    assert "<title>#predictions&amp;experiment=first&amp;method=agg-before&amp;seed=1&amp;outcome=fixed</title>" in dom
    undone = browse(clicks=picked + "document.querySelector('[type=reset]').click();")
    assert listed(undone)[0] == "60 of 60 problems."
    other = choose + "choose('method', 'agg-before'); choose('experiment', '<i>second');"
    assert listed(browse(clicks=other))[0] == "20 of 20 problems."


def test_clicks_change_the_theme_and_hide_a_method(browse):
    theme = "document.getElementById('theme').click();"
    assert re.search(r'<html[^>]*data-theme="light"', browse("#e0&theme=dark", clicks=theme))
    key = "document.querySelector('[data-key=agg-before]').click();"
    told = "document.title = [...document.querySelectorAll('.hidden')].map((mark) => mark.dataset.method).join(' ');"
    hidden = [re.search("<title>(.*?)</title>", browse(clicks=key * times + told)).group(1) for times in (1, 2)]
    assert set(hidden[0].split()) == {"agg-before"} and hidden[1] == ""
