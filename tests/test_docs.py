"""The documents: every link leads somewhere, every page is in the site, and the site builds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import placevalue
from tools.site import api_page, page_of

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(page):
    """The anchors of a page's headings, as GitHub and mkdocs name them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def broken(page):
    """The links of a page that lead nowhere."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if "://" in target:
            continue
        other = (page.parent / target).resolve() if target else page
        if not other.exists() or (anchor and other.suffix == ".md" and anchor not in anchors(other)):
            yield f"{target}#{anchor}"


def test_the_settings_of_fsdp_are_ones_that_accelerate_knows(tmp_path):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "training.md").read_text(), re.DOTALL)
    (tmp_path / "fsdp.yaml").write_text(block)
    found = load_config_from_file(str(tmp_path / "fsdp.yaml"))
    assert str(found.distributed_type).endswith("FSDP")
    given = [word for key, value in found.fsdp_config.items() for word in (f"--{key}", str(value))]
    launch_command_parser().parse_args([*given, "script.py"])


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere(page):
    assert not list(broken(page))


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "b.md").write_text("# What is there\n")
    (tmp_path / "a.md").write_text("[b](b.md#what-is-there) [c](c.md) [d](b.md#gone) [e](https://example.com/x)")
    assert list(broken(tmp_path / "a.md")) == ["c.md#", "b.md#gone"]


def test_every_page_is_in_the_site():
    listed = re.findall(r"([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = {page_of(page, Path("index.md")) for page in PAGES if page.name != "CONTRIBUTING.md"}
    assert set(listed) == pages | {"api.md"} and len(listed) == len(set(listed))


def test_every_public_name_is_in_the_api_reference():
    names = re.findall(r"^::: placevalue\.[\w.]+\.(\w+)$", api_page(), re.MULTILINE)
    assert {*names, "__version__", "data"} == set(placevalue.__all__) | {"load_data"}


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 100


@pytest.mark.slow
def test_the_site_builds_without_a_warning():
    """Strictly: a link, an anchor or a docstring reference that leads nowhere fails."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.site"], cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    site = ROOT / ".cache" / "site"
    assert "How numbers are written" in (site / "api.html").read_text() and (site / "index.html").is_file()
    assert not [
        path for path in site.rglob("*.html") if re.search(r"(src|href)=\"https?://(fonts|cdn|unpkg)", path.read_text())
    ]
