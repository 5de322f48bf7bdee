"""The bundled model: its tokenizer is what the code learns, numbers are digits, and it trains from its first weights."""

import json
from pathlib import Path

import pytest
import torch

from placevalue.cli.main import main as placevalue
from placevalue.common.errors import ModelError
from placevalue.common.hub import BUNDLED_FOLDER, TINY, load_model, load_tokenizer, resolve_model
from placevalue.common.records import TrainRecord, read_record
from placevalue.data import data_sources, load_data
from placevalue.data.leakage import check_leakage
from placevalue.data.problem import checksum
from placevalue.experiments.recipe import make_recipe, read_recipe
from placevalue.experiments.train import train
from placevalue.modeling.checkpoints import from_pretrained
from placevalue.tokenizer.tokenizer import number_tokenizer
from tools.tiny_model import model as model_module
from tools.tiny_model import pretraining
from tools.tiny_model.__main__ import main
from tools.tiny_model.pretraining import SENTINELS, generate_pretraining

RECIPE = Path(model_module.__file__).with_name("pretrain.yaml")


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "untrained"
    model_module.write_untrained(folder, generate_pretraining("train", model_module.SAMPLE))
    return folder


@pytest.fixture(scope="module")
def base(untrained):
    return load_tokenizer(untrained)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """What `prepare` writes, on a few rows."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(pretraining.ROWS, "train", 300)
        patch.setitem(pretraining.ROWS, "dev", 20)
        assert main(["prepare", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_what_is_bundled_is_what_the_code_makes(untrained):
    made, bundled = (
        json.loads((folder / "tokenizer.json").read_text()) for folder in (untrained, BUNDLED_FOLDER / TINY)
    )
    assert made == bundled
    made, bundled = (json.loads((folder / "config.json").read_text()) for folder in (untrained, BUNDLED_FOLDER / TINY))
    after_training = {"transformers_version", "dtype", "use_cache", "placevalue_trained_on"}
    assert {key for key in made | bundled if made.get(key) != bundled.get(key)} <= after_training


def test_each_digit_is_a_piece_wherever_it_is(base):
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


@pytest.mark.slow
def test_the_first_weights_are_drawn_from_the_seed(untrained, tmp_path, monkeypatch):
    def weights(folder):
        return load_model(folder, dtype=torch.float32).shared.weight.detach()

    rows = list(generate_pretraining("train", model_module.SAMPLE))
    before = torch.random.get_rng_state()
    model_module.write_untrained(tmp_path / "same", rows)
    assert torch.equal(before, torch.random.get_rng_state())
    monkeypatch.setattr(model_module, "WEIGHTS_SEED", 2)
    model_module.write_untrained(tmp_path / "other", rows)
    assert torch.equal(weights(untrained), weights(tmp_path / "same"))
    assert not torch.equal(weights(untrained), weights(tmp_path / "other"))
    assert 2e6 < sum(weight.numel() for weight in load_model(untrained).parameters()) < 4e6


def test_prepare_writes_data_with_its_sources_and_a_model(prepared, capsys):
    assert [len(load_data(prepared / f"{part}.jsonl")) for part in ("train", "dev")] == [300, 20]
    record = json.loads((prepared / "data.json").read_text())
    for part in ("train", "dev"):
        problems = load_data(prepared / f"{part}.jsonl")
        assert record["files"][f"{part}.jsonl"]["sha256"] == checksum(problems)
        assert data_sources(prepared / f"{part}.jsonl") == ("gsm8k", "word-problems")
    assert check_leakage(data_sources(prepared / "train.jsonl"), ["mawps:test", "fermat:Original"]) == ((), ())
    assert load_tokenizer(prepared / "untrained")("7").input_ids and load_model(prepared / "untrained").can_generate()


def test_the_recipe_trains_what_was_prepared_and_the_run_is_taken(prepared, tmp_path, monkeypatch, capsys):
    recipe = read_recipe(RECIPE)
    assert (recipe.model, recipe.data.train) == ("runs/tiny/untrained", "runs/tiny/train.jsonl")
    old = read_record(BUNDLED_FOLDER / TINY / "train.json", TrainRecord)
    assert recipe.run().to_dict()["training"].items() >= old.config["training"].items()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "tiny").symlink_to(prepared)
    monkeypatch.chdir(tmp_path)
    settings = ["training.batch_size=4", "training.workers=0", "training.checkpoint_every=2"]
    assert placevalue(["train", str(RECIPE), *settings, "--max-steps", "2", "--out", "run"]) == 0
    assert read_record("run/train.json", TrainRecord).trained_on == ("gsm8k", "word-problems")
    monkeypatch.setattr(model_module.take, "__defaults__", (tmp_path / "taken",))
    assert main(["take", "run"]) == 0
    assert load_model("taken").config.placevalue_trained_on == ["gsm8k", "word-problems"]
    assert "taken: the model of run" in capsys.readouterr().out


@pytest.mark.slow
def test_it_learns_from_nothing_and_is_taken(tmp_path, untrained):
    """A run of a few steps: the loss falls, the weights halve their bytes, and numbers attach to what comes back."""
    rows = "".join(json.dumps({"question": f"{i} and {i} ?", "answer": str(2 * i)}) + "\n" for i in range(16))
    (tmp_path / "sums.jsonl").write_text(rows)
    settings = {"max_steps": 12, "batch_size": 16, "learning_rate": 2e-3, "warmup_steps": 2, "log_every": 1}
    data = {"train": str(tmp_path / "sums.jsonl")}
    recipe = {"model": str(untrained), "data": data, "methods": ["untouched"], "training": settings}
    record = train(make_recipe(recipe).run(), tmp_path / "run")
    losses = [row["loss"] for row in record.losses if "loss" in row]
    assert losses[-1] < losses[0] - 1
    taken = model_module.take(tmp_path / "run", tmp_path / "taken")
    assert load_model(taken).shared.weight.dtype == torch.float16
    assert (taken / "model.safetensors").stat().st_size < 15e6
    assert load_tokenizer(taken)("Ann had 48")["input_ids"] == load_tokenizer(untrained)("Ann had 48")["input_ids"]
    settings = settings | {"max_steps": 1}
    more = recipe | {"model": str(taken), "methods": ["agg-before"], "training": settings}
    again = train(make_recipe(more).run(), tmp_path / "more")
    assert again.trained_on == record.trained_on
    from_pretrained(tmp_path / "more")


def test_a_run_without_a_record_is_not_taken(tmp_path, capsys):
    assert main(["take", str(tmp_path)]) == 1
    assert "give the folder of a finished run" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["nonsense"])


class TestTrained:
    def test_its_folder_fits(self):
        files = list((BUNDLED_FOLDER / TINY).iterdir())
        assert sum(file.stat().st_size for file in files) < 15e6
        assert resolve_model(TINY) == str(BUNDLED_FOLDER / TINY)

    def test_it_says_what_it_was_trained_on(self, base):
        assert load_model(TINY).config.placevalue_trained_on == ["gsm8k", "word-problems"]
        assert load_tokenizer(TINY).get_vocab() == base.get_vocab()

    def test_it_can_add(self):
        model, tokenizer = load_model(TINY, dtype=torch.float32).eval(), load_tokenizer(TINY)
        sums = [(a, b) for a in range(3, 60, 7) for b in range(2, 40, 9)]
        asked = tokenizer([f"What is {a} + {b}?" for a, b in sums], padding=True, return_tensors="pt")
        said = tokenizer.batch_decode(model.generate(**asked, max_new_tokens=6), skip_special_tokens=True)
        assert sum(text == str(a + b) for text, (a, b) in zip(said, sums, strict=True)) > 0.8 * len(sums)

    def test_its_base_is_no_longer_bundled(self):
        with pytest.raises(ModelError, match=r"placevalue-tiny-untrained.*tools\.tiny_model prepare.*untrained"):
            load_model(f"{TINY}-untrained")
