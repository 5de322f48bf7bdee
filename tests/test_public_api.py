"""The public API: lazy, complete, and reachable under its old names."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import placevalue as pv
from placevalue.common.moved import MOVED

VERBS = ("train", "predict", "evaluate", "reproduce", "report", "sweep")
HEAVY = {"torch", "transformers"}


def loaded_by(code):
    """The heavy modules that some code loads into a fresh interpreter, beside what is installed to load at its start."""
    head, tail = (
        "import sys; at_start = set(sys.modules)\n",
        f"; print(sorted({HEAVY!r} & set(sys.modules) - at_start))",
    )
    done = subprocess.run([sys.executable, "-c", head + code + tail], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def run_verb(*words):
    """Code that runs the command line and goes on after `--help` and `--version`."""
    return f"import contextlib\nfrom placevalue.cli.main import main\nwith contextlib.suppress(SystemExit): main({list(words)!r})\n0"


def test_dir_shows_the_api_and_nothing_else():
    assert dir(pv) == pv.__all__ == sorted(pv.__all__)
    assert all(hasattr(pv, name) for name in pv.__all__)
    assert {*VERBS, "generate", "NumberConfig", "data"} <= set(pv.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pv.nonsense


def test_type_checkers_see_what_is_loaded_lazily():
    tree = ast.parse(Path(pv.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {f"{each.module}.{name.name}" for each in guarded.body for name in each.names}
    lazy = {f"placevalue.{module}.{name}" for name, module in pv._HOMES.items()}
    assert seen == lazy | {"placevalue.data"}


@pytest.mark.parametrize("name", VERBS)
def test_the_api_has_the_verbs(name):
    assert callable(getattr(pv, name)) and getattr(pv, name).__name__ == name
    assert pv.generate is pv.predict


@pytest.mark.parametrize(
    "code", ["import placevalue", run_verb("--help"), run_verb("--version"), run_verb("report", "--help")]
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code):
    assert loaded_by(code) == "[]"


def test_the_command_line_catches_an_interruption_before_it_loads_anything_large():
    """What is imported before `main` runs shows Ctrl-C as a traceback."""
    code = "import sys; at_start = set(sys.modules); import placevalue.cli.main; print(*sys.modules.keys() - at_start)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded - {"placevalue", *sys.stdlib_module_names}


def test_reading_results_loads_nothing_heavy(tmp_path):
    quick = Path(__file__).parents[1] / "results" / "quick"
    out = str(tmp_path / "report.html")
    assert loaded_by(run_verb("report", str(quick), "--out", out)) == "[]"
    assert loaded_by(run_verb("report", str(quick), "--format", "markdown")) == "[]"
    answers = next(quick.glob("*/predictions"))
    score = str(tmp_path / "score.json")
    assert loaded_by(run_verb("evaluate", str(answers), "--draws", "20", "--out", score)) == "[]"
    assert (tmp_path / "report.html").exists() and (tmp_path / "score.json").exists()


OLD = {
    "adapters": ["trainable_tokens"],
    "aggregation": ["AGGREGATIONS", "per_number", "place_weights"],
    "checkpoints": ["from_pretrained", "load_number_tokenizer", "save_pretrained"],
    "encoding": ["encode_pairs", "encode_questions", "encode_texts"],
    "errors": ["PlacevalueError", "DataError"],
    "evaluation": ["evaluate", "check_leakage"],
    "experiments": ["reproduce", "plan_experiment"],
    "generation": ["generate"],
    "integration": ["RequireAttached", "attach", "check_attached", "detach", "is_attached"],
    "losses": ["AggregationLoss"],
    "metrics": ["METRICS"],
    "neighbours": ["neighbourhood_f1"],
    "numerals": ["PATTERNS", "Numeral", "find_numerals"],
    "tokenization": ["marker_ids", "number_tokenizer"],
    "trainers": ["AggregationLossMixin", "log_parts"],
    "recipes": ["make_recipe", "read_recipe"],
    "training": ["train"],
    "sweeps": ["plan_sweep", "sweep"],
    "outcomes": ["load_experiment"],
    "comparisons": ["summarise"],
    "tables": ["make_table", "to_markdown"],
    "reporting": ["write_report"],
    "assignments": ["assign_problems"],
    "intervals": ["seed_interval"],
    "data.loading": ["CORPORA", "load_data", "load_problems"],
    "data.problems": ["Problem", "to_dataset"],
    "data.templates": ["FermatConfig", "generate_fermat", "write_fermat"],
}
"""Every public or documented name by the module it was imported from before there were packages."""


@pytest.mark.parametrize("module", OLD)
def test_old_imports_work_with_a_warning(module):
    names = ", ".join(OLD[module])
    code = f"from placevalue.{module} import {names}"
    with pytest.warns(DeprecationWarning, match="import it from there") as caught:
        sys.modules.pop(f"placevalue.{module}", None) if f"placevalue.{module}" in MOVED else None
        space = {}
        exec(compile(code, __file__, "exec"), space)
    assert {warning.filename for warning in caught} == {__file__}
    for name in OLD[module]:
        home = getattr(space[name], "__module__", None)
        if home and home.startswith("placevalue."):
            assert getattr(import_module(home), space[name].__name__) is space[name]
