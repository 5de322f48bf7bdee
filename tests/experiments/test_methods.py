"""METHODS: every entry is one filling of the slots."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from placevalue.common.errors import ConfigError
from placevalue.experiments.method_table import HEADER, SOURCES, method_rows, to_markdown
from placevalue.experiments.methods import METHODS, Method
from placevalue.experiments.recipe import make_recipe
from placevalue.experiments.train import train
from placevalue.loss.number_losses import NUMBER_LOSSES
from placevalue.numbers.vectors import VECTORS
from zoo import build


def test_every_vector_is_a_method_and_the_other_way_round():
    assert {each.vector for each in METHODS.values()} - {None} == set(VECTORS)


@pytest.mark.parametrize("slots", [
    {"loss": "ntl-was"}, {"loss": "soft", "mix": "add"}, {"mix": "add"}, {"loss_weight": 0.3},
    {"loss": "hard", "loss_weight": 0.3},
])  # fmt: skip
def test_a_loss_is_added_or_takes_a_share(slots):
    with pytest.raises(ConfigError, match="'mine' has loss=.*expected mix='add'"):
        Method("mine", **slots)


def test_every_number_loss_is_a_method_and_the_other_way_round():
    assert {each.loss for each in METHODS.values() if each.mix == "add"} == set(NUMBER_LOSSES)


def test_the_page_has_the_table_of_all_methods():
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()
    told = page.partition("<!-- methods -->")[2].partition("<!-- end of methods -->")[0].strip()
    assert told == to_markdown(), "replace the table in docs/methods.md by what `placevalue methods --markdown` prints"
    assert [row[0] for row in method_rows()] == list(METHODS) and set(SOURCES) <= set(METHODS)


def test_the_table_says_what_is_so():
    rows = {row[0]: dict(zip(HEADER, row, strict=True)) for row in method_rows()}
    assert rows["untouched"]["12 in tokens"] == "as before" and rows["untouched"]["source"] == "none"
    assert rows["agg-bare"]["12 in tokens"] == "`[AGG] 1 2`" and rows["agg-bare"]["opens in"] == "placevalue"
    assert rows["bare"]["12 in tokens"] == "`1 2`" and rows["bare"]["opens in"] == "any library"
    assert [rows[name]["new rows"] for name in ("untouched", "bare", "aux-bare", "agg-bare", "digits")] == [
        "none", "none", "none", "4", "4",
    ]  # fmt: skip
    assert [rows[name]["parameters"] for name in ("bare", "place", "residual", "value-aware", "fone-in", "xval-in")] == [
        "none", "32 d", "d", "d² + 3 d", "45 d", "none",
    ]  # fmt: skip
    assert rows["del"]["training"] == "CE + 0.01 L" and rows["place-names"]["12 in tokens"].startswith(
        "`2 units, 1 tens`"
    )


def test_a_loss_needs_digits():
    with pytest.raises(ConfigError, match="digits=False: a loss on numbers needs.*markers=False"):
        Method("mine", digits=False, loss="soft")


def test_bare_trains_what_untouched_trains_where_digits_are_split_already(tmp_path):
    """The same ids, so the same weights to the bit; the auxiliary loss changes them, and nothing else does."""
    for part in build("qwen2"):
        part.save_pretrained(tmp_path / "model")
    (tmp_path / "mine.csv").write_text("question,answer\n" + "".join(f"{i} and -{i}.5?,{2 * i}\n" for i in range(12)))
    values = {"model": str(tmp_path / "model"), "data": {"train": str(tmp_path / "mine.csv")}}
    values |= {"methods": ["untouched", "bare", "aux-bare"], "training": {"max_steps": 3, "batch_size": 4}}
    recipe, weights = make_recipe(values), {}
    for method in recipe.methods:
        train(recipe, tmp_path / method, method=method)
        weights[method] = load_file(tmp_path / method / "model.safetensors")
    plain, bare, aux = weights.values()
    assert plain.keys() == bare.keys() == aux.keys()
    assert all(torch.equal(value, bare[name]) and value.shape == aux[name].shape for name, value in plain.items())
    assert not all(torch.equal(value, aux[name]) for name, value in plain.items())
