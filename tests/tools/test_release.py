"""What `make release` refuses; the build itself takes a fresh environment, and minutes."""

import subprocess
import sys

import pytest

import placevalue
from tools import release


def test_every_file_names_the_version_to_release(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 9.9.9\n")
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 9.9.8\n")
    (tmp_path / "docs" / "migration.md").write_text("# From 1 to 9.9.9\n")
    assert release.find_faults(tmp_path, "9.9.9") == ["CITATION.cff has no 'version: 9.9.9'"]


def test_the_migration_page_is_for_this_version():
    faults = release.find_faults(release.ROOT, placevalue.__version__)
    assert [fault for fault in faults if "CHANGELOG" not in fault] == []


def test_the_example_of_the_readme_is_code():
    code = release.readme_example((release.ROOT / "README.md").read_text())
    compile(code, "README.md", "exec")
    assert "placevalue-tiny" in code


def test_a_command_that_fails_stops_the_release(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        release.run(sys.executable, "-c", "raise SystemExit(3)", cwd=tmp_path)
