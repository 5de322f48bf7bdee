"""The loss in every trainer people use: equal gradients however a batch is cut, and the parts in the logs."""

import pytest
import torch
from transformers import (
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainingArguments,
)

import placevalue as pv
from zoo import build

QUESTIONS = [f"{i} and {i + 11} more?" for i in range(8)]
ANSWERS = [str(2 * i + 11) if i % 3 else "nothing" for i in range(8)]  # some targets, and some micro-batches, without


def prepared(name, token="agg"):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, token=token)
    pv.attach(model, tokenizer)
    return model.train(), tokenizer, pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)


def arguments(folder, kind=TrainingArguments, **options):
    settings = dict(
        output_dir=str(folder),
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=1,
        max_steps=3,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        max_grad_norm=0.0,
        seed=0,
    )
    return kind(**settings | options)


def trained(name, folder, mode="soft", kind=Trainer, mixin=False, **options):
    model, tokenizer, data = prepared(name)
    loss = pv.NumberLoss if mode in pv.NUMBER_LOSSES else pv.AggregationLoss
    loss = loss(model, tokenizer, **{"loss" if mode in pv.NUMBER_LOSSES else "mode": mode})
    settings = arguments(
        folder, Seq2SeqTrainingArguments if issubclass(kind, Seq2SeqTrainer) else TrainingArguments, **options
    )
    given = {"aggregation_loss": loss} if mixin else {"compute_loss_func": loss}
    collator = DataCollatorForSeq2Seq(tokenizer, model=None if mixin else model)
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(sgd, lambda _: 1.0)
    trainer = kind(model, settings, train_dataset=data, data_collator=collator, optimizers=(sgd, schedule), **given)
    if not mixin:
        pv.log_parts(trainer, loss)
    trainer.train()
    return model, trainer


class MixedTrainer(pv.AggregationLossMixin, Trainer):
    pass


@pytest.mark.parametrize("mode", ["soft", "hard", "ntil"])
@pytest.mark.parametrize("name", ["t5-flan", "bart", "llama", "gemma3"])
def test_accumulated_gradients_equal_those_of_one_batch(name, mode, tmp_path):
    before = {key: value.clone() for key, value in prepared(name)[0].state_dict().items()}
    whole, _ = trained(name, tmp_path, mode, max_steps=1, per_device_train_batch_size=8)
    for size, steps in ((1, 8), (2, 4)):
        cut, _ = trained(
            name, tmp_path, mode, max_steps=1, per_device_train_batch_size=size, gradient_accumulation_steps=steps
        )
        for key, value in whole.state_dict().items():
            torch.testing.assert_close(
                cut.state_dict()[key] - before[key], value - before[key], rtol=1e-5, atol=1e-6, msg=key
            )


@pytest.mark.parametrize("name, kind, mode", [
    ("t5-flan", Seq2SeqTrainer, "soft"), ("llama", Trainer, "soft"), ("llama", Trainer, "del"),
])  # fmt: skip
def test_the_parts_are_logged_beside_the_loss(name, kind, mode, tmp_path):
    _, trainer = trained(name, tmp_path, mode, kind=kind, learning_rate=1e-2)
    logs = [row for row in trainer.state.log_history if "ce" in row]
    assert [row["step"] for row in logs] == [1, 2, 3]
    for row in logs:
        assert row["numbers"] > 0 and row["ce"] > 0 and row["aux"] > 0 and row["loss"] > 0


@pytest.mark.parametrize("name, mode", [("t5-flan", "soft"), ("bart", "smmd"), ("llama", "soft")])
def test_the_mixin_trains_as_the_function_does(name, mode, tmp_path):
    plain, _ = trained(name, tmp_path, mode)
    mixed, trainer = trained(name, tmp_path, mode, kind=MixedTrainer, mixin=True)
    for key, value in plain.state_dict().items():
        torch.testing.assert_close(mixed.state_dict()[key], value)
    assert any("aux" in row for row in trainer.state.log_history)


def test_evaluation_uses_the_loss_too(tmp_path):
    model, tokenizer, data = prepared("t5-flan")
    loss = pv.AggregationLoss(model, tokenizer)
    collator = DataCollatorForSeq2Seq(tokenizer, model=model)
    trainer = Trainer(model, arguments(tmp_path), eval_dataset=data, data_collator=collator, compute_loss_func=loss)
    found = trainer.evaluate()["eval_loss"]
    model.eval()
    batch = collator(data)
    labels = batch.pop("labels")
    with torch.no_grad():
        whole = loss(model(**batch), labels)
    assert found == pytest.approx(whole.item(), rel=0.05)  # Trainer takes the mean over batches


def test_trl_sft_on_encoded_pairs(tmp_path):
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    class NumberSFTTrainer(pv.AggregationLossMixin, SFTTrainer):
        pass

    model, tokenizer, data = prepared("llama")
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    settings = arguments(tmp_path, SFTConfig, dataset_kwargs={"skip_prepare_dataset": True}, bf16=False)
    trainer = NumberSFTTrainer(
        model,
        args=settings,
        train_dataset=Dataset.from_list(data),
        processing_class=tokenizer,
        data_collator=DataCollatorForSeq2Seq(tokenizer),
        aggregation_loss=pv.AggregationLoss(model, tokenizer),
    )
    trainer.train()
    assert len(calls) == 3  # one forward pass a step
    assert any("aux" in row for row in trainer.state.log_history)


@pytest.mark.parametrize("name", ["t5-flan", "llama"])
@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_a_plain_loop_with_lora_learns(name, mode):
    from peft import LoraConfig, get_peft_model

    model, tokenizer, data = prepared(name)
    seq2seq = model.config.is_encoder_decoder
    peft = get_peft_model(
        model,
        LoraConfig(
            r=4,
            target_modules=["q", "v"] if seq2seq else ["q_proj", "v_proj"],
            trainable_token_indices=pv.trainable_tokens(model, tokenizer),
        ),
    )
    loss = pv.AggregationLoss(peft, tokenizer, mode=mode, ce_weight=0.5)
    batch = DataCollatorForSeq2Seq(tokenizer, model=model)(data)
    optimizer = torch.optim.AdamW([p for p in peft.parameters() if p.requires_grad], lr=2e-2)
    values = []
    for _ in range(25):
        value = loss(peft(**batch), batch["labels"])
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        values.append(loss.parts["ce"].item())
    assert values[-1] < values[0] - 0.3
