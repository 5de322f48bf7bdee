"""The benchmark of training at toy size, through the functions that run the large one."""

from types import SimpleNamespace

import pytest
import torch

from benchmarks import train_h200
from benchmarks.train_h200 import TARGETS, Clock, parts_of
from placevalue.common.files import read_json
from placevalue.experiments.cost import Load, estimate
from placevalue.experiments.recipe import make_recipe
from placevalue.experiments.shapes import SHAPES, Size
from tools import rates as rates_tool


def test_every_model_has_a_shape():
    assert TARGETS.keys() <= SHAPES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("model, method", [("flan-t5-small-title", "agg-aux"), ("smollm2-135m", "pause")])
def test_it_runs_at_toy_size_and_its_record_gives_an_estimate(model, method, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PLACEVALUE_CACHE", str(tmp_path))  # nothing is downloaded
    monkeypatch.setattr(train_h200, "SOURCE", "fermat:Original")
    rows, out = tmp_path / "rows.json", tmp_path / "benchmarks" / "records" / "train_h200.json"
    train_h200.prepare(300, rows)
    words = ["--rows", str(rows), "--device", "cpu", "--toy", "--models", model, "--method", method, "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["train_h200", *words])
    assert train_h200.main() == 0
    record = read_json(out)
    assert [check["name"] for check in record["checks"]] == [
        f"{model}: {each}" for each in ("samples a second", "ours / Seq2SeqTrainer's", "share of the matrix rate")
    ]
    assert all(check["ratio"] > 0 and check["passed"] is None for check in record["checks"])
    found = record["raw"]["details"][model]
    assert found["tokenizer"] == "placevalue-tiny" and sum(found["parts"].values()) == pytest.approx(1, abs=0.3)

    monkeypatch.setattr(rates_tool, "ROOT", tmp_path)
    (rate,) = rates_tool.rates()
    assert rate["source"] == "benchmarks/records/train_h200.json" and rate["device"] == "cpu"
    recipe = make_recipe(
        {"model": "m", "methods": ["digits"], "data": {"train": "x"}}
        | {"training": {"engine": "fast", "precision": "bfloat16", "batch_size": 8}}
    )
    load = Load(1, 80.0, 10.0, 5, (1.0, 1.0), rate["flops"], Size(rate["two_part"], 1, 1), "m")
    (cost,) = estimate(recipe, load, [rate])
    assert cost.least == pytest.approx(cost.most) == pytest.approx(80 / record["checks"][0]["ratio"])
    assert cost.basis.endswith("without the time for answers")


def test_a_rehearsal_does_not_overwrite_the_record(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["train_h200", "--rows", str(tmp_path / "rows.json"), "--toy"])
    with pytest.raises(SystemExit):
        train_h200.main()
    assert "--out" in capsys.readouterr().err


def test_steady_state_leaves_out_what_comes_before(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(train_h200.time, "perf_counter", lambda: now[0])
    waited = []
    clock = Clock(2, 4, 0, lambda: waited.append(now[0]))
    clock.on_train_begin()
    for step, seconds in enumerate([50.0, 30.0, 2.0, 2.0, 2.0, 2.0], 1):
        now[0] += seconds
        clock.on_step_end(None, SimpleNamespace(global_step=step), None)
    assert (clock.step(), clock.set_up()) == (2.0, 76.0) and waited == [80.0, 88.0]


def test_parts_of_the_time_go_by_the_names_of_kernels():
    cuda = torch.autograd.DeviceType.CUDA
    names = {
        "ampere_sgemm_128": 2e6,
        "flash_fwd": 1e6,
        "multi_tensor_apply_adam": 1e6,
        "triton_poi_fused": 0.5e6,
        "nccl": 0.5e6,
    }
    rows = [SimpleNamespace(key=key, self_device_time_total=took, device_type=cuda) for key, took in names.items()]
    host = SimpleNamespace(key="aten::mm", self_device_time_total=9e6, device_type=torch.autograd.DeviceType.CPU)
    profile = SimpleNamespace(key_averages=lambda: [*rows, host])
    assert parts_of(profile, 10.0, "cuda") == {
        "matrices": 0.2, "attention": 0.1, "optimizer": 0.1, "compiled": 0.05, "other": 0.05, "idle": pytest.approx(0.5),
    }  # fmt: skip


@pytest.mark.parametrize("two_part", [True, False])
def test_theirs_is_padded_to_the_papers_lengths(two_part):
    tokenizer = SimpleNamespace(pad_token_id=7)
    labels = [5, 1] if two_part else [-100, -100, 5]
    (found,) = train_h200._padded(lambda rows: rows, tokenizer, two_part, [{"input_ids": [3, 4, 5], "labels": labels}])
    width = 128 if two_part else 144
    assert found["input_ids"] == [3, 4, 5] + [7] * (width - 3) and sum(found["attention_mask"]) == 3
    assert len(found["labels"]) == (16 if two_part else 144) and found["labels"][: len(labels)] == labels
