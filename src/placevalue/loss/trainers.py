"""The auxiliary loss inside the trainers people already use: what `compute_loss_func` alone does not reach."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import TrainerCallback, TrainerState

from placevalue.loss.aggregation_loss import AggregationLoss

if TYPE_CHECKING:
    from transformers import Trainer


class AggregationLossMixin:
    """Put before a Trainer class whose own `compute_loss` would get in the way, such as TRL's SFTTrainer.

    One forward pass, and gradients divided as Trainer divides them. An encoder-decoder model is fed its labels also
    where the collator does not prepare them.

    Example:
        >>> class NumberSFTTrainer(AggregationLossMixin, SFTTrainer): ...  # doctest: +SKIP
        >>> NumberSFTTrainer(model, args=..., aggregation_loss=AggregationLoss(model, tokenizer))  # doctest: +SKIP
    """

    def __init__(self, *args: Any, aggregation_loss: AggregationLoss, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.compute_loss_func = aggregation_loss
        log_parts(self, aggregation_loss)  # type: ignore[arg-type]

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """As `Trainer` computes it, past whatever the class behind does."""
        from transformers import Trainer

        base: Any = self.compute_loss_func.model
        if base.config.is_encoder_decoder and "labels" in inputs and "decoder_input_ids" not in inputs:
            made = base.prepare_decoder_input_ids_from_labels(labels=inputs["labels"])
            inputs = {**inputs, "decoder_input_ids": made}
        return Trainer.compute_loss(self, model, inputs, return_outputs, num_items_in_batch)  # type: ignore[arg-type]


def log_parts(trainer: "Trainer", loss: AggregationLoss) -> None:
    """Have a Trainer log the loss's named parts, `ce`, `aux` and `numbers`, wherever it logs the loss.

    Example:
        >>> log_parts(trainer, trainer.compute_loss_func)  # doctest: +SKIP
    """
    # Before the callbacks that report, which take the logs as they find them.
    trainer.callback_handler.callbacks.insert(0, _Parts(loss))


class _Parts(TrainerCallback):
    """Adds the means since the last log."""

    def __init__(self, loss: AggregationLoss) -> None:
        self.loss = loss

    def on_log(  # type: ignore[override]
        self, _args: Any, state: TrainerState, _control: Any, logs: dict[str, float] | None = None, **_: Any
    ) -> None:
        """Add them to the training logs, summed over all processes."""
        if logs is None or "loss" not in logs or not self.loss.totals:
            return
        parts = self.loss.take_means()
        logs.update(parts)
        state.log_history[-1].update(parts)
