import copy
import gc
import io
import json
import os
import pickle
import weakref
from datetime import timedelta

import pytest
import torch
import torch.multiprocessing
from tokenizers import Tokenizer
from torch.nn.parallel import DistributedDataParallel
from transformers import PreTrainedTokenizerFast, T5Config, T5EncoderModel, XLNetConfig, XLNetLMHeadModel

import oracle
import placevalue as pv
import placevalue.numbers.constants
from placevalue.common.errors import AttachError, ConfigError
from placevalue.modeling.attached_config import recorded_config
from placevalue.modeling.hooks import Fold
from placevalue.tokenizer.tokenizer import SETTINGS, number_ids, number_layout, probe_ids
from zoo import _T5, CAUSAL, MODELS, SEQ2SEQ, build

TEXTS = [
    "the cat had 12 apples",
    "3 boys gave 4.56 of 1999 apples in room12b",
    "no numbers here",
    "7",
    "0.5 then 123456",
]


def prepared(name, aggregation="weighted", token="agg", position="before", new_rows="drawn", **options):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, token=token, position=position, **options)
    pv.attach(model, tokenizer, aggregation=aggregation if token == "agg" else None, new_rows=new_rows)
    return model, tokenizer


@pytest.mark.parametrize("aggregation", [*pv.AGGREGATIONS, "mine"])
def test_the_agg_of_a_number_below_zero_is_the_opposite(aggregation, monkeypatch):
    mine = pv.per_number(lambda values, places, embeddings: embeddings[values[0]])
    monkeypatch.setitem(pv.AGGREGATIONS, "mine", mine)
    model, tokenizer = prepared("t5", aggregation)
    rows = []
    for text in ("5.25", "-5.25", "+5.25", "-0", "0"):
        ids, _ = encode(tokenizer, [f"the {text} cats"])
        rows.append(embedded(model, ids)[ids == number_ids(tokenizer).agg][0])
    five, minus, plus, minus_zero, zero = rows
    assert torch.equal(minus, -five) and torch.equal(plus, five) and torch.equal(minus_zero, zero) and five.any()


def test_a_model_from_before_signs_counted_keeps_reading_as_it_was_trained(tmp_path):
    model, tokenizer = prepared("t5")
    pv.save_pretrained(model, tokenizer, tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    assert config[SETTINGS].pop("negatives") == "opposite"
    config[SETTINGS]["ids"].pop("bracket")
    file.write_text(json.dumps(config))
    old, tokenizer = pv.from_pretrained(tmp_path)
    ids, _ = encode(tokenizer, ["5 -5"])
    vectors = embedded(old, ids)[ids == number_ids(tokenizer).agg]
    assert torch.equal(vectors[0], vectors[1]) and recorded_config(old).negatives == "ignore"


def reading_embedding(model):
    """The embedding module that reads the input ids."""
    reader = model.get_encoder() if model.config.is_encoder_decoder else model
    return reader.get_input_embeddings()


def embedded(model, ids):
    """What the model's first layer is given for `ids`, seen by running the whole model."""
    run(model, ids)  # the fold moves to a module that was put there since, ahead of the hook below
    seen = []
    handle = reading_embedding(model).register_forward_hook(lambda module, args, output: seen.append(output.detach()))
    try:
        run(model, ids)
    finally:
        handle.remove()
    return seen[0]


def run(model, ids, mask=None):
    mask = torch.ones_like(ids) if mask is None else mask
    extra = (
        {"decoder_input_ids": torch.tensor([[0, 5, 6]]).expand(len(ids), -1)} if model.config.is_encoder_decoder else {}
    )
    return model(input_ids=ids, attention_mask=mask, **extra).logits


def assert_same(model, other, ids, mask, tolerance=1e-5):
    """Equal weights to the bit, and so equal logits; up to rounding, since kernels go by where in memory weights lie."""
    ours, theirs = dict(model.named_parameters()), dict(other.named_parameters())
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    with torch.no_grad():
        torch.testing.assert_close(run(model, ids, mask), run(other, ids, mask), rtol=tolerance, atol=tolerance)


def encode(tokenizer, texts, **options):
    batch = tokenizer(texts, padding=True, return_tensors="pt", **options)
    return batch["input_ids"], batch["attention_mask"]


def check_rows(model, tokenizer, ids, name, tolerance):
    numbers = number_ids(tokenizer)
    rows = reading_embedding(model).forward(torch.tensor(numbers.digits)).detach()
    seen, count = embedded(model, ids), 0
    for row, sequence in enumerate(ids.tolist()):
        for _, characters, aggs in oracle.numbers_in(sequence, numbers_with_symbols(numbers)):
            wanted = oracle.aggregate(name, "".join(c for c, _ in characters), rows)
            (position,) = aggs
            error = (seen[row, position].double() - wanted).norm() / wanted.norm()
            assert error <= tolerance, (error, characters)
            count += 1
    assert count == 8


def numbers_with_symbols(numbers):
    from dataclasses import replace

    return replace(numbers, minus=-2, others=(-3, -4), exponents=(-5, -6))


@pytest.mark.parametrize("position", ["before", "after"])
@pytest.mark.parametrize("name", MODELS)
def test_every_agg_is_its_numbers_aggregate(name, position):
    model, tokenizer = prepared(name, position=position)
    ids, _ = encode(tokenizer, TEXTS)
    check_rows(model, tokenizer, ids, "weighted", 1e-6)


@pytest.mark.parametrize("aggregation", pv.AGGREGATIONS)
@pytest.mark.parametrize("name", ["t5", "bart-scaled", "gemma3"])
def test_every_aggregation(name, aggregation):
    model, tokenizer = prepared(name, aggregation)
    ids, _ = encode(tokenizer, TEXTS)
    check_rows(model, tokenizer, ids, aggregation, 1e-6)


@pytest.mark.parametrize("name", ["t5", "bart-scaled", "llama"])
def test_an_agg_without_digits_keeps_its_own_row(name):
    model, tokenizer = prepared(name)
    numbers = number_ids(tokenizer)
    ids = torch.tensor([[numbers.open, numbers.agg, numbers.close, 5], [5, numbers.agg, numbers.digits[3], 6]])
    own = reading_embedding(model).forward(torch.tensor(numbers.agg)).detach()
    assert own.norm() > 0
    torch.testing.assert_close(embedded(model, ids)[:, 1], own.expand(2, -1))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 2**-8), (torch.float16, 2**-11)])
@pytest.mark.parametrize("name", ["t5", "bart-scaled", "llama", "gemma3"])
def test_half_precision_is_exact_up_to_the_final_rounding(name, dtype, tolerance):
    model, tokenizer = prepared(name)
    model.to(dtype)
    ids, _ = encode(tokenizer, TEXTS)
    check_rows(model, tokenizer, ids, "weighted", tolerance)


def test_autocast_does_not_fold_in_half_precision():
    model, tokenizer = prepared("llama")
    ids, _ = encode(tokenizer, TEXTS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        check_rows(model, tokenizer, ids, "weighted", 1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_padding_and_batching_change_nothing(name):
    model, tokenizer = prepared(name)
    ids, _ = encode(tokenizer, TEXTS)
    together = embedded(model, ids)
    for row, text in enumerate(TEXTS):
        alone, _ = encode(tokenizer, [text])
        padded = torch.cat([alone, torch.zeros_like(alone)], 1)
        wanted = embedded(model, alone)[0]
        torch.testing.assert_close(together[row, : alone.shape[1]], wanted, rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(embedded(model, padded)[0, : alone.shape[1]], wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_reach_the_ten_digit_rows(name):
    model, tokenizer = prepared(name)
    numbers = number_ids(tokenizer)
    embedding = reading_embedding(model)
    # Only [F] [AGG] and the digits of 1234567890 are read; stop the digits' own path to see the one through [AGG].
    ids, _ = encode(tokenizer, ["1234567890"], add_special_tokens=False)
    at = (ids == numbers.agg).nonzero()[0, 1]
    embedding(ids)[0, at].sum().backward()
    rows = embedding.weight.grad[list(numbers.digits)]
    assert (rows.abs().sum(1) > 0).all()
    assert embedding.weight.grad[numbers.agg].abs().sum() == 0
    model.zero_grad()
    run(model, ids).square().mean().backward()
    assert (embedding.weight.grad[list(numbers.digits)].abs().sum(1) > 0).all()


@pytest.mark.parametrize("name", MODELS)
def test_detach_restores_everything_to_the_bit(name):
    model, base = build(name)
    names, vocabulary, config = list(model.state_dict()), model.config.vocab_size, model.config.to_dict()
    ids, mask = encode(base, TEXTS)
    before = run(model, ids, mask)
    tokenizer = pv.number_tokenizer(base, token="agg")
    pv.attach(model, tokenizer)
    assert list(model.state_dict()) == names
    torch.testing.assert_close(run(model, ids, mask)[..., : len(base)], before[..., : len(base)], rtol=1e-4, atol=1e-5)
    pv.detach(model)
    assert list(model.state_dict()) == names
    assert model.config.vocab_size == vocabulary and model.config.to_dict() == config
    assert torch.equal(run(model, ids, mask), before)
    assert not any(isinstance(h, Fold) for m in model.modules() for h in m._forward_hooks.values())


@pytest.mark.parametrize("name", ["t5-padded", "llama"])
@pytest.mark.parametrize("start, low, high", [("drawn", 0.4, 2.0), ("mean", 0.03, 0.25)])
def test_markers_start_as_the_embeddings_lie_or_near_their_mean(name, start, low, high):
    model, tokenizer = prepared(name, token="pause", new_rows=start)
    markers = pv.marker_ids(tokenizer)
    weight = model.get_input_embeddings().weight.detach()
    known = weight[: min(markers.values())]
    distance = {
        n: float(((weight[i] - known.mean(0)) / known.std(0)).norm() / known.shape[1] ** 0.5)
        for n, i in markers.items()
    }
    assert distance["pause"] > 0.4 and all(low < distance[n] < high for n in ("open", "close", "agg"))
    assert not torch.equal(weight[markers["open"]], weight[markers["close"]])
    other, _ = prepared(name, token="agg", new_rows=start)
    assert torch.equal(other.get_input_embeddings().weight, weight)


def test_an_unknown_start_is_refused():
    with pytest.raises(ConfigError, match="new_rows='zero': expected one of drawn, mean"):
        prepared("llama", new_rows="zero")


def test_growing_is_said_and_seen(caplog):
    model, base = build("llama")
    with caplog.at_level("WARNING", logger="placevalue"):
        pv.attach(model, pv.number_tokenizer(base, token="agg"))
    assert f"from {len(base)} to {len(base) + 4} rows" in caplog.text
    assert model.config.vocab_size == len(base) + 4
    model, base = build("t5-padded")
    rows = model.get_input_embeddings().weight.shape[0]
    pv.attach(model, pv.number_tokenizer(base, token="agg"))
    assert model.get_input_embeddings().weight.shape[0] == rows


@pytest.mark.parametrize("name", SEQ2SEQ + CAUSAL)
@pytest.mark.parametrize("beams", [1, 3])
def test_generation_cached_beams_and_left_padding(name, beams):
    model, tokenizer = prepared(name)
    tokenizer.padding_side = "left" if name in CAUSAL else "right"
    batch = tokenizer(TEXTS[:3], padding=True, return_tensors="pt").to("cpu")
    batch.pop("token_type_ids", None)
    options = dict(num_beams=beams, max_new_tokens=5, do_sample=False)
    cached = model.generate(**batch, **options)
    assert torch.equal(cached, model.generate(**batch, use_cache=False, **options))
    for row, text in enumerate(TEXTS[:3]):
        one = tokenizer([text], return_tensors="pt")
        one.pop("token_type_ids", None)
        alone = model.generate(**one, **options)[0]
        start = 0 if model.config.is_encoder_decoder else one["input_ids"].shape[1]
        offset = 0 if model.config.is_encoder_decoder else batch["input_ids"].shape[1]
        shared = min(len(alone) - start, cached.shape[1] - offset)
        assert cached[row, offset : offset + shared].tolist() == alone[start : start + shared].tolist()


@pytest.mark.parametrize("name", ["t5", "bart", "llama", "gemma3", "qwen2", "gpt2", "bert"])
def test_gradient_checkpointing(name):
    model, tokenizer = prepared(name)
    ids, mask = encode(tokenizer, TEXTS)

    def gradient():
        model.zero_grad()
        run(model, ids, mask).square().mean().backward()
        return reading_embedding(model).weight.grad.clone()

    plain = gradient()
    model.gradient_checkpointing_enable()
    model.train()
    torch.testing.assert_close(gradient(), plain, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("aggregation", ["weighted", "median", "interpolated"])
@pytest.mark.parametrize("name", ["t5", "bart", "llama"])
@pytest.mark.slow
def test_compiled_as_one_graph(name, aggregation):
    model, tokenizer = prepared(name, aggregation)
    ids, mask = encode(tokenizer, TEXTS)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(run(compiled, ids, mask), run(model, ids, mask), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_deepcopy_and_pickle(name):
    model, tokenizer = prepared(name)
    ids, mask = encode(tokenizer, TEXTS)
    wanted = run(model, ids, mask)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(buffer, weights_only=False)):
        assert torch.equal(run(twin, ids, mask), wanted)
        digits = list(number_ids(tokenizer).digits)
        with torch.no_grad():
            reading_embedding(twin).weight[digits] *= 2
        assert not torch.equal(run(twin, ids, mask), wanted) and torch.equal(run(model, ids, mask), wanted)
        pv.detach(twin)
        assert pv.is_attached(model) and not pv.is_attached(twin)


def _ddp_worker(rank, folder):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # else gloo may wait for what this machine's name resolves to
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2, timeout=timedelta(seconds=60)
    )
    model, tokenizer = prepared("llama")
    parallel = DistributedDataParallel(model)
    ids, mask = encode(tokenizer, TEXTS[:4])
    rows = slice(2 * rank, 2 * rank + 2)
    parallel(input_ids=ids[rows], attention_mask=mask[rows]).logits.square().mean().backward()
    if rank == 0:
        torch.save(model.get_input_embeddings().weight.grad, f"{folder}/gradient.pt")
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads may wait for each other when both processes tear down at once


@pytest.mark.slow
def test_two_processes_give_the_gradient_of_one(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    workers = [context.Process(target=_ddp_worker, args=(rank, tmp_path)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    model, tokenizer = prepared("llama")
    ids, mask = encode(tokenizer, TEXTS[:4])
    run(model, ids, mask).square().mean().backward()
    found = torch.load(tmp_path / "gradient.pt", weights_only=True)
    torch.testing.assert_close(found, model.get_input_embeddings().weight.grad, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_resizing_after_attaching_keeps_the_aggregate(name):
    model, tokenizer = prepared(name)
    ids, mask = encode(tokenizer, TEXTS)
    before = run(model, ids, mask)
    model.resize_token_embeddings(model.config.vocab_size + 5)
    torch.testing.assert_close(run(model, ids, mask)[..., : before.shape[-1]], before)
    check_rows(model, tokenizer, ids, "weighted", 1e-6)


@pytest.mark.parametrize("name", ["t5-untied", "t5-flan"])
def test_an_output_matrix_of_its_own_survives_growing_and_resizing(name):
    """T5's config says tied where the checkpoint is not, and resizing alone would believe it."""
    model, base = build(name)
    head, size = model.lm_head.weight.detach().clone(), len(base)
    pv.attach(model, pv.number_tokenizer(base, token="agg"))
    assert torch.equal(model.lm_head.weight[:size], head[:size])
    assert model.lm_head.weight.data_ptr() != model.shared.weight.data_ptr()
    model.resize_token_embeddings(model.config.vocab_size + 3)
    assert torch.equal(model.lm_head.weight[:size], head[:size])


def test_inputs_embeds_bypass_the_fold_and_can_carry_it():
    model, tokenizer = prepared("llama")
    ids, _ = encode(tokenizer, TEXTS)
    embeds = model.get_input_embeddings()(ids)
    torch.testing.assert_close(model(inputs_embeds=embeds).logits, model(input_ids=ids).logits)


@pytest.mark.parametrize("token", [None, "pause"])
def test_layouts_without_agg_only_grow(token):
    model, tokenizer = prepared("llama", token=token)
    assert pv.is_attached(model) and recorded_config(model).aggregation is None
    assert not any(isinstance(h, Fold) for m in model.modules() for h in m._forward_hooks.values())
    ids, _ = encode(tokenizer, TEXTS)
    plain = torch.nn.functional.embedding(ids, model.get_input_embeddings().weight)
    assert torch.equal(embedded(model, ids), plain)


def test_settings_come_from_the_checkpoint_then_the_tokenizer_then_the_defaults(tmp_path):
    model, base = build("t5")
    config = pv.NumberConfig(token="agg", aggregation="interpolated", decimals="ignore", negatives="ignore")
    pv.number_tokenizer(base, config).save_pretrained(tmp_path)
    for tokenizer in (pv.number_tokenizer(base, config), pv.load_number_tokenizer(tmp_path)):
        pv.attach(model, tokenizer)
        recorded = recorded_config(model)
        assert (recorded.aggregation, recorded.decimals, recorded.negatives) == ("interpolated", "ignore", "ignore")
        pv.detach(model)
    pv.attach(model, tokenizer, aggregation="sum", decimals="places", negatives="opposite")
    recorded = getattr(model.config, SETTINGS)
    held = (recorded["aggregation"], recorded["decimals"], recorded["negatives"])
    assert held == ("sum", "places", "opposite"), "arguments come first"
    pv.detach(model)
    setattr(model.config, SETTINGS, recorded)  # as a checkpoint has it
    pv.attach(model, tokenizer)
    assert recorded_config(model).to_dict() == recorded
    plain = pv.attach(build("t5")[0], pv.number_tokenizer(base, pv.NumberConfig("agg")))
    found = recorded_config(plain)
    assert (found.aggregation, found.decimals, found.negatives) == ("weighted", "places", "opposite")


def test_models_that_are_only_an_encoder_fold_too():
    _, base = build("t5")
    tokenizer = pv.number_tokenizer(base, token="agg")
    for extra in (0, 9):
        model = T5EncoderModel(T5Config(vocab_size=len(base) + extra, **_T5)).eval()
        pv.attach(model, tokenizer)
        check_rows_by_difference(model, tokenizer)


def check_rows_by_difference(model, tokenizer):
    ids, _ = encode(tokenizer, TEXTS)
    folded = model(ids).last_hidden_state
    pv.detach(model)
    pv.attach(model, tokenizer, aggregation="sum")
    assert not torch.allclose(model(ids).last_hidden_state, folded)


def test_inference_mode_does_not_poison_training():
    model, tokenizer = prepared("llama")
    placevalue.numbers.constants._made.clear()
    ids, mask = encode(tokenizer, TEXTS)
    with torch.inference_mode():
        run(model, ids, mask)
    run(model, ids, mask).square().mean().backward()


def test_int32_ids():
    model, tokenizer = prepared("llama")
    ids, mask = encode(tokenizer, TEXTS)
    assert torch.equal(run(model, ids.int(), mask), run(model, ids, mask))


def test_an_attached_model_is_freed_at_once():
    model, _ = prepared("llama")
    alive = weakref.ref(model)
    gc.disable()
    try:
        del model
        assert alive() is None
    finally:
        gc.enable()


def test_attaching_leaves_the_callers_random_numbers_alone():
    model, base = build("llama")
    tokenizer = pv.number_tokenizer(base, token="agg")
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    pv.attach(model, tokenizer)
    assert torch.equal(torch.rand(3), wanted)


def test_functions_are_recorded_by_their_entry_and_never_by_anothers_name():
    model, base = build("t5")
    tokenizer = pv.number_tokenizer(base, token="agg")
    pv.attach(model, tokenizer, aggregation=pv.AGGREGATIONS["sum"])
    assert recorded_config(model).aggregation == "sum"
    pv.detach(model)

    def mean(digits, embeddings):
        return digits.fold(digits.places, embeddings)

    with pytest.raises(ConfigError, match="called 'mean', as another aggregation is"):
        pv.attach(model, tokenizer, aggregation=mean)


def test_a_function_of_ones_own():
    model, base = build("t5")
    tokenizer = pv.number_tokenizer(base, token="agg")
    pv.attach(model, tokenizer, aggregation=pv.per_number(first_digit))
    ids, _ = encode(tokenizer, ["the 73 cats"])
    at = (ids == pv.marker_ids(tokenizer)["agg"]).nonzero()[0, 1]
    seven = model.get_input_embeddings().weight[number_ids(tokenizer).digits[7]]
    torch.testing.assert_close(embedded(model, ids)[0, at], seven.detach())


def first_digit(values, places, embeddings):
    return embeddings[values[0]]


def test_detach_restores_the_tokenizer():
    model, base = build("t5")
    tokenizer = pv.number_tokenizer(base, token="agg")
    before = copy.deepcopy(tokenizer.init_kwargs)
    pv.attach(model, tokenizer)
    attached = copy.deepcopy(tokenizer.init_kwargs)
    assert attached != before
    pv.detach(copy.deepcopy(model))
    pv.detach(pickle.loads(pickle.dumps(model)))
    assert tokenizer.init_kwargs == attached, "a copy of the model leaves the tokenizer alone"
    other = pv.attach(T5EncoderModel(T5Config(vocab_size=len(base), **_T5)), tokenizer, "sum")
    pv.detach(model)
    assert tokenizer.init_kwargs["placevalue"]["aggregation"] == "sum", "another model has been attached since"
    pv.detach(other)
    assert tokenizer.init_kwargs == attached
    pv.detach(pv.attach(build("t5")[0], tokenizer := pv.number_tokenizer(base, token="agg")))
    assert tokenizer.init_kwargs == before


@pytest.mark.parametrize("name", ["t5-padded", "llama"])
def test_detach_leaves_rows_that_were_added_since(name):
    model, tokenizer = prepared(name)
    model.resize_token_embeddings(model.config.vocab_size + 5)
    size = model.config.vocab_size
    pv.detach(model)
    assert model.config.vocab_size == size


def exchanged(base, one, other):
    """A tokenizer in which two tokens have each other's id."""
    spec = json.loads(base.backend_tokenizer.to_str())
    vocabulary = spec["model"]["vocab"]
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(spec)), **base.special_tokens_map)


class TestErrors:
    def test_an_aggregation_without_a_place(self):
        model, base = build("t5")
        with pytest.raises(ConfigError, match=r"aggregation='sum' with token='pause', which has no \[AGG\]"):
            pv.attach(model, pv.number_tokenizer(base, token="pause"), aggregation="sum")

    def test_attaching_twice(self):
        model, tokenizer = prepared("t5")
        with pytest.raises(AttachError, match=r"attached already: call detach"):
            pv.attach(model, tokenizer)

    def test_detaching_what_is_not_attached(self):
        with pytest.raises(AttachError, match="not attached"):
            pv.detach(build("t5")[0])

    def test_unknown_aggregation(self):
        model, base = build("t5")
        with pytest.raises(ConfigError, match=r"'wieghted' is unknown: expected one of .*weighted"):
            pv.attach(model, pv.number_tokenizer(base, token="agg"), aggregation="wieghted")
        assert not pv.is_attached(model)

    def test_no_hugging_face_model(self):
        _, base = build("t5")
        with pytest.raises(AttachError, match="Linear is not a Hugging Face model"):
            pv.attach(torch.nn.Linear(2, 2), pv.number_tokenizer(base))

    def test_training_without_attaching(self):
        model, base = build("t5-padded")
        tokenizer = pv.number_tokenizer(base, token="agg")
        with pytest.raises(AttachError, match=r"token='agg'.*not attached.*attach\(model, tokenizer\)"):
            pv.check_attached(model, tokenizer)
        pv.attach(model, tokenizer)
        pv.check_attached(model, tokenizer)
        with pytest.raises(AttachError, match="position='after'"):
            pv.check_attached(model, pv.number_tokenizer(base, token="agg", position="after"))

    @pytest.mark.parametrize("pair", ["46", "%$"])
    def test_another_tokenizer_of_the_same_layout(self, pair):
        """Two characters have swapped ids: digits that the probe lacks, or a character of the probe that is not a digit."""
        model, base = build("gpt2")
        tokenizer, other = (pv.number_tokenizer(each, token="agg") for each in (base, exchanged(base, *pair)))
        assert number_layout(other) == number_layout(tokenizer)
        assert (number_ids(other) == number_ids(tokenizer)) == (pair == "%$")
        assert (probe_ids(other) == probe_ids(tokenizer)) == (pair == "46")
        pv.attach(model, tokenizer)
        if pair == "46":
            with pytest.raises(AttachError, match="is attached for"):
                pv.check_attached(model, other)
        later, _ = build("gpt2")
        setattr(later.config, SETTINGS, getattr(model.config, SETTINGS))  # as a checkpoint has it
        with pytest.raises(AttachError, match="this checkpoint was made for a tokenizer with"):
            pv.attach(later, other)
        pv.attach(later, tokenizer)

    def test_models_that_embed_length_first(self):
        _, base = build("t5")
        model = XLNetLMHeadModel(XLNetConfig(vocab_size=300, d_model=16, n_layer=1, n_head=2, d_inner=16))
        with pytest.raises(AttachError, match="batch last"):
            pv.attach(model, pv.number_tokenizer(base, token="agg"))

    def test_wrong_decimals(self):
        model, base = build("t5")
        with pytest.raises(ConfigError, match="decimals: expected one of places, ignore, found 'drop'"):
            pv.attach(model, pv.number_tokenizer(base, token="agg"), decimals="drop")
