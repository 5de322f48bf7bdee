"""training.engine: fast. The same training by Trainer, with steps that keep an accelerator busy.

Batches are made on the device, in few shapes. The model's layers are compiled, and its forward and backward pass are
each replayed as one CUDA graph. In bfloat16 the logits stay bfloat16, and cross-entropy reads them once. What is
missing is left out, with one line that says so: on a CPU, only the batches differ from the standard engine's.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from placevalue.common.errors import TrainingError, in_one_line
from placevalue.experiments.batches import DeviceExamples
from placevalue.loss.cross_entropy import TokenLoss
from placevalue.modeling.mount import CHECKED_BATCHES

logger = logging.getLogger(__name__)
_COMPILATIONS = 256  # of one layer: one for each shape of a batch and each kind of layer
Capture = Callable[[nn.Module, tuple[Tensor, ...]], Callable[..., Tensor]]


def speed_up(trainer: Any, bfloat16: bool) -> None:
    """Change a Trainer, in place, so that its training steps run as described above.

    Args:
        trainer: A Trainer. Its `train_dataset` is a list of examples, and it does not use bfloat16 itself.
        bfloat16: Compute in bfloat16, with float32 weights.
    """
    arguments, model, pad = trainer.args, trainer.model, trainer.data_collator
    device = arguments.device
    compiled, capture = device.type == "cuda", None
    if not compiled:
        logger.warning("training.engine=fast: steps are neither compiled nor captured on this device (%s)", device.type)
    elif arguments.world_size > 1:
        logger.warning("training.engine=fast: with several processes, steps are compiled but not captured")
    else:
        capture = _Capture()
    arguments.dataloader_pin_memory, arguments.dataloader_num_workers = False, 0
    trainer.train_dataset = DeviceExamples(
        trainer.train_dataset, trainer.processing_class, model, trainer._train_batch_size, device
    )
    trainer.data_collator = lambda batch: batch if isinstance(batch, Mapping) else pad(batch)
    trainer.compute_loss_func = trainer.compute_loss_func or TokenLoss(model)
    trainer.compute_loss_context_manager = lambda: torch.autocast(
        device.type, torch.bfloat16, enabled=bfloat16, cache_enabled=False
    )
    forward, step = FastForward(model, compiled, capture), trainer.training_step
    trainer.training_step = lambda wrapped, *rest, **named: step(forward.through(wrapped), *rest, **named)
    evaluate = trainer.evaluation_loop

    def evaluate_uncompiled(*given: Any, **named: Any) -> Any:
        with forward.uncompiled():
            return evaluate(*given, **named)

    trainer.evaluation_loop = evaluate_uncompiled
    count, counts = trainer.floating_point_ops, dict[Any, int]()

    def count_once(batch: dict[str, Any]) -> int:
        shape = batch["input_ids"].shape
        counts[shape] = counts[shape] if shape in counts else count(batch)  # which takes as long as a launch of a step
        return counts[shape]

    trainer.floating_point_ops = count_once


class FastForward:
    """Calls a model as Trainer's `training_step` does, in the fastest way that works.

    The first calls run as they are, since hooks look at the first batches, which waits for the device. After them, each
    new shape of a batch is compiled and captured.

    Args:
        model: The model to train.
        compiled: Whether to compile its layers.
        capture: What makes a module and example arguments a function that does the same in one go.
        checked: How many calls run as they are.
    """

    def __init__(self, model: Any, compiled: bool, capture: Capture | None, checked: int = CHECKED_BATCHES) -> None:
        self.model = self.wrapped = model
        self.compiled, self.capture, self.checked = compiled, capture, checked
        self.calls = 0
        self.ready: dict[Any, Callable[..., Tensor]] = {}

    def through(self, wrapped: Any) -> "FastForward":
        """Call the model through what wraps it: with several processes, that exchanges gradients."""
        self.wrapped = wrapped
        return self

    @contextmanager
    def uncompiled(self) -> Iterator[None]:
        """Let layers run as they are, as in evaluation: its batches have many shapes, and each would be compiled."""
        calls = {layer: layer._compiled_call_impl for layer in self.model.modules()}
        _forget_compiled(self.model)
        try:
            yield
        finally:
            for layer, call in calls.items():
                layer._compiled_call_impl = call

    def train(self) -> None:
        """Put the model into training mode."""
        self.wrapped.train()

    def __call__(self, **inputs: Any) -> Any:
        """The model's outputs, as a mapping with its logits."""
        inputs.pop("num_items_in_batch", None)  # for the model's own loss, which is not used
        inputs["use_cache"] = False
        self.calls += 1
        if self.calls <= self.checked or not (self.compiled or self.capture):
            return self.wrapped(**inputs)
        tensors = {name: each for name, each in inputs.items() if isinstance(each, Tensor)}
        fixed = {name: each for name, each in inputs.items() if name not in tensors}
        shape = (*((name, each.shape) for name, each in tensors.items()), *fixed.items())
        if shape not in self.ready:
            self.ready[shape] = self._prepare(_Pass(self.wrapped, tuple(tensors), fixed), tuple(tensors.values()))
        for weight in self.model.parameters():
            if weight.grad is not None:  # of an earlier batch of this step, in memory that a replay writes to
                weight.grad = weight.grad.clone()
        return {"logits": self.ready[shape](*tensors.values())}

    def _prepare(self, run: nn.Module, tensors: tuple[Tensor, ...]) -> Callable[..., Tensor]:
        """Compile and capture the pass of one shape; what fails is left out from then on."""
        devices = [tensors[0].device] if tensors[0].is_cuda else []
        # A run does not depend on how often something was tried.
        with torch.random.fork_rng(devices), torch._dynamo.config.patch(recompile_limit=_COMPILATIONS):
            try:
                if self.compiled:
                    _compile_layers(self.model)
                    _run_both_ways(run, tensors)
            except Exception as error:
                logger.warning("training.engine=fast: layers run uncompiled: %s", in_one_line(error))
                self.compiled = _forget_compiled(self.model)
            try:
                return run if self.capture is None else self.capture(run, tensors)
            except Exception as error:
                logger.warning("training.engine=fast: steps are not captured: %s", in_one_line(error))
                self.capture = None
                return run


class _Capture:
    """Makes CUDA graphs of a pass forward and backward; all share their memory, since one runs after the other."""

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: nn.Module, tensors: tuple[Tensor, ...]) -> Callable[..., Tensor]:
        captured: Any = torch.cuda.make_graphed_callables(run, tensors, allow_unused_input=True, pool=self.pool)
        return lambda *each: captured(*each)


class _Pass(nn.Module):
    """A model as a function of tensors to logits, which is what can be captured."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], fixed: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.names, self.fixed = model, names, fixed

    def forward(self, *tensors: Tensor) -> Tensor:
        """The logits of a batch."""
        logits: Tensor = self.model(**dict(zip(self.names, tensors, strict=True)), **self.fixed).logits
        return logits


def _compile_layers(model: nn.Module) -> None:
    """Compile what a model repeats, which takes a fraction of the time that the whole model would take."""
    layers = [layer for layer in model.modules() if isinstance(layer, GradientCheckpointingLayer)]
    if not layers:
        raise TrainingError(f"transformers does not say what {type(model).__name__} repeats")
    for layer in layers:
        if layer._compiled_call_impl is None:
            layer.compile(dynamic=False)


def _forget_compiled(model: nn.Module) -> bool:
    for layer in model.modules():
        layer._compiled_call_impl = None
    return False


def _run_both_ways(run: nn.Module, tensors: tuple[Tensor, ...]) -> None:
    """Run forward and backward, which compiles both, and leave no gradients."""
    weights = [weight for weight in run.parameters() if weight.requires_grad]
    torch.autograd.grad(run(*tensors).float().mean(), weights, allow_unused=True)
