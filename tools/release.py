"""Build a release and try it as a user would: `python -m tools.release`, or `make release`.

Wheel and sdist are built into `dist` and their metadata checked. The wheel, of at most 10 MB, is installed with all
extras into an empty environment, in which the README's example runs in an empty folder.
"""

import os
import re
import shutil
import subprocess
import tempfile
import venv
from pathlib import Path

import placevalue

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
LARGEST = 10e6
"""Bytes of a wheel."""


def find_faults(root: Path, version: str) -> list[str]:
    """Places that do not name the version to be released."""
    said = {
        "CHANGELOG.md": f"\n## {version}\n",
        "CITATION.cff": f"\nversion: {version}\n",
        "docs/migration.md": f" to {version}\n",
    }
    return [f"{name} has no {text.strip()!r}" for name, text in said.items() if text not in (root / name).read_text()]


def readme_example(readme: str) -> str:
    """The Python code that the README shows."""
    return "\n".join(re.findall(r"```python\n(.*?)```", readme, re.DOTALL))


def run(*command: str | Path, **options: object) -> None:
    """Run a command, which must succeed."""
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]


def build(folder: Path) -> Path:
    """Build and check wheel and sdist with tools of their own environment; return the wheel."""
    tools = make_environment(folder / "tools")
    run(tools, "-m", "pip", "install", "--quiet", "build", "twine")
    shutil.rmtree(DIST, ignore_errors=True)
    run(tools, "-m", "build", "--outdir", DIST, ROOT, stdout=subprocess.DEVNULL)
    made = sorted(DIST.iterdir())
    run(tools, "-m", "twine", "check", "--strict", *made)
    wheel = next(path for path in made if path.suffix == ".whl")
    if wheel.stat().st_size > LARGEST:
        raise SystemExit(f"{wheel.name} has {wheel.stat().st_size / 1e6:.1f} MB, expected at most {LARGEST / 1e6:.0f}")
    return wheel


def make_environment(folder: Path) -> Path:
    """An empty environment's Python."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install the wheel alone, and run what the README shows, in an empty folder."""
    python, home = make_environment(folder / "fresh"), folder / "home"
    home.mkdir()
    run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", f"{wheel}[all]")
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    run(python, "-c", readme_example((ROOT / "README.md").read_text()), cwd=home, env=clean)
    run(python.with_name("placevalue"), "--version", cwd=home, env=clean)


def main() -> None:
    """Do all of it."""
    version = placevalue.__version__
    if faults := find_faults(ROOT, version):
        raise SystemExit(f"{version} is not ready: {'; '.join(faults)}")
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        try_wheel(wheel, Path(folder))
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, and the README's example runs from it")


if __name__ == "__main__":
    main()
