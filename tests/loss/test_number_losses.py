"""Published losses on digits: against slow loops and ntloss, and what must hold for each."""

import functools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import placevalue as pv
from loss.test_aggregation_loss import attached, attached_once, batch, certain, random_logits, targets
from loss.test_number_targets import WAITS, Count
from placevalue.common.errors import ConfigError, TrainingError
from placevalue.loss.number_losses import NUMBER_LOSSES, NumberLoss, ntl_was
from placevalue.loss.number_targets import find_numbers
from placevalue.loss.target_loss import PATIENCE

TARGETS = ["320", "12.5", "no number here", "7 of 1999 and 0.05", "room 12b", "1000000", ".5", "00", "3.14159 is", ""]
NAMES = [name for name, each in NUMBER_LOSSES.items() if each.compute]


def slow_loss(loss, logits, labels):
    """One target, one number, one digit at a time."""
    causal, ids, weight = not loss.model.config.is_encoder_decoder, loss.ids, loss.weight
    total, tokens = 0.0, 0
    for one_logits, one_labels in zip(logits, labels.tolist(), strict=True):
        log_probs = one_logits.log_softmax(-1)
        counted = [t for t in range(1 if causal else 0, len(one_labels)) if one_labels[t] != -100]
        ce = sum(-float(log_probs[t - causal][one_labels[t]]) for t in counted)
        tokens += len(counted)
        numbers = []
        for start, characters, _ in oracle.numbers_in(one_labels, ids):
            end = start + len(characters) + 1
            if end >= len(one_labels) or one_labels[end] != ids.close:
                continue
            text = "".join(character for character, _ in characters)
            numbers.append((text, [one_logits[at - causal][list(ids.digits)] for _, at in characters]))
        total += ce
        if numbers and loss.definition.mix == "balance":
            total += weight * ce if oracle.number_loss(loss.name, numbers) else 0
        elif numbers:
            total += weight * len(counted) * oracle.number_loss(loss.name, numbers)
    return total / tokens


def make_loss(model, tokenizer, name, **options):
    loss = NumberLoss(model, tokenizer, name, **options)
    loss.name = name
    return loss


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "model_name, pattern", [("t5-flan", "extended"), ("bart-scaled", "paper"), ("llama", "extended")]
)
def test_it_equals_the_slow_loop(model_name, pattern, name):
    model, tokenizer = attached(model_name, pattern)
    loss = make_loss(model.double(), tokenizer, name)
    labels = batch(tokenizer, [*TARGETS, "-1,250.50 and 1,000,000"], prompt=0 if model.config.is_encoder_decoder else 3)
    logits = random_logits(model, labels)
    expected = slow_loss(loss, logits, labels)
    torch.testing.assert_close(loss({"logits": logits}, labels).item(), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_part_is_the_mean_over_a_target(name):
    """`balance` shows in the loss only that there is one, so what is balanced is compared here."""
    model, tokenizer = attached()
    loss = make_loss(model.double(), tokenizer, name)
    labels = batch(tokenizer, ["7 of 1999 and 0.05"])
    logits = random_logits(model, labels, extra=37)
    loss({"logits": logits}, labels)
    digits = list(loss.ids.digits)
    numbers = [
        ("".join(c for c, _ in found), [logits[0, at, digits] for _, at in found])
        for _, found, _ in oracle.numbers_in(labels[0].tolist(), loss.ids)
    ]
    torch.testing.assert_close(loss.parts["aux"].item(), oracle.number_loss(name, numbers), rtol=1e-9, atol=1e-12)
    assert int(loss.parts["numbers"]) == 3


class _Digits:
    """What ntloss asks of a tokenizer."""

    def __init__(self, ids, size):
        self.vocabulary = {str(value): id_ for value, id_ in enumerate(ids.digits)}
        self.vocabulary |= {f"x{id_}": id_ for id_ in range(size) if id_ not in ids.digits}

    def get_vocab(self):
        return self.vocabulary

    def __len__(self):
        return len(self.vocabulary)

    def add_tokens(self, _):
        return 0


@pytest.mark.parametrize("name, theirs", [("ntl-was", "NTLoss"), ("ntl-mse", "NTLossDotProduct")])
def test_it_equals_ntloss(name, theirs):
    ntloss = pytest.importorskip("ntloss")
    model, tokenizer = attached()
    loss = NumberLoss(model, tokenizer, name)
    labels = batch(tokenizer, ["12.5 of 1999", "no number", "room 7b", "0.05"])
    logits = random_logits(model, labels, torch.float32)
    rival = getattr(ntloss, theirs)(_Digits(loss.ids, logits.shape[-1]), logits.shape[-1], reweigh=False)
    expected, tokens = 0.0, (labels != -100).sum(1)
    for one, gold, count in zip(logits.split(1), labels.split(1), tokens, strict=True):
        expected += count * (F.cross_entropy(one[0], gold[0]) + 0.3 * rival(one, gold))
    torch.testing.assert_close(loss({"logits": logits}, labels), expected / tokens.sum())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model_name", ["t5-flan", "llama"])
def test_without_numbers_it_is_the_cross_entropy(model_name, name):
    model, tokenizer = attached(model_name)
    labels = batch(tokenizer, ["no number", "none here either"], prompt=1)
    logits = random_logits(model, labels, torch.float32).requires_grad_()
    loss = NumberLoss(model, tokenizer, name)
    value = loss({"logits": logits}, labels)
    shifted = labels if model.config.is_encoder_decoder else F.pad(labels[:, 1:], (0, 1), value=-100)
    expected = F.cross_entropy(logits.flatten(0, 1), shifted.flatten())
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, logits)[0], torch.autograd.grad(expected, logits)[0])
    assert "aux" not in loss.parts


@pytest.mark.parametrize("name", NAMES)
def test_data_in_which_no_number_is_ever_found_is_an_error(name):
    model, tokenizer = attached()
    loss, labels = NumberLoss(model, tokenizer, name), batch(tokenizer, ["none"])
    logits = {"logits": random_logits(model, labels, torch.float32)}
    for _ in range(PATIENCE - 1):
        loss(logits, labels)
    with pytest.raises(TrainingError, match="contain no number"):
        loss(logits, labels)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gold", ["320", "12.5", "9"])
def test_right_digits_add_nothing_and_wrong_ones_do(name, gold):
    model, tokenizer = attached()
    loss = NumberLoss(model.double(), tokenizer, name)

    def aux(guess, height=40.0):
        logits, labels = certain(model, tokenizer, gold, guess, height)
        loss({"logits": logits}, labels)
        return loss.parts["aux"].item()

    wrong = gold[:-1] + "1"
    assert aux(wrong) > 0.01
    if name == "dist2":  # least where the probabilities are the bell around each right digit, and not at certainty
        logits, labels = certain(model, tokenizer, gold, gold, 0.0)
        for at, label in enumerate(labels[0].tolist()):
            if label in loss.ids.digits:
                bell = -((torch.arange(10) - loss.ids.digits.index(label)) ** 2).double()
                logits[0, at, list(loss.ids.digits)] = bell
        loss({"logits": logits}, labels)
        assert loss.parts["aux"].item() == pytest.approx(0, abs=1e-12) and aux(gold) < aux(wrong)
    else:
        assert aux(gold) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_nearer_digits_cost_less(name):
    model, tokenizer = attached()
    loss, costs = NumberLoss(model.double(), tokenizer, name), []
    for guess in ("321", "324", "328"):
        logits, labels = certain(model, tokenizer, "320", guess)
        loss({"logits": logits}, labels)
        costs.append(loss.parts["aux"].item())
    # To DEL all wrong digits are alike, and SMMD's kernel sees no further than a few digits.
    assert costs[0] < costs[1] < costs[2] if name not in ("del", "smmd") else costs[0] <= costs[1] <= costs[2]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ntil"])
def test_gradcheck(name):
    """Not `ntil`, whose gradient is that of soft digits where its value is that of the likeliest."""
    model, tokenizer = attached("llama")
    loss = NumberLoss(model.double(), tokenizer, name, weight=2.0)
    labels = batch(tokenizer, ["2.5", "x"], prompt=1)
    columns = [*loss.ids.digits, loss.ids.point, 1]
    start = random_logits(model, labels)

    def value(some):
        return loss({"logits": start.index_copy(2, torch.tensor(columns), some)}, labels)

    assert torch.autograd.gradcheck(value, start[..., columns].clone().requires_grad_())


def test_the_gradient_of_ntil_is_that_of_soft_digits():
    model, tokenizer = attached()
    loss = NumberLoss(model.double(), tokenizer, "ntil", weight=1.0)
    labels = batch(tokenizer, ["35"])
    logits = random_logits(model, labels).requires_grad_()
    value = loss({"logits": logits}, labels)
    (ours,) = torch.autograd.grad(value, logits)
    aux, ce = loss.parts["aux"], loss.parts["ce"]
    ten = torch.arange(10.0, dtype=torch.float64)
    z = logits[0, 1:3, list(loss.ids.digits)]
    soft = ((10 * z).softmax(-1) * ten).sum(-1)
    guess = ((z.argmax(-1) + soft - soft.detach()) * torch.tensor([10.0, 1.0])).sum()
    distances = (z.softmax(-1) * (ten - torch.tensor([[3.0], [5.0]])).abs()).sum(-1)
    gold = torch.tensor(35.0, dtype=torch.float64)
    most, least = torch.maximum(guess, gold) + 1, torch.minimum(guess, gold) + 1
    slow = (distances * torch.tensor([1.2, 1.0])).mean() + 0.2 * ((guess - gold).abs() / most + (most / least).log())
    torch.testing.assert_close(slow, aux)
    expected = F.cross_entropy(logits[0], labels[0]) + slow * (ce / aux)
    torch.testing.assert_close(ours, torch.autograd.grad(expected, logits)[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_its_gradient_reaches_the_logits_and_is_finite(name, dtype, scale):
    model, tokenizer = attached()
    loss, plain = NumberLoss(model, tokenizer, name), NumberLoss(model, tokenizer, name, weight=0)
    labels = batch(tokenizer, ["320", "7 and 12.5"])
    logits = (scale * random_logits(model, labels)).to(dtype).requires_grad_()
    gradients = [torch.autograd.grad(each({"logits": logits}, labels), logits)[0] for each in (loss, plain)]
    assert all(each.dtype == dtype and each.isfinite().all() for each in gradients)
    assert scale == 100 or not torch.equal(*gradients)


@pytest.mark.parametrize("name", NAMES)
def test_nan_is_not_hidden(name):
    model, tokenizer = attached()
    loss, labels = NumberLoss(model, tokenizer, name), batch(tokenizer, ["320"])
    logits = random_logits(model, labels, torch.float32)
    logits[0, 2, loss.ids.digits[4]] = torch.nan
    assert loss({"logits": logits}, labels).isnan() and loss.parts["aux"].isnan()


@pytest.mark.parametrize("name", NAMES)
def test_digits_that_are_ruled_out_elsewhere_are_no_trouble(name):
    model, tokenizer = attached()
    loss, labels = NumberLoss(model, tokenizer, name), batch(tokenizer, ["320"])
    logits = random_logits(model, labels, torch.float32)
    logits[0, -1, list(loss.ids.digits)] = -torch.inf
    logits[0, 2, loss.ids.digits[9]] = -torch.inf if name != "dist2" else -50.0
    logits.requires_grad_()
    value = loss({"logits": logits}, labels)
    assert value.isfinite() and torch.autograd.grad(value, logits)[0].isfinite().all()


@st.composite
def losses(draw):
    """A loss, targets for it and the seed of its logits."""
    name = draw(st.sampled_from(["t5-flan", "bart-scaled", "llama"]))
    return name, draw(st.sampled_from(NAMES)), draw(targets), draw(st.integers(0, 99))


@settings(max_examples=60)
@given(losses(), st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_cutting_padding_and_room_change_nothing(drawn, size, padding, packed):
    model_name, name, texts, seed = drawn
    model, tokenizer = attached_once(model_name)
    loss = make_loss(model.double(), tokenizer, name)
    labels = batch(tokenizer, texts, prompt=0 if model.config.is_encoder_decoder else 2)
    logits = random_logits(model, labels, seed=seed).requires_grad_()
    items = (labels != -100).sum()
    whole = loss({"logits": logits}, labels, items)
    torch.testing.assert_close(whole.item(), slow_loss(loss, logits.detach(), labels) if items else 0.0)
    wider = F.pad(logits, (0, 0, 0, padding), value=1.0), F.pad(labels, (0, padding), value=-100)
    pieces = zip(*(each.split(size) for each in wider), strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("placevalue.loss.number_losses.find_numbers", functools.partial(find_numbers, packed=packed))
        total = sum(loss({"logits": one}, two, items) for one, two in pieces)
    torch.testing.assert_close(total, whole, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(*(torch.autograd.grad(each, logits)[0] for each in (total, whole)))


@pytest.mark.parametrize("name", NAMES)
def test_an_accelerator_is_asked_for_little_and_never_waited_for(name, monkeypatch):
    monkeypatch.setattr("placevalue.loss.number_losses.find_numbers", functools.partial(find_numbers, packed=False))
    monkeypatch.setattr("placevalue.modeling.hooks.CHECKED_BATCHES", 1)
    model, tokenizer = attached("bart")
    loss, labels = NumberLoss(model, tokenizer, name), batch(tokenizer, TARGETS)
    logits = random_logits(model, labels, torch.float32).requires_grad_()
    loss({"logits": logits}, labels)
    with Count() as there:
        value = loss({"logits": logits}, labels)
    with Count() as back:
        value.backward()
    assert not WAITS & {*there.names, *back.names}
    assert len(there.names) <= 125 and len(back.names) <= 75


def test_your_own_function():
    model, tokenizer = attached()
    labels = batch(tokenizer, TARGETS)
    logits = {"logits": random_logits(model, labels, torch.float32)}
    mine = NumberLoss(model, tokenizer, lambda digits: 3 * ntl_was(digits))
    assert repr(mine) == "NumberLoss(CE + 1 * <lambda>, model=T5ForConditionalGeneration)"
    theirs = NumberLoss(model, tokenizer, "ntl-was", weight=3)
    torch.testing.assert_close(mine(logits, labels), theirs(logits, labels))


def test_refusals():
    model, tokenizer = attached()
    with pytest.raises(ConfigError, match=r"loss 'ntl-wsa' is unknown: .*is ntl-was meant"):
        NumberLoss(model, tokenizer, "ntl-wsa")
    for weight in (-0.1, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="weight=.*from 0 on"):
            NumberLoss(model, tokenizer, "del", weight=weight)
    assert pv.NumberLoss is NumberLoss
