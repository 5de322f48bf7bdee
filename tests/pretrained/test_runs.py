"""From a recipe to scores on real models: train, stop, resume, generate, evaluate."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from placevalue.cli.main import main
from placevalue.common.records import ScoreRecord, TrainRecord, read_record
from placevalue.data import load_data
from placevalue.experiments.recipe import read_recipe
from placevalue.experiments.runner import plan_experiment

pytestmark = pytest.mark.pretrained
ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"


@pytest.mark.parametrize("name", ["flan-t5-small-title-mawps", "smollm2-135m-mawps"])
def test_the_committed_results_are_of_these_weights(name):
    plan = plan_experiment(read_recipe(RECIPES / f"{name}.yaml"), ROOT / "results" / name)
    assert plan.runs and not plan.todo


@pytest.mark.parametrize("name, method", [("flan-t5-small-title", "agg-aux"), ("smollm2-135m", "aux-soft")])
def test_a_recipe_on_a_real_model(name, method, tmp_path, capsys):
    few = tmp_path / "few.jsonl"
    few.write_text("".join(json.dumps(asdict(problem)) + "\n" for problem in load_data("mawps:dev")[:12]))
    given = [f"data.train={few}", f"data.dev={few}", "training.batch_size=4", "training.checkpoint_every=2"]
    run = tmp_path / "run"
    command = ["train", str(RECIPES / f"{name}-mawps.yaml"), *given, "training.log_every=1", "--max-steps", "4"]
    command += ["--method", method, "--out", str(run)]
    assert main(command) == 0
    (run / "train.json").unlink()
    assert main([*command, "--resume"]) == 0
    record = read_record(run / "train.json", TrainRecord)
    assert record.steps == 4 and record.counts["problems"] == 12
    assert all(row["numbers"] > 0 for row in record.losses if "ce" in row)
    answered = tmp_path / "answered"
    assert main(["generate", str(run), "--data", str(few), "--out", str(answered), "--beams", "3"]) == 0
    assert main(["evaluate", str(answered)]) == 0
    (scores,) = read_record(answered / "score.json", ScoreRecord).scores.values()
    assert scores["accuracy_paper"]["n"] == 12
    assert main(["generate", str(run), "--data", "fermat:Original", "--out", str(tmp_path / "other"), "--dry-run"]) == 0
