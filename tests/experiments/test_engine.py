"""training.engine=fast: the same training as the standard engine's, in batches of few shapes on the device."""

import numpy as np
import pytest
import torch

import oracle
from placevalue.experiments.batches import DeviceExamples, choose_lengths
from placevalue.experiments.engine import FastForward
from placevalue.experiments.recipe import make_recipe
from placevalue.experiments.run_folder import SEEN, find_changes
from placevalue.experiments.train import _arguments, make_trainer, prepare, train
from placevalue.loss.cross_entropy import TokenLoss
from placevalue.tokenizer.collate import PairCollator
from placevalue.tokenizer.encoding import IGNORED
from zoo import build


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Folders of small models without dropout, and problems of very different lengths."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("t5-flan", "bart", "llama", "gpt2"):
        model, base = build(name)
        for key in ("dropout_rate", "dropout", "attention_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop"):
            if hasattr(model.config, key):
                setattr(model.config, key, 0.0)
        model.save_pretrained(folder / name)
        base.save_pretrained(folder / name)
    rows = "".join(f"{'so ' * (i % 7)}{i} and {i + 3} more?,{2 * i + 3}\n" for i in range(22))
    (folder / "sums.csv").write_text("question,answer\n" + rows)
    return folder


def config(home, name, method, **training):
    settings = {"max_steps": 6, "batch_size": 4, "log_every": 1, "warmup_steps": 2, "learning_rate": 1e-3} | training
    data = str(home / "sums.csv")
    values = {"model": str(home / name), "data": {"train": data, "dev": data}, "methods": [method]}
    return make_recipe(values | {"training": settings}).run()


@pytest.mark.parametrize("name, method, more", [
    ("t5-flan", "agg-aux", {"group_by_length": True}), ("t5-flan", "untouched", {}), ("t5-flan", "aux-hard", {}),
    ("bart", "aux-soft", {}), ("llama", "agg-after", {"group_by_length": True, "accumulation": 2}),
    ("llama", "aux-soft", {}), ("gpt2", "pause", {}), ("llama", "place", {}), ("t5-flan", "fone-in", {}),
])  # fmt: skip
def test_it_trains_as_the_standard_engine_does(home, tmp_path, name, method, more):
    runs = {
        engine: train(config(home, name, method, engine=engine, **more), tmp_path / engine)
        for engine in ("standard", "fast")
    }
    for one, other in zip(*(each.losses for each in runs.values()), strict=True):
        assert one.keys() == other.keys()
        for key in one.keys() - {"seconds", "total_flos"} - {key for key in one if "runtime" in key or "second" in key}:
            # the gradient's norm is a ratio of small differences in the last steps
            assert other[key] == pytest.approx(one[key], rel=2e-3 if key == "grad_norm" else 2e-4, abs=1e-6), key


def test_an_interrupted_run_goes_on_to_the_same_weights(home, tmp_path):
    wanted = config(home, "t5-flan", "agg-aux", engine="fast", checkpoint_every=2)
    whole = train(wanted, tmp_path / "whole")
    with pytest.raises(ZeroDivisionError):
        train(wanted, tmp_path / "stopped", progress=lambda done, _: 1 / 0 if done == 5 else None)
    again = train(wanted, tmp_path / "stopped", resume=True)
    assert again.files["model.safetensors"] == whole.files["model.safetensors"]


def test_runs_of_another_engine_are_stale_and_old_records_are_of_the_standard_one(home):
    standard, fast = (
        {**config(home, "llama", "digits", engine=each).to_dict(), SEEN: {}} for each in ("standard", "fast")
    )
    assert find_changes(standard, fast)
    del standard["training"]["engine"]
    assert not find_changes(standard, config(home, "llama", "digits").to_dict() | {SEEN: {}})


class Graphs:
    """Stands for the capture of CUDA graphs: gives what was computed for the same tensors, in the same memory."""

    def __init__(self):
        self.shapes = []

    def __call__(self, run, tensors):
        self.shapes.append(tuple(tensors[0].shape))
        return run


def trainer_of(home, folder, name, method, **training):
    wanted = config(home, name, method, **training)
    return make_trainer(wanted, prepare(wanted), _arguments(wanted, folder))


@pytest.mark.parametrize("name, method", [("t5-flan", "agg-aux"), ("llama", "agg-aux"), ("llama", "place")])
def test_each_shape_is_captured_once_and_gives_the_models_logits(home, tmp_path, name, method):
    trainer = trainer_of(home, tmp_path, name, method, engine="fast", group_by_length=True)
    graphs, seen = Graphs(), set()
    forward = FastForward(trainer.model, False, graphs, checked=2)
    for batch in trainer.get_train_dataloader():
        batch.pop("labels")
        expected = trainer.model(**batch).logits
        found = forward.through(trainer.model)(**batch, num_items_in_batch=torch.tensor(3))
        torch.testing.assert_close(found["logits"], expected)
        if forward.calls > 2:
            seen.add(tuple(batch["input_ids"].shape))
    assert len(graphs.shapes) == len(seen) and set(graphs.shapes) == seen


def test_gradients_of_an_earlier_batch_are_not_overwritten(home, tmp_path):
    trainer = trainer_of(home, tmp_path, "t5-flan", "digits", engine="fast")
    batch = next(iter(trainer.get_train_dataloader()))
    forward, weight = FastForward(trainer.model, False, Graphs(), checked=0), trainer.model.lm_head.weight
    labels = batch.pop("labels")
    TokenLoss(trainer.model)(forward(**batch), labels).backward()
    kept = weight.grad
    TokenLoss(trainer.model)(forward(**batch), labels).backward()
    assert weight.grad.data_ptr() != kept.data_ptr()
    torch.testing.assert_close(weight.grad, 2 * kept)


def test_what_fails_is_left_out_with_one_line(home, tmp_path, caplog, monkeypatch):
    trainer = trainer_of(home, tmp_path, "llama", "digits", engine="fast")
    assert "neither compiled nor captured on this device (cpu)" in caplog.text

    def broken(*_):
        raise RuntimeError("no compiler\nat all")

    monkeypatch.setattr("placevalue.experiments.engine._compile_layers", broken)
    batch = next(iter(trainer.get_train_dataloader()))
    batch.pop("labels")
    forward = FastForward(trainer.model, True, broken, checked=0)
    state = torch.get_rng_state()
    caplog.clear()
    torch.testing.assert_close(forward(**batch)["logits"], trainer.model(**batch).logits)
    assert [row.getMessage() for row in caplog.records] == [
        "training.engine=fast: layers run uncompiled: RuntimeError: no compiler at all",
        "training.engine=fast: steps are not captured: RuntimeError: no compiler at all",
    ]
    assert torch.equal(torch.get_rng_state(), state) and not forward.compiled and forward.capture is None


def test_evaluation_runs_uncompiled(home, tmp_path):
    """Each length of its batches would be compiled."""
    trainer = trainer_of(home, tmp_path, "bart", "digits", engine="fast")

    def compiled(*_, **__):
        raise AssertionError("a compiled layer ran")

    layer = trainer.model.get_encoder().layers[0]
    layer._compiled_call_impl = compiled
    assert trainer.evaluate()["eval_loss"] > 0
    assert layer._compiled_call_impl is compiled, "as before, for the next step"
    with pytest.raises(AssertionError, match="a compiled layer ran"):
        trainer.train()


def test_a_model_without_layers_to_compile_is_named(home, tmp_path, caplog, monkeypatch):
    trainer = trainer_of(home, tmp_path, "llama", "digits", engine="fast")
    monkeypatch.setattr("placevalue.experiments.engine.GradientCheckpointingLayer", tuple)
    batch = next(iter(trainer.get_train_dataloader()))
    batch.pop("labels")
    forward = FastForward(trainer.model, True, None, checked=0)
    caplog.clear()
    forward(**batch)
    assert [row.getMessage() for row in caplog.records] == [
        "training.engine=fast: layers run uncompiled: TrainingError: transformers does not say what LlamaForCausalLM "
        "repeats"
    ]


@pytest.mark.slow
def test_lengths_of_evaluation_are_not_compiled(home, tmp_path):
    from torch._dynamo.utils import counters

    trainer = trainer_of(home, tmp_path, "bart", "digits", engine="fast", batch_size=1)
    forward = FastForward(trainer.model.train(), True, None, checked=0)
    batch = next(iter(trainer.get_train_dataloader()))
    batch.pop("labels")
    forward(**batch)
    graphs = counters["stats"]["unique_graphs"]
    trainer.model.eval()
    with forward.uncompiled(), torch.no_grad():
        for row in trainer.get_eval_dataloader():
            trainer.model(**row)
    trainer.model.train()
    forward(**batch)
    assert graphs > 0 and counters["stats"]["unique_graphs"] == graphs


@pytest.mark.slow
def test_compiled_layers_compute_the_same(home, tmp_path):
    trainer = trainer_of(home, tmp_path, "bart", "agg-before", engine="fast")
    batch = next(iter(trainer.get_train_dataloader()))
    batch.pop("labels")
    expected = trainer.model(**batch).logits
    forward = FastForward(trainer.model, True, None, checked=0)
    torch.testing.assert_close(forward(**batch)["logits"], expected)
    assert forward.compiled


@pytest.mark.parametrize("seed", range(20))
def test_lengths_to_pad_to_need_the_least_padding(seed):
    drawn = np.random.default_rng(seed)
    lengths = drawn.integers(1, 70, drawn.integers(1, 40))
    for most in (1, 2, 3):
        found = choose_lengths(lengths, most)
        assert len(found) <= most and found == sorted(found) and all(each % 8 == 0 for each in found)
        assert oracle.padded(lengths, found) == min(
            oracle.padded(lengths, each) for each in oracle.ways_to_pad(lengths, most)
        )


@pytest.mark.parametrize("name", ["t5-flan", "llama", "bart"])
def test_batches_are_the_collators_apart_from_padding(home, tmp_path, name):
    wanted = config(home, name, "agg-after")
    prepared = prepare(wanted)
    found = DeviceExamples(prepared.train, prepared.tokenizer, prepared.model, 4, torch.device("cpu"))
    pad = PairCollator(prepared.tokenizer, prepared.model)
    for indices in ([3, 0, 21, 7], [6], [20, 13, 2]):
        batch, expected = found.__getitems__(indices), pad([prepared.train[index] for index in indices])
        assert batch["input_ids"].shape == (4, batch["input_ids"].shape[1]) and batch["input_ids"].shape[1] % 8 == 0
        for row in range(4):
            mask = batch["attention_mask"][row] > 0
            if row >= len(indices):  # an example without labels, so that every batch is as large
                assert mask.sum() == 1 and (batch["labels"][row] == IGNORED).all()
                continue
            theirs = expected["attention_mask"][row] > 0
            assert torch.equal(batch["input_ids"][row][mask], expected["input_ids"][row][theirs])
            labels = batch["labels"][row]
            assert torch.equal(labels[labels != IGNORED], expected["labels"][row][expected["labels"][row] != IGNORED])
            if "position_ids" in batch:
                assert batch["position_ids"][row][mask].tolist() == list(range(int(mask.sum())))
            if "decoder_input_ids" in expected:
                length = min(labels.shape[0], expected["labels"].shape[1])
                assert torch.equal(
                    batch["decoder_input_ids"][row, :length], expected["decoder_input_ids"][row, :length]
                )


def test_unequal_ways_of_counting_tokens_agree():
    model, _ = build("llama")
    logits, labels = (
        torch.randn(2, 5, 11),
        torch.tensor([[IGNORED, IGNORED, 3, 4, 1], [IGNORED, 2, 1, IGNORED, IGNORED]]),
    )
    loss = TokenLoss(model)
    expected = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, 11), labels[:, 1:].reshape(-1))
    torch.testing.assert_close(loss({"logits": logits}, labels), expected)
    for items in (10, torch.tensor(10), torch.tensor([4, 6])):
        torch.testing.assert_close(loss({"logits": logits}, labels, items), expected * 5 / 10)
