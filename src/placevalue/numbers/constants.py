"""Small tensors that are made once for each device, and what exports need in place of faster operations."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_made: dict[tuple[Any, ...], Tensor] = {}


def constant(make: Callable[..., Tensor], what: Any, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """`make(what)` on a device, cached; do not change it in place.

    Copying it to an accelerator in every step would stall, and even a range is one more kernel to launch.
    """
    if torch.compiler.is_compiling() or exporting():
        return make(what, device=device, dtype=dtype)
    key = make, what, device, dtype
    kept = _made.get(key)
    if kept is None:
        # The cached tensor must also work in training, and a tracer's placeholder must not be cached.
        with torch.inference_mode(False):
            kept = make(what, device=device, dtype=dtype)
        if type(kept) is Tensor:
            _made[key] = kept
    return kept


def exporting() -> bool:
    """Whether this call is recorded, to run again with other ids and lengths: nothing may depend on those of now."""
    return torch.compiler.is_exporting() or torch.jit.is_tracing()


def running_max(values: Tensor) -> Tensor:
    """The largest value up to each position: `(rows, length)`."""
    if not exporting():
        return values.cummax(1).values
    at = torch.arange(values.shape[1], device=values.device)  # ONNX has no cummax
    return ((at <= at.unsqueeze(1)) * values.unsqueeze(1)).amax(-1)
