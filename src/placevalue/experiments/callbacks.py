"""What happens beside the steps of a run: the time it has taken, how far it is, and logs for TensorBoard."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from placevalue.common.errors import DivergedError, TrainingError

Progress = Callable[[int, int], object]
"""Called with how many steps are done, and how many there are."""


class Clock(TrainerCallback):
    """Notes in each logged row how long the run has taken, before a resume too; ends a run whose loss is nan."""

    def __init__(self) -> None:
        self.before = 0.0
        self.began = time.monotonic()

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:  # type: ignore[override]
        """Take up where the last logged row of a resumed run stands."""
        self.before = max((row.get("seconds", 0.0) for row in state.log_history), default=0.0)
        self.began = time.monotonic()

    def on_log(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:  # type: ignore[override]
        """Note it, and end a run from which nothing can come."""
        row = state.log_history[-1]
        row["seconds"] = round(self.before + time.monotonic() - self.began, 3)
        if math.isnan(row.get("loss", row.get("train_loss", 0.0))):  # the last steps may come after the last row
            raise DivergedError(
                f"the loss is nan at step {state.global_step}: try a smaller training.learning_rate, more "
                "training.warmup_steps, or training.precision=float32"
            )


class Told(TrainerCallback):
    """Tells somebody how far the run is."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:  # type: ignore[override]
        """Tell it."""
        self.progress(state.global_step, state.max_steps)


def tensorboard(folder: Path) -> list[TrainerCallback]:
    """Logs for TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise TrainingError("training.tensorboard needs tensorboard: pip install tensorboard") from None
    from transformers.integrations import TensorBoardCallback

    return [TensorBoardCallback(SummaryWriter(str(folder / "tensorboard")))]
