"""placevalue teaches any Hugging Face language model what a number is worth."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from placevalue.common.moved import find_moved_modules

if TYPE_CHECKING:
    from placevalue import data
    from placevalue.common.errors import PlacevalueError
    from placevalue.common.hub import resolve_model
    from placevalue.evaluation.metrics import METRICS
    from placevalue.evaluation.scoring import evaluate
    from placevalue.experiments.methods import METHODS, Method
    from placevalue.experiments.predict import generate, predict
    from placevalue.experiments.recipe import read_recipe
    from placevalue.experiments.runner import reproduce
    from placevalue.experiments.sweep import sweep
    from placevalue.experiments.train import train
    from placevalue.loss.aggregation_loss import AggregationLoss
    from placevalue.loss.number_losses import NUMBER_LOSSES, NumberLoss
    from placevalue.loss.trainers import AggregationLossMixin, log_parts
    from placevalue.modeling.attach import RequireAttached, attach, check_attached, detach, is_attached
    from placevalue.modeling.checkpoints import from_pretrained, load_number_tokenizer, save_pretrained
    from placevalue.modeling.mount import trainable_modules
    from placevalue.modeling.peft_support import trainable_tokens
    from placevalue.numbers.aggregation import AGGREGATIONS, per_number, place_weights
    from placevalue.numbers.config import NumberConfig
    from placevalue.numbers.ignore import IGNORE_PRESETS
    from placevalue.numbers.neighbours import neighbourhood_f1
    from placevalue.numbers.numerals import PATTERNS, Numeral, find_numerals
    from placevalue.numbers.rewrites import REWRITES, Rewrite
    from placevalue.numbers.vectors import VECTORS, Vector
    from placevalue.reports.page import report
    from placevalue.tokenizer.collate import NumberCollator, clean_targets
    from placevalue.tokenizer.encoding import encode_pairs, encode_questions, encode_texts
    from placevalue.tokenizer.inspection import inspect
    from placevalue.tokenizer.prompt import Prompt
    from placevalue.tokenizer.rewriting import decode
    from placevalue.tokenizer.tokenizer import marker_ids, number_tokenizer

__version__ = "0.2.0"

_MODULES = {
    "common.errors": ("PlacevalueError",),
    "common.hub": ("resolve_model",),
    "numbers.config": ("NumberConfig",),
    "numbers.ignore": ("IGNORE_PRESETS",),
    "numbers.numerals": ("PATTERNS", "Numeral", "find_numerals"),
    "numbers.rewrites": ("REWRITES", "Rewrite"),
    "numbers.aggregation": ("AGGREGATIONS", "per_number", "place_weights"),
    "numbers.vectors": ("VECTORS", "Vector"),
    "numbers.neighbours": ("neighbourhood_f1",),
    "tokenizer.tokenizer": ("marker_ids", "number_tokenizer"),
    "tokenizer.rewriting": ("decode",),
    "tokenizer.encoding": ("encode_pairs", "encode_questions", "encode_texts"),
    "tokenizer.inspection": ("inspect",),
    "tokenizer.prompt": ("Prompt",),
    "tokenizer.collate": ("NumberCollator", "clean_targets"),
    "modeling.peft_support": ("trainable_tokens",),
    "modeling.mount": ("trainable_modules",),
    "modeling.attach": ("RequireAttached", "attach", "check_attached", "detach", "is_attached"),
    "modeling.checkpoints": ("from_pretrained", "load_number_tokenizer", "save_pretrained"),
    "loss.aggregation_loss": ("AggregationLoss",),
    "loss.number_losses": ("NUMBER_LOSSES", "NumberLoss"),
    "loss.trainers": ("AggregationLossMixin", "log_parts"),
    "evaluation.metrics": ("METRICS",),
    "evaluation.scoring": ("evaluate",),
    "experiments.methods": ("METHODS", "Method"),
    "experiments.recipe": ("read_recipe",),
    "experiments.train": ("train",),
    "experiments.predict": ("generate", "predict"),
    "experiments.runner": ("reproduce",),
    "experiments.sweep": ("sweep",),
    "reports.page": ("report",),
}
"""Where each public name is defined; its module is imported when the name is first used."""
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(["__version__", "data", *_HOMES])

find_moved_modules()


def __getattr__(name: str) -> Any:
    if name == "data":
        return import_module("placevalue.data")
    if name not in _HOMES:
        raise AttributeError(f"module 'placevalue' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"placevalue.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__
