"""Losses on numbers without markers: against slow loops, and what must hold for each."""

import functools

import pytest
import torch
import torch.nn.functional as F
from transformers import DataCollatorForSeq2Seq

import oracle
import placevalue as pv
from loss.test_aggregation_loss import batch, random_logits, scaled_rows
from loss.test_number_targets import WAITS, Count
from placevalue.common.errors import ConfigError, TokenizerError
from placevalue.loss.aggregation_loss import FLOOR, NO_NUMBER
from placevalue.loss.number_losses import NUMBER_LOSSES
from placevalue.loss.number_targets import LONGEST, find_numbers
from placevalue.tokenizer.tokenizer import number_ids, number_layout
from zoo import build

TARGETS = ["320", "costs 12.5.", "no number here", "7 of 1999 and 0.05", "room 12b", "-1,250.50 or x-3 or +4", ".5", "00",
           "1,000,000 is", "6.02e23, 5", "1.2.3", "", "3, 4", "9" * LONGEST]  # fmt: skip
MODELS = ["t5-flan", "bart-scaled", "llama", "qwen2"]
NAMES = [name for name, each in NUMBER_LOSSES.items() if each.compute]


def attached(name, **options):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, markers=False, **options)
    pv.attach(model, tokenizer)
    return model.double(), tokenizer


def numbers_of(tokenizer, labels, causal):
    """[(position, character)] of each number that has a token of its own after it, then that token's position."""
    special = {i for i, t in tokenizer.backend_tokenizer.get_added_tokens_decoder().items() if t.special}
    spelled = [None if i in special or i < 0 else tokenizer.convert_ids_to_tokens(i) for i in labels]
    found = oracle.bare_numbers(spelled, number_layout(tokenizer).pattern)
    others = [at for positions, _ in found for at in positions]
    kept = []
    for positions, numeral in found:
        end = positions[-1] + 1
        whole = end < len(labels) and labels[end] >= 0 and end not in others and positions[0] >= causal
        if whole and "e" not in numeral.lower() and len(positions) <= LONGEST:
            assert len(positions) == len(numeral)
            kept.append((list(zip(positions, numeral, strict=True)), end))
    return kept


def slow_loss(loss, tokenizer, logits, labels):
    """One target, one number, one position at a time."""
    causal, ids = not loss.model.config.is_encoder_decoder, loss.ids
    rows = scaled_rows(loss.model, ids.digits)
    names = {id_: str(value) for value, id_ in enumerate(ids.digits)} | {ids.point: "."}
    total, tokens = 0.0, 0
    for one_logits, one_labels in zip(logits, labels.tolist(), strict=True):
        log_probs = one_logits.log_softmax(-1)
        counted = [t for t in range(causal, len(one_labels)) if one_labels[t] != -100]
        ce = sum(-float(log_probs[t - causal][one_labels[t]]) for t in counted)
        tokens += len(counted)
        aux = []
        for characters, end in numbers_of(tokenizer, one_labels, causal):
            text = "".join(character for _, character in characters)
            places = [*(at for at, _ in characters), end]
            if loss.mode == "soft":
                chances = []
                for at in places:
                    chance = {c: float(log_probs[at - causal][id_].exp()) for id_, c in names.items()}
                    if at == end:  # where a point ends the number as anything else does
                        del chance["."]
                    chances.append(chance | {"$": 1 - sum(chance.values())})
                cost = oracle.number_cost(loss.name, text, chances, rows)
                aux.append(0.5 * torch.log2(torch.tensor(1 + cost, dtype=torch.float64)).item())
                continue
            guess = ""
            for at in places:
                likeliest = int(log_probs[at - causal].argmax())
                if likeliest not in names:
                    break
                guess += names[likeliest] if names[likeliest] != "." or "." not in guess else ""
            if not guess.replace(".", ""):
                aux.append(NO_NUMBER)
                continue
            gap = oracle.aggregate(loss.name, guess, rows) - oracle.signed_aggregate(loss.name, text, rows)
            aux.append(torch.log2(gap.norm().clamp(min=FLOOR)).item())
        weight = loss.ce_weight
        total += weight * ce + (1 - weight) * len(counted) * sum(aux) / len(aux) if aux else ce
    return total / tokens


def make_loss(model, tokenizer, name="weighted", **options):
    loss = pv.AggregationLoss(model, tokenizer, aggregation=name, **options)
    loss.name = name
    return loss


def labels_of(model, tokenizer, texts=TARGETS):
    return batch(tokenizer, texts, prompt=0 if model.config.is_encoder_decoder else 2)


@pytest.mark.parametrize("mode, pattern", [("soft", "extended"), ("soft", "paper"), ("hard", "paper")])
@pytest.mark.parametrize("name", ["weighted", "interpolated", "max"])
@pytest.mark.parametrize("model_name", MODELS)
def test_it_equals_the_slow_loop(model_name, name, mode, pattern):
    model, tokenizer = attached(model_name, pattern=pattern)
    loss = make_loss(model, tokenizer, name, mode=mode)
    labels = labels_of(model, tokenizer)
    logits = random_logits(model, labels)
    if mode == "hard":  # so that likeliest tokens are often digits, and often the right ones
        logits[..., list(loss.ids.digits)] += 6
        causal = not model.config.is_encoder_decoder
        right = torch.where(labels == -100, 0, labels)[:, causal:]
        logits[:, : right.shape[1]].scatter_(2, right[..., None], 9.0)
    expected = slow_loss(loss, tokenizer, logits, labels)
    torch.testing.assert_close(loss({"logits": logits}, labels).item(), expected, rtol=1e-6, atol=1e-9)
    causal = int(not model.config.is_encoder_decoder)
    assert int(loss.parts["numbers"]) == sum(len(numbers_of(tokenizer, row, causal)) for row in labels.tolist()) > 12


@pytest.mark.parametrize("mode", ["soft", "hard"])
@pytest.mark.parametrize("model_name", ["t5-flan", "qwen2"])
def test_room_for_all_there_could_be_changes_nothing(model_name, mode, monkeypatch):
    model, tokenizer = attached(model_name)
    loss = make_loss(model, tokenizer, "interpolated", mode=mode)
    labels = labels_of(model, tokenizer)
    logits = random_logits(model, labels).requires_grad_()
    packed, parts = loss({"logits": logits}, labels), loss.parts
    monkeypatch.setattr("placevalue.loss.aggregation_loss.find_numbers", functools.partial(find_numbers, packed=False))
    spacious = loss({"logits": logits}, labels)
    torch.testing.assert_close(spacious, packed)
    torch.testing.assert_close(*(torch.autograd.grad(value, logits)[0] for value in (spacious, packed)))
    assert int(loss.parts["numbers"]) == int(parts["numbers"])


@pytest.mark.parametrize(
    "gold, guess", [("-52", "-53"), ("-52", "-52"), ("x -52", "x +52"), ("-.5", "-.6"), ("1,250", "1,251")]
)
@pytest.mark.parametrize("model_name", ["bart", "qwen2"])
def test_hard_compares_signs_whichever_token_they_are_in(model_name, gold, guess):
    model, tokenizer = attached(model_name)
    loss = make_loss(model, tokenizer, ce_weight=0, mode="hard")
    labels, wrong = (batch(tokenizer, [text], prompt=1) for text in (gold, guess))
    causal = not model.config.is_encoder_decoder
    logits = 50 * F.one_hot(wrong.clamp(min=0), model.get_input_embeddings().weight.shape[0]).double()
    logits = logits.roll(-1, 1) if causal else logits
    rows = scaled_rows(model, loss.ids.digits)
    values = [oracle.signed_aggregate("weighted", text.strip("x "), rows) for text in (gold, guess)]
    expected = (values[0] - values[1]).norm().clamp(min=FLOOR).log2()
    assert loss({"logits": logits}, labels).item() == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model_name", ["t5-flan", "qwen2"])
def test_published_losses_equal_the_slow_loop(model_name, name):
    model, tokenizer = attached(model_name)
    loss = pv.NumberLoss(model, tokenizer, name)
    labels = labels_of(model, tokenizer, ["7 of -1,999.5 and 0.05."])
    logits = random_logits(model, labels)
    loss({"logits": logits}, labels)
    causal = int(not model.config.is_encoder_decoder)
    numbers = [
        ("".join(c for _, c in found), [logits[0, at - causal, list(loss.ids.digits)] for at, _ in found])
        for found, _ in numbers_of(tokenizer, labels[0].tolist(), causal)
    ]
    torch.testing.assert_close(loss.parts["aux"].item(), oracle.number_loss(name, numbers), rtol=1e-9, atol=1e-12)
    assert int(loss.parts["numbers"]) == len(numbers) == 3


@pytest.mark.parametrize("make", [pv.AggregationLoss, functools.partial(pv.NumberLoss, loss="ntl-was")])
@pytest.mark.parametrize("model_name", ["t5-flan", "qwen2"])
def test_without_numbers_it_is_the_cross_entropy_and_cutting_a_batch_changes_nothing(model_name, make):
    model, tokenizer = attached(model_name)
    loss = make(model, tokenizer)
    labels = labels_of(model, tokenizer, ["no number", "none here - either."])
    logits = random_logits(model, labels)
    causal = int(not model.config.is_encoder_decoder)
    gold = labels[:, causal:].flatten()
    expected = F.cross_entropy(logits[:, : labels.shape[1] - causal].flatten(0, 1), gold)
    torch.testing.assert_close(loss({"logits": logits}, labels), expected)
    labels = labels_of(model, tokenizer)
    logits, items = random_logits(model, labels), (labels[:, causal:] != -100).sum()
    parts = [loss({"logits": logits[at : at + 3]}, labels[at : at + 3], items) for at in range(0, len(labels), 3)]
    torch.testing.assert_close(sum(parts), loss({"logits": logits}, labels, items))


def test_a_number_that_is_cut_off_or_that_another_follows_at_once_is_left_to_cross_entropy():
    model, tokenizer = attached("llama")
    loss = make_loss(model, tokenizer)
    texts = ["1 12", "1.2.3", "3 -4", "8"]
    labels = batch(tokenizer, texts, prompt=1)
    labels[0, (labels[0] == 1).nonzero()] = -100  # what an answer that was cut does not have
    labels[3] = labels[3].roll(-1)  # nothing before it to predict it from
    loss({"logits": random_logits(model, labels)}, labels)
    assert int(loss.parts["numbers"]) == 1 + 1 + 1  # 1, .3 and -4


def test_what_an_answer_ends_with_may_be_anything_but_a_digit():
    """The cost of going on with a digit is that of a longer number; a point or a word costs nothing."""
    model, tokenizer = attached("t5-flan")
    loss = make_loss(model, tokenizer, ce_weight=0)
    labels = batch(tokenizer, ["12"])
    values = {}
    for name, id_ in {"end": 1, "point": loss.ids.point, "word": 50, "digit": loss.ids.digits[0]}.items():
        wrong = labels.clone()
        wrong[0, -1] = id_
        logits = 60 * F.one_hot(wrong, model.get_input_embeddings().weight.shape[0]).double()
        values[name] = loss({"logits": logits}, labels).item()
    assert values["end"] == values["point"] == values["word"] == pytest.approx(0, abs=1e-9) and values["digit"] > 0.5


@pytest.mark.parametrize("model_name, token", [("t5-flan", None), ("llama", "agg"), ("qwen2", None)])
def test_the_size_of_what_is_read_equals_the_slow_loop(model_name, token):
    model, tokenizer = attached(model_name, token=token)
    loss = pv.NumberLoss(model, tokenizer, "magnitude-probe")
    torch.nn.init.normal_(loss.head.weight)
    loss.head.double()
    questions = ["7 of 1,999 and 0.05 and -12?", "no number", "0 or 6.02e23.", "3 -4"]
    data = pv.encode_pairs(tokenizer, questions, ["1", "none", "2", "5 5"])
    rows = DataCollatorForSeq2Seq(tokenizer, model=model)(data)
    two_part = model.config.is_encoder_decoder
    with torch.no_grad():
        loss(seen := model(**rows, output_hidden_states=True), rows["labels"])
    hidden = seen.encoder_hidden_states if two_part else seen.hidden_states
    hidden = hidden[max(1, int(0.9 * (len(hidden) - 1)))]
    off, marked = [], {loss.ids.agg, loss.ids.pause}
    for ids, labels, states in zip(rows["input_ids"].tolist(), rows["labels"].tolist(), hidden, strict=True):
        asked = ids if two_part else [i for i, label in zip(ids, labels, strict=True) if label == -100]
        special = {i for i, t in tokenizer.backend_tokenizer.get_added_tokens_decoder().items() if t.special} | marked
        spelled = [None if i in special else tokenizer.convert_ids_to_tokens(i) for i in asked]
        for positions, numeral in oracle.bare_numbers(spelled, "extended"):
            value = abs(oracle.exact_value(numeral))
            if value:
                guess = (states[positions[-1]] @ loss.head.weight[0] + loss.head.bias[0]).item()
                off.append((guess - torch.tensor(float(value)).double().log2().item()) ** 2)
    assert int(loss.parts["numbers"]) == len(off) == 7
    torch.testing.assert_close(loss.parts["aux"].item(), sum(off) / 7, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_an_accelerator_is_never_waited_for(mode, monkeypatch):
    monkeypatch.setattr("placevalue.loss.aggregation_loss.find_numbers", functools.partial(find_numbers, packed=False))
    model, tokenizer = attached("bart")
    loss, labels = make_loss(model, tokenizer, mode=mode), labels_of(model, tokenizer)
    logits = random_logits(model, labels).requires_grad_()
    loss({"logits": logits}, labels)
    with Count() as there:
        value = loss({"logits": logits}, labels)
    with Count() as back:
        value.backward()
    assert not WAITS & {*there.names, *back.names}
    assert len(there.names) <= 400 and len(back.names) <= 45, (len(there.names), len(back.names))


def test_a_plain_tokenizer_is_refused_with_the_way_out():
    model, base = build("qwen2")
    with pytest.raises(
        TokenizerError, match="with markers=False, which keeps the ids of a tokenizer that splits digits"
    ):
        pv.AggregationLoss(model, base)


def test_ids_without_their_tokenizer_are_refused():
    model, tokenizer = attached("qwen2")
    recorded = model.config.placevalue["ids"]
    assert "spelling" not in recorded
    stored = type(number_ids(tokenizer))(**{k: tuple(v) if isinstance(v, list) else v for k, v in recorded.items()})
    assert stored == number_ids(tokenizer)
    with pytest.raises(TokenizerError, match="take them from number_ids"):
        find_numbers(torch.tensor([[5]]), stored)


@pytest.mark.parametrize("options, said", [
    ({"pattern": "accounting"}, "pattern='accounting' with markers=False.*expected|extended, paper"),
    ({"pattern": "[0-9]+"}, "with markers=False"),
    ({"ignore": "years"}, "ignore='years' with markers=False"),
])  # fmt: skip
def test_what_ids_cannot_tell_is_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        pv.number_tokenizer(build("qwen2")[1], markers=False, **options)
