"""Validate JSON values against type hints, reporting every error by its dotted path and the name that was meant."""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
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


def nearest(given: object, known: Iterable[str]) -> str | None:
    """The known name that was probably meant: `epochs` and `trainig.epochs` mean `training.epochs`."""
    names = {name.lower(): name for name in reversed(list(known))}
    ends = {lower.rpartition(".")[2]: name for lower, name in names.items()}
    text = str(given).lower()
    end = text.rpartition(".")[2]
    if end in ends:
        return ends[end]
    if begun := [names[name] for name in reversed(names) if len(text) > 2 and name.startswith(text)]:
        return begun[0]
    for part, candidates in ((text, names), (end, ends)):
        if found := difflib.get_close_matches(part, candidates, 1):
            return candidates[found[0]]
    return None


def one_of(known: Iterable[str], given: object) -> str:
    """`one of a, b, c`, and which of them was probably meant."""
    names = list(known)
    near = nearest(given, names)
    return f"one of {', '.join(names)}" + (f" (is {near} meant?)" if near else "")


def find_faults(cls: type, values: Mapping[str, Any], path: str = "", root: type | None = None) -> list[str]:
    """Find unknown, missing and mistyped fields in the values for a dataclass, at a path below the root dataclass."""
    known, root = _fields(cls), root or cls
    faults = [_unknown(f"{path}{key}", known, root) for key in values if key not in known]
    for name, (hint, required) in known.items():
        if name in values:
            faults += _faults(values[name], hint, path + name, root)
        elif required:
            faults.append(f"{path}{name} is missing")
    return faults


def without_faults(cls: type, values: Any) -> dict[str, Any]:
    """The known and well-typed fields among the values for a dataclass, to check them further."""
    known, given = _fields(cls), values if isinstance(values, Mapping) else {}
    return {key: given[key] for key in known if key in given and not _faults(given[key], known[key][0], "", cls)}


def build(cls: Any, values: Mapping[str, Any]) -> Any:
    """Build a dataclass from valid values, including nested dataclasses and tuples."""
    made = {}
    for name, (hint, _) in _fields(cls).items():
        if name in values:
            value = values[name]
            if is_dataclass(hint):
                value = build(hint, value)
            made[name] = _as_tuple(value)
    return cls(**made)


def _as_tuple(value: Any) -> Any:
    """A list as a tuple, and the lists in it too."""
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


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


def _unknown(path: str, known: Iterable[str], root: type) -> str:
    near = nearest(path, _paths(root))
    return f"{path} is unknown: " + (f"is {near} meant?" if near else f"expected one of {', '.join(known)}")


def _paths(cls: type, prefix: str = "") -> Iterator[str]:
    """The dotted paths of all fields."""
    for name, (hint, _) in _fields(cls).items():
        yield prefix + name
        if is_dataclass(hint):
            yield from _paths(hint, f"{prefix}{name}.")  # type: ignore[arg-type]


def describe(hint: Any) -> str:
    """What a value of a type is, in words: `one of last, dev-loss`, `a whole number or null`."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin in (Union, UnionType):
        return " or ".join(map(describe, inner))
    if origin in (tuple, dict):
        return {tuple: "a list", dict: "an object"}[origin]
    return _SCALARS[hint]


@lru_cache(maxsize=16)
def _fields(cls: type) -> dict[str, tuple[Any, bool]]:
    """Each field's type, and whether it is required."""
    hints = get_type_hints(cls)
    required = {each.name: each.default is MISSING and each.default_factory is MISSING for each in fields(cls)}
    return {name: (hints[name], needed) for name, needed in required.items()}


def _faults(value: Any, hint: Any, path: str, root: type) -> list[str]:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any and isinstance(value, dict):
        return _faults(value, dict[str, Any], path, root)
    if hint is Any and isinstance(value, list | tuple):
        return _faults(value, tuple[Any, ...], path, root)
    if hint is Any:
        fits = any(_is(value, kind) for kind in (str, float, bool, NoneType))
        return [] if fits else [_expected("a JSON value (finite where it is a number)", value, path)]
    if (is_dataclass(hint) and not isinstance(value, Mapping)) or (origin is dict and not isinstance(value, dict)):
        return [_expected("an object", value, path)]
    if is_dataclass(hint):
        return find_faults(hint, value, f"{path}.", root)  # type: ignore[arg-type]
    if origin is Literal:
        return [] if value in inner else [_expected(one_of(map(str, inner), value), value, path)]
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return []
        lists = [each for each in inner if get_origin(each) is tuple and isinstance(value, list | tuple)]
        return _faults(value, (lists or inner)[0], path, root)
    if origin is dict:
        named = [_expected("a text as key", key, path) for key in value if not isinstance(key, str)]
        return named + [
            fault for key, item in value.items() for fault in _faults(item, inner[1], f"{path}.{key}", root)
        ]
    if origin is tuple:
        if not isinstance(value, list | tuple):
            return [_expected("a list", value, path)]
        return [
            fault for index, item in enumerate(value) for fault in _faults(item, inner[0], f"{path}[{index}]", root)
        ]
    return [] if _is(value, hint) else [_expected(_SCALARS[hint], value, path)]


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, kind)


def _expected(what: str, value: Any, path: str) -> str:
    found = repr(value)
    return f"{path}: expected {what}, found {found if len(found) <= 40 else found[:37] + '...'}"
