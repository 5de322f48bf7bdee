"""What opens a saved folder, whoever wrote it: it answers as the saved model does, or says what to call."""

import copy
import json
import pickle
import subprocess
import sys

import pytest
import torch
import transformers
from datasets import Dataset
from peft import AutoPeftModel, AutoPeftModelForCausalLM, LoraConfig, PeftModel, PromptTuningConfig, get_peft_model
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3ForConditionalGeneration,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    SiglipVisionConfig,
    T5EncoderModel,
    T5Tokenizer,
    Trainer,
    TrainingArguments,
    pipeline,
)
from transformers.models.auto import tokenization_auto

import placevalue as pv
from families import base_tokenizer
from modeling.test_attach import TEXTS, assert_same, encode, prepared, run
from placevalue.common.errors import ModelError, TokenizerError
from placevalue.common.hub import load_model
from placevalue.tokenizer.tokenizer import CODE_MAP, is_rebuilt
from zoo import CAUSAL, MODELS, SEQ2SEQ, build

WHAT_TO_CALL = r"placevalue\.from_pretrained\(folder\)"
AUTO = dict.fromkeys(SEQ2SEQ, AutoModelForSeq2SeqLM) | dict.fromkeys(CAUSAL, AutoModelForCausalLM)
MODEL_TYPES = sorted({build(name)[0].config.model_type for name in MODELS})
ADAPTED = ["llama", "qwen2"]


def hidden(model, ids):
    """The last hidden states of any class for `ids`."""
    extra = {"decoder_input_ids": torch.tensor([[0, 5, 6]]).expand(len(ids), -1)}
    with torch.no_grad():
        found = model(input_ids=ids, output_hidden_states=True, **(extra if model.config.is_encoder_decoder else {}))
    return found.decoder_hidden_states[-1] if model.config.is_encoder_decoder else found.hidden_states[-1]


def answer(model, tokenizer, text):
    """What a decoder-only model writes after a text, with the text."""
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        made = model.generate(input_ids=ids, max_new_tokens=6, do_sample=False)[0]
    return tokenizer.decode(made, skip_special_tokens=True)


def openers(model, name):
    """Every way to open a folder without placevalue: names and functions."""
    auto = AUTO.get(name, AutoModelForMaskedLM)
    ways = {
        "the class": type(model).from_pretrained,
        "AutoModelFor": auto.from_pretrained,
        "AutoModel": AutoModel.from_pretrained,
        "with options": lambda folder: auto.from_pretrained(folder, dtype=torch.float32, device_map="cpu"),
        "safetensors only": lambda folder: auto.from_pretrained(folder, use_safetensors=True),
    }
    if name in CAUSAL:
        ways["pipeline"] = lambda folder: pipeline("text-generation", model=str(folder)).model
    return ways


def assert_refused(folder, model, name):
    for way in openers(model, name).values():
        with pytest.raises(ValueError, match=WHAT_TO_CALL):
            way(folder)


def assert_loads(folder, model, tokenizer):
    loaded, ours = pv.from_pretrained(folder)
    ids, mask = encode(tokenizer, TEXTS)
    assert torch.equal(encode(ours, TEXTS)[0], ids)
    assert_same(loaded.eval(), model.eval(), ids, mask)


@pytest.mark.parametrize("name", MODELS)
def test_a_folder_with_agg_says_what_to_call(name, tmp_path):
    model, tokenizer = prepared(name)
    pv.save_pretrained(model, tokenizer, tmp_path)
    assert_refused(tmp_path, model, name)
    assert_loads(tmp_path, model, tokenizer)
    assert AutoTokenizer.from_pretrained(tmp_path)(TEXTS)["input_ids"] == tokenizer(TEXTS)["input_ids"]
    with pytest.raises(ModelError, match=r"through \[AGG\].*placevalue.from_pretrained"):
        load_model(tmp_path)


@pytest.mark.parametrize("token", [None, "pause"])
@pytest.mark.parametrize("name", MODELS)
def test_other_layouts_make_ordinary_folders(name, token, tmp_path):
    model, tokenizer = prepared(name, token=token)
    pv.save_pretrained(model, tokenizer, tmp_path)
    ids, mask = encode(AutoTokenizer.from_pretrained(tmp_path), TEXTS)
    assert torch.equal(ids, encode(tokenizer, TEXTS)[0])
    for way, opened in openers(model, name).items():
        if way == "AutoModel":
            torch.testing.assert_close(hidden(opened(tmp_path), ids), hidden(model, ids))
        else:
            assert_same(opened(tmp_path), model, ids, mask)
    if name in CAUSAL:
        text = "the cat had 12 apples and 3"
        made = pipeline("text-generation", model=str(tmp_path))(text, max_new_tokens=6, do_sample=False)
        # The pipeline decodes what is new by itself, without the space that a word after a number begins with.
        assert made[0]["generated_text"].replace(" ", "") == answer(model, tokenizer, text).replace(" ", "")
    assert_loads(tmp_path, model, tokenizer)


def test_nobody_needs_to_import_placevalue(tmp_path):
    """In a process without placevalue: a refusal for [AGG], the right ids and logits for another layout."""
    ids = {}
    for token in ("agg", "pause"):
        model, tokenizer = prepared("qwen2", token=token)
        pv.save_pretrained(model, tokenizer, tmp_path / token)
        ids[token] = tokenizer(TEXTS[1])["input_ids"]
    code = f"""
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
ids = {{token: AutoTokenizer.from_pretrained(token)({TEXTS[1]!r})["input_ids"] for token in ("agg", "pause")}}
model = AutoModelForCausalLM.from_pretrained("pause")
logits = model(input_ids=torch.tensor([ids["pause"]])).logits[0, -1].tolist()
try:
    AutoModelForCausalLM.from_pretrained("agg")
except ValueError as error:
    print(json.dumps([ids, logits, str(error), "placevalue" in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, logits, error, imported = json.loads(done.stdout.splitlines()[-1])
    assert found == ids and "placevalue.from_pretrained(folder)" in error and not imported
    wanted = run(model, torch.tensor([ids["pause"]]))[0, -1]
    torch.testing.assert_close(torch.tensor(logits), wanted.detach(), rtol=1e-5, atol=1e-5)


def saved_by_transformers(model, tokenizer, folder):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def saved_in_shards(model, tokenizer, folder):
    model.save_pretrained(folder, max_shard_size="10KB")
    tokenizer.save_pretrained(folder)
    assert len(list(folder.glob("*.safetensors"))) > 1


def saved_as_a_copy(model, tokenizer, folder):
    pv.save_pretrained(copy.deepcopy(model), tokenizer, folder)


def saved_after_pickling(model, tokenizer, folder):
    pv.save_pretrained(pickle.loads(pickle.dumps(model)), tokenizer, folder)


def saved_twice(model, tokenizer, folder):
    pv.save_pretrained(model, tokenizer, folder / "first")
    again, tokenizer = pv.from_pretrained(folder / "first")
    saved_by_transformers(again, tokenizer, folder / "second")
    pv.save_pretrained(*pv.from_pretrained(folder / "second"), folder)


def saved_after_attaching_a_plain_load(model, tokenizer, folder):
    pv.save_pretrained(model, tokenizer, folder / "first")
    plain = type(model).from_pretrained(folder / "first", fusion_config={})
    pv.save_pretrained(pv.attach(plain, AutoTokenizer.from_pretrained(folder / "first")), tokenizer, folder)


def saved_after_merging(model, tokenizer, folder):
    merged = with_lora(model, tokenizer).merge_and_unload()
    saved_by_transformers(merged, tokenizer, folder)


@pytest.mark.parametrize(
    "save",
    [saved_by_transformers, saved_in_shards, saved_as_a_copy, saved_after_pickling, saved_twice,
     saved_after_attaching_a_plain_load, saved_after_merging],
)  # fmt: skip
@pytest.mark.parametrize("name", ["t5", "llama"])
def test_whoever_saved_it(name, save, tmp_path):
    model, tokenizer = prepared(name)
    save(model, tokenizer, tmp_path)
    assert_refused(tmp_path, model, name)
    assert_loads(tmp_path, model, tokenizer)


def settings(folder, kind=TrainingArguments, **options):
    common = dict(output_dir=str(folder), max_steps=4, save_steps=2, per_device_train_batch_size=2, learning_rate=1e-2,
                  use_cpu=True, report_to=[], disable_tqdm=True, seed=1)  # fmt: skip
    return kind(**common | options)


def trainers(name, model, tokenizer, folder, **options):
    """The trainer that people use for a kind of model, on the same few examples."""
    questions, answers = [f"{i} and {i}?" for i in range(8)], [str(2 * i) for i in range(8)]
    data = pv.encode_pairs(tokenizer, questions, answers)
    options |= dict(eval_strategy="steps", eval_steps=2, load_best_model_at_end=True)
    if name == "t5":
        arguments = settings(folder, Seq2SeqTrainingArguments, **options)
        kind, more = Seq2SeqTrainer, {"eval_dataset": data, "data_collator": pv.NumberCollator(tokenizer, model)}
    elif name == "sft":
        from trl import SFTConfig, SFTTrainer
        from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

        rows = [{"prompt": q, "completion": a} for q, a in zip(questions, answers, strict=True)]
        data, arguments, kind = Dataset.from_list(rows), settings(folder, SFTConfig, bf16=False, **options), SFTTrainer
        padding = DataCollatorForLanguageModeling(pad_token_id=tokenizer.pad_token_id)
        more = {"eval_dataset": data, "data_collator": pv.NumberCollator(tokenizer, collator=padding)}
    else:
        kind, arguments = Trainer, settings(folder, remove_unused_columns=False, **options)
        more = {"eval_dataset": data, "data_collator": pv.NumberCollator(tokenizer)}
    return kind(model=model, args=arguments, train_dataset=data, processing_class=tokenizer, **more)


@pytest.mark.parametrize("name", ["t5", "llama", "sft"])
def test_what_a_trainer_saves(name, tmp_path):
    kind = "t5" if name == "t5" else "llama"
    model, tokenizer = prepared(kind)
    trainer = trainers(name, model, tokenizer, tmp_path)
    trainer.train()
    trainer.save_model()
    for folder in (tmp_path / "checkpoint-2", tmp_path / "checkpoint-4", tmp_path):
        assert_refused(folder, model, kind)
    assert_loads(tmp_path, model, tokenizer)
    assert_loads(trainer.state.best_model_checkpoint, model, tokenizer)
    resumed, tokenizer = prepared(kind)
    trainer = trainers(name, resumed, tokenizer, tmp_path)
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert_same(resumed.eval(), model.eval(), *encode(tokenizer, TEXTS))


@pytest.mark.parametrize("name", SEQ2SEQ)
def test_an_encoder_saved_alone(name, tmp_path):
    """T5's has a copy of the config."""
    model, _ = prepared(name)
    model.get_encoder().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=WHAT_TO_CALL):
        (T5EncoderModel if name.startswith("t5") else AutoModel).from_pretrained(tmp_path)
    pv.detach(model)
    assert "fusion_config" not in vars(model.get_encoder().config)


@pytest.mark.parametrize("name", ["t5", "t5-padded", "llama"])
def test_a_detached_model_makes_an_ordinary_folder(name, tmp_path):
    model, tokenizer = prepared(name)
    ids = encode(build(name)[1], TEXTS)[0]
    pv.detach(model)
    assert "fusion_config" not in vars(model.config)
    model.save_pretrained(tmp_path)
    assert_same(type(model).from_pretrained(tmp_path), model, ids, None)


def test_fusions_of_the_model_itself_are_kept(tmp_path):
    model, tokenizer = prepared("llama")
    pv.detach(model)
    model.config.fusion_config = {"patch_embeddings": True}
    pv.save_pretrained(pv.attach(model, tokenizer), tokenizer, tmp_path)
    with pytest.raises(ValueError, match=WHAT_TO_CALL):
        AutoModel.from_pretrained(tmp_path)
    loaded, _ = pv.from_pretrained(tmp_path)
    pv.detach(loaded)
    assert loaded.config.fusion_config == {"patch_embeddings": True}


@pytest.mark.parametrize("seal", [None, {"placevalue. Other advice": True}])
def test_folders_of_other_versions_load(seal, tmp_path):
    """Those without a seal say nothing to transformers; saved once more, they do."""
    model, tokenizer = prepared("t5")
    pv.save_pretrained(model, tokenizer, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"fusion_config": seal}))
    assert_loads(tmp_path, model, tokenizer)
    pv.save_pretrained(*pv.from_pretrained(tmp_path), tmp_path)
    assert_refused(tmp_path, model, "t5")


def test_the_text_part_of_a_larger_model(tmp_path):
    small = build("gemma3")[0].config
    sight = SiglipVisionConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14
    )
    model = Gemma3ForConditionalGeneration(Gemma3Config(text_config=small, vision_config=sight, mm_tokens_per_image=4))
    tokenizer = pv.number_tokenizer(build("gemma3")[1], token="agg")
    pv.save_pretrained(pv.attach(model.eval(), tokenizer), tokenizer, tmp_path)
    for kind in (Gemma3ForConditionalGeneration, Gemma3ForCausalLM, AutoModelForCausalLM, AutoModel):
        with pytest.raises(ValueError, match=WHAT_TO_CALL):
            kind.from_pretrained(tmp_path)
    assert_loads(tmp_path, model, tokenizer)


class TestTokenizers:
    """AutoTokenizer gives ours, whatever the family and whatever the type of the model beside it."""

    def probe(self, tokenizer, folder, model_type):
        """What AutoTokenizer makes of a folder with a model of this type, attached to the tokenizer."""
        tokenizer.init_kwargs.pop("auto_map", None)
        if is_rebuilt(model_type):
            tokenizer.init_kwargs["auto_map"] = CODE_MAP
        tokenizer.save_pretrained(folder)
        (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
        loaded = AutoTokenizer.from_pretrained(folder)
        assert loaded(TEXTS)["input_ids"] == tokenizer(TEXTS)["input_ids"], model_type
        assert loaded.decode(loaded(TEXTS[1])["input_ids"]) == tokenizer.decode(tokenizer(TEXTS[1])["input_ids"])

    @pytest.mark.parametrize("model_type", MODEL_TYPES)
    def test_of_every_family(self, family, model_type, tmp_path):
        self.probe(pv.number_tokenizer(base_tokenizer(family), token="agg"), tmp_path, model_type)

    def test_of_every_model_type_that_auto_tokenizer_mistrusts(self, tmp_path):
        mistrusted = tokenization_auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS
        assert any(map(is_rebuilt, mistrusted)) and "qwen2" in mistrusted
        tokenizer = pv.number_tokenizer(base_tokenizer("bytes-qwen2"), token="agg")
        for model_type in sorted(mistrusted):
            self.probe(tokenizer, tmp_path, model_type)

    @pytest.mark.slow
    def test_of_every_model_type(self, tmp_path):
        tokenizer = pv.number_tokenizer(base_tokenizer("bytes-qwen2"), token="agg")
        for model_type in sorted(tokenization_auto.TOKENIZER_MAPPING_NAMES):
            (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
            try:
                AutoConfig.from_pretrained(tmp_path)
            except Exception:
                continue  # it needs another package, or more than its defaults
            self.probe(tokenizer, tmp_path, model_type)

    def test_saved_by_a_loaded_one(self, tmp_path):
        model, tokenizer = prepared("qwen2", token="pause")
        pv.save_pretrained(model, tokenizer, tmp_path)
        AutoTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path)
        assert AutoTokenizer.from_pretrained(tmp_path)(TEXTS)["input_ids"] == tokenizer(TEXTS)["input_ids"]
        pv.save_pretrained(*pv.from_pretrained(tmp_path), tmp_path)
        assert AutoTokenizer.from_pretrained(tmp_path)(TEXTS)["input_ids"] == tokenizer(TEXTS)["input_ids"]

    def test_a_class_that_drops_the_pipeline_is_noticed_when_it_encodes(self, tmp_path):
        """Not before: transformers builds such a class from the vocabulary alone, without a word."""
        model, tokenizer = prepared("t5")
        pv.save_pretrained(model, tokenizer, tmp_path)
        other = T5Tokenizer.from_pretrained(tmp_path)
        for encode_with in (pv.encode_questions, lambda *given: pv.encode_pairs(*given, ["12"])):
            with pytest.raises(TokenizerError, match=r"T5Tokenizer is not what was saved.*from_pretrained"):
                encode_with(other, ["12 and 5?"])

    def test_trusting_remote_code(self, tmp_path):
        for name in ("qwen2", "llama"):
            model, tokenizer = prepared(name, token="pause")
            pv.save_pretrained(model, tokenizer, tmp_path / name)
        opened = AutoTokenizer.from_pretrained(tmp_path / "llama", trust_remote_code=True)
        assert opened(TEXTS)["input_ids"] == tokenizer(TEXTS)["input_ids"]
        with pytest.raises(OSError, match="leave out trust_remote_code=True"):
            AutoTokenizer.from_pretrained(tmp_path / "qwen2", trust_remote_code=True)

    def test_attached_to_another_model(self):
        tokenizer = pv.number_tokenizer(base_tokenizer("bytes-qwen2"), token="pause")
        for name in ("qwen2", "llama"):
            model, _ = build(name)
            model.resize_token_embeddings(len(tokenizer) + 5)
            pv.attach(model, tokenizer)
            assert ("auto_map" in tokenizer.init_kwargs) == (name == "qwen2")
            pv.detach(model)
            assert "auto_map" not in tokenizer.init_kwargs


def with_lora(model, tokenizer, trained=True, task=None):
    """LoRA whose matrices are not zero, so that it changes the answers."""
    indices = pv.trainable_tokens(model, tokenizer) if trained else None
    targets = ["q", "v"] if model.config.model_type == "t5" else ["q_proj", "v_proj"]
    return get_peft_model(
        model,
        LoraConfig(
            r=2, target_modules=targets, task_type=task, init_lora_weights=False, trainable_token_indices=indices
        ),
    ).eval()


def on_a_base(name, folder, token="agg", **options):
    """A model that was loaded from `folder/base`, attached, and given an adapter."""
    model, base = build(name)
    model.resize_token_embeddings(len(base) + 9, mean_resizing=False)  # room for the markers, as real models have
    model.save_pretrained(folder / "base")
    base.save_pretrained(folder / "base")
    tokenizer = pv.number_tokenizer(base, token=token)
    model = pv.attach(type(model).from_pretrained(folder / "base"), tokenizer)
    return with_lora(model, tokenizer, **options), tokenizer


def adapter_openers(folder, task):
    """Every way to open an adapter without placevalue."""
    auto = AutoPeftModel if task is None else AutoPeftModelForCausalLM

    def into_a_model(adapter):
        model = AutoModelForCausalLM.from_pretrained(folder / "base")
        model.load_adapter(str(adapter))
        return model

    return {
        "PeftModel": lambda adapter: PeftModel.from_pretrained(
            AutoModelForCausalLM.from_pretrained(folder / "base"), adapter
        ),
        "AutoPeftModel": auto.from_pretrained,
        "AutoModelForCausalLM": AutoModelForCausalLM.from_pretrained,
        "load_adapter": into_a_model,
        "pipeline": lambda adapter: pipeline("text-generation", model=str(adapter)).model,
    }


def saved_by_peft(model, tokenizer, folder):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


class TestAdapters:
    @pytest.mark.parametrize("task", [None, "CAUSAL_LM"])
    @pytest.mark.parametrize("save", [pv.save_pretrained, saved_by_peft])
    @pytest.mark.parametrize("name", ADAPTED)
    def test_with_agg_says_what_to_call(self, name, save, task, tmp_path):
        model, tokenizer = on_a_base(name, tmp_path, task=task)
        save(model, tokenizer, tmp_path / "out")
        for way in adapter_openers(tmp_path, task).values():
            with pytest.raises(ValueError, match=WHAT_TO_CALL):
                way(tmp_path / "out")
        assert_loads(tmp_path / "out", model, tokenizer)
        loaded = pv.from_pretrained(tmp_path / "out")[0]
        assert type(loaded) is type(model) and loaded.peft_config["default"].task_type == task

    @pytest.mark.parametrize("task", [None, "CAUSAL_LM"])
    @pytest.mark.parametrize("name", ADAPTED)
    def test_that_hold_all_they_need_open_anywhere(self, name, task, tmp_path):
        model, tokenizer = on_a_base(name, tmp_path, token="pause", task=task)
        pv.save_pretrained(model, tokenizer, tmp_path / "out")
        ids, mask = encode(AutoTokenizer.from_pretrained(tmp_path / "out"), TEXTS)
        assert torch.equal(ids, encode(tokenizer, TEXTS)[0])
        for name_of_way, way in adapter_openers(tmp_path, task).items():
            if "Peft" not in name_of_way and transformers.__version__.startswith("5.17."):
                continue  # it leaves out trainable tokens, and logs them as missing and unexpected
            with torch.no_grad():
                torch.testing.assert_close(run(way(tmp_path / "out").eval(), ids, mask), run(model, ids, mask))
        assert_loads(tmp_path / "out", model, tokenizer)

    def test_without_the_rows_of_the_markers(self, tmp_path):
        """`attach` set rows of the base that such an adapter does not hold."""
        model, tokenizer = on_a_base("llama", tmp_path, token="pause", trained=False)
        pv.save_pretrained(model, tokenizer, tmp_path / "out")
        for way in adapter_openers(tmp_path, None).values():
            with pytest.raises(ValueError, match=WHAT_TO_CALL):
                way(tmp_path / "out")
        assert_loads(tmp_path / "out", model, tokenizer)

    def test_what_a_trainer_saves(self, tmp_path):
        model, tokenizer = on_a_base("llama", tmp_path)
        trainer = trainers("llama", model, tokenizer, tmp_path / "run")
        trainer.train()
        trainer.save_model()
        for folder in (tmp_path / "run" / "checkpoint-2", tmp_path / "run" / "checkpoint-4", tmp_path / "run"):
            with pytest.raises(ValueError, match=WHAT_TO_CALL):
                PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tmp_path / "base"), folder)
        assert_loads(tmp_path / "run", model, tokenizer)
        assert_loads(trainer.state.best_model_checkpoint, model, tokenizer)
        resumed, tokenizer = on_a_base("llama", tmp_path)
        trainer = trainers("llama", resumed, tokenizer, tmp_path / "run")
        trainer.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-2"))
        assert_same(resumed.eval(), model.eval(), *encode(tokenizer, TEXTS))

    def test_added_by_transformers(self, tmp_path):
        model, tokenizer = prepared("llama")
        model.add_adapter(LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
        model.save_pretrained(tmp_path)
        with pytest.raises(ValueError, match=WHAT_TO_CALL):
            build("llama")[0].load_adapter(str(tmp_path))

    def test_prompt_tuning(self, tmp_path):
        model, tokenizer = on_a_base("llama", tmp_path)
        model = get_peft_model(model.unload(), PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)).eval()
        pv.save_pretrained(model, tokenizer, tmp_path / "out")
        with pytest.raises(ValueError, match=WHAT_TO_CALL):
            PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tmp_path / "base"), tmp_path / "out")
        assert_loads(tmp_path / "out", model, tokenizer)

    def test_on_a_base_with_agg(self, tmp_path):
        """The base of the adapter is itself a folder that only placevalue opens."""
        model, tokenizer = prepared("llama")
        pv.save_pretrained(model, tokenizer, tmp_path / "base")
        adapted = with_lora(pv.from_pretrained(tmp_path / "base")[0], tokenizer)
        pv.save_pretrained(adapted, tokenizer, tmp_path / "out")
        assert_loads(tmp_path / "out", adapted, tokenizer)

    def test_a_second_one(self, tmp_path):
        """As docs/loading.md says: with the config given, PEFT does not read the one in the folder."""
        model, tokenizer = on_a_base("llama", tmp_path)
        pv.save_pretrained(model, tokenizer, tmp_path / "out")
        other, _ = on_a_base("llama", tmp_path)
        with pytest.raises(ValueError, match=WHAT_TO_CALL):
            other.load_adapter(tmp_path / "out", "second")
        other.add_adapter("second", model.peft_config["default"])
        other.load_adapter(tmp_path / "out", "second")
        other.set_adapter("second")
        ids, mask = encode(tokenizer, TEXTS)
        torch.testing.assert_close(run(other, ids, mask), run(model, ids, mask))

    def test_one_config_for_two_models(self, tmp_path):
        """Saving an attached model leaves the config as it was, for a model that is not attached."""
        config = LoraConfig(r=2, target_modules=["q_proj"])
        attached = get_peft_model(prepared("llama")[0], config)
        attached.save_pretrained(tmp_path / "attached")
        get_peft_model(build("llama")[0], config).save_pretrained(tmp_path / "plain")
        PeftModel.from_pretrained(build("llama")[0], tmp_path / "plain")
        with pytest.raises(ValueError, match=WHAT_TO_CALL):
            PeftModel.from_pretrained(build("llama")[0], tmp_path / "attached")

    def test_the_seal_of_another_version(self, tmp_path):
        model, tokenizer = on_a_base("llama", tmp_path)
        pv.save_pretrained(model, tokenizer, tmp_path / "out")
        file = tmp_path / "out" / "adapter_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"task_type": "CAUSAL_LM with placevalue, or so"}))
        assert pv.from_pretrained(tmp_path / "out")[0].peft_config["default"].task_type == "CAUSAL_LM"

    def test_detached(self, tmp_path):
        model, tokenizer = on_a_base("llama", tmp_path)
        model.state_dict()
        pv.detach(model.get_base_model())
        model.save_pretrained(tmp_path / "out")
        opened = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tmp_path / "base"), tmp_path / "out")
        ids, mask = encode(build("llama")[1], TEXTS)
        torch.testing.assert_close(run(opened, ids, mask), run(model, ids, mask))
