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
from optuna.trial import TrialState

import placevalue as pv
from placevalue.cli.main import main
from placevalue.common.errors import ConfigError, DivergedError, PlacevalueError
from placevalue.common.records import SweepRecord, read_record
from placevalue.data import corpora
from placevalue.evaluation import metrics
from placevalue.experiments import runner
from placevalue.experiments import study as study_module
from placevalue.experiments import sweep as sweep_module
from placevalue.experiments import train as train_module
from placevalue.experiments.recipe import make_recipe, read_recipe
from placevalue.experiments.search_space import PAPER_SEARCH, Search, grid_points, name_values, override, read_searches
from placevalue.experiments.study import claim_trial, finished_trials, open_study, signs_of_life
from placevalue.experiments.sweep import plan_sweep, sweep
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
            "training.optimizer=1:5": "is no number and has no range",
            "training.deterministic=0:1:1": "is no number and has no range",
            "training.batch_size=1:2:0.5": "give whole numbers",
            "training.max_gradient=-1,1": "training.max_gradient=-1: expected 0 or more",
            "training.warmup_steps=few": "expected a whole number, found 'few'",
            "training.select=best,last": "training.select: expected one of last",
            "data.dev=a.csv,b.csv": "data.dev cannot be searched",
            "data.test=a.csv": "nothing is chosen by it",
            "seeds=1,2": "see --seeds",
            "training.epochs": "expected a field and its values",
        }
        with pytest.raises(ConfigError) as error:
            plan_sweep(
                recipe, [*wrong, "training.weight_decay=0:1"], method="aux-soft", metric="log_error", trials=3, seeds=[]
            )
        for fault in [*wrong.values(), "a grid needs steps", "'log_error' cannot be searched by", "trials=3", "seed"]:
            assert fault in str(error.value)

    def test_faults_of_data_model_method_and_sampler(self, home):
        values = {"model": str(home / "gone"), "methods": ["digits"], "data": {"train": str(home / "lost.csv")}}
        with pytest.raises(ConfigError) as error:
            plan_sweep(make_recipe(values), sampler="tpe", trials=0)
        for fault in ("data.dev is missing", "gone", "lost.csv", "trials=0", "means nothing to digits"):
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
    assert read_record(tmp_path / "sweep.json", SweepRecord) == record and record.config == plan.setup
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
    @pytest.mark.parametrize(
        "sign, dead",
        [
            ({"process": 2**22 + 1}, True),
            ({"machine": "another", "time": 0.0}, True),
            ({"machine": "another"}, False),
            ({}, False),
        ],
    )
    def test_a_trial_left_running_is_taken_over_if_its_process_is_gone(
        self, tmp_path, monkeypatch, sign, dead, sampler
    ):
        search = (Search(CE, (0.4, 0.6)) if sampler == "grid" else Search(CE, (), 0.4, 0.6),)
        theirs = open_study(str(tmp_path / "study"), "sweep", {}, True)
        left = claim_trial(theirs, search, sampler, 2, 0)
        left.trial.set_user_attr("sign", study_module._sign() | sign)
        study = open_study(str(tmp_path / "study"), "sweep", {}, True)
        claims = []
        while (claim := claim_trial(study, search, sampler, 2, 1)) is not None:
            claims.append(claim.values)
            claim.finish(0.5, {})
        assert (left.values in claims) == dead
        assert len(claims) == (2 if dead else 1)
        state = study.get_trials()[left.trial.number].state
        assert state == (TrialState.FAIL if dead else TrialState.RUNNING)
        if dead:
            left.finish(0.9, {})  # it was not dead after all: what others made of it stands
            assert [each.value for each in finished_trials(study)] == [0.5, 0.5]

    def test_signs_of_life_are_given_while_a_trial_runs(self, tmp_path, monkeypatch):
        monkeypatch.setattr(study_module, "BEAT", 0.01)
        study = open_study(str(tmp_path / "study"), "sweep", {}, True)
        claim = claim_trial(study, (Search(CE, (0.4,)),), "grid", 1, 0)
        first = study.get_trials()[0].user_attrs["sign"]["time"]
        with signs_of_life(claim):
            deadline = time.monotonic() + 10
            while study.get_trials()[0].user_attrs["sign"]["time"] == first:
                assert time.monotonic() < deadline
                time.sleep(0.01)

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


class TestShared:
    @pytest.mark.parametrize("storage", ["{}/study.journal", "sqlite:///{}/study.db"])
    def test_each_point_is_claimed_once(self, tmp_path, storage):
        search = (Search(CE, (0.1, 0.2, 0.3)), Search("training.batch_size", (1, 2, 3, 4)))
        storage = storage.format(tmp_path)
        open_study(storage, "sweep", {}, True)
        claims, faults = [], []

        def work():
            try:
                study = open_study(storage, "sweep", {}, True)
                while (claim := claim_trial(study, search, "grid", 12, 0)) is not None:
                    claims.append(claim.values)
                    time.sleep(0.01)
                    claim.finish(0.5, {})
            except Exception as error:
                faults.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not faults
        assert sorted(map(str, claims)) == sorted(map(str, grid_points(search)))

    def test_tpe_waits_for_whoever_runs_the_same_values(self, tmp_path, monkeypatch):
        monkeypatch.setattr(study_module, "POLL", 0.01)
        search = (Search(CE, (0.4,)),)
        first, second = (open_study(str(tmp_path / "study"), "sweep", {}, True) for _ in range(2))
        theirs, mine = claim_trial(first, search, "tpe", 2, 0), []
        thread = threading.Thread(target=lambda: mine.append(claim_trial(second, search, "tpe", 2, 0)))
        thread.start()
        thread.join(0.5)
        assert not mine
        theirs.finish(0.5, {})
        thread.join(10)
        assert mine[0].values == theirs.values == {CE: 0.4}

    def test_two_processes_split_the_work(self, recipe, home, tmp_path):
        """This one holds a point while the command does the others, and does its own when the command is done."""
        plan = plan_sweep(recipe, [f"{CE}=0.4:0.6:0.1"], method="aux-soft", seeds=[1])
        study = open_study(str(tmp_path / "study.journal"), "sweep", plan.setup, plan.higher)
        held = claim_trial(study, plan.searches, "grid", 3, 0)
        command = [sys.executable, "-m", "placevalue.cli", "sweep", str(home / "toy.yaml"), "--method", "aux-soft",
                   "--search", f"{CE}=0.4:0.6:0.1", "--seeds", "1", "--out", str(tmp_path)]  # fmt: skip
        source = {"PYTHONPATH": str(Path(pv.__file__).parents[1]), "OMP_NUM_THREADS": "1", "COLUMNS": "160"}
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | source, timeout=300, check=True)
        assert "1 of 3 trials are running elsewhere" in done.stdout
        theirs = {trial["values"][CE] for trial in read_record(tmp_path / "sweep.json", SweepRecord).trials}
        assert theirs == {0.4, 0.5, 0.6} - {held.values[CE]}
        held.give_up()
        assert [trial["values"][CE] for trial in sweep(plan, tmp_path).trials] == [0.4, 0.5, 0.6]
        assert len({trial.user_attrs["sign"]["process"] for trial in finished_trials(study)}) == 2

    def test_a_storage_that_cannot_be_used_is_an_error_of_ours(self):
        for storage in ("nonsense://x", "postgresql+none://x/y", "redis://x"):
            with pytest.raises(PlacevalueError, match="cannot be used"):
                study_module.open_storage(storage)


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

    def test_a_dry_run_shows_the_plan_and_does_nothing(self, home, tmp_path, capsys):
        command = ["sweep", str(home / "toy.yaml"), "data.train=mawps:train", "--method", "aux-soft", "--dry-run"]
        assert main([*command, "--out", str(tmp_path / "o")]) == 0
        printed = capsys.readouterr().out
        assert "# 9 trials of 2 runs each" in printed and "ce_weight=0.55" in printed and not (tmp_path / "o").exists()
        assert "mawps:train: " in printed  # and no tram

    def test_without_optuna_it_says_what_to_install(self, home, tmp_path, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "optuna", None)
        assert main(["sweep", str(home / "toy.yaml"), "--method", "aux-soft", "--out", str(tmp_path)]) == 1
        assert "placevalue[sweep]" in capsys.readouterr().err

    def test_without_matplotlib_there_is_no_plot_and_a_word_about_it(self, recipe, tmp_path, told, monkeypatch, caplog):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        told(lambda config: 0.5)
        draw_sweep(sweep(plan_sweep(recipe, [f"{CE}=0.4,0.6"], method="aux-soft"), tmp_path), tmp_path / "sweep.svg")
        assert "matplotlib" in caplog.text and not (tmp_path / "sweep.svg").exists()
