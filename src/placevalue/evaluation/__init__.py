"""Score answers, with confidence intervals and tests."""

from typing import Any

from placevalue.common.moved import moved_name

_MOVED = dict.fromkeys(("evaluate", "compare", "load_predictions"), "placevalue.evaluation.scoring")
_MOVED["check_leakage"] = "placevalue.data.leakage"


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, _MOVED)
