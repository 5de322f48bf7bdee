"""The examples, run as a user would, on small models."""

import ast
import json
import runpy
import sys
from pathlib import Path

import pytest

import placevalue as pv
from zoo import build

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("t5-flan", "llama"):
        model, base = build(name)
        model.save_pretrained(tmp_path / name)
        base.save_pretrained(tmp_path / name)
    return tmp_path


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == {
        "quickstart.ipynb",
        "my-chat-model.yaml",
        "csv_with_t5.py",
        "lora_decoder.py",
        "custom_aggregation.py",
        "own_method.py",
    }


def test_csv_with_t5(folder, monkeypatch, capsys):
    (folder / "mine.csv").write_text("question,answer\n" + "".join(f"{i} and {i}?,{2 * i}\n" for i in range(20)))
    run("csv_with_t5.py", monkeypatch, "mine.csv", "--model", folder / "t5-flan", "--epochs", 1)
    assert "0 and 0? -> " in capsys.readouterr().out
    assert pv.is_attached(pv.from_pretrained("my-model")[0])


def test_lora_decoder(folder, monkeypatch, capsys):
    run("lora_decoder.py", monkeypatch, "--model", folder / "llama", "--steps", 2)
    assert "my-adapter loads again" in capsys.readouterr().out


def test_custom_aggregation(folder, monkeypatch, capsys):
    try:
        run("custom_aggregation.py", monkeypatch, "--model", folder / "t5-flan")
    finally:
        pv.AGGREGATIONS.pop("rounded", None)
    printed = capsys.readouterr().out
    assert "F1 by length" in printed and printed.count("aux") == 3


def test_own_method(folder, monkeypatch, capsys):
    (folder / "mine.csv").write_text("question,answer\n" + "".join(f"{i} and {i}?,{2 * i}\n" for i in range(20)))
    settings = "training: {max_steps: 2, batch_size: 4, warmup_steps: 0}"
    (folder / "mine.yaml").write_text(f"model: llama\ndata: {{train: mine.csv}}\nmethods: [untouched]\n{settings}\n")
    try:
        run("own_method.py", monkeypatch, "mine.yaml")
    finally:
        pv.METHODS.pop("bare-sum", None)
    assert "bare-sum: 2 steps" in capsys.readouterr().out
    assert pv.from_pretrained("my-run")[0].config.placevalue["aggregation"] == "sum"


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    """Cell by cell, with a short training; what a cell ends with is shown as a notebook shows it."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads((EXAMPLES / "quickstart.ipynb").read_text())["cells"]
    code = ["".join(each["source"]) for each in cells if each["cell_type"] == "code"]
    assert sum("EPOCHS = 3" in each for each in code) == 1
    space, shown = {}, []
    for source in code:
        tree = ast.parse(source.replace("EPOCHS = 3", "EPOCHS = 0.05"))
        if isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value)
        exec(compile(ast.fix_missing_locations(tree), "cell", "exec"), space)
        value = space.pop("_", "")
        shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert "[AGG]" in shown[0] and "1999" in shown[0]
    assert "placevalue writes 12 as" in (printed := capsys.readouterr().out) and "are right" in printed


def test_the_notebook_has_no_outputs_and_names_no_machine():
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text())
    for cell in notebook["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    links = [part.partition(")")[0] for cell in notebook["cells"] for part in "".join(cell["source"]).split("](")[1:]]
    assert links and all((EXAMPLES / link).exists() for link in links)
