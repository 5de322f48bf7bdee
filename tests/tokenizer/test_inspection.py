"""What people see of a tokenizer, a text, a model and a loss: friendly names, in a terminal and in a notebook."""

import copy
import io
import pickle
import re

import pytest
from rich.console import Console

import placevalue as pv
from families import FAMILIES, base_tokenizer
from placevalue.tokenizer.tokenizer import marker_ids
from zoo import build

TEXT = "Room 12b cost -1,250.50, <b>not</b> 3 \ufdd3 \ue000"
PRIVATE = re.compile("[\ue000-\uf8ff\ufdd0-\ufdef\u2ff0-\u2fff]")


def views(inspection):
    """An inspection as text, as a notebook shows it and as a terminal does."""
    console = Console(file=io.StringIO(), width=200)
    console.print(inspection)
    return repr(inspection), inspection._repr_html_(), console.file.getvalue()


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_are_shown_by_friendly_names_alone(family):
    base = base_tokenizer(family)
    tokenizer = pv.number_tokenizer(base, token="agg")
    for shown in (*views(pv.inspect(TEXT, tokenizer, base)), repr(tokenizer)):
        assert not PRIVATE.search(shown)
        assert all(name in shown for name in ("[F]", "[AGG]", "[/F]"))


def test_a_notebook_shows_html_that_the_text_cannot_change():
    shown = pv.inspect("<script>7</script> & \x1b[31m", base_tokenizer("bytes-gpt2"))._repr_html_()
    assert "<script" not in shown and "&amp;" in shown and "\x1b" not in shown
    assert shown.count("<div") == shown.count("</div>") == 3 and "10^0" in shown


def test_the_plain_text_has_a_row_for_each_digit_and_the_cost():
    base = build("t5")[1]
    lines = repr(pv.inspect("cat 12", base)).splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["before", "after"]
    assert [line.split() for line in lines[2:5]] == [
        ["number", "value", "digit", "place", "weight"],
        ["12", "12", "1", "10^1", "1.5"],
        ["2", "10^0", "0.25"],
    ]
    assert re.fullmatch(r"\d+ tokens before, \d+ after: [\d.]+ times as many", lines[5])


def test_a_plain_tokenizer_a_name_and_a_number_tokenizer_are_all_inspected():
    base = build("t5")[1]
    tokenizer = pv.number_tokenizer(base, token="agg")
    assert pv.inspect("12", base) == pv.inspect("12", tokenizer, base)
    alone = pv.inspect("12", tokenizer)
    assert alone.base is None and repr(alone).startswith("after") and alone.cost.endswith(" tokens")
    assert "no numbers found" in repr(pv.inspect("none", "placevalue-tiny"))


def test_an_inspection_reads_decimals_as_the_model_does():
    model, base = build("t5")
    tokenizer = pv.number_tokenizer(base, pv.NumberConfig(token="agg", decimals="ignore"))
    assert pv.inspect("1.5", tokenizer).numbers[0][1][0][1] == 1  # 1.5 is read as 15
    other = pv.number_tokenizer(base, token="agg")
    pv.attach(model, other, decimals="ignore")
    assert pv.inspect("1.5", other) == pv.inspect("1.5", tokenizer)


def test_the_repr_of_a_tokenizer_survives_copies_and_folders(tmp_path):
    tokenizer = pv.number_tokenizer(base_tokenizer("bytes-qwen2"), token="pause", position="after", ignore="years")
    shown = repr(tokenizer)
    assert "12 as [F] 1 2 [PAUSE] [/F]" in shown and "ignore='years'" in shown and "extended" in shown
    assert repr(copy.deepcopy(tokenizer)) == repr(pickle.loads(pickle.dumps(tokenizer))) == shown
    tokenizer.save_pretrained(tmp_path / "saved")
    again = repr(pv.load_number_tokenizer(tmp_path / "saved"))
    assert again.startswith("NumberTokenizer('saved', ") and str(tmp_path) not in again
    assert marker_ids(tokenizer) == marker_ids(pv.load_number_tokenizer(tmp_path / "saved"))


@pytest.mark.parametrize("name", ["t5", "gpt2"])
def test_an_attached_model_and_a_loss_say_what_they_are(name):
    model, base = build(name)
    before = repr(model)
    tokenizer = pv.number_tokenizer(base, token="agg")
    pv.attach(model, tokenizer, aggregation="interpolated")
    line = "placevalue writes 12 as [F] [AGG] 1 2 [/F], [AGG] is interpolated"
    assert (
        line in repr(model) and line in repr(copy.deepcopy(model)) and line in repr(pickle.loads(pickle.dumps(model)))
    )
    loss = repr(pv.AggregationLoss(model, tokenizer, ce_weight=0.75, mode="hard"))
    assert "0.75 * CE + 0.25 * AUX" in loss and "mode='hard'" in loss and "aggregation='interpolated'" in loss
    pv.detach(model)
    assert repr(model) == before
