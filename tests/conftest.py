"""Settings and fixtures of all tests: no hub, no threads to fight over, the same random examples every time."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["RUST_BACKTRACE"] = "0"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
import transformers
from hypothesis import HealthCheck, settings
from transformers import PreTrainedTokenizerFast

from families import FAMILIES, base_tokenizer

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
settings.register_profile("placevalue", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("placevalue")


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def base(family: str) -> PreTrainedTokenizerFast:
    return base_tokenizer(family)
