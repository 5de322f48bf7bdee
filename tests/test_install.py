"""What is installed: the README's install line, and the oldest versions that are tested."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_oldest_versions_tested_are_those_that_are_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"], *extras["all"], *extras["cluster"], *extras["dev"]]
    required = re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(named), re.M)
    pinned = re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "constraints-oldest.txt").read_text(), re.M)
    assert sorted(pinned) == sorted(required)


@pytest.mark.slow
def test_the_install_line_runs_everything_the_readme_shows(tmp_path):
    (extras,) = re.findall(r'^pip install "placevalue(.*)"$', README, re.MULTILINE)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "fresh"], check=True)
    python = tmp_path / "fresh" / "bin" / "python"
    limits = ["--constraint", ROOT / "constraints.txt"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *limits, f"{ROOT}{extras}"], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}

    def runs(*command):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    commands = re.findall(r"^placevalue (.*)$", README, re.MULTILINE)
    assert len(blocks) == 1 and commands
    for block in blocks:
        runs(python, "-c", block)
    for command in (*commands, "--help"):
        runs(python.with_name("placevalue"), *shlex.split(command))
