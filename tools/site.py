"""Build the documentation as a site: `python -m tools.site`, or `make docs`. It needs no network.

The pages are those of the repository, README.md first, with a page of the API from the docstrings of every public name.
A link to a file that is not a page, such as an example, becomes plain text.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import placevalue

ROOT = Path(__file__).parents[1]
PAGES = ROOT / ".cache" / "docs"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_SHOWN = {".md", ".svg", ".png"}


def api_page() -> str:
    """Every public name, for mkdocstrings to fill in."""
    homes = placevalue._HOMES
    parts = ["# API", "Everything below is `placevalue.NAME`.", "\n::: placevalue.data.load_data"]
    parts += [f"\n::: placevalue.{homes[name]}.{name}" for name in sorted(homes)]
    return "\n".join(parts) + "\n"


def adapt(text: str, page: Path, source: Path) -> str:
    """A page's text with links to files that the site does not have as plain text."""

    def link(found: re.Match[str]) -> str:
        image, label, target, _ = found.groups()
        if "://" in target:
            return found[0]
        path = (source.parent / target).resolve()
        home = path / "README.md" if path.is_dir() else path
        if home.suffix not in _SHOWN or not home.is_relative_to(ROOT):
            return f"`{label}`" if not image else label
        return found[0].replace(target, page_of(home, page))

    return _LINK.sub(link, text)


def page_of(file: Path, page: Path) -> str:
    """The path of a file in the site, relative to a page."""
    renamed = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}
    inside = file.relative_to(ROOT).as_posix()
    place = Path(renamed.get(inside, inside))
    return ("../" * (len(page.parts) - 1)) + place.as_posix()


def write_pages() -> None:
    """The pages of the site."""
    shutil.rmtree(PAGES, ignore_errors=True)
    sources = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").iterdir()]
    sources += [path for path in (ROOT / "results").rglob("*") if path.suffix in _SHOWN]
    for source in sources:
        page = Path(page_of(source, Path("index.md")))
        target = PAGES / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(adapt(source.read_text(), page, source))
        elif source.suffix in _SHOWN:
            shutil.copyfile(source, target)
    (PAGES / "api.md").write_text(api_page())


if __name__ == "__main__":
    write_pages()
    sys.exit(subprocess.call([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"], cwd=ROOT))
