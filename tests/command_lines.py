"""Every verb as a command line that works and takes a second: what its tests interrupt, and give bad values to."""

import json
from pathlib import Path

from experiment_folders import make_experiment, problems, right_up_to
from zoo import build

RECORD = Path(__file__).parents[1] / "results" / "neighbours" / "flan-t5-small-title" / "record.json"
RECIPE = """
model: {home}/model
data: {{train: {home}/sums.csv, dev: {home}/sums.csv, test: [{home}/sums.csv]}}
methods: [untouched, aux-soft]
seeds: [1]
training: {{max_steps: 1, batch_size: 4, warmup_steps: 0, log_every: 1}}
generation: {{beams: 1, batch_size: 8}}
"""
ACTIONS = ("inspect", "fetch", "neighbours", "data list", "data show", "data check", "data fermat", "methods", "train", "predict", "evaluate",
           "reproduce", "report", "sweep")  # fmt: skip


def make_home(home):
    """A folder with all that the command lines name."""
    for part in build("t5-flan"):
        part.save_pretrained(home / "model")
    rows = "".join(f"{i} and {i + 3} more?,{2 * i + 3}\n" for i in range(8))
    (home / "sums.csv").write_text("question,answer\n" + rows)
    (home / "toy.yaml").write_text(RECIPE.format(home=home))
    asked = problems(8)
    make_experiment(home / "experiment", {name: {1: right_up_to(asked, 4)} for name in ("digits", "pause")}, asked)
    (home / "cache" / "minilm-l6").mkdir(parents=True)
    (home / "cache" / "minilm-l6" / "tokenizer.json").touch()
    return home


def command_lines(home, out):
    """The command lines by verb, or by verb and action; `PLACEVALUE_CACHE` must be the home's `cache`."""
    (out / "space" / "model").mkdir(parents=True)
    (out / "space" / "model" / "record.json").write_text(
        json.dumps({**json.loads(RECORD.read_text()), "model": "model"})
    )
    answers = str(home / "experiment" / "digits-1" / "predictions")
    lines = {
        "inspect": ["12 and 5", "--model", f"{home}/model"],
        "fetch": ["minilm-l6"],
        "neighbours": ["--model", f"{home}/model", "--out", f"{out}/space"],
        "data list": [],
        "data show": [f"{home}/sums.csv"],
        "data check": [f"{home}/sums.csv", f"{home}/sums.csv"],
        "methods": ["--markdown"],
        "data fermat": ["--size", "4", "--dev-size", "1", "--out", f"{out}/fermat"],
        "train": [f"{home}/toy.yaml", "--out", f"{out}/run"],
        "predict": [f"{home}/model", "--data", f"{home}/sums.csv", "--out", f"{out}/answers"],
        "evaluate": [answers, "--draws", "20", "--out", f"{out}/score.json"],
        "reproduce": [f"{home}/toy.yaml", "--out", f"{out}/experiment"],
        "report": [f"{home}/experiment", "--out", f"{out}/report.html"],
        "sweep": [f"{home}/toy.yaml", "--method", "aux-soft", "--search", "training.ce_weight=0.5,0.6", "--out", f"{out}/sweep"],
    }  # fmt: skip
    return {name: [*name.split(), *rest] for name, rest in lines.items()}
