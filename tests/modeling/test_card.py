"""The model card of a saved folder, read as the hub and as a person would."""

import re

import pytest
from huggingface_hub import ModelCard
from peft import LoraConfig, get_peft_model
from transformers import PreTrainedTokenizerBase

import placevalue as pv
from modeling.test_attach import TEXTS, assert_same, encode, prepared
from placevalue.common.records import TRAINED_ON
from zoo import build


def card(folder):
    return ModelCard.load(folder / "README.md")


def run_its_code(folder, monkeypatch):
    """The model and tokenizer that the card's own code loads, in the folder's parent."""
    (code,) = re.findall(r"```python\n(.*?)```", card(folder).text, re.DOTALL)
    monkeypatch.chdir(folder.resolve().parent)
    space = {}
    exec(code, space)
    return space["model"], space["tokenizer"]


@pytest.mark.parametrize(
    "name, token, library", [("t5", "agg", "placevalue"), ("llama", "pause", "transformers"), ("bert", None, "transformers"), ("qwen2", None, "transformers")]
)  # fmt: skip
def test_its_code_loads_the_model(name, token, library, tmp_path, monkeypatch):
    model, tokenizer = prepared(name, token=token)
    pv.save_pretrained(model, tokenizer, tmp_path / "out")
    loaded, ours = run_its_code(tmp_path / "out", monkeypatch)
    ids, mask = encode(tokenizer, TEXTS)
    assert isinstance(ours, PreTrainedTokenizerBase) and ours(TEXTS)["input_ids"] == tokenizer(TEXTS)["input_ids"]
    assert_same(loaded, model, ids, mask)
    assert card(tmp_path / "out").data.library_name == library and "placevalue" in card(tmp_path / "out").data.tags


def test_it_says_how_numbers_are_read(tmp_path):
    model, tokenizer = prepared("t5", "interpolated", position="after", ignore="ID[0-9]+")
    pv.save_pretrained(model, tokenizer, tmp_path)
    for said in (
        "`[F] 1 2 [AGG] [/F]`",
        "`extended`",
        "`ID[0-9]+`",
        "`interpolated`",
        "decimals as `places`",
        "below zero as `opposite`",
    ):
        assert said in card(tmp_path).text
    model, tokenizer = prepared("t5", token=None)
    pv.save_pretrained(model, tokenizer, tmp_path)
    for said in ("`[F] 1 2 [/F]`", "`extended`"):
        assert said in card(tmp_path).text
    assert "AGG" not in card(tmp_path).text and "Left alone" not in card(tmp_path).text


def test_it_says_what_the_model_was_trained_on(tmp_path):
    model, tokenizer = prepared("t5")
    pv.save_pretrained(model, tokenizer, tmp_path)
    assert "Base model: not recorded" in card(tmp_path).text and "Data: not recorded" in card(tmp_path).text
    assert card(tmp_path).data.base_model is None
    model.config.name_or_path = "google/flan-t5-base"
    setattr(model.config, TRAINED_ON, ["mawps", "file:0123456789ab"])
    pv.save_pretrained(model, tokenizer, tmp_path)
    assert "Data, as far as recorded: mawps, a file whose sha256 begins with 0123456789ab." in card(tmp_path).text
    assert "Base model: google/flan-t5-base." in card(tmp_path).text
    assert card(tmp_path).data.base_model == "google/flan-t5-base"
    for folder in (tmp_path / "somewhere" / "base", tmp_path):
        pv.save_pretrained(model, tokenizer, folder)
        model, tokenizer = pv.from_pretrained(folder)
    pv.save_pretrained(model, tokenizer, tmp_path / "again")
    assert (
        card(tmp_path / "again").data.base_model is None and str(tmp_path.parent) not in card(tmp_path / "again").text
    )


def test_a_card_of_somebody_else_stays(tmp_path):
    model, tokenizer = prepared("t5")
    (tmp_path / "README.md").write_text("Mine.\n")
    pv.save_pretrained(model, tokenizer, tmp_path)
    assert (tmp_path / "README.md").read_text() == "Mine.\n"


def test_an_edited_card_stays_and_an_unedited_one_follows_the_model(tmp_path):
    for aggregation in ("weighted", "median"):
        pv.save_pretrained(*prepared("t5", aggregation), tmp_path)
        assert f"`{aggregation}`" in card(tmp_path).text
    edited = (tmp_path / "README.md").read_text().replace("## How to load it", "Trained by us.\n\n## How to load it")
    (tmp_path / "README.md").write_text(edited)
    pv.save_pretrained(*prepared("t5", "weighted"), tmp_path)
    assert (tmp_path / "README.md").read_text() == edited


@pytest.mark.parametrize("token, library", [("agg", "placevalue"), ("pause", "peft")])
def test_an_adapter_has_our_card_not_an_empty_one(token, library, tmp_path, monkeypatch):
    model, base = build("llama")
    model.resize_token_embeddings(len(base) + 9, mean_resizing=False)
    model.save_pretrained(tmp_path / "base")
    tokenizer = pv.number_tokenizer(base, token=token)
    model = pv.attach(type(model).from_pretrained(tmp_path / "base"), tokenizer)
    lora = LoraConfig(target_modules=["q_proj"], trainable_token_indices=pv.trainable_tokens(model, tokenizer))
    model = get_peft_model(model, lora).eval()
    for _ in range(2):  # PEFT adds to the card that it finds
        pv.save_pretrained(model, tokenizer, tmp_path / "out")
        assert card(tmp_path / "out").data.library_name == library
        assert "More Information Needed" not in card(tmp_path / "out").text
    assert_same(run_its_code(tmp_path / "out", monkeypatch)[0], model, *encode(tokenizer, TEXTS))
    (tmp_path / "out" / "README.md").write_text("---\nlicense: mit\n---\nMine.\n")
    pv.save_pretrained(model, tokenizer, tmp_path / "out")
    assert "Mine." in card(tmp_path / "out").text and "How it reads numbers" not in card(tmp_path / "out").text
