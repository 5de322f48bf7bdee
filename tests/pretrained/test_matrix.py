"""Every real model through everything a user does with it."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from real import load
from transformers import AutoTokenizer, DataCollatorForSeq2Seq, DataCollatorWithPadding, Trainer, TrainingArguments

import placevalue as pv
from modeling.test_attach import assert_same, check_rows, encode, run

TEXTS = ["the cat had 12 apples", "3 boys gave 4.56 of 1999 apples in room12b", "no numbers", "7", "0.5 then 123456"]
PROBLEMS = (
    [f"Dan had {i} and {i * 7}.5 marbles. How many in all?" for i in range(20)],
    [f"{i * 8}.5" for i in range(20)],
)


def prepared(name, attach=True):
    model, base = load(name)
    tokenizer = pv.number_tokenizer(base, token="agg")
    return (pv.attach(model, tokenizer) if attach else model), tokenizer


def lora(model, tokenizer, markers):
    seq2seq, bert = model.config.is_encoder_decoder, model.config.model_type == "bert"
    targets = ["q", "v"] if seq2seq else ["query", "value"] if bert else ["q_proj", "v_proj"]
    tokens = {"trainable_token_indices": pv.trainable_tokens(model, tokenizer)} if markers else {}
    return LoraConfig(target_modules=targets, **tokens)


def train(model, tokenizer, folder):
    if model.config.model_type == "bert":
        rows = tokenizer(PROBLEMS[0])
        data = [
            {"input_ids": i, "attention_mask": [1] * len(i), "labels": float(n)}
            for n, i in enumerate(rows["input_ids"])
        ]
        collator = DataCollatorWithPadding(tokenizer)
    else:
        data = pv.encode_pairs(tokenizer, *PROBLEMS, max_question=128, max_answer=16)
        collator = DataCollatorForSeq2Seq(tokenizer, model=model)
    arguments = TrainingArguments(
        folder, max_steps=10, save_steps=10, per_device_train_batch_size=2, optim="sgd", learning_rate=1e-3, report_to=[],
        use_cpu=True, disable_tqdm=True, save_only_model=True, remove_unused_columns=False, max_grad_norm=1.0,
    )  # fmt: skip
    Trainer(
        model, arguments, train_dataset=data, data_collator=collator, callbacks=[pv.RequireAttached(tokenizer)]
    ).train()
    return model.eval()


@torch.no_grad()
def logits(model, ids, mask):
    return run(model, ids, mask)


def test_every_agg_is_its_numbers_aggregate_and_detach_restores(name):
    model, base = load(name)
    tokenizer = pv.number_tokenizer(base, token="agg")
    plain = encode(base, TEXTS)
    before, parameters = logits(model, *plain), sum(p.numel() for p in model.parameters())
    pv.attach(model, tokenizer)
    ids, _ = encode(tokenizer, TEXTS)
    check_rows(model, tokenizer, ids, "weighted", 1e-6)
    pv.detach(model)
    assert torch.equal(logits(model, *plain), before)
    assert sum(p.numel() for p in model.parameters()) == parameters


def test_ten_steps_then_the_checkpoint_gives_the_same_logits(name, tmp_path):
    model, tokenizer = prepared(name)
    ids, mask = encode(tokenizer, TEXTS)
    before = logits(model, ids, mask)
    train(model, tokenizer, tmp_path)
    after = logits(model, ids, mask)
    assert not torch.equal(before, after) and after.isfinite().all()
    loaded, tokenizer2 = pv.from_pretrained(tmp_path / "checkpoint-10")
    assert torch.equal(encode(tokenizer2, TEXTS)[0], ids)
    assert_same(loaded, model, ids, mask, 1e-4)
    check_rows(loaded, tokenizer2, ids, "weighted", 1e-6)
    auto = pv.attach(
        type(model).from_pretrained(tmp_path / "checkpoint-10", fusion_config={}).eval(),
        AutoTokenizer.from_pretrained(tmp_path / "checkpoint-10"),
    )
    assert_same(auto, model, ids, mask, 1e-4)


def test_generation_greedy_and_with_beams(name):
    model, tokenizer = prepared(name)
    if not model.can_generate():
        assert name == "minilm-l6"  # an encoder: nothing to generate
        return
    tokenizer.padding_side = "right" if model.config.is_encoder_decoder else "left"
    batch = tokenizer.pad(pv.encode_questions(tokenizer, PROBLEMS[0][:3]), return_tensors="pt")
    for beams in (1, 3):
        options = dict(num_beams=beams, max_new_tokens=6, do_sample=False)
        together = model.generate(**batch, **options)
        text = tokenizer.batch_decode(together, skip_special_tokens=True)
        if not model.config.is_encoder_decoder:
            assert text[1].startswith(PROBLEMS[0][1])
        alone = model.generate(
            **tokenizer.pad(pv.encode_questions(tokenizer, PROBLEMS[0][:1]), return_tensors="pt"), **options
        )
        assert tokenizer.decode(alone[0], skip_special_tokens=True) == text[0]


@pytest.mark.parametrize("order", ["attach first", "attach later"])
def test_lora_trains_reloads_and_merges(name, order, tmp_path):
    model, tokenizer = prepared(name, attach=order == "attach first")
    if order == "attach later" and model.get_input_embeddings().weight.shape[0] < len(tokenizer):
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    # FLAN-T5 has an output matrix of its own, which PEFT ties the markers into unless attach has come first.
    markers = order == "attach first" or not model.config.is_encoder_decoder
    model = get_peft_model(model, lora(model, tokenizer, markers and name != "minilm-l6"))
    if order == "attach later":
        pv.attach(model, tokenizer)
    ids, mask = encode(tokenizer, TEXTS)
    trained = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    train(model, tokenizer, tmp_path / "run")
    wanted = logits(model, ids, mask)
    moved = [n for n, p in model.named_parameters() if n in trained and not torch.equal(p, trained[n])]
    assert any("lora_B" in n for n in moved)
    if any("trainable_tokens" in n for n in trained):
        assert any("trainable_tokens" in n for n in moved)
    check_rows(model.get_base_model(), tokenizer, ids, "weighted", 1e-6)
    if name != "minilm-l6":  # its new head is drawn anew when the base is loaded again
        loaded, _ = pv.from_pretrained(tmp_path / "run" / "checkpoint-10")
        assert_same(loaded.eval(), model, ids, mask, 1e-4)
        del loaded
    merged = model.merge_and_unload()
    torch.testing.assert_close(logits(merged, ids, mask), wanted, rtol=1e-3, atol=1e-3)
    check_rows(merged, tokenizer, ids, "weighted", 1e-6)


def test_resizing_after_attaching(name):
    model, tokenizer = prepared(name)
    ids, mask = encode(tokenizer, TEXTS)
    before = logits(model, ids, mask)
    model.resize_token_embeddings(model.get_input_embeddings().weight.shape[0] + 8, mean_resizing=False)
    torch.testing.assert_close(logits(model, ids, mask)[..., : before.shape[-1]], before)
    check_rows(model, tokenizer, ids, "weighted", 1e-6)
