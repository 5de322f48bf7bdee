"""What an experiment would cost: for every recipe, from committed records alone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from placevalue.cli.main import main
from placevalue.common.files import read_json
from placevalue.common.hub import TINY
from placevalue.common.records import TrainRecord, read_record
from placevalue.experiments import cost
from placevalue.experiments.comparison import TuningSettings
from placevalue.experiments.cost import RATES, describe_cost, estimate, measure_load
from placevalue.experiments.recipe import make_recipe, read_recipe
from placevalue.experiments.runner import STAGES
from placevalue.experiments.shapes import SHAPES, Size, empty_model, model_config, model_size
from placevalue.experiments.tuning import trials_of
from tools import rates as rates_tool
from zoo import build

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
FAST = ("quick", "bart-base-mawps")


def all_runs(recipe):
    return [(recipe.run(method, seed), STAGES) for seed in recipe.seeds for method in recipe.methods]


def test_the_rates_are_those_of_the_records():
    assert read_json(RATES) == rates_tool.rates(), "run `python -m tools.rates`"


@pytest.mark.parametrize(
    "path", [pytest.param(each, marks=[] if each.stem in FAST else pytest.mark.slow, id=each.stem) for each in RECIPES]
)
def test_every_recipe_has_an_estimate_and_says_what_it_rests_on(path, tmp_path, capsys, monkeypatch):
    """Also if its model is not here, which is then told as before."""
    monkeypatch.setenv("PLACEVALUE_CACHE", str(tmp_path))
    status = main(["reproduce", str(path), "--dry-run", "--out", str(tmp_path / "out")])
    printed = capsys.readouterr()
    recipe = read_recipe(path)
    bundled = recipe.model == TINY
    assert status == (0 if bundled else 1) and ("fetch" in printed.err) == (not bundled)
    lines = printed.out[printed.out.index("cost: ") :].splitlines()
    trials = len(recipe.methods) * len(recipe.tuning.learning_rates) * len(recipe.tuning.seeds)
    runs = trials + len(recipe.seeds) * len({*recipe.methods, recipe.baseline})
    assert lines[0].startswith(f"cost: {runs} runs")
    start = "  one cpu: " if bundled else "  one NVIDIA H200: "
    (device,) = [index for index, line in enumerate(lines) if line.startswith(start)]
    assert lines[device + 1].startswith("    rests on results/") and "samples a second" in lines[device + 1]
    assert not (tmp_path / "out").exists()


def test_committed_runs_cost_what_they_took(monkeypatch, tmp_path):
    monkeypatch.setenv("PLACEVALUE_CACHE", str(tmp_path))
    for name in ("quick", "flan-t5-small-title-mawps"):
        recipe, folder = read_recipe(ROOT / "recipes" / f"{name}.yaml"), ROOT / "results" / name
        records = [read_record(path, TrainRecord) for path in folder.glob("*/train.json")]
        load = measure_load(recipe, all_runs(recipe))
        assert load.steps == sum(record.steps for record in records)
        assert load.samples == sum(record.epochs * 1500 for record in records)
        device = records[0].provenance["device"]
        (found,) = [each for each in estimate(recipe, load) if each.device == device]
        (row,) = [each for each in read_json(RATES) if each["source"] == f"results/{name}"]
        took = sum(sum(record.durations.values()) for record in records) / row["at_once"]
        assert found.least == pytest.approx(found.most, rel=0.05) and found.most == pytest.approx(took, rel=0.2)


RATE = {
    "source": "results/x", "device": "A", "two_part": True, "engine": "standard", "precision": "float32", "batch": 8,
    "runs": 2, "at_once": 1.0, "flops": 1000, "seconds_a_step": 0.5, "seconds_a_sample": 0.0625, "beams": 1,
    "seconds_an_answer": 0.1,
}  # fmt: skip


def load(flops=1000.0, answers=0, two_part=True, samples=8000.0, batch=8):
    return cost.Load(1, samples, samples / batch, answers, (5.0, 1.0), flops, Size(two_part, 1, 1), "m")


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "sums.csv").write_text("question,answer\n" + "".join(f"{i} and {i}?,{2 * i}\n" for i in range(10, 34)))
    data = {"train": str(tmp_path / "sums.csv"), "test": [str(tmp_path / "sums.csv")]}
    values = {"model": "placevalue-tiny", "data": data, "methods": ["untouched", "digits"]}
    return make_recipe(values | {"training": {"batch_size": 8, "epochs": 2}, "generation": {"beams": 1}})


class TestByHand:
    def test_the_same_work_takes_as_long(self, recipe):
        (found,) = estimate(recipe, load(), [RATE])
        assert (found.least, found.most) == (500.0, 500.0) and "times" not in found.basis

    def test_other_work_lies_between_the_time_of_a_step_and_that_of_the_arithmetic(self, recipe):
        (found,) = estimate(recipe, load(flops=4000.0), [RATE])
        assert (found.least, found.most) == (500.0, 2000.0)
        assert "as long for each step, or 4 times as long for each sample" in found.basis
        larger = replace(recipe, training=replace(recipe.training, batch_size=16))
        (found,) = estimate(larger, load(batch=16), [RATE])
        assert (found.least, found.most) == (250.0, 500.0)

    def test_answers(self, recipe):
        wide = replace(recipe, generation=replace(recipe.generation, beams=3))
        (found,) = estimate(wide, load(flops=4000.0, answers=100), [RATE])
        assert (found.least, found.most) == (510.0, 2000.0 + 100 * 0.1 * 3 * 4)
        bare = {key: value for key, value in RATE.items() if key != "seconds_an_answer"}
        (found,) = estimate(wide, load(answers=100), [bare])
        assert found.most == 500.0 and found.basis.endswith("without the time for answers")

    def test_the_nearest_record_of_each_device_counts(self, recipe):
        near, far = RATE | {"flops": 900, "source": "near"}, RATE | {"flops": 200, "source": "far"}
        rounded = RATE | {"precision": "tf32", "source": "tf32"}
        found = estimate(recipe, load(), [far, near, rounded, RATE | {"device": "B", "precision": "tf32"}])
        assert [each.device for each in found] == ["A", "B"]
        assert found[0].basis.startswith("near") and "; in tf32, not float32" in found[1].basis

    def test_what_does_not_fit_is_not_taken(self, recipe):
        adapted = replace(recipe, lora=replace(recipe.lora, rank=8))
        assert "an adapter takes less" in estimate(adapted, load(), [RATE])[0].basis
        for other in ({"engine": "fast"}, {"two_part": False}, {"flops": 33}, {"flops": 31_000}):
            assert estimate(recipe, load(), [RATE | other]) == []


def test_only_what_is_left_counts(recipe):
    (untouched, _), (digits, _) = all_runs(recipe)
    both = measure_load(recipe, [(untouched, STAGES), (digits, STAGES)])
    assert (both.samples, both.steps, both.answers) == (96.0, 12.0, 48)
    left = measure_load(recipe, [(untouched, ("evaluate",)), (digits, ("generate", "evaluate"))])
    assert (left.samples, left.steps, left.answers) == (0.0, 0.0, 24)
    limited = replace(recipe, training=replace(recipe.training, max_steps=3, accumulation=2))
    most = measure_load(limited, all_runs(limited))
    assert (most.samples, most.steps) == (96.0, 6.0)
    one, other = (measure_load(recipe, [each]).tokens for each in all_runs(recipe))
    assert other[0] > one[0] and other[1] > one[1], "digits take more tokens"
    bare, marked = (measure_load(recipe, [(recipe.run(each), STAGES)]).tokens for each in ("bare", "digits"))
    assert bare[0] == pytest.approx(marked[0] - 4), "two numbers without [F] and [/F]"


def test_trials_answer_dev(recipe, tmp_path):
    (tmp_path / "dev.csv").write_text("question,answer\n1 and 2?,3\n")
    data = replace(recipe.data, dev=str(tmp_path / "dev.csv"))
    tuned = replace(recipe, data=data, tuning=TuningSettings((1e-3, 1e-2)))
    assert measure_load(tuned, [(each, STAGES) for each in trials_of(tuned, "digits")]).answers == 2


def test_it_says_if_no_estimate_is_possible(recipe):
    fast = replace(recipe, training=replace(recipe.training, engine="fast"))
    if not any(each["engine"] == "fast" for each in read_json(RATES)):
        assert "no committed record has training.engine=fast" in describe_cost(fast, all_runs(fast))[-1]
    unknown = replace(recipe, model="/nowhere at all")
    (line,) = describe_cost(unknown, all_runs(unknown))
    assert line.startswith("cost: no estimate is possible: '/nowhere at all' is not an existing folder")


def test_shapes_are_those_of_the_models():
    """As recorded, or as their authors count them; T5's output matrix is its own, which a config does not say."""
    counted = {}
    for name in SHAPES:
        model = empty_model(model_config(name))
        count = sum(each.numel() for each in model.parameters())
        tied = model.get_input_embeddings().weight is model.get_output_embeddings().weight
        counted[name] = count + (model.get_output_embeddings().weight.numel() if tied and "flan" in name else 0)
    recorded = read_record(ROOT / "results" / "smollm2-135m-mawps" / "untouched-1" / "train.json", TrainRecord)
    assert counted.pop("smollm2-135m") == recorded.counts["parameters"]
    recorded = read_record(ROOT / "results" / "flan-t5-small-title-mawps" / "untouched-1" / "train.json", TrainRecord)
    assert counted.pop("flan-t5-small-title") == recorded.counts["parameters"]
    published = {
        "google/flan-t5-base": 247_577_856,
        "google/flan-t5-large": 783_150_080,
        "facebook/bart-base": 139_420_416,
    }
    assert counted == published


@pytest.mark.parametrize("name", ["t5-flan", "bart", "llama-tied", "llama"])
def test_arithmetic_is_that_of_the_matrices(name, tmp_path):
    model, base = build(name)
    model.save_pretrained(tmp_path)
    base.save_pretrained(tmp_path)
    size = model_size(model_config(str(tmp_path)))
    head = model.get_output_embeddings().weight.numel()

    def body(part):
        linear = [each for name, each in part.named_modules() if isinstance(each, torch.nn.Linear)]
        return sum(each.weight.numel() for each in linear)

    if size.two_part:
        assert (size.read, size.written) == (body(model.get_encoder()), body(model.get_decoder()) + head)
    else:
        assert size.read == size.written == body(model.get_decoder()) + head
    assert size.flops(2, 1) == 6 * (2 * size.read + size.written)
