"""The auxiliary loss in trainers that `compute_loss_func` alone does not support, and in their logs."""

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers import TrainerCallback, TrainerState
from transformers.trainer_callback import ExportableState

from placevalue.loss.target_loss import TargetLoss

if TYPE_CHECKING:
    from transformers import Trainer


class AggregationLossMixin:
    """A mixin for Trainer classes that override `compute_loss`, such as TRL's SFTTrainer.

    It runs one forward pass and divides as Trainer does. For an encoder-decoder model it prepares `decoder_input_ids`
    if the collator did not.

    Example:
        >>> class NumberSFTTrainer(AggregationLossMixin, SFTTrainer): ...  # doctest: +SKIP
        >>> NumberSFTTrainer(model, args=..., aggregation_loss=AggregationLoss(model, tokenizer))  # doctest: +SKIP
    """

    def __init__(self, *args: Any, aggregation_loss: TargetLoss, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.compute_loss_func = aggregation_loss
        log_parts(self, aggregation_loss)  # type: ignore[arg-type]

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Compute the loss as `Trainer` does, ignoring overrides."""
        from transformers import Trainer

        base: Any = self.compute_loss_func.model
        if base.config.is_encoder_decoder and "labels" in inputs and "decoder_input_ids" not in inputs:
            made = base.prepare_decoder_input_ids_from_labels(labels=inputs["labels"])
            inputs = {**inputs, "decoder_input_ids": made}
        return Trainer.compute_loss(self, model, inputs, return_outputs, num_items_in_batch)  # type: ignore[arg-type]


def log_parts(trainer: "Trainer", loss: TargetLoss) -> None:
    """Let a Trainer log `ce`, `aux` and `numbers` along with the loss, and keep the loss's own weights in checkpoints.

    Example:
        >>> log_parts(trainer, trainer.compute_loss_func)  # doctest: +SKIP
    """
    # Before the callbacks that report, so that they see the parts.
    trainer.callback_handler.callbacks.insert(0, _Parts(loss))
    if loss.head is not None:
        trainer.add_callback(KeepHead(loss.head))


class _Parts(TrainerCallback):
    """Adds the means since the last log to the training logs."""

    def __init__(self, loss: TargetLoss) -> None:
        self.loss = loss

    def on_log(  # type: ignore[override]
        self, _args: Any, state: TrainerState, _control: Any, logs: dict[str, float] | None = None, **_: Any
    ) -> None:
        if logs is not None and "loss" in logs:
            parts = self.loss.take_means()
            logs.update(parts)
            state.log_history[-1].update(parts)


class KeepHead(TrainerCallback, ExportableState):
    """Writes weights that a model is saved without into the state of a checkpoint, and takes them from there."""

    def __init__(self, head: nn.Linear) -> None:
        self.head = head

    def state(self) -> dict[str, Any]:
        """The weights as numbers, which JSON keeps to the bit."""
        return {"args": {}, "attributes": {"weight": self.head.weight.tolist(), "bias": self.head.bias.tolist()}}

    def on_train_begin(self, _args: Any, state: TrainerState, _control: Any, **_: Any) -> None:  # type: ignore[override]
        """Take the weights of the checkpoint that training continues from."""
        states: Any = state.stateful_callbacks
        kept = states.get(type(self).__name__)
        if kept is None or not state.global_step:
            return
        with torch.no_grad():
            for name, values in kept["attributes"].items():
                weight = getattr(self.head, name)
                weight.copy_(torch.tensor(values, dtype=weight.dtype))
