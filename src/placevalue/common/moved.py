"""Old import paths: modules that moved into packages still import, with a DeprecationWarning."""

import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_MOVED = """
errors common.errors, storage common.files, schemas common.validation, records common.records,
pretrained common.registry, models common.hub, config numbers.config, numerals numbers.numerals, spans numbers.spans,
aggregation numbers.aggregation, neighbours numbers.neighbours, data.problems data.problem,
data.templates data.fermat_templates, data.loading data.corpora, tokenization tokenizer.tokenizer,
encoding tokenizer.encoding, batches tokenizer.collate, inspection tokenizer.inspection,
adapters modeling.peft_support, integration modeling.attach, checkpoints modeling.checkpoints,
losses loss.aggregation_loss, trainers loss.trainers, metrics evaluation.metrics, intervals evaluation.statistics,
surveys evaluation.number_space, methods experiments.methods, recipes experiments.recipe,
training experiments.train, assignments experiments.predict, generation experiments.predict,
sweeps experiments.sweep, outcomes reports.results, comparisons reports.summary, tables reports.tables,
reporting reports.page, figures reports.figures
"""
MOVED = {f"placevalue.{old}": f"placevalue.{new}" for old, new in (pair.split() for pair in _MOVED.split(","))}


def _warn(old: str, new: str, callers: int) -> None:
    warnings.warn(f"{old} is now {new}: import it from there", DeprecationWarning, stacklevel=callers + 1)


class _Finder(MetaPathFinder, Loader):
    """Finds the modules of `MOVED`; every name in one is looked up in the new module."""

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        _warn(module.__name__, new, 2)
        found = import_module(new)
        module.__dict__["__getattr__"] = lambda name: getattr(found, name)


def find_moved_modules() -> None:
    """Let old module names be imported; called once, when placevalue is."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def moved_name(package: str, name: str, homes: Mapping[str, str]) -> Any:
    """A name that a module had which is a package now: the `__getattr__` of that package."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    _warn(f"{package}.{name}", f"{homes[name]}.{name}", 3)
    return getattr(import_module(homes[name]), name)
