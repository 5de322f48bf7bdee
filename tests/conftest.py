"""Settings and fixtures of all tests: no hub, no threads to fight over, the same random examples every time."""

import logging
import os
import signal
import traceback
from collections.abc import Iterator
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["RUST_BACKTRACE"] = "0"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# What rich and Python ask the environment, so that tables and encodings are the same in every terminal and CI.
os.environ["COLUMNS"] = "80"
# An empty one counts with rich 13.0.
os.environ.pop("FORCE_COLOR", None)
os.environ.pop("NO_COLOR", None)
os.environ.pop("TTY_COMPATIBLE", None)
os.environ.pop("TTY_INTERACTIVE", None)
os.environ.pop("PYTHONIOENCODING", None)

import pytest
import torch
import transformers
from hypothesis import HealthCheck, settings
from transformers import PreTrainedTokenizerFast

from families import FAMILIES, base_tokenizer


class Deprecations(logging.Handler):
    """Prints nothing, and keeps what transformers logs of its own deprecations."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        callers = [Path(frame.filename).parent.name for frame in traceback.extract_stack()]
        if "deprecat" in text.lower() and "pipelines" not in callers:  # what 5.17's pipelines pass is not ours to mend
            self.texts.append(text)


deprecations = Deprecations()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts tests in the background ignores it
transformers.logging.disable_default_handler()
transformers.logging.add_handler(deprecations)
torch.set_num_threads(1)
settings.register_profile("placevalue", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("placevalue")


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def base(family: str) -> PreTrainedTokenizerFast:
    return base_tokenizer(family)


@pytest.fixture(autouse=True)
def _gradients() -> Iterator[None]:
    """Fail where gradients are left off, instead of in the tests that follow."""
    assert torch.is_grad_enabled()
    yield
    left_off = not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    assert not left_off


@pytest.fixture(autouse=True)
def _no_deprecations() -> Iterator[None]:
    """Fail where transformers says that something will go, before it breaks users."""
    transformers.logging.set_verbosity_warning()  # a verb may have silenced it
    deprecations.texts.clear()
    yield
    assert not deprecations.texts
