"""Functions of many small steps as a few kernels, where an accelerator's compiler works; elsewhere as they are."""

import logging
from collections.abc import Callable
from typing import Any

import torch

logger = logging.getLogger(__name__)


class Compiled:
    """A function that is compiled the first time its first argument is on a CUDA device.

    On a fast device a small step costs more to launch than to compute. Whatever keeps the compiler from working, the
    function as it was written gives the same.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.plain = function
        self.compiled: Callable[..., Any] | None = None
        self.works = True

    def __call__(self, *arguments: Any) -> Any:
        """The function's result."""
        if not self.works or not arguments[0].is_cuda or torch.compiler.is_compiling():
            return self.plain(*arguments)
        if self.compiled is None:
            self.compiled = torch.compile(self.plain, dynamic=True)
        try:
            return self.compiled(*arguments)
        except Exception as error:
            self.works = False
            logger.info("%s runs uncompiled: %s", getattr(self.plain, "__name__", "a function"), error)
            return self.plain(*arguments)
