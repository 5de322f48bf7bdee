"""The committed results: whole, fit for the recipes that they are of, and told as their records tell them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from placevalue.cli.report import BEGIN, END
from placevalue.common.hub import BUNDLED_FOLDER, TINY
from placevalue.common.records import SweepRecord, TrainRecord, read_record
from placevalue.experiments.recipe import RENAMED, read_recipe
from placevalue.experiments.run_folder import SEEN, find_changes
from placevalue.experiments.runner import plan_experiment
from placevalue.reports.results import load_experiment, load_experiments
from placevalue.reports.summary import summarise
from placevalue.reports.tables import make_table, to_markdown

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path.parent for path in (ROOT / "results").glob("*/recipe.yaml"))
RECIPES = list((ROOT / "recipes").glob("*.yaml"))
SWEEPS = sorted((ROOT / "results" / "sweeps").glob("*/sweep.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_run_of_the_recipe_is_there(folder):
    experiment, recipe = load_experiment(folder), read_recipe(ROOT / "recipes" / f"{folder.name}.yaml")
    told = experiment.recipe  # its baseline is that of a time when recipes named none
    assert not experiment.missing and replace(told, numbers=recipe.numbers, baseline=recipe.baseline) == recipe
    if recipe.model == TINY:  # tests/pretrained asks the same of the others, whose weights are not here
        assert not plan_experiment(recipe, folder).todo


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_committed_runs_are_what_their_recipes_train(folder):
    """No default may make a committed score that of another recipe."""
    recipe = read_recipe(ROOT / "recipes" / f"{folder.name}.yaml")
    for run in load_experiment(folder).runs:
        seen = {SEEN: run.train.data}
        assert not find_changes(run.train.config | seen, recipe.run(run.method, run.seed).to_dict() | seen)
        assert run.train.config["numbers"]["pattern"] == recipe.numbers.pattern == "paper"


@pytest.mark.parametrize(
    "path", [*RECIPES, ROOT / "tools" / "tiny_model" / "pretrain.yaml"], ids=lambda path: path.stem
)
def test_every_recipe_names_its_pattern(path):
    assert yaml.safe_load(path.read_text())["numbers"]["pattern"] == "paper"


def test_tables_are_those_of_the_records():
    metrics = ("accuracy_paper", "accuracy_paper_reachable", "cer_written")
    found = [make_table(summarise(each, None, name)) for each in load_experiments(FOLDERS) for name in metrics]
    told = (ROOT / "results" / "README.md").read_text().partition(BEGIN)[2].partition(END)[0].strip()
    assert told == to_markdown(found).strip(), "run `make results`"


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.parent.name)
def test_recipes_have_what_was_best_on_dev(path):
    record = read_record(path, SweepRecord)
    assert len(record.trials) == record.planned and record.best is not None
    recipe = max((each for each in RECIPES if path.parent.name.startswith(each.stem)), key=lambda each: len(each.stem))
    run = read_recipe(recipe).run(record.config["method"]).to_dict()
    for field, value in record.best["values"].items():
        part, name = RENAMED.get(field, field).split(".")
        assert run[part][name] == value


def test_the_tokens_that_methods_cost_are_those_of_the_records():
    told = (ROOT / "docs" / "choosing.md").read_text()
    names = ("flan-t5-small-title-mawps", "smollm2-135m-mawps", "quick")
    found = [{run.method: run.train.counts for run in load_experiment(ROOT / "results" / name).runs} for name in names]
    for method in found[0]:
        cells = []
        for counts in (each.get(method) for each in found):
            tokens = ("question_tokens", "answer_tokens")
            cells += ["", ""] if counts is None else [f"{counts[name] / counts['problems']:.1f}" for name in tokens]
        assert f"| `{method}` | {' | '.join(cells)} |" in told, method


def test_what_the_loss_costs_and_what_the_bundled_model_scores_are_those_of_the_records():
    told = (ROOT / "docs" / "loss.md").read_text()
    for name in ("loss", "loss_h200"):
        record = json.loads((ROOT / "benchmarks" / "records" / f"{name}.json").read_text())
        ratios = [f"{check['ratio']:.3f}" for check in record["checks"] if check["name"].startswith("step with")]
        assert len(ratios) == 3 and f"| {' | '.join(ratios)} |" in told
    card = (ROOT / "docs" / "tiny.md").read_text()
    record = read_record(BUNDLED_FOLDER / TINY / "train.json", TrainRecord)
    last = [row for row in record.losses if "eval_accuracy" in row][-1]
    assert f"{100 * last['eval_accuracy']:.1f}% of the targets exactly, gaps included, at a loss of" in card
    assert f"at a loss of {last['eval_loss']:.2f}." in card and f"in {record.durations['train']:.0f} seconds" in card
    assert f"{record.steps:,} steps of {record.config['training']['batch_size']:,} rows" in card


def test_the_results_stay_small_however_many_runs_there_are():
    """Predictions are ids and answers, compressed: `reproduce --keep answers`."""
    whole = list((ROOT / "results").rglob("predictions.jsonl"))
    assert not whole, "pack them: placevalue reproduce RECIPE --out results/NAME --keep answers"
    assert sum(path.stat().st_size for path in (ROOT / "results").rglob("*") if path.is_file()) < 20e6
