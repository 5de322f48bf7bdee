"""How torch computes while a run trains: the same from run to run, and rounded as the recipe says."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def repeatable(wanted: bool) -> Iterator[None]:
    """A context in which torch refuses what gives other results from run to run."""
    before, warned = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    guard: Any = torch.utils.deterministic
    filled = guard.fill_uninitialized_memory
    if wanted:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        guard.fill_uninitialized_memory = False  # against reading what nobody wrote; costly
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)
        guard.fill_uninitialized_memory = filled


@contextmanager
def rounding(precision: str) -> Iterator[None]:
    """A context in which CUDA devices round what they multiply where that is wanted, and only there."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # set by torch's newer switches, as Trainer does where it compiles; these have no such word
        before = "highest"
    torch.set_float32_matmul_precision("high" if precision == "tf32" and torch.cuda.is_available() else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
