"""The checksums of what `make` installs: all versions have some, and only wheels that could be installed count."""

import re
import subprocess

import pytest

from tools.hashes import HASHES, PINS, ROOT, UNHASHED, choose, read_pins


def test_everything_but_torch_has_checksums():
    """`python -m tools.hashes` writes them after a change of constraints.txt."""
    pins, hashed = read_pins(PINS.read_text()), read_pins(HASHES.read_text())
    assert pins.keys() - hashed.keys() == {UNHASHED}
    assert hashed == {name: version for name, version in pins.items() if name != UNHASHED}
    entries = re.split(r"\n(?=\S)", HASHES.read_text().strip())[1:]
    assert len(entries) == len(hashed)
    for entry in entries:
        name, *checksums = entry.split(" \\\n    ")
        assert (
            "==" in name and checksums and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in checksums)
        )


def make(*words):
    """What `make` would run to install everything."""
    command = ["make", "--dry-run", "--always-make", "VENV=none", *words, "none/.installed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if " -m pip " in line]


def test_make_installs_checked_files_then_torch():
    checked, package = make()
    assert "--require-hashes --requirement constraints-hashes.txt" in checked
    assert "--constraint constraints.txt --no-build-isolation --editable" in package, "what builds it is checked too"
    for line in make("CONSTRAINTS=constraints-oldest.txt") + make("CONSTRAINTS="):
        assert "hash" not in line and "--no-build-isolation" not in line


@pytest.mark.parametrize(
    "wheel, chosen",
    [
        ("rich-15.0.0-py3-none-any.whl", True),
        ("rich-15.0.0-py2.py3-none-any.whl", True),
        ("rich-15.0.0-1-py3-none-any.whl", True),
        ("rich-15.0.0-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl", True),
        ("rich-15.0.0-cp38-abi3-macosx_11_0_arm64.whl", True),
        ("rich-15.0.0-py313-none-any.whl", True),
        ("rich-15.0.0-cp311-cp311-win_amd64.whl", True),
        ("rich-15.0.1-py3-none-any.whl", False),
        ("rich-15.0.0-cp310-cp310-manylinux_2_28_x86_64.whl", False),
        ("rich-15.0.0-cp314-cp314t-manylinux_2_28_x86_64.whl", False),
        ("rich-15.0.0-cp312-cp312-musllinux_1_2_x86_64.whl", False),
        ("rich-15.0.0.tar.gz", False),
        ("rich-15.0-beta-dumb.zip", False),
    ],
)
def test_which_files_count(wheel, chosen):
    assert choose([(wheel, "a"), ("rich-9.0.0.tar.gz", "b")], "15.0.0") == (["a"] if chosen else [])
