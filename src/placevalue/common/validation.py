"""Validate JSON values against type hints, reporting every error by its dotted path."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_SCALARS = {str: "a text", int: "a whole number", float: "a finite number", bool: "true or false", NoneType: "null"}


def plain(value: Any) -> Any:
    """Copy a value with mappings as dicts and sequences as lists, as in JSON."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def find_faults(cls: type, values: Mapping[str, Any], path: str = "") -> list[str]:
    """Find unknown, missing and mistyped fields in the values for a dataclass."""
    known = _fields(cls)
    faults = [f"{path}{key} is unknown" for key in values if key not in known]
    for name, (hint, required) in known.items():
        if name in values:
            faults += _faults(values[name], hint, path + name)
        elif required:
            faults.append(f"{path}{name} is missing")
    return faults


def build(cls: Any, values: Mapping[str, Any]) -> Any:
    """Build a dataclass from valid values, including nested dataclasses and tuples."""
    made = {}
    for name, (hint, _) in _fields(cls).items():
        if name in values:
            value = values[name]
            if is_dataclass(hint):
                value = build(hint, value)
            made[name] = tuple(value) if isinstance(value, list) else value
    return cls(**made)


def find_differences(there: Mapping[str, Any], here: Mapping[str, Any], path: str = "") -> list[str]:
    """Describe each difference between two JSON objects by its dotted path."""
    found = []
    for key in sorted(there.keys() | here.keys()):
        theirs, ours = there.get(key), here.get(key)
        if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
            found += find_differences(theirs, ours, f"{path}{key}.")
        elif plain(theirs) != plain(ours):
            found.append(f"{path}{key} is {theirs!r} there and {ours!r} here")
    return found


@lru_cache(maxsize=16)
def _fields(cls: type) -> dict[str, tuple[Any, bool]]:
    """Each field's type, and whether it is required."""
    hints = get_type_hints(cls)
    required = {each.name: each.default is MISSING and each.default_factory is MISSING for each in fields(cls)}
    return {name: (hints[name], needed) for name, needed in required.items()}


def _faults(value: Any, hint: Any, path: str) -> list[str]:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any and isinstance(value, dict):
        return _faults(value, dict[str, Any], path)
    if hint is Any and isinstance(value, list | tuple):
        return _faults(value, tuple[Any, ...], path)
    if hint is Any:
        fits = any(_is(value, kind) for kind in (str, float, bool, NoneType))
        return [] if fits else [_expected("a JSON value (finite where it is a number)", value, path)]
    if (is_dataclass(hint) and not isinstance(value, Mapping)) or (origin is dict and not isinstance(value, dict)):
        return [_expected("an object", value, path)]
    if is_dataclass(hint):
        return find_faults(hint, value, f"{path}.")  # type: ignore[arg-type]
    if origin is Literal:
        return [] if value in inner else [_expected(f"one of {', '.join(map(str, inner))}", value, path)]
    if origin in (Union, UnionType):
        return [] if value is None and NoneType in inner else _faults(value, inner[0], path)
    if origin is dict:
        named = [_expected("a text as key", key, path) for key in value if not isinstance(key, str)]
        return named + [fault for key, item in value.items() for fault in _faults(item, inner[1], f"{path}.{key}")]
    if origin is tuple:
        if not isinstance(value, list | tuple):
            return [_expected("a list", value, path)]
        return [fault for index, item in enumerate(value) for fault in _faults(item, inner[0], f"{path}[{index}]")]
    return [] if _is(value, hint) else [_expected(_SCALARS[hint], value, path)]


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, kind)


def _expected(what: str, value: Any, path: str) -> str:
    found = repr(value)
    return f"{path}: expected {what}, found {found if len(found) <= 40 else found[:37] + '...'}"
