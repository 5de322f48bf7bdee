"""Planted bugs: which there are, which tests try them, and what is said of those that nobody noticed."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants.__main__ import RECORD, ROOMS, UNSEEN, choose, read_sources
from tools.mutants.planting import find_mutants

ROOT = Path(__file__).parents[2]


def planted(text):
    return [mutant.becomes for mutant in find_mutants("m.py", text.encode())]


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("x = a < b", ["x = (a <= b)", "x = (a >= b)"]),
        ("x = a is None", ["x = (a is not None)"]),
        ("x = a and b", ["x = (a)", "x = (a or b)", "x = (b)"]),
        ("x = not a", ["x = (a)"]),
        ("x = a if b else c", ["x = (c if b else a)", "x = a if (not b) else c"]),
        ("x = a + b", ["x = (a - b)"]),
        ("x = [a] + b", []),
        ("x = a ** b", ["x = (a * b)"]),
        ("x = 2", ["x = (1)", "x = (3)"]),
        ("x = 0", ["x = (1)"]),
        ("x = 0.5", ["x = (1.0)"]),
        ("x = True", ["x = (False)"]),
        ("x = f(a, b=c)", ["x = (f(a))"]),
        ("x = a.min()", ["x = (a.max())"]),
        ("x = a[b:c]", ["x = (a[:c])", "x = (a[b:])"]),
        ("x = [a for a in b if c]", ["x = [a for a in b if True]"]),
        ("with a: b()", ["with __import__('contextlib').nullcontext(): b()", "with a: pass"]),
        ("f(a)", ["pass"]),
        ("x = x.y", ["pass"]),
        ("x = y", []),
        ("x.y = z", ["pass"]),
        ("x += y", ["pass"]),
        ("raise E('1 < 2')", ["pass"]),
        ("def f():\n    return x", ["return None"]),
        ("for x in y:\n    continue", ["break", "pass"]),
        ("if '½' > x: pass", ["if ('½' <= x): pass", "if ('½' >= x): pass"]),
        ('"""1 < 2"""', []),
        ("x: Literal[1] = y", []),
        ("@cache(maxsize=64)\ndef f(x: int) -> 3: pass", []),
        ("logger.info('%d', 1 + 2)", []),
        ("x = f'{1 + 2}'", []),
        ("assert 1 < 2", []),
        ("if TYPE_CHECKING:\n    f(1)", []),
    ],
)
def test_the_bugs_of_a_line(text, becomes):
    assert sorted(planted(text)) == sorted(becomes)


@pytest.mark.slow
def test_each_bug_changes_one_place_and_still_compiles():
    for module, source in read_sources(ROOT).items():
        mutants = find_mutants(module, source)
        assert len({(each.start, each.end, each.text) for each in mutants}) == len(mutants)
        for mutant in mutants:
            broken = mutant.plant(source)
            assert ast.dump(compile(broken, module, "exec", ast.PyCF_ONLY_AST)) != ast.dump(ast.parse(source)), mutant
            assert mutant.lines[0] <= mutant.line <= mutant.lines[1] or mutant.line > mutant.lines[0]


def test_a_seed_chooses_places_and_more_begin_with_the_same():
    mutants = find_mutants("m.py", b"x = 5\n" * 50)
    few, many = choose(mutants, 10, seed=3), choose(mutants, 20, seed=3)
    assert many[:10] == few != choose(mutants, 10, seed=4)
    assert len({each.start for each in many}) == 20 and len(choose(mutants, 99, seed=3)) == 50


TOY = """
def add(a, b):
    return a + b

def size(a):
    if a > 10:
        return "large"
    return "small"

def never():
    return 1 - 2

def down(a):
    while a:
        a -= 1
    return a
"""
TESTS = """
import os
from placevalue.toy import toy
from placevalue.toy.toy import add, down, size

def test_them():
    assert "copy" in toy.__file__
    assert add(2, 3) == 5 and size(11) == "large" and size(1) == "small" and down(2) == 0
"""
HUNT = """
import sys
from pathlib import Path
from tools.mutants import __main__ as mutants

copy = Path(sys.argv[1])
mutants.ROOMS, mutants.SPARE = {"src/placevalue/toy": "tests/toy"}, 20.0
chosen = ["return (a - b)", "if (a >= 10):", "return (1 + 2)", "a -= (0)"]
sources = mutants.read_sources(copy)
found = [each for module, source in sources.items() for each in mutants.find_mutants(module, source)]
found = [each for each in found if each.becomes in chosen]
for outcome in mutants.hunt([copy], sources, found, mutants.watch([copy])):
    print(f"{outcome.mutant.becomes} {outcome.noticed} {outcome.by}")
"""


@pytest.mark.slow
def test_a_hunt(tmp_path):
    """Each bug alone: noticed, survived, in a line that no test runs, and one that never ends."""
    copy = tmp_path / "copy"
    for path, text in (
        ("src/placevalue/__init__.py", ""),
        ("src/placevalue/toy/toy.py", TOY),
        ("tests/toy/test_toy.py", TESTS),
    ):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text(text)
    done = subprocess.run([sys.executable, "-c", HUNT, copy], cwd=ROOT, capture_output=True, text=True, check=True)
    test = "tests/toy/test_toy.py"
    assert sorted(done.stdout.splitlines()) == [
        "a -= (0) True out of time",
        "if (a >= 10): False all tests pass",
        f"return (1 + 2) False {UNSEEN}",
        f"return (a - b) True {test}::test_them",
        f"{test}: 1 tests",
    ]


def test_every_survivor_of_the_record_has_a_test_or_a_reason():
    record = json.loads(RECORD.read_text())
    rooms = record["rooms"]
    assert rooms.keys() == ROOMS.keys()
    for name in ("planted", "noticed"):
        assert record[name] == sum(room[name] for room in rooms.values())
    assert record["planted"] - record["noticed"] == len(record["survivors"])
    for entry in record["survivors"]:
        file, _, test = entry["answer"].partition("::")
        assert entry["answer"], entry
        if test:
            assert f"def {test.rpartition('::')[2].partition('[')[0]}(" in (ROOT / file).read_text(), entry
