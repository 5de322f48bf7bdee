import json

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Qwen2Tokenizer,
    Trainer,
    TrainingArguments,
)

import placevalue as pv
from modeling.test_attach import TEXTS, assert_same, check_rows, encode, prepared, run
from placevalue.common.errors import AttachError, CheckpointError, ConfigError, ModelError, TokenizerError
from zoo import CAUSAL, MODELS, build

PAIRS = [f"the cat had {i} and {i * 7}.5" for i in range(16)], [str(i * 8) for i in range(16)]


def first_digit(values, places, embeddings):
    return embeddings[values[0]]


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded_the_same(name, tmp_path):
    model, tokenizer = prepared(name, "interpolated", position="after")
    pv.save_pretrained(model, tokenizer, tmp_path)
    loaded, tokenizer2 = pv.from_pretrained(tmp_path)
    ids, mask = encode(tokenizer, TEXTS)
    assert torch.equal(encode(tokenizer2, TEXTS)[0], ids)
    assert type(loaded) is type(model)
    assert_same(loaded, model, ids, mask)
    check_rows(loaded, tokenizer2, ids, "interpolated", 1e-6)
    assert json.loads((tmp_path / "config.json").read_text())["placevalue"]["aggregation"] == "interpolated"


@pytest.mark.parametrize("name", ["t5", "t5-untied", "llama", "bert"])
def test_a_plain_load_works_and_attaches_with_what_the_config_says(name, tmp_path):
    model, tokenizer = prepared(name, "median")
    pv.save_pretrained(model, tokenizer, tmp_path)
    auto = AutoModelForSeq2SeqLM if name.startswith("t5") else AutoModelForCausalLM if name in CAUSAL else AutoModel
    plain = auto.from_pretrained(tmp_path, fusion_config={})
    assert not pv.is_attached(plain)
    pv.attach(plain, AutoTokenizer.from_pretrained(tmp_path))
    ids, mask = encode(tokenizer, TEXTS)
    if auto is not AutoModel:
        assert_same(plain, model, ids, mask)
        check_rows(plain, tokenizer, ids, "median", 1e-6)


def trainer(model, tokenizer, folder, **options):
    data = pv.encode_pairs(tokenizer, *PAIRS)
    arguments = TrainingArguments(
        folder, max_steps=4, save_steps=2, eval_steps=2, eval_strategy="steps", per_device_train_batch_size=4,
        learning_rate=1e-2, report_to=[], use_cpu=True, disable_tqdm=True, seed=1, **options,
    )  # fmt: skip
    collator = DataCollatorForSeq2Seq(tokenizer, model=model)
    return Trainer(model, arguments, train_dataset=data, eval_dataset=data[:4], data_collator=collator)


@pytest.mark.parametrize("name", ["t5", "bart", "llama", "gpt2"])
def test_every_trainer_checkpoint_loads(name, tmp_path):
    model, tokenizer = prepared(name)
    before = run(model, *encode(tokenizer, TEXTS)).detach()
    training = trainer(model, tokenizer, tmp_path, load_best_model_at_end=True)
    training.train()
    ids, mask = encode(tokenizer, TEXTS)
    model.eval()
    after = run(model, ids, mask)
    assert not torch.equal(before, after)
    best = training.state.best_model_checkpoint
    loaded, tokenizer2 = pv.from_pretrained(best)
    assert torch.equal(encode(tokenizer2, TEXTS)[0], ids)
    assert_same(loaded, model, ids, mask)
    check_rows(loaded, tokenizer2, ids, "weighted", 1e-6)
    for folder in ("checkpoint-2", "checkpoint-4"):
        assert pv.is_attached(pv.from_pretrained(tmp_path / folder)[0])


def test_a_resumed_training_is_the_same_training(tmp_path):
    model, tokenizer = prepared("t5")
    trainer(model, tokenizer, tmp_path / "whole").train()
    again, tokenizer = prepared("t5")
    trainer(again, tokenizer, tmp_path / "whole").train(resume_from_checkpoint=str(tmp_path / "whole/checkpoint-2"))
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_checkpoint_keeps_its_rows_when_attached_again(tmp_path):
    model, tokenizer = prepared("t5-padded")
    with torch.no_grad():
        model.get_input_embeddings().weight[pv.marker_ids(tokenizer)["open"]] = 3.0
    pv.save_pretrained(model, tokenizer, tmp_path)
    loaded, _ = pv.from_pretrained(tmp_path)
    assert (loaded.get_input_embeddings().weight[pv.marker_ids(tokenizer)["open"]] == 3.0).all()
    pv.detach(loaded)
    assert (loaded.get_input_embeddings().weight[pv.marker_ids(tokenizer)["open"]] == 3.0).all()


def test_dtype_and_hub_options_reach_the_model(tmp_path):
    model, tokenizer = prepared("llama")
    pv.save_pretrained(model, tokenizer, tmp_path)
    assert pv.from_pretrained(tmp_path, dtype=torch.bfloat16)[0].dtype == torch.bfloat16


def test_a_function_of_ones_own_is_asked_for(tmp_path):
    model, base = build("t5")
    tokenizer = pv.number_tokenizer(base, token="agg")
    mine = pv.per_number(first_digit)
    pv.attach(model, tokenizer, aggregation=mine)
    pv.save_pretrained(model, tokenizer, tmp_path)
    with pytest.raises(ConfigError, match="first_digit"):
        pv.from_pretrained(tmp_path)
    loaded, _ = pv.from_pretrained(tmp_path, aggregation=mine)
    ids, mask = encode(tokenizer, TEXTS)
    assert_same(loaded, model, ids, mask)


class TestErrors:
    def test_training_without_attaching(self, tmp_path, caplog):
        model, base = build("t5-padded")
        tokenizer = pv.number_tokenizer(base, token="agg")
        tokenizer.init_kwargs["placevalue"]["encoder_decoder"] = True
        training = trainer(model, tokenizer, tmp_path)
        assert "no model is attached" in caplog.text
        training.add_callback(pv.RequireAttached(tokenizer))
        with pytest.raises(AttachError, match=r"token='agg'.*not attached.*attach\(model, tokenizer\)"):
            training.train()

    def test_saving_what_was_never_attached(self, tmp_path):
        model, base = build("t5-padded")
        with pytest.raises(AttachError, match=r"call attach\(model, tokenizer\) first"):
            pv.save_pretrained(model, pv.number_tokenizer(base, token="agg"), tmp_path)

    def test_trained_without_attaching(self, tmp_path):
        model, base = build("t5-padded")
        model.save_pretrained(tmp_path)
        pv.number_tokenizer(base, token="agg").save_pretrained(tmp_path)
        with pytest.raises(CheckpointError, match="never attached"):
            pv.from_pretrained(tmp_path)

    def test_missing_folder(self, tmp_path):
        with pytest.raises(ModelError, match="is not an existing folder"):
            pv.from_pretrained(tmp_path / "nothing")
        with pytest.raises(ModelError, match="no folder of this name exists"):
            pv.from_pretrained("out")

    def test_no_hub(self):
        with pytest.raises(ModelError, match="no folder of this name exists, and the model hub cannot be reached"):
            pv.from_pretrained("some-owner/some-model")

    def test_no_tokenizer(self, tmp_path):
        model, tokenizer = prepared("t5")
        model.save_pretrained(tmp_path)
        with pytest.raises(CheckpointError, match="has no tokenizer.json"):
            pv.from_pretrained(tmp_path)
        assert pv.is_attached(pv.from_pretrained(tmp_path, tokenizer=tokenizer)[0])

    def test_plain_tokenizer(self, tmp_path):
        model, _ = prepared("t5")
        model.save_pretrained(tmp_path)
        build("t5")[1].save_pretrained(tmp_path)
        with pytest.raises(CheckpointError, match="does not write numbers"):
            pv.from_pretrained(tmp_path)

    def test_a_tokenizer_that_its_class_rebuilt(self, tmp_path):
        model, tokenizer = prepared("qwen2")
        pv.save_pretrained(model, tokenizer, tmp_path)
        rebuilt = Qwen2Tokenizer.from_pretrained(tmp_path)
        assert rebuilt(TEXTS)["input_ids"] != tokenizer(TEXTS)["input_ids"]
        with pytest.raises(TokenizerError, match="not what was saved"):
            pv.attach(AutoModelForCausalLM.from_pretrained(tmp_path, fusion_config={}), rebuilt)

    def test_another_tokenizer(self, tmp_path):
        model, tokenizer = prepared("t5")
        pv.save_pretrained(model, tokenizer, tmp_path)
        with pytest.raises(AttachError, match="made for a tokenizer with"):
            pv.from_pretrained(tmp_path, tokenizer=pv.number_tokenizer(build("gpt2")[1], token="agg"))

    def test_another_layout(self, tmp_path):
        model, tokenizer = prepared("t5")
        pv.save_pretrained(model, tokenizer, tmp_path)
        for options in (
            {"token": "pause"},
            {"token": "agg", "position": "after"},
            {"token": "agg", "ignore": "ID[0-9]"},
        ):
            with pytest.raises(AttachError, match="made for a tokenizer with"):
                pv.from_pretrained(tmp_path, tokenizer=pv.number_tokenizer(build("t5")[1], **options))

    def test_a_folder_of_checkpoints(self, tmp_path):
        (tmp_path / "checkpoint-5").mkdir()
        with pytest.raises(CheckpointError, match="checkpoint-N"):
            pv.from_pretrained(tmp_path)

    def test_damaged_settings(self, tmp_path):
        model, tokenizer = prepared("t5")
        pv.save_pretrained(model, tokenizer, tmp_path)
        config = json.loads((tmp_path / "config.json").read_text())
        del config["placevalue"]["ids"]["open"]
        config["placevalue"]["ids"]["opne"] = 7
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(ConfigError, match=r"ids.opne is unknown: is ids.open meant\?; ids.open is missing"):
            pv.from_pretrained(tmp_path)
