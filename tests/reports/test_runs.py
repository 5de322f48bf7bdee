"""How runs were trained: from their records, and nothing that these do not have."""

import csv
import io
from dataclasses import replace

import pytest
import yaml

from experiment_folders import PROVENANCE, make_experiment, problems, right_up_to
from placevalue.cli.main import main
from placevalue.reports.page import make_page
from placevalue.reports.results import load_experiment
from placevalue.reports.runs import COMMAND, FACTS, fact_text, run_table, runs_to_csv

ASKED = problems(8)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    answers = {name: {seed: right_up_to(ASKED, 3) for seed in (1, 2)} for name in ("digits", "aux-soft")}
    return load_experiment(make_experiment(tmp_path_factory.mktemp("runs") / "mine", answers, ASKED))


def with_records(experiment, **changes):
    runs = tuple(replace(run, train=replace(run.train, **changes)) for run in experiment.runs)
    return replace(experiment, runs=runs)


def cells(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_what_a_record_lacks_is_left_out(experiment):
    """Those of 0.1.0 have neither peak memory nor processes, and here no parameters."""
    table = run_table(experiment)
    assert not {"parameters", "device memory", "process memory", "processes", "kept"} & {
        *table.columns,
        *table.settings,
    }
    first = cells(table)[0]
    assert (first["method"], first["seed"], first["steps"], first["epochs"], first["time"]) == ("digits", 1, 3, 1, 60)
    assert first["problems/s"] == 0.1, "8 problems, once, in 60 seconds"
    assert table.settings["device"] == "cpu" and table.settings["commit"] == "ab" * 5, "all runs have the same"
    page = make_page([experiment])
    assert "device memory" not in page and ">problems/s<" in page


def test_size_speed_and_memory_are_those_of_the_record(experiment):
    peak = {"peak_memory": {"device": 12_345_678_901}, "processes": 2, "device": "one GPU"}
    known = with_records(
        experiment, counts={"problems": 600, "parameters": 1_234_567, "trained_parameters": 89}, epochs=2.5,
        selected={"checkpoint": "checkpoint-2", "by": "dev-accuracy", "value": 0.5}, provenance=PROVENANCE | peak,
    )  # fmt: skip
    first = cells(run_table(known))[0]
    shown = {name: fact_text(name, value) for name, value in first.items()}
    assert shown["parameters"] == "1,234,567" and shown["trained parameters"] == "89"
    assert shown["device memory"] == "12.35 GB" and shown["problems/s"] == "25" and shown["time"] == "60 s"
    assert shown["kept"] == "checkpoint-2 by dev-accuracy" and shown["epochs"] == "2.5"
    assert run_table(known).settings["processes"] == 2
    page = make_page([known])
    assert ">12.35 GB<" in page and ">1,234,567<" in page and f'title="{FACTS["device memory"].about}"' in page


def test_settings_are_shared_or_a_column_and_only_where_they_had_a_part(experiment):
    table = run_table(experiment)
    assert table.settings["training.learning_rate"] == "0.0001" and table.settings["numbers.pattern"] == "extended"
    weights = {row["method"]: row["training.ce_weight"] for row in cells(table)}
    assert weights == {"digits": "", "aux-soft": "0.6"}, "the weight of a loss that digits does not have"
    runs = (experiment.runs[0], *with_records(experiment, provenance=PROVENANCE | {"device": "another"}).runs[1:])
    moved = run_table(replace(experiment, runs=runs))
    assert [row["device"] for row in cells(moved)][:2] == ["cpu", "another"] and "device" not in moved.settings


def test_the_command_trains_the_same_run_from_the_recipe(experiment, tmp_path, monkeypatch, capsys):
    table = run_table(experiment)
    (tmp_path / "recipe.yaml").write_text(table.recipe)
    monkeypatch.chdir(tmp_path)
    for run, row in zip(experiment.runs, cells(table), strict=True):
        name, *arguments = row[COMMAND].split()
        assert name == "placevalue" and main([*arguments, "--dry-run"]) == 0
        assert yaml.safe_load(capsys.readouterr().out) == run.train.config
    assert f"<code>{row[COMMAND]}</code>" in make_page([experiment])
    unknown = run_table(replace(experiment, recipe=None))
    assert COMMAND not in unknown.columns and unknown.recipe == ""


def test_csv_has_plain_figures(experiment):
    table = run_table(with_records(experiment, counts={"parameters": 1_234_567}))
    rows = list(csv.DictReader(io.StringIO(runs_to_csv(table))))
    assert len(rows) == 4 and rows[0]["parameters"] == "1234567" and rows[0]["seconds"] == "60.0"
    assert rows[0]["training.learning_rate"] == "0.0001" and rows[3]["method"] == "aux-soft"
