"""Callbacks of training: time and NaN checks, progress, TensorBoard."""

import math
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from placevalue.common.errors import DivergedError, TrainingError
from placevalue.experiments.settings import TrainingConfig

Progress = Callable[[int, int], object]
"""Called with the number of steps or problems done, and of all."""


class Clock(TrainerCallback):
    """Adds the run's seconds, time before a resume included, to logged rows; reports steps; stops at a NaN loss."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress
        self.before = 0.0
        self.began = time.monotonic()

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:  # type: ignore[override]
        """Start from the last logged row of a resumed run."""
        self.before = max((row.get("seconds", 0.0) for row in state.log_history), default=0.0)
        self.began = time.monotonic()

    def on_log(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:  # type: ignore[override]
        """Add the seconds and check the loss."""
        row = state.log_history[-1]
        row["seconds"] = round(self.before + time.monotonic() - self.began, 3)
        if math.isnan(row.get("loss", row.get("train_loss", 0.0))):  # the last steps may come after the last row
            raise DivergedError(
                f"the loss is nan at step {state.global_step}: try a smaller training.learning_rate, more "
                "training.warmup_steps, or training.precision=float32"
            )

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:  # type: ignore[override]
        """Report the step, and have the loss of the last one logged, so that it is checked before it is saved."""
        if state.global_step >= state.max_steps:
            control.should_log = True
        if self.progress is not None:
            self.progress(state.global_step, state.max_steps)


def missing_trackers(training: TrainingConfig) -> list[str]:
    """What must be installed for `training.report_to`."""
    lacking = [name for name in training.report_to if name != "tensorboard" and find_spec(name) is None]
    return [f"training.report_to={name} needs {name}: pip install {name}" for name in lacking]


def tensorboard(folder: Path) -> list[TrainerCallback]:
    """The callback that writes logs for TensorBoard to a folder."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise TrainingError("training.tensorboard needs tensorboard: pip install tensorboard") from None
    from transformers.integrations import TensorBoardCallback

    return [TensorBoardCallback(SummaryWriter(str(folder)))]
