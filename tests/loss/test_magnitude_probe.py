"""The size of the question's numbers, read off hidden states: against a slow loop, and a head that nobody saves."""

import copy

import pytest
import torch
import torch.nn.functional as F
from transformers import DataCollatorForSeq2Seq, Trainer

import oracle
import placevalue as pv
from loss.test_trainers import arguments
from placevalue.common.errors import ConfigError, TrainingError
from placevalue.experiments.methods import METHODS
from placevalue.experiments.settings import TrainingConfig
from placevalue.experiments.train import make_loss
from placevalue.loss.magnitude_probe import NAME, remove_probe
from zoo import build

QUESTIONS = ["7 of 1,999 and 0.05 and -12?", "no number", "0 or 6.02e23", "00 x 1000000", ".5"]
ANSWERS = ["1", "none here", "2", "5 5", "12"]


def prepared(name="t5-flan", token=None, questions=QUESTIONS, **options):
    """A model, a loss whose head says something, and a batch."""
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, token=token)
    pv.attach(model, tokenizer)
    loss = pv.NumberLoss(model, tokenizer, "magnitude-probe", **options)
    torch.manual_seed(1)
    torch.nn.init.normal_(loss.head.weight)
    torch.nn.init.constant_(loss.head.bias, 3.0)
    data = pv.encode_pairs(tokenizer, questions, ANSWERS[: len(questions)])
    return model, loss, DataCollatorForSeq2Seq(tokenizer, model=model)(data)


def slow_aux(model, loss, batch):
    """The loss of each question, one number at a time."""
    seen = model(**batch, output_hidden_states=True)
    hidden = seen.encoder_hidden_states if model.config.is_encoder_decoder else seen.hidden_states
    hidden = hidden[max(1, int(0.9 * (len(hidden) - 1)))]
    answers = []
    for ids, labels, states in zip(batch["input_ids"].tolist(), batch["labels"].tolist(), hidden, strict=True):
        if not model.config.is_encoder_decoder:
            ids = [-2 if label != -100 else id_ for id_, label in zip(ids, labels, strict=True)]
        off = []
        for start, characters, _ in oracle.numbers_in(ids, loss.ids, symbols=".-,+eE"):
            end = next(at for at in range(start, len(ids)) if ids[at] == loss.ids.close)
            value = abs(oracle.exact_value("".join(character for character, _ in characters)))
            if value:
                guess = float(states[end].double() @ loss.head.weight[0].double() + loss.head.bias[0])
                off.append((guess - torch.tensor(float(value), dtype=torch.float64).log2().item()) ** 2)
        answers.append(sum(off) / len(off) if off else None)
    return answers


@pytest.mark.parametrize("token", [None, "agg", "pause"])
@pytest.mark.parametrize("name", ["t5-flan", "bart", "llama", "gpt2"])
def test_it_equals_the_slow_loop(name, token):
    model, loss, batch = prepared(name, token)
    with torch.no_grad():
        value = loss(model(**batch), batch["labels"])
        expected = slow_aux(model, loss, batch)
    shift = not model.config.is_encoder_decoder
    tokens = (batch["labels"][:, shift:] != -100).sum(1)
    total = sum(0.1 * float(count) * each for count, each in zip(tokens, expected, strict=True) if each is not None)
    assert [each is None for each in expected] == [False, True, False, False, False]
    torch.testing.assert_close(value.item(), loss.parts["ce"].item() + total / int(tokens.sum()), rtol=1e-4, atol=1e-4)
    assert int(loss.parts["numbers"]) == 7  # 0 and 00 have no size


def test_it_teaches_what_is_read_and_starts_at_nothing():
    model, loss, batch = prepared()
    value = loss(model(**batch), batch["labels"])
    value.backward()
    with_probe = model.encoder.block[0].layer[0].SelfAttention.q.weight.grad.clone()
    model.zero_grad()
    F.cross_entropy(model(**batch).logits.flatten(0, 1), batch["labels"].flatten()).backward()
    assert not torch.allclose(with_probe, model.encoder.block[0].layer[0].SelfAttention.q.weight.grad)
    assert loss.head.weight.grad is None and loss.head.weight in set(model.parameters())
    fresh = pv.NumberLoss(model, pv.number_tokenizer(build("t5-flan")[1]), "magnitude-probe")
    fresh(model(**batch), batch["labels"]).backward()
    assert not fresh.head.weight.any() and fresh.head.weight.grad.any() and fresh.head.bias.grad.any()


@pytest.mark.parametrize("name", ["t5-flan", "llama"])
def test_how_a_batch_is_cut_changes_nothing(name):
    model, loss, batch = prepared(name)
    items = (batch["labels"] != -100).sum()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    whole = torch.autograd.grad(loss(model(**batch), batch["labels"], items), weights, allow_unused=True)
    parts = [{key: each[at : at + 2] for key, each in batch.items()} for at in (0, 2, 4)]
    total = sum(loss(model(**part), part["labels"], items) for part in parts)
    for one, two in zip(whole, torch.autograd.grad(total, weights, allow_unused=True), strict=True):
        assert (one is None) == (two is None)
        assert one is None or torch.allclose(one, two, rtol=1e-3, atol=1e-5)


def test_without_numbers_it_is_cross_entropy_and_the_head_still_has_a_gradient():
    model, loss, batch = prepared(questions=["no number", "none"])
    value = loss(model(**batch), batch["labels"])
    expected = F.cross_entropy(model(**batch).logits.flatten(0, 1), batch["labels"].flatten())
    torch.testing.assert_close(value, expected)
    value.backward()
    assert not loss.head.weight.grad.any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_low_precision(dtype):
    model, loss, batch = prepared("llama")
    model.to(dtype)
    value = loss(model(**batch), batch["labels"])
    value.backward()
    assert value.isfinite() and model.model.layers[0].mlp.up_proj.weight.grad.isfinite().all()


def test_gradient_checkpointing_changes_nothing():
    gradients = []
    for kwargs in (None, {"use_reentrant": False}):
        model, loss, batch = prepared("llama")
        model.train()
        if kwargs:
            model.gradient_checkpointing_enable(kwargs)
        loss(model(**batch, use_cache=False), batch["labels"]).backward()
        gradients.append(model.model.layers[0].mlp.up_proj.weight.grad)
    torch.testing.assert_close(*gradients)


def test_the_head_is_not_saved(tmp_path):
    model, loss, batch = prepared()
    plain, _, _ = prepared()
    remove_probe(plain)
    assert model.state_dict().keys() == plain.state_dict().keys()
    assert not hasattr(plain, NAME) and plain(**batch).logits.equal(model(**batch).logits)
    tokenizer = pv.number_tokenizer(build("t5-flan")[1])
    pv.save_pretrained(model, tokenizer, tmp_path)
    again, _ = pv.from_pretrained(tmp_path)
    assert not hasattr(again, NAME)
    before = loss.head.weight.clone()
    assert not model.load_state_dict(again.state_dict()).missing_keys and loss.head.weight.equal(before)
    copied = copy.deepcopy(model)
    remove_probe(copied)
    assert hasattr(model, NAME) and not hasattr(copied, NAME)


def test_a_second_loss_replaces_the_first():
    model, first, batch = prepared()
    second = pv.NumberLoss(model, pv.number_tokenizer(build("t5-flan")[1]), "magnitude-probe")
    assert getattr(model, NAME).head is second.head
    second(model(**batch), batch["labels"])
    with pytest.raises(TrainingError, match="did not see what the model read"):
        first({"logits": model(**batch).logits}, batch["labels"])


def test_training_goes_on_from_a_checkpoint_to_the_same_weights(tmp_path):
    ends = []
    for steps, resume in ((4, False), (2, False), (4, True)):
        model, base = build("t5-flan")
        tokenizer = pv.number_tokenizer(base)
        pv.attach(model, tokenizer)
        loss = pv.NumberLoss(model, tokenizer, "magnitude-probe")
        folder = tmp_path / ("whole" if not ends else "cut")
        settings = arguments(
            folder,
            save_strategy="steps",
            save_steps=2,
            max_steps=steps,
            lr_scheduler_type="constant",
            save_only_model=False,
        )
        data = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)
        collator = DataCollatorForSeq2Seq(tokenizer, model=model)
        trainer = Trainer(model, settings, train_dataset=data, data_collator=collator, compute_loss_func=loss)
        pv.log_parts(trainer, loss)
        trainer.train(resume_from_checkpoint=resume)
        ends.append(({name: each.clone() for name, each in model.state_dict().items()}, loss.head.weight.clone()))
    (whole, head), _, (resumed, resumed_head) = ends
    assert head.any() and head.equal(resumed_head)
    assert all(value.equal(resumed[name]) for name, value in whole.items())


def test_refusals():
    model, loss, batch = prepared()
    with pytest.raises(TrainingError, match="did not see what the model read"):
        loss({"logits": torch.randn(*batch["labels"].shape, 600)}, batch["labels"])
    with torch.no_grad():
        outputs = model(**batch)
    model.train()
    with pytest.raises(TrainingError, match="hidden states without a gradient"):
        loss(outputs, batch["labels"])
    tokenizer = pv.number_tokenizer(build("t5-flan")[1])
    with pytest.raises(ConfigError, match="training.engine=fast .* the loss magnitude-probe reads hidden states"):
        make_loss(METHODS["magnitude-probe"], TrainingConfig(engine="fast"), model, tokenizer)
