"""The real pretrained models, as `make test-pretrained` fetches them: five tokenizer families, four models."""

import copy

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from placevalue.common.hub import load_model, resolve_model

torch.set_num_threads(2)
MODELS = ["flan-t5-small-title", "smollm2-135m", "gemma3-270m", "minilm-l6"]
TOKENIZERS = [*MODELS, "gpt2-tokenizer"]
_kept = {}


def load(name):
    """A fresh copy of a model, and its base tokenizer; one model is kept in memory at a time."""
    if name not in _kept:
        _kept.clear()
        # MiniLM has no head of its own to train: it gets one for a regression.
        head = {"auto_class": AutoModelForSequenceClassification, "num_labels": 1} if name == "minilm-l6" else {}
        _kept[name] = load_model(name, **head).eval()
    return copy.deepcopy(_kept[name]), load_base(name)


def load_base(name):
    tokenizer = AutoTokenizer.from_pretrained(resolve_model(name))
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer
