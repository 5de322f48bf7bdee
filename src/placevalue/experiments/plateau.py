"""Train until dev stops rising: the rate stays constant until then, and falls to 0 over a fixed number of steps.

It is a callback of Trainer. What it decides follows from the logged rows alone, so a resumed run decides the same.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from transformers import TrainerCallback

from placevalue.experiments.settings import TrainingConfig

CONSTANT = "constant_with_warmup"
"""Trainer's schedule, whose factors are replaced by those of `Plateau`."""


def plateau_step(rows: Iterable[Mapping[str, Any]], patience: int) -> int | None:
    """The step of the evaluation on dev that ends the constant rate; None if dev still rises.

    It is the last of `patience` evaluations in a row that do not beat the best accuracy before. While no answer is
    right yet, a lower loss counts as a rise, so that a slow start ends nothing.
    """
    best, lowest, without = 0.0, float("inf"), 0
    for row in rows:
        if "eval_accuracy" not in row:
            continue
        accuracy, loss = row["eval_accuracy"], row["eval_loss"]
        rises = accuracy > best or (best == 0 and loss < lowest)
        best, lowest = max(best, accuracy), min(lowest, loss)
        without = 0 if rises else without + 1
        if without == patience:
            return int(row["step"])
    return None


class Plateau(TrainerCallback):
    """Ends a run `decay_steps` after dev has stopped rising, and in any case at the ceiling, with a rate of 0."""

    def __init__(self, settings: TrainingConfig) -> None:
        self.settings = settings
        self.end = 0

    def factor(self, step: int) -> float:
        """The share of the learning rate at a step, counted from 0."""
        rising = min(1.0, step / self.settings.warmup_steps) if self.settings.warmup_steps else 1.0
        return rising * max(0.0, min(1.0, (self.end - step) / self.settings.decay_steps))

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **given: Any) -> None:  # type: ignore[override]
        """Take the place of the schedule's factors; a resumed run may have decided already."""
        schedule = given["lr_scheduler"]
        schedule = getattr(schedule, "scheduler", schedule)  # accelerate may have wrapped it
        schedule.lr_lambdas = [self.factor] * len(schedule.lr_lambdas)
        self._decide(state)

    def on_evaluate(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:  # type: ignore[override]
        """Look whether dev still rises."""
        self._decide(state)

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:  # type: ignore[override]
        """Evaluate the last step."""
        if state.global_step >= state.max_steps:
            control.should_evaluate = True

    def _decide(self, state: Any) -> None:
        """Set the last step: Trainer stops, saves and counts as done what has reached `max_steps`."""
        found = plateau_step(state.log_history, self.settings.patience)
        if found is not None:
            state.max_steps = min(state.max_steps, found + self.settings.decay_steps)
        self.end = state.max_steps
