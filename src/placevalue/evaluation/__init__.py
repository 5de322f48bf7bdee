"""How good answers are, and how sure that is."""

from typing import Any

from placevalue.common.moved import moved_name

_MOVED = {
    "evaluate": "placevalue.evaluation.scoring",
    "compare": "placevalue.evaluation.scoring",
    "load_predictions": "placevalue.evaluation.scoring",
    "check_leakage": "placevalue.data.leakage",
}


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, _MOVED)
