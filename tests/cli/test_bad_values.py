"""Every option of every verb gets bad values, and so does every key of a recipe: an error each, never a traceback.

Options and their kinds come from the parsers, and keys and theirs from the recipe, so a new one is tested too.
"""

import argparse
import json
from importlib import import_module

import pytest

from command_lines import ACTIONS, RECORD, command_lines, make_home
from placevalue.cli.arguments import Whole
from placevalue.cli.main import VERBS, main
from placevalue.evaluation import number_space
from placevalue.experiments.recipe import Recipe, field_help
from placevalue.numbers.aggregation import AGGREGATIONS

HUGE = "9" * 5000
ODD = ["", " ", "no such thing", "(", "[/x]", "a=b", "\x1b[31m", "é☃", "x" * 5000, "/dev/null/x", "/proc/x", "."]
"""Texts that an option may or may not refuse."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture
def lines(home, tmp_path, monkeypatch):
    """The command lines of the verbs; what they write goes to one folder, as with a user who tries again."""
    monkeypatch.setenv("PLACEVALUE_CACHE", str(home / "cache"))
    monkeypatch.chdir(tmp_path)
    parts, known = list(number_space.survey_parts(list(AGGREGATIONS))), json.loads(RECORD.read_text())["parts"]
    recorded = [(name, lambda _, name=name: known[name]) for name, _ in parts]  # measuring takes half a minute
    monkeypatch.setattr(number_space, "survey_parts", lambda names: recorded)
    return command_lines(home, tmp_path / "out")


def define(name):
    """The parser of a verb, or of its action."""
    verb, _, action = name.partition(" ")
    parser = argparse.ArgumentParser()
    import_module(f"placevalue.cli.{verb}").define(parser)
    return subparsers(parser)[action] if action else parser


def subparsers(parser):
    found = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return found[0].choices if found else {}


def options(name):
    """Everything that takes a value on a verb's command line."""
    return [each for each in define(name)._actions if each.nargs != 0]


OPTIONS = [(name, each.dest) for name in ACTIONS for each in options(name)]


def run(words, capsys):
    """The status of a verb; anything but an error that it reports itself goes through."""
    try:
        status = main(words)
    except SystemExit as stop:  # argparse
        status = stop.code
    told = capsys.readouterr().err
    assert "Traceback" not in told and status in (0, 1, 2)
    assert status == 0 or told.strip()
    return status


def bad_values(option):
    """Values that an option must refuse, by its kind."""
    if option.choices:
        return ["", "nonsense", f"{next(iter(option.choices))}x"]
    if isinstance(option.type, Whole):
        return [str(option.type.least - 1), str(option.type.most + 1), "-5", "x", "1.5", "", "nan", HUGE, f"-{HUGE}"]
    assert option.type is not int, "use Whole, which has a range"
    return [""] if option.type is not None else []


def with_value(words, option, value):
    """The command line with another value of an option, and without its own."""
    if not option.option_strings:
        verb = len(option.container.prog.split()) if hasattr(option.container, "prog") else 1
        return [*words[:verb], value, *words[verb + 1 :]]
    flag = option.option_strings[0]
    if flag in words:
        at = words.index(flag)
        words = [*words[:at], *words[at + 2 :]]
    return [*words, f"{flag}={value}"]


def test_every_verb_and_action_is_here():
    actions = {name: subparsers(parser) for name in VERBS if (parser := define(name))}
    assert set(ACTIONS) == {f"{name} {each}".strip() for name in VERBS for each in actions[name] or [""]}


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow if each == "data list" else []) for each in ACTIONS]
)
def test_the_command_lines_work(name, lines, capsys):
    assert run(lines[name], capsys) == 0


@pytest.mark.parametrize("name, dest", OPTIONS)
def test_bad_values_are_refused(name, dest, lines, capsys):
    (option,) = [each for each in options(name) if each.dest == dest]
    for value in bad_values(option):
        assert run(with_value(lines[name], option, value), capsys) in (1, 2), value


SLOW = ("neighbours", "train", "reproduce", "sweep")
FREE = [
    pytest.param(name, each.dest, marks=pytest.mark.slow if name in SLOW else [])
    for name in ACTIONS
    for each in options(name)
    if not each.choices and not isinstance(each.type, Whole)
]


@pytest.mark.parametrize("name, dest", FREE)
def test_odd_texts_are_used_or_refused(name, dest, lines, home, capsys):
    (option,) = [each for each in options(name) if each.dest == dest]
    folder, file = str(home / "model"), str(home / "model" / "model.safetensors")
    for value in [*ODD, folder, file, "\udcff", HUGE]:
        run(with_value(lines[name], option, value), capsys)


KEYS = [key for key, _ in field_help(Recipe)]
KEYS += sorted({key.partition(".")[0] for key in KEYS} - set(KEYS))
WRONG = ["-5", "-1", "0", "1.5", "1e300", HUGE, "text", "''", "null", "true", ".nan", ".inf", "[]", "[1]", "[[1]]", "{}",
         "{a: 1}", "2020-99-99", "!!timestamp x", "!!python/name:os.system x", "[", "*a", "&a [*a]", '"\\ud800"',
         "(", "(a+)+b", "[-1]", "[1099511627776]", "[a, a]", "[null]", "[" * 2000]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_odd_values_of_every_key_are_used_or_refused(key, lines, capsys):
    statuses = {run([*lines["train"], f"{key}={value}", "--dry-run"], capsys) for value in WRONG}
    assert 1 in statuses


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in KEYS if key != "training.compile"])
def test_training_takes_every_value_that_a_dry_run_takes(key, home, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for index, value in enumerate(WRONG):
        words = [*command_lines(home, tmp_path / str(index))["train"], f"{key}={value}"]
        if run([*words, "--dry-run"], capsys) == 0:
            run(words, capsys)
