"""The README's install line, in a fresh environment, runs what the README shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from zoo import build

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_install_line_runs_everything_the_readme_shows(tmp_path):
    (extras,) = re.findall(r'^pip install "placevalue(.*)"$', README, re.MULTILINE)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "fresh"], check=True)
    python = tmp_path / "fresh" / "bin" / "python"
    limits = ["--constraint", ROOT / "constraints.txt"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *limits, f"{ROOT}{extras}"], check=True)
    for hub_name, small in (("google/flan-t5-base", "t5-flan"), ("HuggingFaceTB/SmolLM2-135M", "llama")):
        for part in build(small):
            part.save_pretrained(tmp_path / hub_name)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}

    def runs(*command):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    commands = re.findall(r"^placevalue (.*)$", README, re.MULTILINE)
    assert len(blocks) == 2 and commands
    for block in blocks:
        runs(python, "-c", block)
    for command in (*commands, "--help"):
        runs(python.with_name("placevalue"), *shlex.split(command))
