"""Determinism and rounding of torch during training."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def repeatable(wanted: bool) -> Iterator[None]:
    """A context in which torch refuses operations whose results vary from run to run."""
    before, warned = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    guard: Any = torch.utils.deterministic
    filled = guard.fill_uninitialized_memory
    if wanted:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        guard.fill_uninitialized_memory = False  # it guards against reading uninitialised memory, and is slow
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)
        guard.fill_uninitialized_memory = filled


@contextmanager
def rounding(precision: str) -> Iterator[None]:
    """A context in which CUDA devices multiply in TF32 if `precision` is tf32, and in float32 otherwise."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # set through torch's newer switches, which this function cannot read
        before = "highest"
    torch.set_float32_matmul_precision("high" if precision == "tf32" and torch.cuda.is_available() else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
