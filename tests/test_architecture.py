"""The shape of the project: modules import only from above themselves, and what the README says works."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import placevalue
import placevalue.data
from zoo import build

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "placevalue"


def modules():
    """The modules in the order of the map in CONTRIBUTING.md, as `common/errors`."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    found, package = [], ""
    for indent, name in re.findall(r"^    (  )?([a-z0-9_]+/|[a-z0-9_]+\.py)", text, re.MULTILINE):
        if indent:
            found.append(f"{package}/{name.removesuffix('.py')}")
        else:
            package = name.strip("/")
    return found


def source(module):
    return SOURCE / f"{module}.py"


def imported(module):
    """The modules that a module imports from; of a package's own exports, the package's last module."""
    tree = ast.parse(source(module).read_text())
    named = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    paths = [name.removeprefix("placevalue.").replace(".", "/") for name in named if name.startswith("placevalue.")]
    last = {name.partition("/")[0]: name for name in modules()}
    return [last.get(path, path) for path in paths]


def test_the_map_names_every_module():
    found = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    assert sorted(source(module) for module in modules()) == sorted(found)


def test_the_listing_is_short():
    assert len([path for path in SOURCE.iterdir() if path.name != "__pycache__"]) <= 12


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_from_above_itself(module):
    order = modules()
    for other in imported(module):
        assert order.index(other) < order.index(module), f"{module} imports {other}"


def test_no_public_name_hides_a_module():
    packages = {module.partition("/")[0] for module in modules()} - {"data"}
    readers = {module.partition("/")[2] for module in modules() if module.startswith("data/")}
    assert not packages & set(placevalue.__all__) and not readers & set(placevalue.data.__all__)
    assert all(hasattr(placevalue.data, name) for name in placevalue.data.__all__)


def test_importing_sets_no_logging_seed_or_warning_filter():
    code = (
        "import logging, warnings, torch, transformers; from transformers import PreTrainedModel, TrainerCallback;"
        "state = lambda: (torch.initial_seed(), len(logging.root.handlers), list(warnings.filters));"
        "before = state(); import placevalue, placevalue.cli.main; assert state() == before"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", modules())
def test_extras_are_imported_only_where_they_are_used(module):
    core = {"torch", "transformers", "tokenizers", "safetensors", "numpy", "placevalue"}
    for node in ast.parse(source(module).read_text()).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            top = name.partition(".")[0]
            assert top in core or top in sys.stdlib_module_names, f"{module} imports {name}"


def code_blocks():
    """Every Python block of the README and the docs, by where it stands."""
    blocks = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for index, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)):
            blocks[f"{path.name}-{index}"] = block
    return blocks


def marked_blocks():
    """The names of all blocks; those that export a model take long."""
    slow = {name for name, block in code_blocks().items() if "torch.onnx.export" in block}
    return [pytest.param(name, marks=pytest.mark.slow if name in slow else ()) for name in code_blocks()]


@pytest.mark.parametrize("name", marked_blocks())
def test_every_documented_block_runs(name, tmp_path, monkeypatch):
    """Each on its own, with small local models under the names that the documents use."""
    tables = placevalue.AGGREGATIONS, placevalue.METHODS, placevalue.VECTORS
    known = [set(table) for table in tables]
    monkeypatch.chdir(tmp_path)
    for hub_name, small in (("google/flan-t5-base", "t5-flan"), ("HuggingFaceTB/SmolLM2-135M", "llama")):
        model, base = build(small)
        model.save_pretrained(tmp_path / hub_name)
        base.save_pretrained(tmp_path / hub_name)
    space = {"questions": [f"{i} and {i} more?" for i in range(8)], "answers": [str(2 * i) for i in range(8)]}
    exec(compile(code_blocks()[name], name, "exec"), space)
    for table, before in zip(tables, known, strict=True):
        for mine in set(table) - before:
            del table[mine]


def test_what_the_readme_says_of_make_is_there():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"`make ([a-z-]+)`", (ROOT / "README.md").read_text()):
        assert target in targets


def test_versions_agree():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    newest = changelog.split("\n## ")[1].partition("\n")[0]
    assert newest in ("Unreleased", placevalue.__version__) and f"version: {placevalue.__version__}" in citation
