"""From a recipe to trained models and their predictions, one run or many."""

from typing import Any

from placevalue.common.moved import moved_name

_MOVED = dict.fromkeys(("reproduce", "plan_experiment", "finish_run"), "placevalue.experiments.runner")


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, _MOVED)
