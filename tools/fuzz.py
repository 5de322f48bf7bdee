"""A pytest plugin that tries each hypothesis test for minutes instead of once: `make fuzz`.

Every round of a property has a seed of its own, drawn from one that is printed. A failing example, made as small as
hypothesis can, becomes an `@example` of its test, which every later run of the tests tries first.
"""

import ast
import builtins
import functools
import random
import secrets
import time
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from placevalue.common.files import write_whole
from placevalue.common.lock import locked


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long, and from which seed."""
    group = parser.getgroup("fuzz")
    group.addoption("--minutes", type=float, default=10.0, help="How long each property is tried.")
    group.addoption("--seed", type=int, help="What all seeds are drawn from; random if not given.")


def pytest_configure(config: pytest.Config) -> None:
    """Draw a seed, which xdist hands on to its workers."""
    if config.option.seed is None:
        config.option.seed = secrets.randbelow(1 << 32)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print the seed."""
    option = session.config.option
    if reporter := session.config.pluginmanager.get_plugin("terminalreporter"):
        reporter.write_line(f"each property for {option.minutes:g} minutes; repeat with --seed {option.seed}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Keep properties only, and share the time of each among the values that it is parametrized with."""
    properties = [item for item in items if hypothesis.is_hypothesis_test(item.obj)]
    config.hook.pytest_deselected(items=[item for item in items if item not in properties])
    items[:] = properties
    names = [item.nodeid.partition("[")[0] for item in items]
    for item, name in zip(items, names, strict=True):
        item.fuzz_seconds = 60 * config.option.minutes / names.count(name)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool:
    """Try a property round after round until its time is up or it fails."""
    item, end = pyfuncitem, time.monotonic() + pyfuncitem.fuzz_seconds
    handle, failing = item.obj.hypothesis, dict[str, Any]()
    inner = handle.inner_test

    @functools.wraps(inner)
    def noting(*arguments: Any, **named: Any) -> None:
        try:
            inner(*arguments, **named)
        except Exception:
            failing.clear()
            failing.update(named)  # the last time is the smallest example
            raise

    handle.inner_test = noting
    seeds = random.Random(f"{item.config.option.seed} {item.nodeid}")
    try:
        while time.monotonic() < end:
            hypothesis.seed(seeds.getrandbits(64))(item.function)
            item.obj(**{name: item.funcargs[name] for name in item._fixtureinfo.argnames})
    except Exception as error:
        drawn = {name: value for name, value in failing.items() if name not in item.funcargs}
        error.add_note(keep_example(item.path, item.originalname, drawn, vars(item.module)))
        raise
    finally:
        handle.inner_test = inner
    return True


def keep_example(path: Path, test: str, arguments: dict[str, Any], names: dict[str, Any]) -> str:
    """Write `@example(arguments)` above a test; returns what was done.

    Args:
        path: The test's file.
        test: The name of its function.
        arguments: What the test was given.
        names: What the file defines, for arguments that are not literals.
    """
    example = f"example({', '.join(f'{name}={value!a}' for name, value in arguments.items())})"
    try:
        parsed = ast.parse(example, mode="eval").body
    except SyntaxError:
        return f"not kept, since an argument cannot be written as Python: {example}"
    used = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)}
    if missing := used - {"example"} - vars(builtins).keys() - names.keys():
        return f"not kept, since {path} does not know {', '.join(missing)}: {example}"
    with locked(Path(".hypothesis"), wait=True):  # another process may try another test of this file
        lines = path.read_text().splitlines()
        nodes = list(ast.walk(ast.parse(path.read_text())))
        function = next(node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == test)
        decorators = function.decorator_list
        if ast.dump(parsed) not in map(ast.dump, decorators):
            lines.insert(decorators[0].lineno - 1, " " * function.col_offset + "@" + example)
        imports = next(node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "hypothesis")
        imported = sorted({alias.name for alias in imports.names} | {"example"})
        lines[imports.lineno - 1 : imports.end_lineno] = [f"from hypothesis import {', '.join(imported)}"]
        write_whole(path, "\n".join(lines) + "\n")
    return f"kept above {test} in {path}: @{example}"
