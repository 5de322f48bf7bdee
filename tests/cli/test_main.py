import io
import re
import sys
from pathlib import Path

import pytest

from placevalue.cli.main import VERBS, main
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import Recipe, field_help
from placevalue.tokenizer.inspection import inspect_text
from placevalue.tokenizer.tokenizer import number_tokenizer
from zoo import build


@pytest.fixture
def folder(tmp_path):
    build("t5")[1].save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


def test_inspect_shows_pieces_digits_places_weights_values_and_cost(folder, capsys):
    assert main(["inspect", "the 1250 cats in room12b ate 3.5", "--model", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "[F] [AGG] 1 2 5 0 [/F] ␣cat s" in shown or "[F] [AGG] 1 2 5 0 [/F]" in shown
    for line in ("1250    1,250  1      10^3   4", "3.5     3.5    3      10^0   1", "5      10^-1  0.5"):
        assert line in shown
    assert "times as many" in shown


def test_inspect_layouts_and_patterns(folder, capsys):
    flags = [
        "--model",
        str(folder),
        "--token",
        "pause",
        "--position",
        "after",
        "--pattern",
        "extended",
        "--ignore",
        "[0-9]{4}",
    ]
    assert main(["inspect", "in 1999 -1,000", *flags]) == 0
    shown = capsys.readouterr().out
    assert "[F] - 1 , 0 0 0 [PAUSE] [/F]" in shown and "-1,000" in shown and "1999  " not in shown
    assert main(["inspect", "no numbers", "--model", str(folder), "--token", "none"]) == 0
    assert "no numbers found" in capsys.readouterr().out
    assert main(["inspect", "", "--model", str(folder)]) == 0


def test_inspect_draws_a_picture_that_fetches_nothing(folder, tmp_path, capsys):
    assert main(["inspect", "the 12", "--model", str(folder), "--svg", str(tmp_path / "a.svg")]) == 0
    picture = (tmp_path / "a.svg").read_text()
    assert picture.startswith("<svg") and "font-face" not in picture and "AGG" in picture


def test_markup_in_the_text_is_shown_as_typed(folder, capsys):
    assert main(["inspect", "[bold]7[/bold]", "--model", str(folder)]) == 0
    shown = capsys.readouterr().out.replace(" ", "")
    assert "[F][AGG]7[/F]" in shown


def test_errors_go_to_stderr_with_status_one(tmp_path, capsys):
    assert main(["inspect", "7", "--model", str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err.startswith("placevalue: ")
    assert main(["fetch"]) == 1
    assert "--all" in capsys.readouterr().err
    assert main(["fetch", "no-such-model"]) == 1
    assert "flan-t5-small-title" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_output_that_lacks_a_character_is_told_to(encoding, monkeypatch, capsys):
    quick = str(Path(__file__).parents[2] / "results" / "quick")
    for form in ("markdown", "terminal"):
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
        assert main(["report", quick, "--format", form]) == 1
        assert re.fullmatch(
            r"placevalue: the output is .*, which has no '.*': set PYTHONUTF8=1\n", capsys.readouterr().err
        )


def test_every_verb_has_help(capsys):
    for verb in VERBS:
        with pytest.raises(SystemExit) as stop:
            main([verb, "--help"])
        assert stop.value.code == 0
    assert "usage: placevalue" in capsys.readouterr().out


def test_an_inspection_is_what_the_ids_say():
    base = build("t5")[1]
    found = inspect_text("12 and .5", base, number_tokenizer(base, token="agg"))
    assert [(numeral.text, digits) for numeral, digits in found.numbers] == [
        ("12", [(1, 1, 1.5), (2, 0, 0.25)]),
        (".5", [(5, -1, 0.5)]),
    ]
    assert found.ours[:5] == ["[F]", "[AGG]", "1", "2", "[/F]"]


def test_an_inspection_reads_numbers_as_people_write_them(folder, capsys):
    text = "-3 of 1,250.50 in 1999 or ID 7"
    assert main(["inspect", text, "--model", str(folder), "--ignore", "years", "--ignore", "ID [0-9]"]) == 0
    shown = capsys.readouterr().out
    assert "pattern=extended, ignore=years, ID [0-9]" in shown
    assert "1,250.50" in shown and "-1 " in shown and "999" not in [line.split()[0] for line in shown.splitlines()]
    assert main(["inspect", "7", "--model", str(folder), "--ignore", "year"]) == 1
    assert "neither one of dates, times" in capsys.readouterr().err


def test_ctrl_c_ends_with_one_line_and_how_to_continue(monkeypatch, capsys, folder):
    def interrupted(_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("placevalue.cli.inspect.run", interrupted)
    assert main(["inspect", "7", "--model", str(folder)]) == 130
    assert capsys.readouterr().err == "placevalue: interrupted. Run the same command again to start over.\n"
    monkeypatch.setattr("placevalue.cli.train.run", interrupted)
    assert main(["train", "recipe.yaml"]) == 130
    assert "--resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, near",
    [
        ("trian recipe.yaml", "train"),
        ("train recipe.yaml --reusme", "--resume"),
        ("data show mawps:test --rwos 3", "--rows"),
        ("train recipe.yaml --method digit", "digits"),
        ("inspect 7 --model placevalue-tiny --pattern extnded", "extended"),
        ("inspect 7 --model placevalue-tiny --ignore yeers", "years"),
        ("data show mawps:tset", "mawps:test"),
        ("evaluate x.jsonl --metrics acuracy_paper", "accuracy_paper"),
    ],
)
def test_a_wrong_name_gets_the_nearest_right_one(words, near, capsys):
    try:
        status = main(words.split())
    except SystemExit as stop:
        status = stop.code
    assert status in (1, 2) and re.search(rf"is {near} meant\?", capsys.readouterr().err)


@pytest.mark.parametrize("verb", ["train", "reproduce", "sweep"])
def test_help_lists_every_key_of_a_recipe_with_its_type_default_and_choices(verb, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "10000")
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    told = dict(re.findall(r"^  (\S+)\n      (.*)$", capsys.readouterr().out, re.MULTILINE))
    assert list(told) == [key for key, _ in field_help(Recipe)]
    for key, said in {
        "training.batch_size": "a whole number; default: ",
        "training.ce_weight": "a finite number; default: 0.6",
        "training.deterministic": "true or false; default: true",
        "numbers.negatives": 'one of opposite, ignore; default: "opposite"',
        "data.dev": "a text or null; default: null",
        "model": "a text; required",
        "methods": f"a list of {', '.join(METHODS)}; required",
    }.items():
        assert f"({said}" in told[key]
    assert all(re.search(r"\([^()]+; (default: .+|required)\)$", each) for each in told.values())


def test_overrides_may_be_anywhere_on_the_line(monkeypatch):
    seen = []
    monkeypatch.setattr("placevalue.cli.train.run", seen.append)
    before, after = "training.epochs=3", "training.batch_size=4"
    assert main(["train", "recipe.yaml", before, "--seed", "2", after, "--dry-run"]) == 0
    assert seen[0].overrides == [before, after] and seen[0].seed == 2 and seen[0].dry_run
    with pytest.raises(SystemExit):
        main(["train", "recipe.yaml", "--seed", "2", "nonsense"])
