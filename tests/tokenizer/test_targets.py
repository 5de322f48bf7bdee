"""Targets that other tools make: cleaned by the collator, refused without it, and trained to right answers."""

import logging

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import (
    DataCollatorForSeq2Seq,
    LlamaConfig,
    LlamaForSequenceClassification,
    LlamaForTokenClassification,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainingArguments,
)

import placevalue as pv
from placevalue.common.errors import AttachError, ConfigError
from zoo import build

QUESTIONS = ["7 and 12?", "30 and 4?", "5 and 95?", "1 and 2?"]
ANSWERS = ["19", "34", "100", "3"]


def prepared(name, token="agg", position="before"):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, token=token, position=position)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    pv.attach(model, tokenizer)
    return model, tokenizer


def arguments(folder, kind=TrainingArguments, **options):
    settings = dict(output_dir=str(folder), use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, seed=0)
    settings |= dict(max_steps=150, per_device_train_batch_size=4, learning_rate=1e-2, logging_strategy="no")
    return kind(**settings | options)


def in_pairs(tokenizer):
    """What people write: prompt and answer tokenised by the tokenizer itself, the prompt without loss."""
    rows = []
    for question, answer in zip(QUESTIONS, ANSWERS, strict=True):
        prompt = tokenizer(question + "\n", add_special_tokens=False)["input_ids"]
        target = [*tokenizer(answer, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        rows.append({"input_ids": prompt + target, "labels": [-100] * len(prompt) + target})
    return rows


def in_two(tokenizer):
    """What the documentation of transformers shows for an encoder-decoder."""
    encoded = tokenizer(QUESTIONS, text_target=ANSWERS)
    return [{key: encoded[key][index] for key in encoded} for index in range(len(QUESTIONS))]


def answers_of(model, tokenizer, prompts):
    """What a trained model writes after each prompt, given as ids."""
    found = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        stop = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": tokenizer.pad_token_id}
        with torch.no_grad():
            made = model.eval().generate(input_ids=ids, eos_token_id=tokenizer.eos_token_id, **stop)[0]
        new = made if model.config.is_encoder_decoder else made[ids.shape[1] :]
        found.append(tokenizer.decode(new, skip_special_tokens=True).strip())
    return found


@pytest.mark.parametrize("token", ["agg", "pause"])
@pytest.mark.parametrize("position", ["before", "after"])
@pytest.mark.parametrize("name", ["llama", "t5"])
def test_what_is_written_is_cleaned_and_what_is_read_is_not(name, token, position):
    model, tokenizer = prepared(name, token, position)
    marker = pv.marker_ids(tokenizer)[token]
    rows = in_two(tokenizer) if name == "t5" else in_pairs(tokenizer)
    wanted = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)
    for row, right in zip(rows, wanted, strict=True):
        assert marker in row["labels"]
        assert pv.clean_targets(tokenizer, row) == right and marker in right["input_ids"]
    batch = pv.NumberCollator(tokenizer, model)(rows)
    assert not (batch["labels"] == marker).any() and (batch["input_ids"] == marker).any()


def test_every_turn_that_carries_loss_is_cleaned():
    _, tokenizer = prepared("llama")
    turn = tokenizer("7 is 12.", add_special_tokens=False)["input_ids"]
    ids, labels = turn * 4, ([-100] * len(turn) + turn) * 2
    found = pv.clean_targets(tokenizer, {"input_ids": ids, "labels": labels, "token_type_ids": [0] * len(ids)})
    agg = pv.marker_ids(tokenizer)["agg"]
    spoken = [i for i in turn if i != agg]
    assert found["input_ids"] == (turn + spoken) * 2
    assert found["labels"] == ([-100] * len(turn) + spoken) * 2
    assert len(found["attention_mask"]) == len(found["token_type_ids"]) == len(found["input_ids"])


def test_numbers_are_learnt_whole_and_cut_ones_are_cleaned_too():
    _, tokenizer = prepared("llama")
    markers = pv.marker_ids(tokenizer)
    opened, agg, *digits, closed = tokenizer("12", add_special_tokens=False)["input_ids"]
    assert (opened, agg, closed) == (markers["open"], markers["agg"], markers["close"])
    by_characters = {"input_ids": [opened, agg, *digits, closed], "labels": [-100, -100, *digits, -100]}
    found = pv.clean_targets(tokenizer, by_characters)
    assert found["input_ids"] == found["labels"] == [opened, *digits, closed]
    read = {"input_ids": [opened, agg, *digits, closed], "labels": [-100] * 5}
    assert pv.clean_targets(tokenizer, read)["input_ids"] == read["input_ids"]
    cut = {"input_ids": [digits[0], opened, agg, digits[0]], "labels": [-100, opened, agg, digits[0]]}
    assert pv.clean_targets(tokenizer, cut)["labels"] == [-100, opened, digits[0]]


@pytest.mark.parametrize("form", [torch.tensor, np.array])
@pytest.mark.parametrize("name", ["llama", "t5"])
def test_tensors_and_arrays_are_cleaned_as_lists_are(name, form):
    model, tokenizer = prepared(name)
    rows = in_two(tokenizer) if name == "t5" else in_pairs(tokenizer)
    for row in rows:
        assert pv.clean_targets(tokenizer, {key: form(ids) for key, ids in row.items()}) == pv.clean_targets(
            tokenizer, row
        )


@pytest.mark.parametrize("mask", ["completion_mask", "assistant_masks"])
def test_masks_say_what_carries_loss_if_there_are_no_labels(mask):
    _, tokenizer = prepared("llama")
    for row in in_pairs(tokenizer):
        masked = {"input_ids": row["input_ids"], mask: [int(label != -100) for label in row["labels"]]}
        found, wanted = pv.clean_targets(tokenizer, masked), pv.clean_targets(tokenizer, row)
        assert found["labels"] == wanted["labels"] and found["input_ids"] == wanted["input_ids"]


def test_what_cannot_be_cleaned_is_an_error():
    _, tokenizer = prepared("llama")
    ids = tokenizer("7 is 12.", add_special_tokens=False)["input_ids"]
    with pytest.raises(ConfigError, match=r"every token .* carries loss, \[AGG\] included.*completion_only_loss"):
        pv.clean_targets(tokenizer, {"input_ids": ids})
    with pytest.raises(ConfigError, match="before they are packed"):
        pv.clean_targets(tokenizer, {"input_ids": ids, "labels": ids, "seq_lengths": [len(ids)]})
    plain = tokenizer("no numbers", add_special_tokens=False)["input_ids"]
    assert pv.clean_targets(tokenizer, {"input_ids": plain})["labels"] == plain
    with pytest.raises(ConfigError, match="example with text has no input_ids: tokenize it"):
        pv.clean_targets(tokenizer, {"text": "7 is 12."})
    with pytest.raises(ConfigError, match=r"has 2 input_ids and 1 labels.*-100 for those of the prompt"):
        pv.clean_targets(tokenizer, {"input_ids": plain[:2], "labels": plain[:1]})
    model, two_part = prepared("t5")
    with pytest.raises(ConfigError, match=r"no model was given.*NumberCollator\(tokenizer, model\)"):
        pv.NumberCollator(two_part)
    with pytest.raises(ConfigError, match=r"has no labels, the answer .* text_target=answers"):
        pv.NumberCollator(two_part, model)([two_part("7 and 12?")])


class TestWithout:
    """Without the collator the first batch is refused, whichever way the labels come."""

    def test_trainer(self, tmp_path):
        model, tokenizer = prepared("llama")
        collator = DataCollatorForSeq2Seq(tokenizer, label_pad_token_id=-100)
        rows = [{**row, "attention_mask": [1] * len(row["input_ids"])} for row in in_pairs(tokenizer)]
        for loss in (None, pv.AggregationLoss(model, tokenizer)):
            trainer = Trainer(
                model, arguments(tmp_path), train_dataset=rows, data_collator=collator, compute_loss_func=loss
            )
            with pytest.raises(AttachError, match="never writes.*NumberCollator"):
                trainer.train()

    @pytest.mark.parametrize("with_loss", [False, True])
    @pytest.mark.parametrize("name", ["llama", "t5"])
    def test_evaluation(self, name, with_loss, tmp_path):
        """Also where no training has gone before, and after batches without numbers."""
        model, tokenizer = prepared(name)
        rows = (
            in_two(tokenizer)
            if name == "t5"
            else [each | {"attention_mask": [1] * len(each["labels"])} for each in in_pairs(tokenizer)]
        )
        trainer = Trainer(
            model,
            arguments(tmp_path, max_steps=25),
            train_dataset=pv.encode_pairs(tokenizer, ["and?"] * 4, ["no"] * 4),
            eval_dataset=rows,
            data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
            compute_loss_func=pv.AggregationLoss(model, tokenizer) if with_loss else None,
        )
        for _ in range(2):
            with pytest.raises(AttachError, match="never writes.*NumberCollator"):
                trainer.evaluate()
            trainer.train()
        trainer.train_dataset = rows
        with pytest.raises(AttachError, match="never writes.*NumberCollator"):
            trainer.train()

    def test_a_loss_does_not_mix_up_batches(self):
        """A batch of evaluation may look like the last of training, whose [AGG] then seems to be learnt."""
        model, tokenizer = prepared("llama")
        loss = pv.AggregationLoss(model, tokenizer)
        agg, word = pv.marker_ids(tokenizer)["agg"], tokenizer("no", add_special_tokens=False)["input_ids"][0]
        ids = torch.tensor([tokenizer("12 is 12", add_special_tokens=False)["input_ids"]])
        labels = torch.full_like(ids, word)
        model.train()(input_ids=ids)
        outputs = model.eval()(input_ids=labels)
        assert (ids == agg).any() and loss(outputs, labels).isfinite()

    def test_seq2seq_trainer(self, tmp_path):
        model, tokenizer = prepared("t5")
        settings = arguments(tmp_path, Seq2SeqTrainingArguments)
        for collator in (DataCollatorForSeq2Seq(tokenizer), DataCollatorForSeq2Seq(tokenizer, model=model)):
            trainer = Seq2SeqTrainer(model, settings, train_dataset=in_two(tokenizer), data_collator=collator)
            with pytest.raises(AttachError, match="never writes.*NumberCollator"):
                trainer.train()

    @pytest.mark.parametrize(
        "token, position",
        [(None, "before"), ("pause", "before"), ("pause", "after"), ("agg", "before"), ("agg", "after")],
    )
    def test_masks_that_go_by_characters(self, token, position):
        """As TRL's of chat turns: they hold digits, and no marker, so that a model would never end a number."""
        model, tokenizer = prepared("llama", token, position)
        row = in_pairs(tokenizer)[2]
        markers = set(pv.marker_ids(tokenizer).values())
        labels = [-100 if label in markers else label for label in row["labels"]]
        for loss in (None, pv.AggregationLoss(model, tokenizer)):
            batch = {"input_ids": torch.tensor([row["input_ids"]])} | (
                {} if loss else {"labels": torch.tensor([labels])}
            )
            with pytest.raises(AttachError, match=r"(never writes|does not).*NumberCollator"):
                outputs = model.train()(**batch)
                loss(outputs, torch.tensor([labels]))
        cleaned = pv.NumberCollator(tokenizer)([{"input_ids": row["input_ids"], "labels": labels}])
        assert model(**cleaned).loss.isfinite()

    @pytest.mark.parametrize("name", ["t5", "bart"])
    def test_a_collator_without_the_model(self, name, tmp_path):
        model, tokenizer = prepared(name)
        trainer = Seq2SeqTrainer(
            model,
            arguments(tmp_path, Seq2SeqTrainingArguments),
            train_dataset=pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS),
            data_collator=DataCollatorForSeq2Seq(tokenizer),
            compute_loss_func=pv.AggregationLoss(model, tokenizer),
        )
        with pytest.raises(AttachError, match="without decoder_input_ids.*model=model"):
            trainer.train()

    def test_prompts_padded_on_the_right(self, monkeypatch, caplog):
        """The word comes from transformers; this fails if it no longer does."""
        model, tokenizer = prepared("llama")
        tokenizer.padding_side = "right"
        prompts = tokenizer.pad(pv.encode_questions(tokenizer, ["7 and 12 and 9?", "1?"]), return_tensors="pt")
        transformers_log = logging.getLogger("transformers")
        monkeypatch.setattr(transformers_log, "propagate", True)
        monkeypatch.setattr(transformers_log, "level", logging.WARNING)
        model.eval().generate(**prompts, max_new_tokens=2, pad_token_id=tokenizer.pad_token_id)
        assert "right-padding was detected" in caplog.text and "padding_side='left'" in caplog.text


class TestOtherLabels:
    """Labels that are no text are nobody's fault."""

    def test_classes_and_values(self):
        base = build("llama")[1]
        tokenizer = pv.number_tokenizer(base, token="agg")
        ids = torch.tensor([tokenizer("7 is 12.")["input_ids"]])
        agg = pv.marker_ids(tokenizer)["agg"]
        config = {"vocab_size": len(base), "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
        config |= {"num_attention_heads": 2, "pad_token_id": 0}
        for kind, labels, settings in (
            (LlamaForTokenClassification, torch.ones_like(ids), {"num_labels": 2}),
            (
                LlamaForSequenceClassification,
                torch.tensor([[float(agg)]]),
                {"num_labels": 1, "problem_type": "regression"},
            ),
        ):
            model = pv.attach(kind(LlamaConfig(**config, **settings)), tokenizer)
            assert model.train()(ids, labels=labels).loss.isfinite()
            with pytest.raises(ConfigError, match="does not write texts from left to right"):
                pv.AggregationLoss(model, tokenizer)

    def test_what_a_mask_hides(self):
        model, base = build("bert")
        tokenizer = pv.number_tokenizer(base, token="agg")
        pv.attach(model, tokenizer)
        ids = torch.tensor([tokenizer("7 is 12.")["input_ids"]])
        assert model.train()(ids, labels=ids).loss.isfinite()
        with pytest.raises(ConfigError, match="BertForMaskedLM does not write texts from left to right"):
            pv.AggregationLoss(model, tokenizer)


class TestWith:
    """With the collator each tool trains a small model that then answers."""

    def test_trainer(self, tmp_path):
        model, tokenizer = prepared("llama")
        collator = pv.NumberCollator(tokenizer)
        Trainer(model, arguments(tmp_path), train_dataset=in_pairs(tokenizer), data_collator=collator).train()
        prompts = [tokenizer(question + "\n", add_special_tokens=False)["input_ids"] for question in QUESTIONS]
        assert answers_of(model, tokenizer, prompts) == ANSWERS

    def test_seq2seq_trainer(self, tmp_path):
        model, tokenizer = prepared("t5")
        settings = arguments(tmp_path, Seq2SeqTrainingArguments, max_steps=300)
        collator = pv.NumberCollator(tokenizer, model)
        Seq2SeqTrainer(model, settings, train_dataset=in_two(tokenizer), data_collator=collator).train()
        assert answers_of(model, tokenizer, tokenizer(QUESTIONS)["input_ids"]) == ANSWERS

    @pytest.mark.parametrize("chat", [False, True])
    def test_sft_trainer(self, chat, tmp_path):
        from trl import SFTConfig, SFTTrainer
        from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

        model, tokenizer = prepared("llama")
        if chat:
            tokenizer.chat_template = (
                "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content + eos_token }}"
                "{% endgeneration %}{% else %}{{ m.content + '\n' }}{% endif %}{% endfor %}"
            )
            rows = [
                {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}
                for question, answer in zip(QUESTIONS, ANSWERS, strict=True)
            ]
        else:
            rows = [
                {"prompt": question + "\n", "completion": answer}
                for question, answer in zip(QUESTIONS, ANSWERS, strict=True)
            ]
        settings = arguments(tmp_path, SFTConfig, bf16=False, assistant_only_loss=chat)
        given = {"args": settings, "train_dataset": Dataset.from_list(rows), "processing_class": tokenizer}
        with pytest.raises(AttachError, match="never writes.*NumberCollator"):
            SFTTrainer(model, **given).train()
        padding = DataCollatorForLanguageModeling(pad_token_id=tokenizer.pad_token_id)
        SFTTrainer(model, **given, data_collator=pv.NumberCollator(tokenizer, collator=padding)).train()
        prompts = [tokenizer(question + "\n", add_special_tokens=False)["input_ids"] for question in QUESTIONS]
        assert answers_of(model, tokenizer, prompts) == ANSWERS

    def test_sft_trainer_with_lora(self, tmp_path):
        """As docs/trainers.md says, with a word to TRL about the bias; the markers' rows of both matrices are trained."""
        from peft import LoraConfig
        from trl import SFTConfig, SFTTrainer
        from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

        model, tokenizer = prepared("llama")
        rows = [
            {"prompt": f"{question}\n", "completion": answer}
            for question, answer in zip(QUESTIONS, ANSWERS, strict=True)
        ]
        trainer = SFTTrainer(
            model,
            args=arguments(tmp_path, SFTConfig, bf16=False, max_steps=2),
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            peft_config=LoraConfig(
                target_modules=["q_proj"], trainable_token_indices=pv.trainable_tokens(model, tokenizer)
            ),
            data_collator=pv.NumberCollator(
                tokenizer, collator=DataCollatorForLanguageModeling(pad_token_id=tokenizer.pad_token_id)
            ),
        )
        trainer.model.get_output_embeddings().bias = None
        deltas = {name: each for name, each in trainer.model.named_parameters() if "trainable_tokens_delta" in name}
        before = {name: each.detach().clone() for name, each in deltas.items()}
        trainer.train()
        assert len(deltas) == 2 and not any(torch.equal(each, before[name]) for name, each in deltas.items())
