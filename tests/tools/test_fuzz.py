"""`make fuzz` on a property that one example does not break, and a thousand do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PLANTED = """
from hypothesis import given, settings
from hypothesis import strategies as st

import pytest


@pytest.mark.parametrize("limit", [100, 10**9])
@settings(max_examples=2, derandomize=True)
@given(st.lists(st.integers(0, 99)))
def test_sums_are_small(limit, values):
    assert sum(values) < limit


def test_of_something_else():
    raise AssertionError
"""


def run(folder, *options):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "src")))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_planted.py", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_what_it_finds_is_a_test_from_then_on(tmp_path):
    path = tmp_path / "test_planted.py"
    path.write_text(PLANTED)
    plain = ["-k", "small"]
    assert run(tmp_path, *plain).returncode == 0
    found = run(tmp_path, "-p", "tools.fuzz", "--minutes", "0.05", "--seed", "7").stdout
    assert "repeat with --seed 7" in found and "1 failed, 1 passed, 1 deselected" in found
    kept = path.read_text()
    assert "from hypothesis import example, given, settings\n" in kept and kept.count("\n@example(values=[") == 1
    assert run(tmp_path, "-p", "tools.fuzz", "--minutes", "0.05").returncode == 1
    assert path.read_text() == kept, "once is enough"
    assert "1 failed, 1 passed" in run(tmp_path, *plain).stdout


def test_a_seed_of_its_own_is_printed(tmp_path):
    (tmp_path / "test_planted.py").write_text(PLANTED)
    lines = [run(tmp_path, "-p", "tools.fuzz", "--minutes", "0").stdout.splitlines()[0] for _ in range(2)]
    assert lines[0] != lines[1] and all("--seed" in line for line in lines)
