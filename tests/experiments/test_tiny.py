"""The bundled model: its tokenizer is what the code learns, numbers are digits, and it trains from nothing."""

import json

import pytest
import torch

from placevalue.common import hub as hub_module
from placevalue.common.errors import ModelError
from placevalue.common.hub import TINY, UNTRAINED, load_model, load_tokenizer, resolve_model
from placevalue.data import load_data
from placevalue.data.pretraining import SENTINELS, generate_pretraining
from placevalue.experiments import tiny
from placevalue.experiments.recipe import make_recipe
from placevalue.experiments.train import train
from placevalue.modeling.checkpoints import from_pretrained
from placevalue.tokenizer.tokenizer import number_tokenizer


@pytest.fixture(scope="module")
def base():
    return load_tokenizer(UNTRAINED)


def test_what_is_bundled_is_what_the_code_makes(tmp_path):
    tiny.write_untrained(tmp_path)
    for name in ("tokenizer.json", "config.json"):
        made, bundled = (
            json.loads((folder / name).read_text()) for folder in (tmp_path, hub_module.BUNDLED_FOLDER / UNTRAINED)
        )
        for each in (made, bundled):
            each.pop("transformers_version", None)
        assert made == bundled


def test_each_digit_is_a_piece_wherever_it_stands(base):
    for text in ("12", "room12b", " 3.50", "$1,999"):
        pieces = base.tokenize(text)
        digits = [piece for piece in pieces if any(c.isdigit() for c in piece)]
        assert "".join(digits) == "".join(c for c in text if c.isdigit()) and all(len(piece) == 1 for piece in digits)


def test_every_text_comes_back(base):
    texts = [problem.question for problem in load_data("mawps:dev")] + ["Naïve café ½ 数 — $5.00"]
    for text in texts:
        assert base.decode(base(text)["input_ids"], skip_special_tokens=True) == text


def test_sentinels_are_single_tokens(base):
    row = next(row for row in generate_pretraining("dev") if SENTINELS[0] in row.question)
    ids = base.convert_tokens_to_ids(list(SENTINELS))
    assert len(set(ids)) == len(SENTINELS) and base.unk_token_id not in ids
    assert ids[0] in base(row.question)["input_ids"] and base(row.answer)["input_ids"][0] == ids[0]


@pytest.mark.parametrize("token", [None, "agg"])
def test_the_number_tokenizer_keeps_it(base, token):
    """The same digits by the same ids, so that every method starts from what the model learnt about them."""
    tokenizer = number_tokenizer(base, token=token)
    digits = base.convert_tokens_to_ids(list("0123456789"))
    text = "Ann had 48 pens and 3.25 dollars ."
    old, new = base(text)["input_ids"], tokenizer(text)["input_ids"]
    assert [i for i in new if i in digits] == [i for i in old if i in digits]
    assert tokenizer("No number here .")["input_ids"] == base("No number here .")["input_ids"]


def test_the_untrained_model_is_drawn_from_the_seed():
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(load_model(UNTRAINED, dtype=torch.float32).shared.weight.detach())
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    count = sum(weight.numel() for weight in load_model(UNTRAINED).parameters())
    assert 2e6 < count < 4e6


def test_it_learns_from_nothing_and_is_taken_in(tmp_path):
    """A run of a few steps: the loss falls, the weights halve their bytes, and numbers attach to what comes back."""
    rows = "".join(json.dumps({"question": f"{i} and {i} ?", "answer": str(2 * i)}) + "\n" for i in range(16))
    (tmp_path / "sums.jsonl").write_text(rows)
    settings = {"max_steps": 12, "batch_size": 16, "learning_rate": 2e-3, "warmup_steps": 2, "log_every": 1}
    data = {"train": str(tmp_path / "sums.jsonl")}
    recipe = {"model": UNTRAINED, "data": data, "methods": ["untouched"], "training": settings}
    record = train(make_recipe(recipe).run(), tmp_path / "run")
    losses = [row["loss"] for row in record.losses if "loss" in row]
    assert losses[-1] < losses[0] - 1
    tiny.take_in(tmp_path / "run", tmp_path / "taken")
    assert load_model(tmp_path / "taken").shared.weight.dtype == torch.float16
    assert (tmp_path / "taken" / "model.safetensors").stat().st_size < 15e6
    assert (
        load_tokenizer(tmp_path / "taken")("Ann had 48")["input_ids"]
        == load_tokenizer(UNTRAINED)("Ann had 48")["input_ids"]
    )
    more = recipe | {
        "model": str(tmp_path / "taken"),
        "methods": ["agg-before"],
        "training": settings | {"max_steps": 1},
    }
    again = train(make_recipe(more).run(), tmp_path / "more")
    assert again.trained_on == record.trained_on
    from_pretrained(tmp_path / "more")


def test_a_run_without_a_record_is_not_taken_in(tmp_path):
    with pytest.raises(ModelError, match="finished run"):
        tiny.main(["trained", str(tmp_path)])
    with pytest.raises(ModelError, match="expected `untrained`"):
        tiny.main(["nonsense"])


class TestTrained:
    def test_its_folder_fits(self):
        files = list((hub_module.BUNDLED_FOLDER / TINY).iterdir())
        assert sum(file.stat().st_size for file in files) < 15e6
        assert resolve_model(TINY) == str(hub_module.BUNDLED_FOLDER / TINY)

    def test_it_says_what_it_was_trained_on(self):
        assert load_model(TINY).config.placevalue_trained_on == ["gsm8k", "word-problems"]
        assert load_tokenizer(TINY).get_vocab() == load_tokenizer(UNTRAINED).get_vocab()

    def test_it_can_add(self):
        model, tokenizer = load_model(TINY, dtype=torch.float32).eval(), load_tokenizer(TINY)
        sums = [(a, b) for a in range(3, 60, 7) for b in range(2, 40, 9)]
        asked = tokenizer([f"What is {a} + {b}?" for a, b in sums], padding=True, return_tensors="pt")
        said = tokenizer.batch_decode(model.generate(**asked, max_new_tokens=6), skip_special_tokens=True)
        assert sum(text == str(a + b) for text, (a, b) in zip(said, sums, strict=True)) > 0.8 * len(sums)
