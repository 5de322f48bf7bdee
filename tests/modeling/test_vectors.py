"""VECTORS: each equals its slow twin, is read and never written, and comes back with the model."""

import copy
import io
import logging
import pickle
from contextlib import nullcontext

import pytest
import torch
import transformers
from peft import LoraConfig, PeftModel, PromptTuningConfig, get_peft_model
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM, DataCollatorForSeq2Seq, T5EncoderModel, Trainer, TrainingArguments

import oracle
import placevalue as pv
from modeling.test_attach import TEXTS, assert_same, embedded, encode, reading_embedding, run
from modeling.test_loading import WHAT_TO_CALL, assert_refused
from placevalue.common.errors import AttachError, CheckpointError, ConfigError, TokenizerError
from placevalue.modeling.attached_config import recorded_config
from placevalue.modeling.mount import NAME
from placevalue.numbers.vectors import VECTORS
from placevalue.tokenizer.encoding import IGNORED, WRITTEN
from zoo import CAUSAL, MODELS, SEQ2SEQ, build

AT_DIGITS = [name for name, each in VECTORS.items() if each.at == "digits"]
ADDED = [name for name, each in VECTORS.items() if each.how == "add"]
TRAINED = [name for name, each in VECTORS.items() if each.build is not None]
LAID_OUT = [(each, True) for each in VECTORS] + [(each, False) for each in (*AT_DIGITS, "value-aware")]
"""Vectors, and whether numbers have markers."""
SOME = [pytest.param(*each, marks=() if each[0] in ("place", "value-aware") else pytest.mark.slow) for each in LAID_OUT]
"""The same, for tests that take long: the others differ in a formula alone."""
ODD = ["0", "-12", "1e15", "0.00000000000123", "123456789012345678901234567890", "007.50"]


def across(names):
    """Models with every vector and layout; BERT's ids do not show spaces, which numbers without markers need."""
    return [(name, *each) for name in names for each in LAID_OUT if each[1] or name != "bert"]


def prepared(name, vector, stirred=True, **options):
    """An attached model whose vector says something, and its tokenizer."""
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, token="agg" if VECTORS[vector].at == "token" else None, **options)
    pv.attach(model, tokenizer, vector=vector)
    if stirred:
        stir(model)
    return model, tokenizer


def stir(model):
    torch.manual_seed(3)
    with torch.no_grad():
        for path, weight in model.named_parameters():
            if f"{NAME}." in path:
                weight.copy_(torch.randn_like(weight))


def module_of(model):
    return next((each for path, each in model.named_modules() if path.rpartition(".")[2] == NAME), None)


def plain_rows(model, ids):
    """What ids would be without a vector."""
    return reading_embedding(model).forward(ids).detach()


def numbers_of(tokenizer, known, ids):
    """Each number of a row, and the positions of its digits and of its [AGG], slowly."""
    if known.open != -1:
        for _, characters, aggs in oracle.numbers_in(ids, known):
            yield "".join(c for c, _ in characters), [p for c, p in characters if c.isdigit()], aggs
        return
    special = {i for i, t in tokenizer.backend_tokenizer.get_added_tokens_decoder().items() if t.special}
    spelled = [None if i in special else tokenizer.convert_ids_to_tokens(i) for i in ids]
    for positions, numeral in oracle.bare_numbers(
        spelled, "extended", [p for p, i in enumerate(ids) if i == known.agg]
    ):
        yield numeral, [p for p in positions if ids[p] in known.digits], [p for p in positions if ids[p] == known.agg]


def check_against_twin(model, tokenizer, vector, texts, tolerance):
    known = recorded_config(model).ids
    ids, _ = encode(tokenizer, texts)
    rows, own = (plain_rows(model, torch.tensor(each)) for each in (known.digits, max(known.agg, 0)))
    wanted = plain_rows(model, ids).double()
    module = module_of(model)
    weights = {} if module is None else module.state_dict()
    seen, added = embedded(model, ids), VECTORS[vector].how == "add"
    count = 0
    for row, sequence in enumerate(ids.tolist()):
        for text, digits, aggs in numbers_of(tokenizer, known, sequence):
            found = oracle.vectors_of(vector, text, rows, own, weights)
            at = aggs if VECTORS[vector].at == "token" else digits
            mantissa = at[: len(oracle.digits_of(text)[0])]
            for position, one in zip(mantissa, found, strict=True):
                wanted[row, position] = one + (wanted[row, position] if added else 0)
            count += 1
    assert count >= len(texts) - 1
    torch.testing.assert_close(seen.double(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, vector, markers", across(["t5-flan", "bart-scaled", "llama", "gemma3", "gpt2", "bert"]))
def test_every_vector_equals_its_slow_twin(name, vector, markers):
    model, tokenizer = prepared(name, vector, markers=markers)
    texts = [*TEXTS, *(text for text in ODD if vector != "bits-in" or len(text) < 20)]  # whose bits are rounded
    check_against_twin(model, tokenizer, vector, texts, 1e-5)


@pytest.mark.parametrize("aggregation", pv.AGGREGATIONS)
def test_residual_adds_any_aggregate(aggregation, tmp_path):
    model, base = build("llama")
    tokenizer = pv.number_tokenizer(base, markers=False)
    pv.attach(model, tokenizer, aggregation, vector="residual")
    stir(model)
    pv.save_pretrained(model, tokenizer, tmp_path)
    model, tokenizer = pv.from_pretrained(tmp_path)
    ids, _ = encode(tokenizer, ["a -1250.5 b"])
    known = recorded_config(model).ids.digits
    rows = plain_rows(model, torch.tensor(known))
    wanted = module_of(model).weight * oracle.signed_aggregate(aggregation, "-1250.5", rows)
    added = (embedded(model, ids) - plain_rows(model, ids))[torch.isin(ids, torch.tensor(known))]
    torch.testing.assert_close(added.double(), wanted.detach().expand(5, -1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("vector", ADDED)
@pytest.mark.parametrize("name", MODELS)
def test_at_first_the_model_computes_exactly_what_it_did(name, vector):
    without, base = build(name)
    model, tokenizer = prepared(name, vector, stirred=False)
    pv.attach(without, pv.number_tokenizer(base, token=tokenizer.init_kwargs["placevalue"]["layout"]["token"]))
    if not recorded_config(model).layout.token:
        ids, mask = encode(tokenizer, [*TEXTS, *ODD])
        assert torch.equal(run(model, ids, mask), run(without, ids, mask))
        stir(model)
        assert not torch.equal(run(model, ids, mask), run(without, ids, mask))


@pytest.mark.parametrize("vector", AT_DIGITS)
@pytest.mark.parametrize("name", SEQ2SEQ + CAUSAL)
def test_bare_digits_need_no_new_token_and_change_nothing_at_first(name, vector):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, markers=False)
    ids, mask = encode(tokenizer, [*TEXTS, *ODD])
    before, size = run(model, ids, mask), model.get_input_embeddings().weight.shape
    pv.attach(model, tokenizer, vector=vector)
    assert torch.equal(run(model, ids, mask), before) and model.get_input_embeddings().weight.shape == size
    stir(model)
    assert not torch.equal(run(model, ids, mask), before)


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("name", ["t5", "llama", "bert"])
def test_text_without_numbers_is_unchanged(name, vector):
    model, tokenizer = prepared(name, vector)
    ids, _ = encode(tokenizer, ["no numbers here", "none"])
    assert torch.equal(embedded(model, ids), plain_rows(model, ids))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("vector", VECTORS)
def test_zero_negatives_and_large_numbers_differ_and_are_finite(vector, dtype):
    model, tokenizer = prepared("llama", vector)
    model.to(dtype)
    seen = []
    for text in ("0", "7", "-7", "1000000000000000", "-1000000000000000", "0.5"):
        ids, _ = encode(tokenizer, [f"a {text} b"])
        known = recorded_config(model).ids
        here = ids == known.agg if VECTORS[vector].at == "token" else torch.isin(ids, torch.tensor(known.digits))
        seen.append((text, embedded(model, ids)[here]))
        assert seen[-1][1].isfinite().all()
    for index, (text, one) in enumerate(seen):
        for other_text, other in seen[:index]:
            signs_apart = text.lstrip("-") == other_text.lstrip("-")
            if vector not in ("place", "abacus") or not signs_apart:  # which leave the sign to its token
                assert one.shape != other.shape or not torch.equal(one, other), (text, other_text)


def teach(model, tokenizer, question, answer):
    """One example as tensors."""
    (example,) = pv.encode_pairs(tokenizer, [question], [answer])
    return {key: torch.tensor([each]) for key, each in example.items()}


def step_by_step(model, prompt, rest):
    """The logits of cached generation that is made to write `rest`."""
    found = []
    with torch.no_grad():
        outputs = model(input_ids=prompt, attention_mask=torch.ones_like(prompt), use_cache=True)
        found.append(outputs.logits[:, -1])
        for at in range(rest.shape[1]):
            seen = torch.ones(1, prompt.shape[1] + at + 1, dtype=torch.long)
            past = outputs.past_key_values
            outputs = model(input_ids=rest[:, at : at + 1], attention_mask=seen, past_key_values=past, use_cache=True)
            found.append(outputs.logits[:, -1])
    return torch.stack(found, 1)


@pytest.mark.parametrize("question", ["the cat had 12 and 3.50", "7", "x 45"])
@pytest.mark.parametrize("vector, markers", LAID_OUT)
@pytest.mark.parametrize("name", CAUSAL)
def test_training_and_generation_compute_the_same(name, vector, markers, question):
    model, tokenizer = prepared(name, vector, markers=markers)
    batch = teach(model, tokenizer, question, "678 and 1.25")
    length = int((batch["labels"] == IGNORED).sum())
    wanted = step_by_step(model, batch["input_ids"][:, :length], batch["input_ids"][:, length:])
    hidden = {key: each for key, each in batch.items() if key != "labels"}
    plain = batch | {"attention_mask": torch.ones_like(batch["input_ids"])}
    with torch.no_grad():
        for told in (batch, hidden, plain):  # by labels and mask, by the mask alone, by labels alone
            found = model(**told).logits[:, length - 1 :]
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        if vector in AT_DIGITS:
            revealed = model(input_ids=batch["input_ids"]).logits[:, length - 1 :]
            assert not torch.allclose(revealed, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("text", ["a 1234", "a 12,345", "a 12.5", "a 12e7"])
@pytest.mark.parametrize("markers", [True, False])
@pytest.mark.parametrize("vector", AT_DIGITS)
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_what_is_written_reveals_nothing_to_what_is_read(name, vector, markers, text):
    """A number that begins in the prompt and goes on in the answer is read as far as the prompt goes."""
    model, tokenizer = prepared(name, vector, markers=markers)
    ids, _ = encode(tokenizer, [text])
    digits = [at for at, i in enumerate(ids[0].tolist()) if i in recorded_config(model).ids.digits]
    labels = ids.clone()
    labels[:, : digits[2]] = IGNORED
    with torch.no_grad():
        whole = model(input_ids=ids, labels=labels).logits[:, : digits[2]]
        prompt = model(input_ids=ids[:, : digits[2]]).logits
    torch.testing.assert_close(whole, prompt, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("vector, markers", SOME)
@pytest.mark.parametrize("name", ["t5", "bart", "llama", "gpt2"])
def test_beams_and_left_padding_agree(name, vector, markers, beams):
    model, tokenizer = prepared(name, vector, markers=markers)
    texts = [*TEXTS[:3], "7"]
    tokenizer.padding_side = "left" if name in CAUSAL else "right"
    options = dict(num_beams=beams, max_new_tokens=5, do_sample=False)
    together = model.generate(**tokenizer(texts, padding=True, return_tensors="pt"), **options)
    two_part = model.config.is_encoder_decoder
    for row, text in enumerate(texts):
        one = tokenizer([text], return_tensors="pt")
        alone = model.generate(**one, **options)[0, 0 if two_part else one["input_ids"].shape[1] :].tolist()
        offset = together.shape[1] - 5 if not two_part else 0
        new = together[row, offset:].tolist()
        shared = min(len(alone), len(new))
        assert alone[:shared] == new[:shared]


@pytest.mark.parametrize("vector", TRAINED)
@pytest.mark.parametrize("name", MODELS)
def test_it_is_one_module_and_detach_removes_it(name, vector):
    model, base = build(name)
    names, ids = list(model.state_dict()), encode(base, TEXTS)[0]
    before = run(model, ids)
    tokenizer = pv.number_tokenizer(base, token="agg" if VECTORS[vector].at == "token" else None)
    pv.attach(model, tokenizer, vector=vector)
    stir(model)
    added = set(model.state_dict()) - set(names)
    assert added and all(f"{NAME}." in each for each in added)
    assert len({each.partition(NAME)[0] for each in added}) == 1
    pv.detach(model)
    assert list(model.state_dict()) == names and module_of(model) is None
    assert torch.equal(run(model, ids), before)


@pytest.mark.parametrize("vector, markers", SOME)
@pytest.mark.parametrize("name", ["t5-flan", "bart", "llama", "gpt2"])
def test_it_is_saved_sealed_and_loaded(name, vector, markers, tmp_path):
    model, tokenizer = prepared(name, vector, markers=markers)
    ids, mask = encode(tokenizer, TEXTS)
    pv.save_pretrained(model, tokenizer, tmp_path / "whole")
    model.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    tokenizer.save_pretrained(tmp_path / "shards")
    assert len(list((tmp_path / "shards").glob("model-*.safetensors"))) > 1
    for folder in ("whole", "shards"):
        loaded, ours = pv.from_pretrained(tmp_path / folder)
        assert recorded_config(loaded).vector == vector
        assert torch.equal(encode(ours, TEXTS)[0], ids)
        assert_same(loaded, model, ids, mask)
    assert f"the vector `{vector}`" in (tmp_path / "whole" / "README.md").read_text()
    assert_refused(tmp_path / "whole", model, name)


def test_loading_reports_no_unexpected_weights(tmp_path):
    model, tokenizer = prepared("llama", "place")
    model.save_pretrained(tmp_path)
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    transformers.logging.add_handler(handler)
    try:
        pv.from_pretrained(tmp_path, tokenizer)
        assert not said.getvalue() and type(model)._keys_to_ignore_on_load_unexpected is None
        AutoModelForCausalLM.from_pretrained(tmp_path, fusion_config={})
        assert "UNEXPECTED" in said.getvalue()
    finally:
        transformers.logging.remove_handler(handler)


def test_a_folder_opened_by_hand_gets_its_parameters_back_or_says_so(tmp_path):
    model, tokenizer = prepared("llama", "place")
    pv.save_pretrained(model, tokenizer, tmp_path)
    ids, mask = encode(tokenizer, TEXTS)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path, fusion_config={})
    assert_same(pv.attach(plain, pv.load_number_tokenizer(tmp_path)), model, ids, mask)
    lost = AutoModelForCausalLM.from_pretrained(tmp_path, fusion_config={})
    lost.config.name_or_path = str(tmp_path / "nowhere")
    lost.name_or_path = ""
    with pytest.raises(CheckpointError, match=r"parameters are \{\}, expected \{'weight': \(32, 16\)\}"):
        pv.attach(lost, pv.load_number_tokenizer(tmp_path))


QUESTIONS, ANSWERS = [f"the cat had {i} and {i * 7}.5" for i in range(16)], [str(i * 8) for i in range(16)]


def trainer(model, tokenizer, folder, loss=None, **options):
    data = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)
    arguments = TrainingArguments(
        folder, max_steps=3, save_steps=3, per_device_train_batch_size=4, learning_rate=1e-2, report_to=[],
        use_cpu=True, disable_tqdm=True, seed=1, **options,
    )  # fmt: skip
    collator = DataCollatorForSeq2Seq(tokenizer, model=model)
    return Trainer(
        model, arguments, train_dataset=data, eval_dataset=data[:4], data_collator=collator, compute_loss_func=loss
    )


@pytest.mark.parametrize("vector, markers", SOME)
@pytest.mark.parametrize("name", ["t5", "llama"])
def test_three_steps_save_load_answer(name, vector, markers, tmp_path):
    model, tokenizer = prepared(name, vector, stirred=False, markers=markers)
    before = copy.deepcopy(model.state_dict())
    # With a loss of our own, labels do not reach the model.
    training = trainer(model, tokenizer, tmp_path, pv.AggregationLoss(model, tokenizer) if name == "llama" else None)
    training.train()
    training.evaluate()
    moved = [key for key, each in model.state_dict().items() if NAME in key and not torch.equal(each, before[key])]
    assert len(moved) == sum(NAME in key for key in before)
    loaded, ours = pv.from_pretrained(tmp_path / "checkpoint-3")
    ids, mask = encode(tokenizer, TEXTS)
    assert_same(loaded, model.eval(), ids, mask)
    asked = ours(TEXTS[1], return_tensors="pt")
    made = [each.generate(**asked, max_new_tokens=5, do_sample=False) for each in (loaded, model)]
    assert torch.equal(*made)


def test_the_optimizer_state_resumes_to_the_same_weights(tmp_path):
    ends = []
    for steps, resume in ((4, False), (2, False), (4, True)):
        model, tokenizer = prepared("llama", "place", stirred=False)
        training = trainer(model, tokenizer, tmp_path / ("whole" if not ends else "cut"), lr_scheduler_type="constant")
        training.args.max_steps, training.args.save_steps = steps, 2
        training.train(resume_from_checkpoint=resume)
        ends.append({key: each.clone() for key, each in model.state_dict().items()})
    assert all(torch.equal(each, ends[2][key]) for key, each in ends[0].items())


TARGETS = {"t5": ["q", "v"], "llama": ["q_proj", "v_proj"]}


def adapted(name, vector, order, folder, targets=None, markers=True, **options):
    model, base = build(name)
    model.save_pretrained(folder)
    model = type(model).from_pretrained(folder)
    tokenizer = pv.number_tokenizer(base, token="agg" if VECTORS[vector].at == "token" else None, markers=markers)
    if order == "attach later":
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    else:
        pv.attach(model, tokenizer, vector=vector)
        options = {"modules_to_save": pv.trainable_modules(model)} | options
    indices = pv.trainable_tokens(model, tokenizer)
    config = LoraConfig(r=4, target_modules=targets or TARGETS[name], trainable_token_indices=indices, **options)
    model = get_peft_model(model, config)
    if order == "attach later":
        pv.attach(model, tokenizer, vector=vector)
    return model, tokenizer


@pytest.mark.parametrize("order", ["attach first", "attach later"])
@pytest.mark.parametrize("vector, markers", SOME)
@pytest.mark.parametrize("name", TARGETS)
def test_lora_trains_saves_reloads_and_merges_it(name, vector, markers, order, tmp_path):
    model, tokenizer = adapted(name, vector, order, tmp_path / "base", markers=markers)
    before = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    ours = [n for n in before if NAME in n]
    assert bool(ours) == (vector in TRAINED) and any("lora" in n for n in before)
    training = trainer(model, tokenizer, tmp_path / "run", remove_unused_columns=False)
    training.train()
    moved = dict(model.named_parameters())
    assert all(not torch.equal(moved[n], before[n]) for n in ours)
    ids, mask = encode(tokenizer, TEXTS)
    model.eval()
    wanted = run(model, ids, mask)
    pv.save_pretrained(model, tokenizer, tmp_path / "out")
    for folder in (tmp_path / "out", tmp_path / "run" / "checkpoint-3"):
        loaded, _ = pv.from_pretrained(folder)
        assert isinstance(loaded, PeftModel)
        torch.testing.assert_close(run(loaded.eval(), ids, mask), wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=WHAT_TO_CALL):
        PeftModel.from_pretrained(type(model.get_base_model()).from_pretrained(tmp_path / "base"), tmp_path / "out")
    with model.disable_adapter():
        run(model, ids, mask)
    merged = model.merge_and_unload()
    torch.testing.assert_close(run(merged, ids, mask), wanted, rtol=1e-4, atol=1e-5)
    pv.save_pretrained(merged, tokenizer, tmp_path / "merged")
    again, _ = pv.from_pretrained(tmp_path / "merged")
    assert_same(again, merged, ids, mask)
    pv.detach(merged)
    assert not any(NAME in key for key in merged.state_dict())


@pytest.mark.parametrize("vector", TRAINED)
def test_adapters_that_would_leave_it_as_it_is_are_refused(vector, tmp_path):
    model, tokenizer = adapted("llama", vector, "attach first", tmp_path, modules_to_save=None)
    with pytest.raises(AttachError, match=r"does not train the vector.*trainable_modules"):
        trainer(model, tokenizer, tmp_path / "run", remove_unused_columns=False).train()


def test_every_linear_layer_adapted(tmp_path):
    for vector in TRAINED:
        model, tokenizer = adapted("llama", vector, "attach first", tmp_path / vector, targets="all-linear")
        assert not any("lora" in path and NAME in path for path, _ in model.named_parameters())


def test_detach_from_inside_an_adapter(tmp_path):
    model, tokenizer = adapted("llama", "place", "attach later", tmp_path)
    assert model.peft_config["default"].modules_to_save == [NAME]
    pv.detach(model)
    assert module_of(model) is None and model.peft_config["default"].modules_to_save is None


@pytest.mark.parametrize(
    "name, task, said", [("llama", "CAUSAL_LM", "not train|inputs_embeds"), ("t5", "SEQ_2_SEQ_LM", "not train")]
)
def test_prompt_tuning_is_refused_where_it_would_lose_the_vector(name, task, said):
    model, tokenizer = prepared(name, "place")
    model = get_peft_model(model, PromptTuningConfig(task_type=task, num_virtual_tokens=2))
    with pytest.raises(AttachError, match=said):
        model.train()(**teach(model, tokenizer, "a 12", "34"))
    with torch.no_grad(), pytest.raises(AttachError, match="inputs_embeds") if name == "llama" else nullcontext():
        model.eval()(**teach(model, tokenizer, "a 12", "34"))
    later, base = build(name)
    tokenizer = pv.number_tokenizer(base)
    later.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    later = get_peft_model(later, PromptTuningConfig(task_type=task, num_virtual_tokens=2))
    pv.attach(later, tokenizer, vector="place")
    assert not any(weight.requires_grad for weight in module_of(later).parameters())


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("name", ["t5", "llama"])
def test_copies_and_pickles_are_their_own(name, vector):
    model, tokenizer = prepared(name, vector)
    ids, mask = encode(tokenizer, TEXTS)
    wanted = run(model, ids, mask)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(buffer, weights_only=False)):
        assert torch.equal(run(twin, ids, mask), wanted)
        if vector in TRAINED:
            with torch.no_grad():
                next(module_of(twin).parameters()).add_(1)
            assert not torch.equal(run(twin, ids, mask), wanted)
        assert torch.equal(run(model, ids, mask), wanted)


@pytest.mark.parametrize("vector", TRAINED)
@pytest.mark.parametrize("name", ["t5", "llama", "gpt2"])
def test_gradient_checkpointing_gives_the_same_gradient(name, vector):
    model, tokenizer = prepared(name, vector)
    data = pv.encode_pairs(tokenizer, QUESTIONS[:4], ANSWERS[:4])
    batch = dict(DataCollatorForSeq2Seq(tokenizer, model=model)(data))

    def gradients():
        torch.manual_seed(4)  # of a random offset
        model.zero_grad()
        model(**batch).loss.backward()
        return [weight.grad.clone() for weight in module_of(model).parameters()]

    model.train()
    plain = gradients()
    assert any(each.any() for each in plain)
    model.gradient_checkpointing_enable()
    for one, other in zip(gradients(), plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("name", ["t5", "llama"])
@pytest.mark.slow
def test_compiled_as_one_graph(name, vector):
    model, tokenizer = prepared(name, vector)
    batch = teach(model, tokenizer, "the 12 of 3.5", "78")
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(**batch).logits, model(**batch).logits, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("vector", TRAINED)
def test_data_in_parallel(vector, tmp_path):
    store = torch.distributed.FileStore(str(tmp_path / "meeting"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        model, tokenizer = prepared("llama", vector)
        parallel = DistributedDataParallel(model)
        parallel(**teach(model, tokenizer, "a 12", "34")).loss.backward()
        assert all(weight.grad.any() for weight in module_of(model).parameters())
        model.zero_grad()
        parallel(**teach(model, tokenizer, "a b", "c")).loss.backward()  # every parameter is used without numbers too
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("vector", VECTORS)
def test_an_encoder_saved_alone(vector, tmp_path):
    model, tokenizer = prepared("t5", vector)
    ids, _ = encode(tokenizer, TEXTS)
    wanted = model.get_encoder()(ids).last_hidden_state
    alone = T5EncoderModel(model.config)
    alone.encoder, alone.shared = model.get_encoder(), model.shared
    alone.save_pretrained(tmp_path)
    loaded, _ = pv.from_pretrained(tmp_path, tokenizer)
    torch.testing.assert_close(loaded(ids).last_hidden_state, wanted)


class TestRefusals:
    def train_once(self, model, **batch):
        model.train()
        return model(**batch)

    @pytest.mark.parametrize("vector", AT_DIGITS)
    def test_a_batch_that_does_not_say_what_is_written(self, vector):
        model, tokenizer = prepared("llama", vector)
        batch = teach(model, tokenizer, "a 12", "34")
        with pytest.raises(AttachError, match=r"no labels.*encode_pairs"):
            self.train_once(model, input_ids=batch["input_ids"], attention_mask=batch["attention_mask"].clamp(max=1))
        self.train_once(model, input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
        asked = tokenizer("a 12", return_tensors="pt")
        assert model.training and model.generate(**asked, max_new_tokens=3).shape[1] > asked["input_ids"].shape[1]

    def test_a_loss_that_digits_were_revealed_to(self):
        model, tokenizer = prepared("llama", "place")
        loss = pv.AggregationLoss(model, tokenizer)
        batch = teach(model, tokenizer, "a 12", "34")
        labels = batch.pop("labels")
        loss(model(**batch), labels)
        with torch.no_grad(), pytest.raises(AttachError, match=r"digits of answers had their vector.*encode_pairs"):
            loss(model(input_ids=batch["input_ids"]), labels)
        outputs = model(**batch)
        loss(outputs, labels)
        loss(outputs, torch.roll(labels, 1, 1))  # of a pass that did not run through hooks, nothing is known

    def test_a_loss_on_whole_texts(self):
        model, tokenizer = prepared("llama", "place")
        ids = tokenizer("a 12 b", return_tensors="pt")["input_ids"]
        with pytest.raises(AttachError, match="whole texts"):
            self.train_once(model, input_ids=ids, labels=ids)
        with pytest.raises(TokenizerError, match="would reveal"):
            pv.encode_texts(tokenizer, ["a 12 b"])

    def test_generation_that_reads_what_it_has_written(self):
        model, tokenizer = prepared("llama", "place")
        asked = tokenizer("a 12", return_tensors="pt")
        with pytest.raises(AttachError, match="use_cache=False"):
            model.generate(**asked, max_new_tokens=3, use_cache=False)
        with pytest.raises(AttachError, match="prefill_chunk_size"):
            model.generate(**asked, max_new_tokens=3, prefill_chunk_size=2)

    def test_threads_of_data_parallel(self):
        model, tokenizer = prepared("llama", "place")
        model._is_replica = True
        with pytest.raises(AttachError, match="torchrun"):
            run(model, *encode(tokenizer, TEXTS))

    def test_vectors_that_do_not_fit(self, monkeypatch):
        model, base = build("t5")
        with pytest.raises(ConfigError, match=r"'plase' is unknown: expected one of place.*VECTORS\['plase'\]"):
            pv.attach(model, pv.number_tokenizer(base), vector="plase")
        with pytest.raises(ConfigError, match="'plase' is unknown"):
            pv.number_tokenizer(base, pv.NumberConfig(vector="plase"))
        monkeypatch.setitem(VECTORS, "mine", pv.Vector(lambda reading, _: reading.own))
        with pytest.raises(ConfigError, match=r"'mine' with token=None, which has no \[AGG\]"):
            pv.attach(model, pv.number_tokenizer(base), vector="mine")
        with pytest.raises(ConfigError, match="'mine' and aggregation='sum' both replace"):
            pv.attach(model, pv.number_tokenizer(base, token="agg"), "sum", vector="mine")
        with pytest.raises(ConfigError, match="'place' with rewrite='reversed-both'"):
            pv.attach(model, pv.number_tokenizer(base, rewrite="reversed-both"), vector="place")
        assert not pv.is_attached(model)


def test_only_the_encoder_gets_it():
    for name in SEQ2SEQ:
        model, tokenizer = prepared(name, "place")
        ids, _ = encode(tokenizer, TEXTS)
        decoder = model.get_decoder().get_input_embeddings()
        seen = []
        handle = decoder.register_forward_hook(lambda _, args, output, seen=seen: seen.append(output))
        model(input_ids=ids, decoder_input_ids=ids)
        handle.remove()
        assert torch.equal(seen[-1], decoder.forward(ids))


def test_marks_are_made_for_those_who_need_them_alone():
    for name, vector, marked in (("llama", "place", True), ("t5", "place", False)):
        _, tokenizer = prepared(name, vector)
        (example,) = pv.encode_pairs(tokenizer, ["a 12"], ["34"])
        assert (WRITTEN in example["attention_mask"]) == marked
        cleaned = pv.clean_targets(tokenizer, {k: v for k, v in example.items() if k != "attention_mask"})
        assert cleaned["attention_mask"] == example["attention_mask"]
    model, base = build("llama")
    tokenizer = pv.number_tokenizer(base, pv.NumberConfig(vector="place"))
    assert WRITTEN in pv.encode_pairs(tokenizer, ["a 12"], ["34"], encoder_decoder=False)[0]["attention_mask"]
    pv.attach(model, tokenizer)
    assert recorded_config(model).vector == "place" and "vector place" in repr(model)
    pv.detach(model)
    assert module_of(model) is None


def test_a_vector_of_ones_own(monkeypatch, tmp_path):
    halves = pv.Vector(lambda reading, _: reading.values.to(reading.own).unsqueeze(-1) / 2 + 0 * reading.own)
    monkeypatch.setitem(pv.VECTORS, "halves", halves)
    model, tokenizer = prepared("llama", "halves")
    ids, _ = encode(tokenizer, ["a 1,250.5 and -3"])
    at = ids == recorded_config(model).ids.agg
    assert embedded(model, ids)[at].tolist() == [[625.25] * 16, [-1.5] * 16]
    pv.save_pretrained(model, tokenizer, tmp_path)
    assert recorded_config(pv.from_pretrained(tmp_path)[0]).vector == "halves"
    monkeypatch.delitem(pv.VECTORS, "halves")
    with pytest.raises(ConfigError, match="'halves' is unknown"):
        pv.from_pretrained(tmp_path)


@pytest.mark.parametrize("text", ["0", "-0", "7", "0.1", "0.3", "-12.5", "123456.789", "1e5", "1.5e-7", "999999999999999",
                                  "9007199254740992", "1e300", "1e999", "12345678901234567890123"])  # fmt: skip
def test_values_are_what_float_reads(monkeypatch, text):
    seen = []

    def keep(reading, _):
        seen.append(reading.values.max() + reading.values.min())
        return reading.own

    monkeypatch.setitem(pv.VECTORS, "keep", pv.Vector(keep))
    model, tokenizer = prepared("t5", "keep")
    embedded(model, encode(tokenizer, [f"a {text} b"])[0])
    exact = len(text.strip("-").replace(".", "").partition("e")[0]) <= 16 and abs(float(text)) < 1e22
    expected = min(float(text), 1e308)  # the largest power of ten
    assert float(seen[0]) == (expected if exact else pytest.approx(expected, rel=1e-15))
