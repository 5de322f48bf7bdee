"""Sweeps: every point once, by one process or several, stopped or not, on dev alone."""

import json
import os
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

import placevalue as pv
from placevalue.cli.main import main
from placevalue.common.errors import ConfigError, DivergedError, PlacevalueError
from placevalue.common.records import SweepRecord, read_record
from placevalue.common.validation import plain
from placevalue.data import corpora
from placevalue.evaluation import metrics
from placevalue.experiments import runner
from placevalue.experiments import sweep as sweep_module
from placevalue.experiments import train as train_module
from placevalue.experiments.recipe import make_recipe, read_recipe, with_new_names
from placevalue.experiments.search_space import PAPER_SEARCH, Search, grid_points, name_values, override, read_searches
from placevalue.experiments.sweep import open_study, plan_sweep, sweep
from placevalue.reports.figures import draw_sweep
from zoo import build

CE = "training.ce_weight"
optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A small model, problems, and a recipe whose test problems are not there."""
    folder = tmp_path_factory.mktemp("home")
    model, base = build("t5-flan")
    model.save_pretrained(folder / "t5")
    base.save_pretrained(folder / "t5")
    for name, more in (("train", 3), ("dev", 0)):
        rows = "".join(f"{i} and {i + more} more?,{2 * i + more}\n" for i in range(8))
        (folder / f"{name}.csv").write_text("question,answer\n" + rows)
    (folder / "toy.yaml").write_text(
        f"model: {folder / 't5'}\nmethods: [digits, aux-soft]\nseeds: [1, 2]\n"
        f"data: {{train: {folder / 'train.csv'}, dev: {folder / 'dev.csv'}, test: [{folder / 'none.csv'}]}}\n"
        "training: {max_steps: 1, batch_size: 4, warmup_steps: 0, max_answer: 6, learning_rate: 0.01}\n"
        "generation: {beams: 1}\n"
    )
    return folder


@pytest.fixture
def recipe(home):
    return read_recipe(home / "toy.yaml")


@pytest.fixture
def told(monkeypatch):
    """Runs that are not done: their scores are said beforehand, by values and seed; what was asked for is noted."""

    def tell(scores):
        asked = []

        def run(_recipe, config, folder, _metric, _keep):
            asked.append(folder)
            found = scores(config)
            return {"value": found, "low": found, "high": found, "n": 8}

        monkeypatch.setattr(sweep_module, "_run", run)
        return asked

    return tell


class TestSearches:
    def test_ranges_and_lists(self, recipe):
        texts = ["training.ce_weight=0.4:0.8:0.05", "training.learning_rate=1e-5:1e-3:log", "training.epochs=5:50",
                 "training.batch_size=16,32,16", "training.max_steps=2:10:3", "training.select=last,dev-loss",
                 "numbers.ignore=null,19"]  # fmt: skip
        found, faults = read_searches(texts[:-1], recipe, "aux-soft")
        assert not faults
        assert [each.values for each in found] == [
            (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8), (), (), (16, 32), (2, 5, 8), ("last", "dev-loss")]  # fmt: skip
        assert found[1] == Search("training.learning_rate", (), 1e-5, 1e-3, log=True)
        assert (found[2].low, found[2].high, found[2].log) == (5.0, 50.0, False)
        assert [type(value) for value in found[4].values] == [int] * 3

    def test_every_fault_is_told_at_once(self, recipe, home):
        wrong = {
            "training.ce_wieght=0.4:0.8:0.05": "training.ce_wieght is unknown: is training.ce_weight meant?",
            "training.ce_weight=0.8:0.4:0.05": "0.8 is not below 0.4",
            "training.learning_rate=0:1:log": "a logarithmic range starts above 0",
            "training.epochs=1:5:much": "expected a step",
            "training.optimizer=1:5": "is not a number: list its values",
            "training.deterministic=0:1:1": "is not a number: list its values",
            "training.batch_size=1:2:0.5": "give whole numbers",
            "training.max_gradient=-1,1": "training.max_gradient=-1: expected 0 or more",
            "training.warmup_steps=few": "expected a whole number, found 'few'",
            "training.select=best,last": "training.select: expected one of last",
            "data.dev=a.csv,b.csv": "data.dev cannot be searched",
            "data.test=a.csv": "nothing is chosen by it",
            "data.train=numeracy:train,numeracy:final": "data.train=numeracy:final: the final part is for the last test",
            "seeds=1,2": "see --seeds",
            "training.epochs": "expected a field and its values",
        }
        with pytest.raises(ConfigError) as error:
            plan_sweep(
                recipe, [*wrong, "training.weight_decay=0:1"], method="aux-soft", metric="log_error", trials=3, seeds=[]
            )
        for fault in [*wrong.values(), "a grid needs steps", "'log_error' cannot rank trials", "trials=3", "seed"]:
            assert fault in str(error.value)

    def test_faults_of_data_model_method_and_sampler(self, home):
        values = {"model": str(home / "gone"), "methods": ["digits"], "data": {"train": str(home / "lost.csv")}}
        with pytest.raises(ConfigError) as error:
            plan_sweep(make_recipe(values), sampler="tpe", trials=0)
        for fault in ("data.dev is missing", "gone", "lost.csv", "trials=0", "has no effect on digits"):
            assert fault in str(error.value)
        with pytest.raises(ConfigError, match="'nothing' is unknown"):
            plan_sweep(make_recipe(values), method="nothing")

    def test_what_scores_need_is_missed_before_anything_runs(self, recipe, monkeypatch):
        monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
        metrics._levenshtein.cache_clear()
        with pytest.raises(ConfigError, match="rapidfuzz is missing"):
            plan_sweep(recipe, method="aux-soft")

    def test_names_and_overrides_read_back(self, home):
        assert name_values({CE: 0.45, "data.train": "a/b c.csv"}) == "ce_weight=0.45,train=a-b-c.csv"
        same = {"training.batch_size": 1, "generation.batch_size": 2}
        assert name_values(same) == "training.batch_size=1,generation.batch_size=2"
        for path, value in ((CE, 0.45), ("training.max_steps", None), ("training.compile", True)):
            changed = read_recipe(home / "toy.yaml", [override(path, value)])
            assert getattr(changed.training, path.partition(".")[2]) == value

    def test_the_paper_search_is_the_default(self, recipe):
        plan = plan_sweep(recipe, method="aux-soft")
        assert plan.trials == 9 and list(plan.setup["search"]) == [CE] == [PAPER_SEARCH.partition("=")[0]]
        assert plan.seeds == (1, 2) and "test" not in plan.setup["data"]


def test_a_grid_is_trained_scored_and_drawn_on_dev_alone(recipe, home, tmp_path, monkeypatch):
    loaded = []
    read = corpora.read_problems
    monkeypatch.setattr(corpora, "read_problems", lambda path: loaded.append(Path(path).name) or read(path))
    plan = plan_sweep(recipe, [f"{CE}=0.4,0.6"], method="aux-soft")
    seen = []
    record = sweep(plan, tmp_path, progress=lambda *now: seen.append(now))
    assert set(loaded) == {"train.csv", "dev.csv"}
    assert [trial["values"] for trial in record.trials] == [{CE: 0.4}, {CE: 0.6}]
    assert read_record(tmp_path / "sweep.json", SweepRecord) == record and record.config == plain(plan.setup)
    assert seen[0] == (0, 4, "ce_weight=0.4, seed 1") and seen[-1] == (4, 4, "")
    for trial in record.trials:
        for seed in (1, 2):
            folder = tmp_path / name_values(trial["values"]) / f"seed-{seed}"
            score = json.loads((folder / "predictions" / "score.json").read_text())
            assert list(score["scores"]) == [str(home / "dev.csv")]
            assert trial["scores"][str(seed)] == score["scores"][str(home / "dev.csv")]["accuracy_paper"]
            assert not list(folder.glob("*.safetensors")) and not (folder / "checkpoints").exists()
            assert json.loads((folder / "train.json").read_text())["config"]["training"]["ce_weight"] == trial["values"][CE]  # fmt: skip
    draw_sweep(record, tmp_path / "sweep.svg")
    assert xml.etree.ElementTree.parse(tmp_path / "sweep.svg").getroot().tag.endswith("svg")

    # Nothing is trained or answered again, though the weights are gone: neither by the study nor by the folders.
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*/predictions/*")}
    monkeypatch.setattr(runner, "predict", None)
    assert sweep(plan, tmp_path).trials == record.trials
    (tmp_path / "study.journal").unlink()
    assert sweep(plan, tmp_path).trials == record.trials
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*/predictions/*")} == times


def test_weights_are_kept_where_they_are_wanted(recipe, tmp_path):
    sweep(plan_sweep(recipe, ["training.batch_size=4"], seeds=[1]), tmp_path, keep_weights=True)
    assert (tmp_path / "batch_size=4" / "seed-1" / "model.safetensors").exists()


SCORES = {(0.4, 1): 0.5, (0.4, 2): 0.2, (0.6, 1): 0.3, (0.6, 2): 0.5, (0.8, 1): 0.4, (0.8, 2): 0.4}


def test_a_lambda_of_the_method_alone_gives_way_to_the_search(recipe):
    plan = plan_sweep(replace(recipe, ce_weights={"aux-soft": 0.9}), [f"{CE}=0.4,0.6"], method="aux-soft", seeds=[1])
    tried = [config.training.ce_weight for value in (0.4, 0.6) for _, config, _ in plan.runs({CE: value})]
    assert tried == [0.4, 0.6]


class TestBest:
    @pytest.mark.parametrize("metric, best, mean", [("accuracy_paper", 0.6, 0.4), ("cer_written", 0.4, 0.35)])
    def test_it_is_the_best_mean_over_seeds(self, recipe, tmp_path, told, metric, best, mean):
        """By hand: the means are 0.35, 0.4 and 0.4; of equals the first is taken."""
        told(lambda config: SCORES[config.training.ce_weight, config.seed])
        record = sweep(plan_sweep(recipe, [f"{CE}=0.4:0.8:0.2"], method="aux-soft", metric=metric), tmp_path)
        assert record.best["overrides"] == [f"training.ce_weight={best}"]
        assert record.best["value"] == pytest.approx(mean)

    def test_several_fields_make_all_combinations(self, recipe, tmp_path, told):
        searches = [f"{CE}=0.4,0.5", "training.batch_size=2:8:3", "training.schedule=linear,constant"]
        asked = told(lambda config: config.training.ce_weight / config.training.batch_size)
        record = sweep(plan_sweep(recipe, searches, method="aux-soft", seeds=[1]), tmp_path)
        assert len(asked) == len(set(asked)) == len(record.trials) == record.planned == 12
        assert record.best["overrides"] == [
            "training.ce_weight=0.5", "training.batch_size=2", "training.schedule=linear"]  # fmt: skip
        draw_sweep(record, tmp_path / "sweep.svg")
        picture = (tmp_path / "sweep.svg").read_text()
        assert picture.count('id="axes_') == 3 and "<!-- constant -->" in picture

    def test_tpe_is_the_same_every_time_and_goes_towards_the_best(self, recipe, tmp_path, told):
        told(lambda config: 1 - abs(config.training.ce_weight - 0.7))
        texts = [f"{CE}=0:1", "training.batch_size=4:64:log", "training.warmup_steps=0:10:5"]

        def tried(out, trials):
            plan = plan_sweep(recipe, texts, method="aux-soft", seeds=[1], sampler="tpe", trials=trials)
            return sweep(plan, tmp_path / out).trials

        whole = tried("whole", 20)
        assert len(whole) == 20 and {each["values"]["training.warmup_steps"] for each in whole} == {0, 5, 10}
        assert tried("parts", 9) == whole[:9] and tried("parts", 20) == whole
        early, late = ([each["value"] for each in part] for part in (whole[:10], whole[12:]))
        assert sum(late) / len(late) > sum(early) / len(early)


def test_a_file_names_the_folder(home, recipe, tmp_path, told, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told(lambda config: config.training.ce_weight)
    record = sweep(home / "toy.yaml", [f"{CE}=0.4,0.6"], method="aux-soft", seeds=[1])
    assert read_record(tmp_path / "runs" / "toy" / "sweep-aux-soft" / "sweep.json", SweepRecord) == record
    assert sweep(str(home / "toy.yaml"), method="aux-soft", study="other").planned == 9
    other = sweep(recipe, f"{CE}=0.4,0.6", tmp_path / "other", method="aux-soft", seeds=[1])
    assert other.trials == sweep(plan_sweep(recipe, [f"{CE}=0.4,0.6"], method="aux-soft", seeds=[1]), "third").trials
    assert Path("third/sweep.json").exists()
    with pytest.raises(ConfigError, match="out is missing"):
        sweep(recipe, method="aux-soft")
    with pytest.raises(ConfigError, match="the plan of a sweep has its own settings"):
        sweep(plan_sweep(recipe, method="aux-soft"), "fourth", method="aux-hard")


COMMITTED = sorted((Path(__file__).parents[2] / "results" / "sweeps").glob("*/sweep.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_a_committed_sweep_is_what_the_same_sweep_writes(path, tmp_path, told):
    """Given the scores of its runs; each record has its own fields of the time it was made."""
    kept = read_record(path, SweepRecord)
    config = kept.config
    values = {key: config[key] for key in ("model", "data", "numbers", "training", "generation", "seeds")}
    recipe = make_recipe(values | {"methods": [config["method"]]})
    searches = tuple(Search(field, tuple(each["values"])) for field, each in config["search"].items())
    assert config["sampler"] == {"name": "grid"}
    plan = sweep_module.SweepPlan(
        recipe, config["method"], recipe.seeds, searches, "grid", kept.planned, 0, config["metric"], config["checksums"]
    )
    scores = {
        (name_values(trial["values"]), int(seed)): score["value"]
        for trial in kept.trials
        for seed, score in trial["scores"].items()
    }
    runs = {repr(config): name_values(point) for point in grid_points(searches) for _, config, _ in plan.runs(point)}
    told(lambda config: scores[runs[repr(config)], config.seed])
    record = sweep(plan, tmp_path)
    assert [(trial["values"], trial["value"]) for trial in record.trials] == [
        (trial["values"], trial["value"]) for trial in kept.trials
    ]
    assert record.best["overrides"] == kept.best["overrides"] and record.planned == kept.planned
    for part in set(config) - {"numbers", "training"}:
        assert record.config[part] == config[part]
    config = with_new_names(config)
    assert all(record.config[part].items() >= config[part].items() for part in ("numbers", "training"))


class TestStopped:
    def test_one_bad_point_does_not_keep_the_others_from_being_tried(self, recipe, tmp_path, told):
        bad = [0.5]

        def score(config):
            if config.training.ce_weight in bad:
                raise RuntimeError("no memory")
            return config.training.ce_weight

        told(score)
        plan = plan_sweep(recipe, [f"{CE}=0.4,0.5,0.6"], method="aux-soft", seeds=[1])
        with pytest.raises(PlacevalueError, match="1 of 3 trials failed.*ce_weight=0.5: RuntimeError: no memory"):
            sweep(plan, tmp_path)
        assert [each["value"] for each in read_record(tmp_path / "sweep.json", SweepRecord).trials] == [0.4, 0.6]
        bad.clear()
        assert len(sweep(plan, tmp_path).trials) == 3

    @pytest.mark.parametrize("sampler", ["grid", "tpe"])
    def test_a_run_that_diverges_counts_as_silent(self, recipe, tmp_path, monkeypatch, sampler):
        def finish(run, *_):
            raise DivergedError("the loss is nan at step 3")

        monkeypatch.setattr(sweep_module, "finish_run", finish)
        for metric, silent in (("accuracy_paper", 0.0), ("cer_written", 1.0)):
            given = dict(sampler=sampler, trials=2) if sampler == "tpe" else {}
            plan = plan_sweep(recipe, ["training.learning_rate=1,2"], metric=metric, **given)
            record = sweep(plan, tmp_path / metric)
            assert {trial["value"] for trial in record.trials} == {silent} and len(record.trials) == record.planned

    def test_what_failed_is_tried_again_and_what_is_finished_is_not(self, recipe, tmp_path, monkeypatch):
        plan = plan_sweep(recipe, [f"{CE}=0.4,0.6"], method="aux-soft")
        train, calls = train_module.train, []

        def trained(config, folder, **given):
            calls.append(folder.relative_to(tmp_path).as_posix())
            if len(calls) == 4:
                raise KeyboardInterrupt
            return train(config, folder, **given)

        monkeypatch.setattr(train_module, "train", trained)
        with pytest.raises(KeyboardInterrupt):
            sweep(plan, tmp_path)
        assert len(read_record(tmp_path / "sweep.json", SweepRecord).trials) == 1
        reused = tmp_path / "ce_weight=0.6" / "seed-1" / "predictions" / "predictions.jsonl"
        before = reused.stat().st_mtime_ns
        del calls[:]
        calls += [""] * 4
        assert len(sweep(plan, tmp_path).trials) == 2
        assert calls[4:] == ["ce_weight=0.6/seed-2"] and reused.stat().st_mtime_ns == before

    @pytest.mark.parametrize("sampler", ["grid", "tpe"])
    @pytest.mark.parametrize("values", [None, {CE: 0.4}, {CE: 0.6}])
    def test_a_trial_that_a_killed_process_left_running_blocks_nothing(self, recipe, tmp_path, told, sampler, values):
        told(lambda config: config.training.ce_weight)
        given = dict(sampler=sampler, trials=2) if sampler == "tpe" else {}
        plan = plan_sweep(recipe, [f"{CE}=0.4,0.6"], method="aux-soft", **given)
        left = open_study(str(tmp_path / "study.journal"), "sweep", plan).ask()
        if values is not None:
            left.set_user_attr("values", values)
        record = sweep(plan, tmp_path)
        assert len(record.trials) == 2 and sweep(plan, tmp_path).trials == record.trials
        if sampler == "grid":
            assert [trial["values"] for trial in record.trials] == [{CE: 0.4}, {CE: 0.6}]

    @pytest.mark.slow
    def test_killed_in_the_middle_it_goes_on(self, recipe, home, tmp_path):
        process = subprocess.Popen(command(home, tmp_path), env=environment(), stdout=subprocess.DEVNULL)
        wait_for(lambda: finished(tmp_path) >= 1, process)
        process.kill()
        process.wait()
        kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*/train.json")}
        plan = plan_sweep(recipe, [f"{CE}=0.4:0.6:0.1"], method="aux-soft", seeds=[1])
        assert [trial["values"][CE] for trial in sweep(plan, tmp_path).trials] == [0.4, 0.5, 0.6]
        assert kept and all(path.stat().st_mtime_ns == time for path, time in kept.items())

    def test_another_sweep_is_refused_by_what_differs(self, recipe, tmp_path, told):
        told(lambda config: 0.5)
        sweep(plan_sweep(recipe, [f"{CE}=0.4,0.6"], method="aux-soft"), tmp_path)
        for changed, words in (
            (plan_sweep(recipe, [f"{CE}=0.4,0.8"], method="aux-soft"), r"search.training.ce_weight.values is \[0.4, 0.6\]"),
            (plan_sweep(recipe, [f"{CE}=0.4,0.6"], method="aux-hard"), "method is 'aux-soft' there and 'aux-hard' here"),
            (plan_sweep(recipe, [f"{CE}=0.4,0.6"], method="aux-soft", seeds=[3]), "seeds is"),
        ):  # fmt: skip
            with pytest.raises(ConfigError, match=words):
                sweep(changed, tmp_path)

    def test_a_launcher_is_refused(self, recipe, tmp_path, monkeypatch):
        monkeypatch.setenv("WORLD_SIZE", "2")
        with pytest.raises(ConfigError, match="once for each device"):
            sweep(plan_sweep(recipe, method="aux-soft"), tmp_path)


def command(home, out):
    """A sweep of three points with one seed."""
    return [sys.executable, "-m", "placevalue.cli", "sweep", str(home / "toy.yaml"), "--method", "aux-soft",
            "--search", f"{CE}=0.4:0.6:0.1", "--seeds", "1", "--out", str(out)]  # fmt: skip


def environment():
    return os.environ | {"PYTHONPATH": str(Path(pv.__file__).parents[1]), "OMP_NUM_THREADS": "1", "COLUMNS": "160"}


def finished(out):
    path = out / "sweep.json"
    return len(read_record(path, SweepRecord).trials) if path.exists() else 0


def wait_for(condition, process):
    deadline = time.monotonic() + 200
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


class TestShared:
    @pytest.mark.parametrize("storage", ["{}/study.journal", "sqlite:///{}/study.db"])
    def test_each_point_is_trained_once(self, recipe, tmp_path, monkeypatch, storage):
        """By four at once, with runs that a folder's lock and record keep from being done twice, as real ones are."""
        trained, records, faults = [], [], []

        def run(_recipe, config, folder, _metric, _keep):
            with sweep_module.lock_run(folder):
                folder.mkdir(parents=True, exist_ok=True)
                if not (folder / "score").exists():
                    trained.append((threading.get_ident(), folder.parent.name))
                    time.sleep(0.2)
                    (folder / "score").touch()
            return {"value": config.training.ce_weight, "low": 0.0, "high": 1.0, "n": 8}

        monkeypatch.setattr(sweep_module, "_run", run)
        plan = plan_sweep(recipe, [f"{CE}=0.4,0.6,0.8", "training.batch_size=1:4:1"], method="aux-soft", seeds=[1])
        storage = storage.format(tmp_path)
        open_study(storage, "sweep", plan)

        def work():
            try:
                records.append(sweep(plan, tmp_path, storage=storage))
            except Exception as error:
                faults.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        points = grid_points(plan.searches)
        assert not faults and sorted(name for _, name in trained) == sorted(map(name_values, points))
        assert len({thread for thread, _ in trained}) == 4
        assert all([trial["values"] for trial in record.trials] == points for record in records)

    @pytest.mark.slow
    def test_a_process_does_the_other_points_and_waits_for_the_one_that_is_taken(self, recipe, home, tmp_path):
        plan = plan_sweep(recipe, [f"{CE}=0.4:0.6:0.1"], method="aux-soft", seeds=[1])
        study = open_study(str(tmp_path / "study.journal"), "sweep", plan)
        ours = study.ask()
        ours.set_user_attr("values", {CE: 0.4})
        sweep_module._Sweep(plan, tmp_path, False, lambda *_: None).write_record(study)  # by which the folder is ours
        ((toy, config, folder),) = plan.runs({CE: 0.4})
        with sweep_module.lock_run(tmp_path / folder):
            process = subprocess.Popen(command(home, tmp_path), env=environment(), stdout=subprocess.DEVNULL)
            wait_for(lambda: finished(tmp_path) == 2, process)
            runner.finish_run(runner.plan_run(toy, config, tmp_path / folder), toy, "records")
            made = (tmp_path / folder / "train.json").stat().st_mtime_ns
            assert process.poll() is None and finished(tmp_path) == 2
        assert process.wait(200) == 0
        assert (tmp_path / folder / "train.json").stat().st_mtime_ns == made
        trials = read_record(tmp_path / "sweep.json", SweepRecord).trials
        assert [trial["values"][CE] for trial in trials] == [0.4, 0.5, 0.6]

    def test_a_storage_that_cannot_be_used_is_an_error_of_ours(self):
        for storage in ("nonsense://x", "postgresql+none://x/y", "redis://x"):
            with pytest.raises(PlacevalueError, match="cannot be used"):
                sweep_module.open_storage(storage)


class TestVerb:
    def test_it_prints_the_table_and_the_best_ready_to_paste(self, home, tmp_path, told, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "160")
        told(lambda config: config.training.ce_weight)
        command = ["sweep", str(home / "toy.yaml"), "training.max_steps=3", "--method", "aux-soft", "--out", str(tmp_path)]  # fmt: skip
        assert main([*command, "--search", f"{CE}=0.4:0.5:0.05"]) == 0
        printed = capsys.readouterr().out
        assert "best: training.ce_weight=0.5" in printed and "6/6" in printed and "45.0" in printed
        assert read_recipe(home / "toy.yaml", ["training.ce_weight=0.5"]).training.ce_weight == 0.5
        assert main([*command, "--search", f"{CE}=0.4:0.6:0.05"]) == 1
        assert "holds another sweep" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "equal, said", [((0.4, 0.5), "a tie: training.ce_weight=0.5 scored the same"), ((0.4,), "")]
    )
    def test_a_tie_is_called_one(self, equal, said, home, tmp_path, told, capsys):
        told(lambda config: 0.45 if config.training.ce_weight in equal else 0.3)
        command = ["sweep", str(home / "toy.yaml"), "--method", "aux-soft", "--out", str(tmp_path)]
        assert main([*command, "--search", f"{CE}=0.4,0.5,0.6"]) == 0
        printed = capsys.readouterr().out
        assert "best: training.ce_weight=0.4\n" in printed and said in printed and ("a tie" in printed) == bool(said)

    def test_a_dry_run_shows_the_plan_and_does_nothing(self, home, tmp_path, capsys):
        command = ["sweep", str(home / "toy.yaml"), "data.train=mawps:train", "--method", "aux-soft", "--dry-run"]
        assert main([*command, "--out", str(tmp_path / "o")]) == 0
        printed = capsys.readouterr().out
        assert "# 9 trials of 2 runs each" in printed and "ce_weight=0.55" in printed and not (tmp_path / "o").exists()
        assert "mawps:train: " in printed  # and no tram

    def test_without_optuna_it_says_what_to_install(self, home, tmp_path, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "optuna", None)
        assert main(["sweep", str(home / "toy.yaml"), "--method", "aux-soft", "--out", str(tmp_path)]) == 1
        assert "placevalue[all]" in capsys.readouterr().err

    def test_without_matplotlib_there_is_no_plot_and_a_word_about_it(self, recipe, tmp_path, told, monkeypatch, caplog):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        told(lambda config: 0.5)
        draw_sweep(sweep(plan_sweep(recipe, [f"{CE}=0.4,0.6"], method="aux-soft"), tmp_path), tmp_path / "sweep.svg")
        assert "matplotlib" in caplog.text and not (tmp_path / "sweep.svg").exists()
