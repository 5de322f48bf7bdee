import pytest
from real import MODELS, TOKENIZERS


@pytest.fixture(params=TOKENIZERS, scope="module")
def tokenizer_name(request):
    return request.param


@pytest.fixture(params=MODELS, scope="module")
def name(request):
    return request.param
