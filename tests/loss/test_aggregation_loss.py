"""The auxiliary loss against a slow loop, and what it must and must not teach."""

import copy
import functools
import itertools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import placevalue as pv
from placevalue.common.errors import AttachError, ConfigError, TokenizerError, TrainingError
from placevalue.loss import cross_entropy as cross_entropy_module
from placevalue.loss.aggregation_loss import FLOOR, NO_NUMBER, AggregationLoss
from placevalue.loss.cross_entropy import token_likelihoods
from placevalue.loss.number_targets import LONGEST, find_numbers
from placevalue.loss.target_loss import PATIENCE
from placevalue.tokenizer.collate import PairCollator
from placevalue.tokenizer.tokenizer import number_ids
from zoo import build

TARGETS = ["320", "12.5", "no number here", "7 of 1999 and 0.05", "room 12b", "1000000", ".5", "00", "3.14159 is", ""]


def attached(name="t5-flan", pattern="paper", **options):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, pattern=pattern)
    pv.attach(model, tokenizer, **options)
    return model, tokenizer


def batch(tokenizer, texts, prompt=0):
    """Labels of texts, padded, each after `prompt` ignored labels."""
    rows = [[-100] * prompt + tokenizer(text, add_special_tokens=False)["input_ids"] + [1] for text in texts]
    width = max(map(len, rows))
    return torch.tensor([row + [-100] * (width - len(row)) for row in rows])


def random_logits(model, labels, dtype=torch.float64, seed=0, extra=0):
    vocabulary = model.get_input_embeddings().weight.shape[0] + extra
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(*labels.shape, vocabulary, generator=generator, dtype=torch.float64)).to(dtype)


def _reader(log_probs, causal):
    return lambda position: log_probs[position - 1] if causal else log_probs[position]


def scaled_rows(model, digits):
    """The digits' embeddings from the bare matrix, times what the config says that the model scales them by."""
    scale = model.config.d_model**0.5 if getattr(model.config, "scale_embedding", False) else 1.0
    return scale * model.get_input_embeddings().weight[list(digits)].detach().double()


def slow_loss(loss, tokenizer, logits, labels):
    """One target, one number, one position at a time."""
    causal, ids = not loss.model.config.is_encoder_decoder, loss.ids
    rows = scaled_rows(loss.model, ids.digits)
    names = {id_: str(value) for value, id_ in enumerate(ids.digits)} | {ids.point: "."}
    total, tokens = 0.0, 0
    for one_logits, one_labels in zip(logits, labels.tolist(), strict=True):
        at = _reader(one_logits.log_softmax(-1), causal)
        counted = [t for t in range(1 if causal else 0, len(one_labels)) if one_labels[t] != -100]
        ce = sum(-float(at(t)[one_labels[t]]) for t in counted)
        tokens += len(counted)
        aux = []
        for start, characters, _ in oracle.numbers_in(one_labels, ids):
            end = start + len(characters) + 1
            if end >= len(one_labels) or one_labels[end] != ids.close or not any(c.isdigit() for c, _ in characters):
                continue
            text = "".join(character for character, _ in characters)
            if loss.mode == "soft":
                chances = []
                for position in range(start + 1, end + 1):
                    chance = {character: float(at(position)[id_].exp()) for id_, character in names.items()}
                    chances.append(chance | {"$": 1 - sum(chance.values())})
                cost = oracle.number_cost(loss.name, text, chances, rows, loss.decimals)
                aux.append(0.5 * torch.log2(torch.tensor(1 + cost, dtype=torch.float64)).item())
            else:
                guess = ""
                for position in range(start + 1, end + 1):
                    character = names.get(int(at(position).argmax()))
                    if character is None:
                        break
                    guess += character if character != "." or "." not in guess else ""
                if not guess.replace(".", ""):
                    aux.append(NO_NUMBER)
                    continue
                gap = oracle.aggregate(loss.name, guess, rows) - oracle.aggregate(loss.name, text, rows)
                aux.append(torch.log2(gap.norm().clamp(min=FLOOR)).item())
        weight = loss.ce_weight
        total += weight * ce + (1 - weight) * len(counted) * sum(aux) / len(aux) if aux else ce
    return total / tokens


def make_loss(model, tokenizer, name="weighted", **options):
    loss = AggregationLoss(model, tokenizer, aggregation=name, **options)
    loss.name = name
    return loss


class TestAgainstTheSlowLoop:
    @pytest.mark.parametrize("mode", ["soft", "hard"])
    @pytest.mark.parametrize("name", sorted(pv.AGGREGATIONS))
    @pytest.mark.parametrize("model_name", ["t5-flan", "bart-scaled", "llama"])
    def test_every_aggregation(self, model_name, name, mode):
        model, tokenizer = attached(model_name)
        model.double()
        loss = make_loss(model, tokenizer, name, mode=mode)
        labels = batch(tokenizer, TARGETS, prompt=0 if model.config.is_encoder_decoder else 3)
        logits = random_logits(model, labels)
        if mode == "hard":  # so that likeliest tokens are often digits, and often the right ones
            logits[..., list(number_ids(tokenizer).digits)] += 6
            right = torch.where(labels == -100, 0, labels)
            logits[:, : right.shape[1] - 1].scatter_(2, right[:, 1:, None], 9.0) if not (
                model.config.is_encoder_decoder
            ) else logits.scatter_(2, right[..., None], 9.0)
        expected = slow_loss(loss, tokenizer, logits, labels)
        torch.testing.assert_close(loss({"logits": logits}, labels).item(), expected, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("decimals", ["places", "ignore"])
    def test_decimals_and_padded_vocabularies(self, decimals):
        model, tokenizer = attached(decimals=decimals)
        loss = make_loss(model.double(), tokenizer)
        labels = batch(tokenizer, TARGETS)
        logits = random_logits(model, labels, extra=37)
        torch.testing.assert_close(
            loss({"logits": logits}, labels).item(), slow_loss(loss, tokenizer, logits, labels), rtol=1e-9, atol=1e-9
        )

    @pytest.mark.parametrize("start", [0, 1])
    def test_a_number_at_the_very_start_of_a_causal_target(self, start):
        model, tokenizer = attached("llama")
        loss = make_loss(model.double(), tokenizer)
        labels = batch(tokenizer, ["320", "1 2"], prompt=start)
        logits = random_logits(model, labels)
        assert loss({"logits": logits}, labels).item() == pytest.approx(slow_loss(loss, tokenizer, logits, labels))
        assert int(loss.parts["numbers"]) == 3

    def test_labels_that_do_not_count_inside_a_number(self):
        model, tokenizer = attached()
        loss = make_loss(model.double(), tokenizer)
        labels = batch(tokenizer, ["320 and 14"])
        labels[0, 2] = -100
        logits = random_logits(model, labels)
        assert loss({"logits": logits}, labels).item() == pytest.approx(slow_loss(loss, tokenizer, logits, labels))
        assert int(loss.parts["numbers"]) == 1

    def test_a_number_cut_off_and_one_too_long_are_left_to_cross_entropy(self):
        model, tokenizer = attached()
        loss = make_loss(model, tokenizer)
        labels = batch(tokenizer, ["12345", "9" * (LONGEST + 1), "9" * LONGEST])
        labels[0, 4:] = -100
        loss({"logits": random_logits(model, labels, torch.float32)}, labels)
        assert int(loss.parts["numbers"]) == 1

    @pytest.mark.parametrize("mode", ["soft", "hard"])
    @pytest.mark.parametrize("name", ["t5-flan", "llama"])
    def test_room_for_all_there_could_be_changes_nothing(self, name, mode, monkeypatch):
        model, tokenizer = attached(name)
        loss = AggregationLoss(model.double(), tokenizer, mode=mode, aggregation="interpolated")
        labels = batch(tokenizer, TARGETS, prompt=0 if model.config.is_encoder_decoder else 2)
        logits = random_logits(model, labels).requires_grad_()
        packed = loss({"logits": logits}, labels)
        parts = loss.parts
        monkeypatch.setattr(
            "placevalue.loss.aggregation_loss.find_numbers", functools.partial(find_numbers, packed=False)
        )
        spacious = loss({"logits": logits}, labels)
        torch.testing.assert_close(spacious, packed)
        torch.testing.assert_close(*(torch.autograd.grad(value, logits)[0] for value in (spacious, packed)))
        assert int(loss.parts["numbers"]) == int(parts["numbers"]) == 10
        none = batch(tokenizer, ["no number", "none"])
        value = loss({"logits": logits[:2, : none.shape[1]]}, none)
        assert torch.isfinite(value) and "aux" not in loss.parts

    def test_signs_separators_and_exponents(self):
        model, tokenizer = attached(pattern="extended")
        loss = make_loss(model.double(), tokenizer)
        labels = batch(tokenizer, ["-1,250.50", "6.02e23 of"])
        value = loss({"logits": random_logits(model, labels)}, labels)
        assert torch.isfinite(value) and int(loss.parts["numbers"]) == 1  # the one without an exponent

    @pytest.mark.parametrize("name", ["weighted", "max", "interpolated"])
    @pytest.mark.parametrize("negatives", ["opposite", "ignore"])
    @pytest.mark.parametrize("gold, guess", [
        ("-52", "+52"), ("+52", "-52"), ("-52", "-53"), ("-52", "-52"), ("-0", "+0"), ("(1,250)", "(1,251)"), ("-.5", "+.5"),
    ])  # fmt: skip
    def test_hard_compares_signs(self, name, negatives, gold, guess):
        model, tokenizer = attached(pattern="accounting", negatives=negatives)
        loss = AggregationLoss(model.double(), tokenizer, ce_weight=0, mode="hard", aggregation=name)
        logits, labels = certain(model, tokenizer, gold, guess)
        rows = scaled_rows(model, loss.ids.digits)
        vector = oracle.signed_aggregate if negatives == "opposite" else oracle.aggregate
        gap = (vector(name, gold, rows) - vector(name, guess, rows)).norm().clamp(min=FLOOR)
        assert loss({"logits": logits}, labels).item() == pytest.approx(float(gap.log2()), abs=1e-6)

    def test_soft_leaves_the_sign_to_cross_entropy(self):
        costs = []
        for negatives in ("opposite", "ignore"):
            model, tokenizer = attached(pattern="extended", negatives=negatives)
            loss = AggregationLoss(model.double(), tokenizer, ce_weight=0)
            labels = batch(tokenizer, ["-52", "+7.5"])
            costs.append(loss({"logits": random_logits(model, labels)}, labels))
        assert torch.equal(*costs)
        logits, labels = certain(model, tokenizer, "-52", "+52")
        assert loss({"logits": logits}, labels).item() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("token, given, expected", [
    ("agg", "interpolated", "interpolated"), ("agg", None, "weighted"), (None, None, "weighted"),
    ("agg", pv.AGGREGATIONS["sum"], "sum"),
])  # fmt: skip
def test_it_compares_what_the_model_is_attached_with(token, given, expected):
    model, base = build("t5-flan")
    tokenizer = pv.number_tokenizer(base, token=token)
    pv.attach(model, tokenizer, aggregation=given)
    assert AggregationLoss(model, tokenizer).aggregation is pv.AGGREGATIONS[expected]
    assert AggregationLoss(model, tokenizer, aggregation="mean").aggregation is pv.AGGREGATIONS["mean"]
    labels = PairCollator(tokenizer, model)(pv.encode_pairs(tokenizer, TARGETS, TARGETS))["labels"]
    outputs = {"logits": random_logits(model, labels)}
    assert AggregationLoss(model, tokenizer)(outputs, labels) == make_loss(model, tokenizer, expected)(outputs, labels)


def test_it_compares_your_own_function_that_the_model_is_attached_with():
    def mine(digits, embeddings):
        return digits.fold(torch.ones_like(digits.places), embeddings)

    model, base = build("t5-flan")
    tokenizer = pv.number_tokenizer(base, token="agg")
    assert AggregationLoss(pv.attach(model, tokenizer, mine), tokenizer).aggregation is mine


class TestWithoutNumbers:
    @pytest.mark.parametrize("name", ["t5-flan", "llama"])
    def test_it_is_the_cross_entropy(self, name):
        model, tokenizer = attached(name)
        loss = AggregationLoss(model, tokenizer)
        labels = batch(tokenizer, ["no number", "none here either"], prompt=1)
        logits = random_logits(model, labels, torch.float32).requires_grad_()
        value = loss({"logits": logits}, labels)
        (gradient,) = torch.autograd.grad(value, logits)
        shifted = labels if model.config.is_encoder_decoder else F.pad(labels[:, 1:], (0, 1), value=-100)
        expected = F.cross_entropy(logits.flatten(0, 1), shifted.flatten())
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(gradient, torch.autograd.grad(expected, logits)[0])
        assert "aux" not in loss.parts and int(loss.parts["numbers"]) == 0

    def test_weight_one_is_cross_entropy_alone(self):
        model, tokenizer = attached()
        labels = batch(tokenizer, TARGETS)
        logits = random_logits(model, labels, torch.float32)
        value = AggregationLoss(model, tokenizer, ce_weight=1)({"logits": logits}, labels)
        torch.testing.assert_close(value, F.cross_entropy(logits.flatten(0, 1), labels.flatten()))

    def test_data_in_which_no_number_is_ever_found_is_an_error(self):
        model, tokenizer = attached()
        loss = AggregationLoss(model, tokenizer)
        labels = batch(tokenizer, ["none"])
        logits = {"logits": random_logits(model, labels, torch.float32)}
        for _ in range(PATIENCE - 1):
            loss(logits, labels)
        for _ in range(2):  # whoever goes on all the same is told again
            with pytest.raises(TrainingError, match="contain no number"):
                loss(logits, labels)
        loss = AggregationLoss(model, tokenizer)
        number = batch(tokenizer, ["1"])
        loss({"logits": random_logits(model, number, torch.float32)}, number)
        for _ in range(PATIENCE + 1):
            loss(logits, labels)


def certain(model, tokenizer, gold, guess, height=40.0, dtype=torch.float64):
    """Logits that write `guess` where `gold` should stand."""
    labels, written = batch(tokenizer, [gold]), batch(tokenizer, [guess])[0].tolist()
    logits = torch.zeros(*labels.shape, model.get_input_embeddings().weight.shape[0], dtype=dtype)
    for position in range(labels.shape[1]):
        logits[0, position, written[min(position, len(written) - 1)]] = height
    return logits, labels


class TestSoft:
    @pytest.mark.parametrize("gold", ["320", "0", "99", "12.5", "1000"])
    @pytest.mark.parametrize("name", ["weighted", "interpolated", "sum", "mean"])
    def test_it_is_least_at_the_gold_digits_and_only_there(self, name, gold):
        model, tokenizer = attached()
        loss = AggregationLoss(model.double(), tokenizer, ce_weight=0, aggregation=name)
        at_gold = loss({"logits": (found := certain(model, tokenizer, gold, gold))[0]}, found[1]).item()
        assert at_gold == pytest.approx(0, abs=1e-12)
        others = {gold[:-1] or "x", gold + "0", gold + "7", "1" + gold, "x", gold[::-1] + "1"}
        others |= {gold[:i] + d + gold[i + 1 :] for i in range(len(gold)) for d in "0123456789."} - {gold}
        for guess in others:
            logits, labels = certain(model, tokenizer, gold, guess)
            assert loss({"logits": logits}, labels).item() > 1e-6, guess
            logits.requires_grad_()

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_its_gradient_vanishes_at_the_gold_and_is_finite_everywhere(self, dtype):
        model, tokenizer = attached()
        loss = AggregationLoss(model, tokenizer, ce_weight=0)
        for height, least, most in ((40.0, 0, 1e-9), (0.0, 1e-6, 10)):
            logits, labels = certain(model, tokenizer, "320", "320", height, dtype)
            logits.requires_grad_()
            (gradient,) = torch.autograd.grad(loss({"logits": logits}, labels), logits)
            assert gradient.dtype == dtype and gradient.isfinite().all()
            assert least <= gradient.abs().max() <= most

    @pytest.mark.parametrize("name", ["t5-flan", "bart", "bart-scaled", "t5"])
    def test_nearer_numbers_cost_less(self, name):
        model, tokenizer = attached(name)
        loss = AggregationLoss(model, tokenizer, ce_weight=0)
        costs = []
        for guess in ("320", "321", "330", "32", "3200"):
            logits, labels = certain(model, tokenizer, "320", guess)
            costs.append(loss({"logits": logits}, labels).item())
        assert costs == sorted(costs) and len(set(costs)) == 5

    def test_it_falls_steadily_along_a_line_of_digits(self):
        model, tokenizer = attached()
        digits = list(number_ids(tokenizer).digits)
        with torch.no_grad():
            model.shared.weight[digits] = torch.arange(10.0)[:, None] * torch.randn(16)
        loss = AggregationLoss(model, tokenizer, ce_weight=0)
        labels, costs = batch(tokenizer, ["0"]), []
        for share in torch.linspace(0, 1, 21):
            logits, _ = certain(model, tokenizer, "0", "0")
            logits[0, 1] = -40
            logits[0, 1, digits[9]], logits[0, 1, digits[1]] = (1 - share).log(), share.log()
            costs.append(loss({"logits": logits}, labels).item())
        assert all(later < earlier for earlier, later in itertools.pairwise(costs))

    @pytest.mark.parametrize("name", ["t5-flan", "llama"])
    def test_gradcheck(self, name):
        model, tokenizer = attached(name)
        loss = AggregationLoss(model.double(), tokenizer, ce_weight=0.3)
        labels = batch(tokenizer, ["12.5 x", "no", "7"], prompt=1)
        columns = [*number_ids(tokenizer).digits, number_ids(tokenizer).point, 1, 5]
        start = random_logits(model, labels)

        def value(some):
            return loss({"logits": start.index_copy(2, torch.tensor(columns), some)}, labels)

        assert torch.autograd.gradcheck(value, start[..., columns].clone().requires_grad_())

    def test_the_size_of_the_digit_embeddings_does_not_matter_and_they_get_no_gradient(self):
        model, tokenizer = attached()
        loss = AggregationLoss(model, tokenizer, ce_weight=0)
        labels = batch(tokenizer, ["320", "7.5"])
        logits = random_logits(model, labels, torch.float32).requires_grad_()
        before = loss({"logits": logits}, labels)
        assert torch.autograd.grad(before, model.shared.weight, allow_unused=True, retain_graph=True)[0] is None
        with torch.no_grad():
            model.shared.weight[list(number_ids(tokenizer).digits)] *= 0.01
        torch.testing.assert_close(loss({"logits": logits}, labels), before)

    @pytest.mark.parametrize("gold", ["472", "0.05", "1999"])
    @pytest.mark.parametrize("name", ["weighted", "interpolated"])
    def test_alone_it_brings_undecided_logits_to_the_gold(self, name, gold):
        model, tokenizer = attached()
        loss = AggregationLoss(model, tokenizer, ce_weight=0, aggregation=name)
        logits, labels = certain(model, tokenizer, gold, gold, height=0.0, dtype=torch.float32)
        optimizer = torch.optim.Adam([logits.requires_grad_()], lr=0.3)
        for _ in range(150):
            optimizer.zero_grad()
            loss({"logits": logits}, labels).backward()
            optimizer.step()
        assert logits.argmax(-1)[0, 1:-2].tolist() == labels[0, 1:-2].tolist()


class TestHard:
    def test_only_the_digit_embeddings_get_a_gradient(self):
        model, tokenizer = attached()
        loss = AggregationLoss(model, tokenizer, ce_weight=0, mode="hard")
        logits, labels = certain(model, tokenizer, "320", "321", dtype=torch.float32)
        logits.requires_grad_()
        of_logits, of_rows = torch.autograd.grad(loss({"logits": logits}, labels), (logits, model.shared.weight))
        assert of_logits.abs().max() == 0
        moved = of_rows.abs().sum(1).nonzero().flatten().tolist()
        digits = number_ids(tokenizer).digits
        assert set(moved) == {digits[0], digits[1]}

    @pytest.mark.parametrize("guess, expected", [("320", -20.0), ("abc", 20.0)])
    def test_its_ends(self, guess, expected):
        model, tokenizer = attached()
        loss = AggregationLoss(model, tokenizer, ce_weight=0, mode="hard")
        logits, labels = certain(model, tokenizer, "320", guess)
        assert loss({"logits": logits}, labels).item() == pytest.approx(expected)


class TestCutting:
    def test_how_a_batch_is_cut_changes_nothing(self):
        model, tokenizer = attached()
        labels = batch(tokenizer, ["320", "none", "7 and 12.5", "also none", "1", "no", "99", "3.5"])
        logits = random_logits(model, labels, torch.float32).requires_grad_()
        loss, items = AggregationLoss(model, tokenizer), (labels != -100).sum()
        (whole,) = torch.autograd.grad(loss({"logits": logits}, labels, items), logits)
        for size in (1, 2, 3):
            pieces = zip(logits.split(size), labels.split(size), strict=True)
            total = sum(loss({"logits": one}, two, num_items_in_batch=items) for one, two in pieces)
            torch.testing.assert_close(torch.autograd.grad(total, logits)[0], whole, rtol=1e-5, atol=1e-9)

    def test_no_items_means_the_tokens_here(self):
        model, tokenizer = attached()
        labels = batch(tokenizer, TARGETS)
        logits, loss = random_logits(model, labels, torch.float32), AggregationLoss(model, tokenizer)
        given = loss({"logits": logits}, labels, int((labels != -100).sum()))
        torch.testing.assert_close(loss({"logits": logits}, labels), given)


def test_a_masked_logit_is_no_trouble():
    model, tokenizer = attached()
    labels = batch(tokenizer, ["320"])
    for low in (-torch.inf, torch.finfo(torch.float32).min):
        logits = random_logits(model, labels, torch.float32)
        logits[..., 0] = low
        value = AggregationLoss(model, tokenizer, ce_weight=1)({"logits": logits}, labels)
        torch.testing.assert_close(value, F.cross_entropy(logits.flatten(0, 1), labels.flatten()))


def test_labels_of_one_token():
    model, tokenizer = attached()
    labels = torch.tensor([[1], [1]])
    value = AggregationLoss(model, tokenizer)({"logits": random_logits(model, labels, torch.float32)}, labels)
    assert torch.isfinite(value)


def test_counts_for_several_devices_make_one_scalar():
    model, tokenizer = attached()
    labels = batch(tokenizer, ["320"])
    loss, outputs = AggregationLoss(model, tokenizer), {"logits": random_logits(model, labels, torch.float32)}
    torch.testing.assert_close(loss(outputs, labels, torch.tensor([[4], [4]])), loss(outputs, labels, 8))


def test_aggregations_made_for_one_model_only():
    model, tokenizer = attached()
    mix = torch.randn(16, 16)
    loss = AggregationLoss(
        model, tokenizer, aggregation=lambda digits, rows: pv.AGGREGATIONS["weighted"](digits, rows) @ mix
    )
    labels = batch(tokenizer, ["320"])
    assert torch.isfinite(loss({"logits": random_logits(model, labels, torch.float32)}, labels)) and not loss.linear


@pytest.mark.parametrize("marker", ["open", "agg", "pause"])
def test_a_marker_in_a_guess_ends_it(marker):
    model, tokenizer = attached()
    loss = AggregationLoss(model, tokenizer, ce_weight=0, mode="hard")
    logits, labels = certain(model, tokenizer, "1234", "1234")
    logits[0, 1, pv.marker_ids(tokenizer)[marker]] = 99
    assert loss({"logits": logits}, labels).item() == pytest.approx(NO_NUMBER)


class TestParts:
    def test_they_are_named_and_add_up(self):
        model, tokenizer = attached()
        loss = AggregationLoss(model, tokenizer, ce_weight=0.25)
        labels = batch(tokenizer, ["320"])
        value = loss({"logits": random_logits(model, labels, torch.float32)}, labels)
        torch.testing.assert_close(value, 0.25 * loss.parts["ce"] + 0.75 * loss.parts["aux"])
        means = loss.take_means()
        assert means["numbers"] == 1 and means["aux"] == pytest.approx(float(loss.parts["aux"]))
        assert loss.take_means() == {}

    def test_evaluation_adds_nothing_to_the_totals(self):
        model, tokenizer = attached()
        loss = AggregationLoss(model, tokenizer)
        labels, others = batch(tokenizer, ["320"]), batch(tokenizer, ["7 and 12"])
        logits, other_logits = (random_logits(model, each, torch.float32) for each in (labels, others))
        with torch.no_grad():
            loss({"logits": logits}, labels)
        assert loss.take_means() == {}
        loss({"logits": logits}, labels)
        with torch.no_grad():
            loss({"logits": other_logits}, others)
        assert int(loss.parts["numbers"]) == 2, "its parts can be read"
        assert loss.take_means()["numbers"] == 1


class TestRefusals:
    def test_bad_settings(self):
        model, tokenizer = attached()
        with pytest.raises(ConfigError, match="ce_weight=2"):
            AggregationLoss(model, tokenizer, ce_weight=2)
        with pytest.raises(ConfigError, match="'soft' or 'hard'"):
            AggregationLoss(model, tokenizer, mode="medium")
        with pytest.raises(ConfigError, match="aggregation 'best' is unknown"):
            AggregationLoss(model, tokenizer, aggregation="best")

    def test_models_and_tokenizers_that_do_not_belong_together(self):
        model, base = build("t5-flan")
        with pytest.raises(TokenizerError, match="does not say what a number is"):
            AggregationLoss(model, base)
        tokenizer = pv.number_tokenizer(base)
        with pytest.raises(AttachError, match="is not attached"):
            AggregationLoss(model, tokenizer)
        pv.attach(model, tokenizer)
        with pytest.raises(AttachError, match="is attached for"):
            AggregationLoss(model, pv.number_tokenizer(base, token="agg"))

    def test_bad_batches(self):
        model, tokenizer = attached()
        loss = AggregationLoss(model, tokenizer)
        labels = batch(tokenizer, ["320"])
        with pytest.raises(TrainingError, match="no labels"):
            loss({"logits": random_logits(model, labels)}, None)
        with pytest.raises(TrainingError, match="do not match"):
            loss({"logits": random_logits(model, labels)[:, 1:]}, labels)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("piece", [8, 1 << 20])
def test_token_likelihoods_equal_torch(dtype, piece, monkeypatch):
    monkeypatch.setattr(cross_entropy_module, "_PIECE", piece)
    torch.manual_seed(0)
    logits = torch.randn(3, 5, 13).to(dtype).requires_grad_()
    labels = torch.randint(0, 13, (3, 5))
    labels[0, :2] = -100
    wanted = torch.tensor([2, 7, 1])
    losses, log_probs, norm = token_likelihoods(logits, labels, wanted, -100)
    exact = copy.deepcopy(logits.detach()).to(torch.promote_types(dtype, torch.float32)).requires_grad_()
    expected = F.cross_entropy(exact.flatten(0, 1), labels.flatten(), reduction="none").view(3, 5)
    torch.testing.assert_close(losses, expected)
    torch.testing.assert_close(log_probs, exact.log_softmax(-1)[..., wanted])
    torch.testing.assert_close(norm, exact.logsumexp(-1))
    mix, weights = torch.randn(3, 5, 3, dtype=exact.dtype), torch.randn(3, 5, dtype=exact.dtype)
    (ours,) = torch.autograd.grad(losses.sum() + (log_probs * mix).sum() + (norm * weights).sum(), logits)
    total = expected.sum() + (exact.log_softmax(-1)[..., wanted] * mix).sum() + (exact.logsumexp(-1) * weights).sum()
    (theirs,) = torch.autograd.grad(total, exact)
    torch.testing.assert_close(ours, theirs.to(dtype))


def test_the_compiled_passes_say_the_same():
    torch.manual_seed(0)
    logits = torch.randn(5, 13).bfloat16()
    norm, share = cross_entropy_module._norms(logits), torch.randn(5, 1)
    torch.testing.assert_close(cross_entropy_module._norms_at_once(logits, torch.float32), norm)
    torch.testing.assert_close(
        cross_entropy_module._shared_at_once(logits, norm[:, None], share),
        cross_entropy_module._shared(logits, norm[:, None], share),
    )


written = st.one_of(
    st.from_regex(r"\A[0-9]{1,6}\Z"),
    st.from_regex(r"\A[0-9]{0,3}\.[0-9]{1,3}\Z"),
    st.sampled_from(["no number", "room 12b", "7 of 1999 and 0.05", "1.2.3", "", " ", "00", "9" * LONGEST]),
)
targets = st.lists(st.lists(written, max_size=3).map(" ".join), min_size=1, max_size=4)
attached_once = functools.cache(attached)


@st.composite
def losses(draw):
    """Options of a loss, targets for it and the seed of its logits."""
    name = draw(st.sampled_from(["t5-flan", "bart-scaled", "llama"]))
    options = dict(mode=draw(st.sampled_from(["soft", "hard"])), ce_weight=draw(st.sampled_from([0, 0.25, 0.6, 1])))
    return name, draw(st.sampled_from(sorted(pv.AGGREGATIONS))), options, draw(targets), draw(st.integers(0, 99))


def some_loss(drawn, dtype=torch.float64):
    """The loss, the labels and logits that often write the right digits; every example has a loss of its own."""
    name, aggregation, options, texts, seed = drawn
    model, tokenizer = attached_once(name)
    loss = make_loss(model.double(), tokenizer, aggregation, **options)
    causal = not model.config.is_encoder_decoder
    labels = batch(tokenizer, texts, prompt=2 * causal)
    logits = random_logits(model, labels, seed=seed)
    right = labels.roll(-1, 1) if causal else labels
    logits.scatter_add_(2, right.clamp(min=0).unsqueeze(-1), torch.full_like(logits[..., :1], 3.0))
    return loss, tokenizer, logits.to(dtype), labels


@settings(max_examples=60)
@given(losses())
def test_any_loss_equals_the_slow_loop(drawn):
    loss, tokenizer, logits, labels = some_loss(drawn)
    expected = slow_loss(loss, tokenizer, logits, labels)
    torch.testing.assert_close(loss({"logits": logits}, labels).item(), expected, rtol=1e-6, atol=1e-9)


@settings(max_examples=60)
@given(losses(), st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_cutting_and_padding_change_no_loss(drawn, size, padding, packed):
    loss, _, logits, labels = some_loss(drawn)
    items = (labels != -100).sum()
    wider = F.pad(logits, (0, 0, 0, padding), value=1.0), F.pad(labels, (0, padding), value=-100)
    pieces = [loss({"logits": one}, two, items) for one, two in zip(*(each.split(size) for each in wider), strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        find = functools.partial(find_numbers, packed=packed)
        patch.setattr("placevalue.loss.aggregation_loss.find_numbers", find)
        torch.testing.assert_close(sum(pieces), loss({"logits": logits}, labels, items), rtol=1e-9, atol=1e-12)


@settings(max_examples=60)
@given(
    losses(), st.sampled_from([torch.float32, torch.bfloat16, torch.float16]), st.sampled_from([0.0, 1.0, 1e3, 1e30])
)
def test_any_loss_and_its_gradient_are_finite(drawn, dtype, scale):
    loss, _, logits, labels = some_loss(drawn)
    largest = torch.finfo(dtype).max
    logits = (logits * scale).clamp(-largest, largest).to(dtype).requires_grad_()
    value = loss({"logits": logits}, labels)
    assert value.isfinite() and torch.autograd.grad(value, logits)[0].isfinite().all()
