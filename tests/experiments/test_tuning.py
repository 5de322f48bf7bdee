"""Values that `reproduce` searches for each method: as many trials for all, chosen on dev, recorded, resumed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import placevalue as pv
from placevalue.cli.main import main
from placevalue.common.errors import ConfigError, DivergedError, PlacevalueError
from placevalue.common.records import SweepRecord, TrainRecord, read_record
from placevalue.experiments import runner, tuning
from placevalue.experiments import train as train_module
from placevalue.experiments.comparison import CE_WEIGHT, LOSS_WEIGHT, RATE, TuningSettings, trial_values
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import make_recipe, read_recipe
from placevalue.experiments.run_folder import run_checksums
from placevalue.experiments.runner import plan_experiment, reproduce
from placevalue.reports.costs import cost_remark
from placevalue.reports.results import load_experiment
from placevalue.reports.summary import summarise
from zoo import build

ROOT = Path(__file__).parents[2]
SOURCE = str(Path(pv.__file__).parents[1])
RECIPE = """
model: {home}/model
data: {{train: {home}/train.csv, dev: {home}/dev.csv, test: [{home}/test.csv]}}
methods: [aux-soft]
seeds: [1]
contrasts: [[aux-soft, untouched]]
training: {{max_steps: 2, checkpoint_every: 1, batch_size: 4, warmup_steps: 1, log_every: 1}}
tuning: {{learning_rates: [1e-3, 1e-2], ce_weights: [0.4, 0.8]}}
generation: {{beams: 1, batch_size: 8}}
"""
TRIALS = [
    "untouched,learning_rate=0.001-0", "untouched,learning_rate=0.01-0",
    "aux-soft,learning_rate=0.01,ce_weight=0.4-0", "aux-soft,learning_rate=0.01,ce_weight=0.8-0",
]  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    for part in build("t5-flan"):
        part.save_pretrained(folder / "model")
    for start, name in enumerate(("train", "dev", "test")):
        rows = "".join(f"{i} and {i + 3} more?,{2 * i + 3}\n" for i in range(8 * start, 8 * start + 8))
        (folder / f"{name}.csv").write_text("question,answer\n" + rows)
    (folder / "tuned.yaml").write_text(RECIPE.format(home=folder))
    return folder


@pytest.fixture(scope="module")
def recipe(home):
    return read_recipe(home / "tuned.yaml")


@pytest.fixture(scope="module")
def finished(home, recipe):
    return reproduce(recipe, home / "finished")


@pytest.fixture
def copied(finished, tmp_path):
    shutil.copytree(finished.folder, tmp_path / "copied")
    return tmp_path / "copied"


def record(folder, method):
    return read_record(folder / "tuning" / f"{method}.json", SweepRecord)


def test_every_method_has_as_many_trials():
    rates = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3)
    settings = TuningSettings(rates, ce_weights=(0.4, 0.6, 0.8), loss_weights=(0.3, 1.0))
    for method in METHODS:
        trials = trial_values(settings, method)
        assert len(trials) == 6 == len({tuple(each.items()) for each in trials}), method
    assert trial_values(settings, "digits") == [{RATE: rate} for rate in rates]
    soft = trial_values(settings, "aux-soft")
    assert [(each[RATE], each[CE_WEIGHT]) for each in soft] == [
        (rate, weight) for rate in (2e-4, 2e-3) for weight in (0.4, 0.6, 0.8)
    ]
    assert {(each[RATE], each[LOSS_WEIGHT]) for each in trial_values(settings, "ntl-was")} == {
        (rate, weight) for rate in (2e-4, 1e-3, 5e-3) for weight in (0.3, 1.0)
    }
    assert trial_values(TuningSettings((1e-3, 1e-4)), "aux-soft") == [{RATE: 1e-4}, {RATE: 1e-3}], "in order"


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"baseline": "nothing"}, "baseline='nothing'"),
     ({"contrasts": [["digits"]]}, "expected two methods"),
     ({"contrasts": [["digits", "digits"]]}, "expected two methods"),
     ({"contrasts": [["aux-soft", "pause"]]}, "contrasts names pause, which is not trained: add it to methods"),
     ({"contrasts": [["aux-soft", "unknown"]]}, "contrasts names unknown: expected one of"),
     ({"contrasts": [["aux-soft", "untouched"], ["untouched", "aux-soft"]]}, "expected each pair once"),
     ({"contrasts": [3]}, "contrasts[0]: expected a list"),
     ({"tuning": {"learning_rates": [0]}}, "tuning.learning_rates: expected more than 0, found 0"),
     ({"tuning": {"learning_rates": [1e-3, 1e-3]}}, "expected each of them once"),
     ({"tuning": {"ce_weights": [0.5]}}, "tuning.ce_weights needs tuning.learning_rates"),
     ({"tuning": {"learning_rates": [1e-3], "ce_weights": [0.4, 1.2]}}, "expected from 0 to 1, found 1.2"),
     ({"tuning": {"learning_rates": [1e-3, 2e-3, 3e-3], "ce_weights": [0.4, 0.8]}}, "that 2 divides"),
     ({"tuning": {"learning_rates": [1e-3], "seeds": [1, 2]}}, "[1] are among seeds, and what counts must not choose"),
     ({"tuning": {"learning_rates": [1e-3], "seeds": []}}, "tuning.seeds=[]"),
     ({"tuning": {"learning_rates": [1e-3], "metric": "log_error"}}, "tuning.metric='log_error'"),
     ({"tuning": {"learning_rate": [1e-3]}}, "tuning.learning_rate is unknown"),
     ({"data": {"train": "a.csv", "test": ["b.csv"]}}, "tuning needs data.dev"),
     ({"learning_rates": {"aux-soft": 0}}, "learning_rates.aux-soft=0: expected more than 0")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(home, changes, told):
    values = yaml.safe_load((home / "tuned.yaml").read_text().replace("1e-", "1.0e-"))
    with pytest.raises(ConfigError) as error:
        make_recipe(values | changes)
    assert told in str(error.value)


@pytest.mark.parametrize("path", sorted((ROOT / "recipes").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_tunes_its_methods_alike(path):
    recipe = read_recipe(path)
    counts = {len(trial_values(recipe.tuning, method)) for method in (recipe.baseline, *recipe.methods)}
    assert len(counts) == 1 and (not recipe.tuning.learning_rates or counts.pop() > 1)


def test_trials_come_first_and_each_method_runs_with_its_own(finished, recipe):
    plan = finished
    assert [run.name for run in plan.trials] == TRIALS and not plan.todo
    assert [run.name for run in plan.runs] == ["untouched-1", "aux-soft-1"]
    told = yaml.safe_load((plan.folder / "recipe.yaml").read_text())
    for method in ("untouched", "aux-soft"):
        kept = record(plan.folder, method)
        assert len(kept.trials) == kept.planned == 2 and set(kept.trials[0]["scores"]) == {"0"}
        best = max(kept.trials, key=lambda trial: trial["value"])
        assert kept.best["values"] == best["values"] and kept.best["value"] == best["value"]
        assert kept.best["why"].startswith("the best accuracy_paper on ") and " of 2 trials" in kept.best["why"]
        config = read_record(plan.folder / f"{method}-1" / "train.json", TrainRecord).config
        for path, value in best["values"].items():
            name = path.removeprefix("training.")
            assert config["training"][name] == told[f"{name}s"][method] == value
    assert not list((plan.folder / "tuning").rglob("model.safetensors")), "trials keep no weights"
    score = json.loads((plan.folder / "tuning" / TRIALS[0] / "predictions" / "score.json").read_text())
    assert [Path(name).name for name in score["scores"]] == ["dev.csv"], "trials are scored on dev alone"


def test_a_tie_says_so_and_takes_the_first(finished):
    """Two steps teach these models nothing, so all trials have 0."""
    kept = record(finished.folder, "untouched")
    assert {trial["value"] for trial in kept.trials} == {0.0}
    assert kept.best["values"] == {RATE: 0.001}
    assert kept.best["why"].endswith("; 1 more had the same, and the first of the grid was taken")


def test_the_second_time_there_is_nothing_to_do(finished, recipe):
    before = {path: path.stat().st_mtime_ns for path in finished.folder.rglob("*.json*")}
    told = []
    for again in (recipe, read_recipe(finished.folder / "recipe.yaml", recorded=True)):
        reproduce(again, finished.folder, progress=lambda *event: told.append(event))
    assert not told and {path: path.stat().st_mtime_ns for path in finished.folder.rglob("*.json*")} == before


def test_the_record_is_enough(copied, recipe):
    """As in committed results: the folders of trials are gone."""
    for name in TRIALS:
        shutil.rmtree(copied / "tuning" / name)
    plan = plan_experiment(recipe, copied)
    assert not plan.todo and plan.recipe.learning_rates["untouched"] == 0.001


@pytest.mark.slow
def test_only_trials_that_are_missing_are_done(copied, recipe):
    more = replace(recipe, tuning=TuningSettings((1e-4, 1e-3, 3e-3, 1e-2), (0.4, 0.8)))
    plan = plan_experiment(more, copied)
    names = [run.name for run in plan.todo if run.trial]
    assert "untouched,learning_rate=0.0001-0" in names and "untouched,learning_rate=0.01-0" not in names
    assert all(run.waits for run in plan.runs)
    told = []
    reproduce(more, copied, progress=lambda name, *_: told.append(name))
    assert not set(told) & {"untouched,learning_rate=0.001-0", "untouched,learning_rate=0.01-0"}
    assert len(record(copied, "untouched").trials) == 4 and not plan_experiment(more, copied).todo


def test_other_settings_make_other_trials(copied, recipe):
    other = replace(recipe, training=replace(recipe.training, batch_size=2))
    plan = plan_experiment(other, copied)
    assert all("training.batch_size is 4 there and 2 here" in run.stale for run in plan.trials)
    kept = replace(recipe, training=replace(recipe.training, log_every=5))
    assert not plan_experiment(kept, copied).todo, "no weight depends on it"


@pytest.mark.slow
def test_a_loss_that_becomes_nan_counts_as_silence_once(recipe, tmp_path, monkeypatch):
    real, asked = train_module.train, []

    def train(config, folder, **given):
        asked.append(folder.name)
        if config.training.learning_rate == 0.01 and config.method == "untouched":
            (folder / "checkpoints" / "checkpoint-1").mkdir(parents=True)
            (folder / "checkpoints" / "checkpoint-1" / "trainer_state.json").write_text("{}")
            raise DivergedError("the loss became nan")
        return real(config, folder, **given)

    monkeypatch.setattr(train_module, "train", train)
    reproduce(recipe, tmp_path / "out")
    assert not list((tmp_path / "out").rglob("checkpoints"))
    row = next(row for row in record(tmp_path / "out", "untouched").trials if row["values"] == {RATE: 0.01})
    assert row["value"] == 0.0
    asked.clear()
    (tmp_path / "out" / "tuning" / "untouched.json").unlink()
    reproduce(recipe, tmp_path / "out")
    assert not asked, "the trial is known to end so"


def test_a_mark_of_other_settings_does_not_count(copied, recipe, monkeypatch):
    """It may stay where the trial was done elsewhere since."""
    (copied / "tuning" / "untouched.json").unlink()
    config = plan_experiment(recipe, copied).trials[0].config
    other = replace(config, training=replace(config.training, batch_size=2))
    tuning.mark_diverged(copied / "tuning" / TRIALS[0], other, run_checksums(other), "the loss became nan")
    monkeypatch.setattr(tuning, "silent_score", lambda *_: pytest.fail("it has a score"))
    assert not plan_experiment(recipe, copied).todo


@pytest.mark.slow
def test_a_trial_that_fails_stops_only_its_own_method(recipe, tmp_path, monkeypatch):
    real = runner.predict

    def fails(checkpoint, *given, **named):
        if "ce_weight=0.8" in str(checkpoint):
            raise RuntimeError("no memory")
        return real(checkpoint, *given, **named)

    monkeypatch.setattr(runner, "predict", fails)
    with pytest.raises(PlacevalueError, match="1 of 5 runs failed.*no memory.*without all trials: aux-soft-1"):
        reproduce(recipe, tmp_path)
    plan = plan_experiment(recipe, tmp_path)
    assert [run.name for run in plan.todo] == [TRIALS[3], "aux-soft-1"]
    monkeypatch.setattr(runner, "predict", real)
    assert not reproduce(recipe, tmp_path).todo


def test_the_report_says_what_was_chosen_and_what_it_cost(finished):
    experiment = load_experiment(finished.folder)
    told = summarise(experiment).tuning
    assert told.startswith("Each method runs with the best of 2 trials by accuracy_paper on ")
    assert "untouched learning_rate=0.001, aux-soft learning_rate=0.01 and ce_weight=" in told
    spent = sum(row["seconds"] for kept in experiment.tuning.values() for row in kept.trials)
    assert spent > 0 and cost_remark(experiment).startswith("2 runs took ")
    assert cost_remark(experiment).endswith(f", and 4 trials on dev before them {spent:.0f} s.")


def test_a_dry_run_shows_the_trials(home, copied, capsys):
    shutil.rmtree(copied / "tuning" / TRIALS[1])
    (copied / "tuning" / "untouched.json").unlink()
    assert main(["reproduce", str(home / "tuned.yaml"), "--out", str(copied), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "2 of 6 runs to do, of them 1 trial on dev" in " ".join(printed.split())
    assert f"# {TRIALS[1]}" in printed and "# untouched-1, with values that its trials on dev will choose" in printed
    assert not (copied / "tuning" / TRIALS[1]).exists()


@pytest.mark.slow
def test_killed_among_the_trials_it_goes_on_with_what_is_missing(home, finished, recipe, tmp_path):
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "placevalue.cli", "reproduce", str(home / "tuned.yaml"), "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": SOURCE, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([*command, "--jobs", "2"], env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not list(out.glob("tuning/*/predictions/score.json")) and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = {path: path.read_text() for path in out.glob("tuning/*/train.json")}
    assert kept and plan_experiment(recipe, out).todo
    time.sleep(1)  # its workers notice and end
    reproduce(recipe, out, jobs=2)
    assert all(path.read_text() == text for path, text in kept.items())
    for method in ("untouched", "aux-soft"):
        ours, theirs = record(out, method), record(finished.folder, method)
        assert ours.best["values"] == theirs.best["values"]
        assert [row["value"] for row in ours.trials] == [row["value"] for row in theirs.trials]
