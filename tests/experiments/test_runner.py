"""Experiments: what is left is done, once; what is there stays; whatever stops them, nothing finished is lost."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

import placevalue as pv
from placevalue.cli.main import main
from placevalue.common.errors import DataError, PlacevalueError
from placevalue.common.lock import locked
from placevalue.experiments import preflight as preflight_module
from placevalue.experiments import run_folder as run_folder_module
from placevalue.experiments import runner
from placevalue.experiments.checksums import mark_whole
from placevalue.experiments.parallel import run_at_once
from placevalue.experiments.recipe import read_recipe
from placevalue.experiments.runner import plan_experiment, reproduce
from zoo import build

SOURCE = str(Path(pv.__file__).parents[1])
ROOT = Path(__file__).parents[2]
RECIPE = """
model: {home}/model
data: {{train: {home}/sums.csv, dev: {home}/sums.csv, test: [{home}/sums.csv]}}
methods: [digits, aux-soft]
seeds: [1]
training: {{max_steps: 4, checkpoint_every: 2, batch_size: 4, warmup_steps: 1, log_every: 2, learning_rate: 1e-2}}
generation: {{beams: 1, batch_size: 8}}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    for part in build("t5-flan"):
        part.save_pretrained(folder / "model")
    rows = "".join(f"{i} and {i + 3} more?,{2 * i + 3}\n" for i in range(16))
    (folder / "sums.csv").write_text("question,answer\n" + rows)
    (folder / "toy.yaml").write_text(RECIPE.format(home=folder))
    return folder


@pytest.fixture(scope="module")
def recipe(home):
    return read_recipe(home / "toy.yaml")


@pytest.fixture(scope="module")
def finished(home, recipe):
    """An experiment that ran to its end, and what was told on the way."""
    told = []
    plan = reproduce(recipe, home / "finished", progress=lambda *event: told.append(event))
    return plan, told


@pytest.fixture
def copied(finished, tmp_path):
    """A finished experiment to spoil."""
    shutil.copytree(finished[0].folder, tmp_path / "copied")
    return tmp_path / "copied"


def answers(folder):
    return {path.parts[-3]: path.read_text() for path in Path(folder).glob("*/predictions/predictions.jsonl")}


def scores(folder):
    found = {path.parts[-3]: json.loads(path.read_text()) for path in Path(folder).glob("*/predictions/score.json")}
    return {name: (score["scores"], score["operations"]) for name, score in found.items()}


def todo(plan):
    return {run.name: run.todo for run in plan.runs}


def test_everything_is_trained_answered_and_scored(finished, recipe):
    plan, told = finished
    names = ["untouched-1", "digits-1", "aux-soft-1"]
    assert [run.name for run in plan.runs] == names and not plan.todo
    assert set(answers(plan.folder)) == set(scores(plan.folder)) == set(names)
    assert read_recipe(plan.folder / "recipe.yaml").methods == ("untouched", "digits", "aux-soft")
    assert ("digits-1", "train", 4, 4) in told and ("digits-1", "generate", 16, 16) in told
    assert not list(plan.folder.glob("*/checkpoints")) and len(list(plan.folder.glob("*/model.safetensors"))) == 3


def test_the_second_time_there_is_nothing_to_do(finished, recipe):
    plan, _ = finished
    before = {path: path.stat().st_mtime_ns for path in plan.folder.rglob("*.json*")}
    told = []
    reproduce(recipe, plan.folder, progress=lambda *event: told.append(event))
    assert not told and {path: path.stat().st_mtime_ns for path in plan.folder.rglob("*.json*")} == before


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_scores_several_at_once_too(finished, recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    told = []
    reproduce(recipe, tmp_path / "again", jobs=2, keep="records", progress=lambda *event: told.append(event))
    assert answers(tmp_path / "again") == answers(finished[0].folder)
    assert scores(tmp_path / "again") == scores(finished[0].folder)
    assert {event[0] for event in told} == {"untouched-1", "digits-1", "aux-soft-1"}
    assert sorted(path.stem for path in (tmp_path / "again" / "logs").iterdir()) == sorted({event[0] for event in told})
    kept = {path.name for path in (tmp_path / "again" / "digits-1").iterdir()}
    assert kept == {"train.json", "run.json", "predictions"}
    assert not plan_experiment(recipe, tmp_path / "again").todo


def test_a_file_names_the_folder(home, recipe, copied, monkeypatch):
    monkeypatch.chdir(copied.parent)
    (copied.parent / "runs").mkdir()
    copied.rename("runs/toy")
    told = []
    assert reproduce(home / "toy.yaml", progress=lambda *event: told.append(event)).folder == Path("runs/toy")
    reproduce(recipe, "runs/toy", 1, "model", lambda *event: told.append(event))
    assert not told
    with pytest.raises(PlacevalueError, match="out is missing"):
        reproduce(recipe)
    with pytest.raises(PlacevalueError, match="keep='all': expected one of everything, model, records"):
        reproduce(recipe, "runs/toy", keep="all")


def test_experiments_of_an_earlier_version_are_ours(copied, recipe, tmp_path):
    """Their recipe has no header, and the last one has none at all."""
    for path in (ROOT / "results").glob("*/recipe.yaml"):
        shutil.copytree(path.parent, tmp_path / "old", dirs_exist_ok=True)
        assert runner.is_experiment(tmp_path / "old")
    text = (copied / "recipe.yaml").read_text()
    assert text.startswith(runner.HEADER)
    (copied / "recipe.yaml").write_text(text.removeprefix(runner.HEADER))
    reproduce(recipe, copied)
    assert (copied / "recipe.yaml").read_text() == text
    (copied / "recipe.yaml").unlink()
    reproduce(recipe, copied)
    assert (copied / "recipe.yaml").read_text() == text


def test_only_what_a_run_wrote_is_removed(copied, recipe):
    (copied / "digits-1" / "notes.txt").touch()
    (copied / "digits-1" / "checkpoints" / "mine").mkdir(parents=True)
    (copied / "digits-1" / "checkpoints" / "checkpoint-2").mkdir()
    mark_whole(copied / "digits-1" / "checkpoints" / "checkpoint-2")
    (copied / "digits-1" / "checkpoints" / "checkpoint-4").mkdir()
    shutil.rmtree(copied / "digits-1" / "predictions")
    reproduce(recipe, copied, keep="records")
    left = {path.name for path in (copied / "digits-1").iterdir()}
    assert left == {"train.json", "run.json", "predictions", "notes.txt", "checkpoints"}
    assert "mine" in {path.name for path in (copied / "digits-1" / "checkpoints").iterdir()}


class TestStale:
    def test_another_setting_of_training_is_another_run(self, copied, recipe):
        changed = replace(recipe, ce_weights={"aux-soft": 0.5})
        plan = plan_experiment(changed, copied)
        assert [run.name for run in plan.todo] == ["aux-soft-1"] and plan.todo[0].todo == runner.STAGES
        assert plan.todo[0].stale == "training.ce_weight is 0.6 there and 0.5 here"
        old = (copied / "aux-soft-1" / "train.json").read_text()
        reproduce(changed, copied)
        assert not plan_experiment(changed, copied).todo
        assert (copied / "stale" / "aux-soft-1-1" / "train.json").read_text() == old

    def test_other_settings_of_generation_need_no_training(self, copied, recipe):
        changed = replace(recipe, generation=replace(recipe.generation, beams=2))
        plan = plan_experiment(changed, copied)
        assert set(todo(plan).values()) == {("generate", "evaluate")}
        assert "generation.beams is 1 there and 2 here" in plan.runs[0].stale
        weights = {path: path.stat().st_mtime_ns for path in copied.rglob("model.safetensors")}
        reproduce(changed, copied)
        assert not plan_experiment(changed, copied).todo
        assert {path: path.stat().st_mtime_ns for path in copied.glob("*/model.safetensors")} == weights
        assert (copied / "stale" / "digits-1-predictions-1" / "score.json").exists()

    def test_what_no_weight_depends_on_does_not_matter(self, copied, recipe):
        other = replace(recipe.training, keep_checkpoints=1, workers=1, log_every=7)
        assert not plan_experiment(replace(recipe, training=other), copied).todo
        (run,) = plan_experiment(replace(recipe, training=replace(recipe.training, ce_weight=0.3)), copied).todo
        assert run.name == "aux-soft-1"
        plan = plan_experiment(replace(recipe, numbers=replace(recipe.numbers, ignore="7")), copied)
        assert [run.name for run in plan.todo] == ["digits-1", "aux-soft-1"]

    def test_a_setting_that_is_younger_than_a_record_had_its_default(self, recipe):
        run = recipe.run().to_dict()
        older = {key: value for key, value in run["training"].items() if key != "group_by_length"}
        assert not run_folder_module.find_changes({**run, "training": older}, run)
        newer = {**run["training"], "group_by_length": True}
        (change,) = run_folder_module.find_changes({**run, "training": older}, {**run, "training": newer})
        assert change == "training.group_by_length is False there and True here"

    def test_markers_started_near_the_mean_before_there_was_a_setting(self, recipe):
        run = recipe.run("digits").to_dict()
        older = {**run, "numbers": {key: value for key, value in run["numbers"].items() if key != "new_rows"}}
        assert run_folder_module.find_changes(older, run) == ["numbers.new_rows is 'mean' there and 'drawn' here"]
        assert not run_folder_module.find_changes(older, {**run, "numbers": {**run["numbers"], "new_rows": "mean"}})
        named = {**older, "numbers": {**older["numbers"], "markers": "drawn"}}
        assert not run_folder_module.find_changes(named, run), "the setting's former name"

    def test_numbers_were_read_as_in_the_paper_before_a_record_said_so(self, recipe):
        run = recipe.run("digits").to_dict()
        older = {**run, "numbers": {"ignore": None, "decimals": "places", "markers": "drawn"}}
        assert run_folder_module.find_changes(older, run) == [
            "numbers.negatives is 'ignore' there and 'opposite' here",
            "numbers.pattern is 'paper' there and 'extended' here",
        ]
        paper = {**run, "numbers": {**run["numbers"], "pattern": "paper"}}
        assert not run_folder_module.find_changes(older, paper), "the paper's numbers have no sign"

    def test_another_model_under_the_same_name(self, home, recipe, tmp_path):
        shutil.copytree(home / "model", tmp_path / "model")
        moved = replace(recipe, model=str(tmp_path / "model"))
        reproduce(moved, tmp_path / "out")
        assert not plan_experiment(moved, tmp_path / "out").todo
        file = tmp_path / "model" / "model.safetensors"
        changed = {key: value * 1.5 for key, value in load_file(file).items()}
        save_file(changed, file, {"format": "pt"})
        plan = plan_experiment(moved, tmp_path / "out")
        assert len(plan.todo) == 3 and "checksums.model" in plan.todo[0].stale

    def test_half_of_the_answers_with_other_settings(self, copied, recipe):
        """Stopped while it answered, and started again with another number of beams."""
        answers = copied / "digits-1" / "predictions"
        record = json.loads((answers / "prediction.json").read_text())
        links = {key: record[key] for key in ("train", "model", "method", "seed", "data", "config")}
        batch = {"batch": 0, "seconds": 1.0, "predictions": ["1"] * 8}
        shutil.rmtree(answers)
        answers.mkdir()
        lines = (json.dumps(each) + "\n" for each in ({"run": links}, batch))
        (answers / "predictions.partial.jsonl").write_text("".join(lines))
        (run,) = plan_experiment(recipe, copied).todo
        assert run.todo == ("generate", "evaluate") and not run.stale
        changed = replace(recipe, generation=replace(recipe.generation, beams=2))
        assert all("generation.beams" in run.stale for run in plan_experiment(changed, copied).todo)
        reproduce(changed, copied)
        assert not plan_experiment(changed, copied).todo

    def test_answers_without_weights_need_training(self, copied, recipe):
        (copied / "digits-1" / "model.safetensors").unlink()
        assert not plan_experiment(recipe, copied).todo
        shutil.rmtree(copied / "digits-1" / "predictions")
        (run,) = plan_experiment(recipe, copied).todo
        assert run.todo == runner.STAGES and run.stale == "the weights were not kept"

    def test_changed_data_is_noticed(self, home, copied, recipe, monkeypatch):
        monkeypatch.setattr(runner, "data_checksum", lambda spec: "other")
        plan = plan_experiment(recipe, copied)
        assert len(plan.todo) == 3 and "checksums" in plan.todo[0].stale

    def test_a_score_of_other_predictions(self, copied, recipe):
        target = copied / "digits-1" / "predictions" / "score.json"
        shutil.copy(copied / "untouched-1" / "predictions" / "score.json", target)
        (run,) = plan_experiment(recipe, copied).todo
        assert run.todo == ("evaluate",)
        reproduce(recipe, copied)
        assert not plan_experiment(recipe, copied).todo

    def test_a_score_that_is_missing(self, copied, recipe):
        (copied / "digits-1" / "predictions" / "score.json").unlink()
        assert todo(plan_experiment(recipe, copied))["digits-1"] == ("evaluate",)


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on(home, finished, recipe, tmp_path):
    """Killed in the middle of a run with several at once, and started again, it ends where it would have ended."""
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "placevalue.cli", "reproduce", str(home / "toy.yaml"), "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": SOURCE, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([*command, "--jobs", "2"], env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not list(out.glob("*/checkpoints/checkpoint-2")) and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert plan_experiment(recipe, out).todo
    kept = {path: path.read_text() for path in out.glob("*/train.json")}
    time.sleep(1)  # its workers notice and end
    reproduce(recipe, out)
    assert all(path.read_text() == text for path, text in kept.items())
    assert answers(out) == answers(finished[0].folder) and scores(out) == scores(finished[0].folder)


def test_one_run_that_fails_does_not_stop_the_others(recipe, home, tmp_path, monkeypatch):
    real = runner.predict

    def fails(checkpoint, *given, **named):
        if "digits" in str(checkpoint):
            raise RuntimeError("no memory")
        return real(checkpoint, *given, **named)

    monkeypatch.setattr(runner, "predict", fails)
    with pytest.raises(PlacevalueError, match="1 of 3 runs failed.*digits-1: RuntimeError: no memory"):
        reproduce(recipe, tmp_path)
    assert todo(plan_experiment(recipe, tmp_path)) == {
        "untouched-1": (),
        "digits-1": ("generate", "evaluate"),
        "aux-soft-1": (),
    }


def _some_die(piece, progress):
    progress("told", piece)
    if piece == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return "it says so" if piece == "fails" else None


def test_a_process_that_dies_takes_no_other_with_it(tmp_path):
    pieces = {"a": "works", "b": "dies", "c": "fails", "d": "works"}
    told = []
    failures = run_at_once(_some_die, pieces, 2, tmp_path, lambda *event: told.append(event))
    assert failures == {"b": "its process died; out of memory?", "c": "it says so"}
    assert sorted(event[1] for event in told) == ["dies", "fails", "works", "works"]


def _starts_another(_piece, progress):
    progress("told")
    child = multiprocessing.Process(target=print)
    child.start()
    child.join()
    return None if child.exitcode == 0 else "its own process failed"


def test_a_process_may_start_others_to_prepare_its_batches(tmp_path):
    assert run_at_once(_starts_another, {"a": 1}, 2, tmp_path, lambda *_: None) == {}


def test_two_at_once_in_one_folder_are_refused(recipe, tmp_path):
    with locked(tmp_path), pytest.raises(DataError, match="is in use by process"):
        reproduce(recipe, tmp_path)
    assert not (tmp_path / "digits-1").exists()


class TestObstacles:
    def test_all_faults_before_any_training_starts(self, home, tmp_path, capsys):
        """First those of the recipe itself, then those of what it names."""
        named = ["model=/nowhere at all", "data.dev=gone.csv", "data.test=[lost.jsonl]", "training.optimizer=best"]
        command = ["reproduce", "--out", str(tmp_path / "out"), str(home / "toy.yaml"), *named]
        assert main([*command, "training.epoch=3", "generation.beams=many"]) == 1
        told = capsys.readouterr().err
        assert "training.epoch is unknown" in told and "generation.beams: expected a whole number" in told
        assert main(command) == 1
        told = capsys.readouterr().err
        for part in (
            "gone.csv",
            "lost.jsonl",
            "'/nowhere at all' is not an existing folder",
            "training.optimizer='best'",
        ):
            assert part in told
        assert not (tmp_path / "out").exists()

    def test_a_folder_that_cannot_be_written(self, recipe, tmp_path):
        (tmp_path / "file").touch()
        data = replace(recipe.data, dev="gone.csv", test=("lost.csv",))
        with pytest.raises(PlacevalueError) as error:
            reproduce(replace(recipe, data=data), tmp_path / "file" / "out")
        assert all(part in str(error.value) for part in ("gone.csv", "lost.csv", "nothing can be written in"))

    def test_weights_that_are_not_there(self, home, recipe, tmp_path):
        shutil.copytree(home / "model", tmp_path / "model")
        (tmp_path / "model" / "model.safetensors").unlink()
        with pytest.raises(PlacevalueError, match="has no weights"):
            reproduce(replace(recipe, model=str(tmp_path / "model")), tmp_path / "out")

    def test_tests_that_were_trained_on(self, recipe, tmp_path):
        data = replace(recipe.data, train="mawps:train", test=("fermat:Original",))
        with pytest.raises(PlacevalueError, match="trained on mawps:train and is tested on fermat"):
            reproduce(replace(recipe, data=data), tmp_path)

    def test_a_model_of_the_test_part_is_refused_there(self, recipe, tmp_path):
        data = replace(recipe.data, train="mawps:test", test=("mawps:test",))
        with pytest.raises(PlacevalueError, match="500 of its 500 problems are among those it was trained on"):
            reproduce(replace(recipe, data=data), tmp_path)

    def test_nothing_to_score_on(self, recipe, home):
        (fault,) = preflight_module.find_obstacles(replace(recipe, data=replace(recipe.data, test=())), home)
        assert fault.startswith("data.test names no problems")

    def test_one_plan_is_enough(self, home, copied, monkeypatch):
        planned = []
        plan_run = runner.plan_run
        monkeypatch.setattr(runner, "plan_run", lambda *given: planned.append(given[2].name) or plan_run(*given))
        shutil.rmtree(copied / "digits-1" / "predictions")
        assert main(["reproduce", str(home / "toy.yaml"), "--out", str(copied)]) == 0
        assert planned == ["untouched-1", "digits-1", "aux-soft-1"]

    def test_what_the_report_is_to_show_too_is_looked_for_first(self, home, tmp_path, capsys):
        given = ["--out", str(tmp_path / "out"), "--beside", str(tmp_path / "nowhere")]
        assert main(["reproduce", str(home / "toy.yaml"), *given]) == 1
        assert "nowhere" in capsys.readouterr().err and not (tmp_path / "out").exists()

    def test_jobs(self, recipe, tmp_path):
        with pytest.raises(PlacevalueError, match="jobs=0"):
            reproduce(recipe, tmp_path, jobs=0)


def test_a_dry_run_shows_the_plan_and_every_config(home, copied, capsys):
    shutil.rmtree(copied / "digits-1")
    given = ["--methods", "digits", "agg-before", "--seeds", "1", "2"]
    assert main(["reproduce", str(home / "toy.yaml"), *given, "--out", str(copied), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("method: ") == printed.count("learning_rate: 0.01") == 6
    assert "5 of 6 runs to do" in printed and "agg-before-2" in printed
    assert not (copied / "digits-1").exists()


def test_it_ends_with_the_table_and_the_report(home, copied, finished, capsys):
    assert main(["reproduce", str(home / "toy.yaml"), "--out", str(copied), "--beside", str(finished[0].folder)]) == 0
    printed = capsys.readouterr().out
    assert "all 3 runs are done" in printed and "Accuracy, higher is better" in printed and "aux-soft" in printed
    page = (copied / "report.html").read_text()
    assert "copied" in page and "finished" in page


def test_the_baseline_is_checked_before_anything_runs(recipe, tmp_path, monkeypatch):
    """Also if the recipe does not name it among its methods."""
    checked = []
    monkeypatch.setattr(runner, "find_obstacles", lambda each, _folder: checked.extend(each.methods))
    plan = runner.prepare_experiment(replace(recipe, baseline="bare"), tmp_path)
    assert checked == ["bare", "digits", "aux-soft"] == list(plan.recipe.methods)
