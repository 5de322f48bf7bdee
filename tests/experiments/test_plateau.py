"""Training until dev stops rising: when, how the rate falls, the ceiling, and a run that was interrupted."""

import shutil

import pytest
from safetensors.torch import load_file
from transformers import TrainerCallback

from placevalue.common.errors import ConfigError
from placevalue.experiments import train as train_module
from placevalue.experiments.plateau import plateau_step
from placevalue.experiments.recipe import make_recipe
from placevalue.experiments.train import train
from zoo import build


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    for part in build("t5-flan"):
        part.save_pretrained(folder / "model")
    rows = "".join(f"{i} and {i + 3} more?,{2 * i + 3}\n" for i in range(24))
    (folder / "sums.csv").write_text("question,answer\n" + rows)
    return folder


def config(home, **training):
    settings = {"until": "plateau", "patience": 2, "decay_steps": 4, "max_steps": 40, "checkpoint_every": 2}
    settings |= {"batch_size": 4, "log_every": 1, "warmup_steps": 2, "learning_rate": 1e-3} | training
    data = {"train": str(home / "sums.csv"), "dev": str(home / "sums.csv")}
    return make_recipe({"model": str(home / "model"), "data": data, "methods": ["digits"], "training": settings}).run()


def rows(*measured):
    """Logged rows: an evaluation every ten steps, each an accuracy and a loss, with rows of training between them."""
    found = []
    for number, (accuracy, loss) in enumerate(measured, 1):
        found += [{"step": 10 * number, "loss": 1.0}]
        found += [{"step": 10 * number, "eval_accuracy": accuracy, "eval_loss": loss}]
    return found


@pytest.mark.parametrize(
    "measured, patience, step",
    [
        ([], 1, None),
        ([(0.1, 1), (0.2, 1), (0.2, 0.5), (0.1, 1)], 2, 40),
        ([(0.1, 1), (0.2, 1), (0.2, 0.5), (0.3, 1)], 2, None),
        ([(0.3, 1), (0.2, 1), (0.4, 1), (0.4, 1), (0.4, 1), (0.9, 1)], 2, 50),
        ([(0, 3), (0, 2), (0, 1), (0, 1)], 1, 40),
        ([(0, 3), (0, 4), (0, 2.5), (0.1, 9), (0.1, 1)], 2, None),
        ([(0, float("inf")), (0, 2)], 1, 10),
    ],
)
def test_the_step_at_which_dev_no_longer_rises(measured, patience, step):
    assert plateau_step(rows(*measured), patience) == step


@pytest.fixture
def level(monkeypatch):
    """Runs whose accuracy on dev rises until step 6, or what is set; their rates are collected."""
    rises = {"until": 6, "rates": []}

    class Measured(TrainerCallback):
        def on_log(self, _args, state, _control, **_):
            if "eval_accuracy" in state.log_history[-1]:
                state.log_history[-1]["eval_accuracy"] = min(state.global_step, rises["until"]) / 100

        def on_pre_optimizer_step(self, _args, _state, _control, optimizer, **_):
            rises["rates"].append(optimizer.param_groups[0]["lr"])

    make = train_module.make_trainer

    def make_trainer(*given):
        trainer = make(*given)
        trainer.callback_handler.callbacks.insert(0, Measured())
        return trainer

    monkeypatch.setattr(train_module, "make_trainer", make_trainer)
    return rises


def test_the_rate_is_constant_until_the_plateau_then_falls_to_zero(home, tmp_path, level):
    record = train(config(home), tmp_path / "run")
    assert record.steps == 6 + 2 * 2 + 4
    assert level["rates"] == pytest.approx([0, 5e-4, *[1e-3] * 8, 1e-3, 7.5e-4, 5e-4, 2.5e-4])
    assert [row["step"] for row in record.losses if "eval_loss" in row] == [2, 4, 6, 8, 10, 12, 14]


def test_the_ceiling_has_its_decay_too(home, tmp_path, level):
    level["until"] = 99
    record = train(config(home, max_steps=9), tmp_path / "run")
    assert record.steps == 9 and level["rates"] == pytest.approx([0, 5e-4, *[1e-3] * 4, 7.5e-4, 5e-4, 2.5e-4])
    assert record.losses[-2]["step"] == 9 and "eval_accuracy" in record.losses[-2], "the last step is evaluated"


@pytest.mark.parametrize("stopped", [6, 12, 14])
def test_an_interrupted_run_ends_with_the_same_weights(home, tmp_path, level, stopped):
    settings = config(home, keep_checkpoints=99)
    whole = train(settings, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    (tmp_path / "part" / "train.json").unlink()
    for path in (tmp_path / "part" / "checkpoints").iterdir():
        if int(path.name.split("-")[1]) > stopped:
            shutil.rmtree(path)
    again = train(settings, tmp_path / "part", resume=True)
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "part"))
    assert again.steps == whole.steps and all(first[name].equal(second[name]) for name in first)


def test_what_makes_no_sense_is_refused(home):
    with pytest.raises(ConfigError, match=r"training.until=plateau needs data.dev"):
        make_recipe({"model": "m", "data": {"train": "t.csv"}, "methods": ["digits"], "training": {"until": "plateau"}})
    with pytest.raises(ConfigError, match="training.schedule=cosine has no effect with training.until=plateau"):
        config(home, schedule="cosine")
    with pytest.raises(ConfigError, match="training.patience=0: expected more than 0"):
        config(home, patience=0)
