"""The examples, run as a user would, on small models."""

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
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "csv_with_t5.py",
        "lora_decoder.py",
        "custom_aggregation.py",
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
