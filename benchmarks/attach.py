"""What [AGG] costs in training: a step with [AGG] against the same step with [PAUSE], an ordinary token.

A step is forward, backward and AdamW on one batch, for a T5 and a Llama of about ten million parameters. The two copies
of a model take steps in turn.

Run: `python -m benchmarks attach`
"""

import math
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from transformers import DataCollatorForSeq2Seq, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from benchmarks.problems import word_problems
from benchmarks.results import Check, Outcome
from benchmarks.twins import small_t5, take_turns
from placevalue import attach, encode_pairs, marker_ids, number_tokenizer
from placevalue.numbers.config import Token

TARGET = 1.03
THREADS, SEED, WARMUP, PAIRS = 2, 0, 3, 100
BATCH, LENGTH = 16, 64


def _llama(vocabulary: int) -> PreTrainedModel:
    config = LlamaConfig(vocab_size=vocabulary, hidden_size=192, intermediate_size=512, tie_word_embeddings=True)
    config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads = 8, 6, 6
    config.head_dim = 32
    return LlamaForCausalLM(config)


MODELS: dict[str, Callable[[int], PreTrainedModel]] = {"t5": small_t5, "llama": _llama}
TOKENIZER = (
    "flan-t5-small-title"  # for both: of the real tokenizers, its vocabulary leaves the most parameters to the layers
)


class Trained:
    """A model, its optimizer and one batch with one extra token in every number."""

    def __init__(self, kind: str, token: Token) -> None:
        tokenizer = number_tokenizer(TOKENIZER, token=token)
        torch.manual_seed(SEED)
        self.model = MODELS[kind](len(tokenizer)).train()
        attach(self.model, tokenizer)
        self.batch = _batch(tokenizer, bool(self.model.config.is_encoder_decoder))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.parameters = sum(weight.numel() for weight in self.model.parameters())
        self.numbers = int((self.batch["input_ids"] == marker_ids(tokenizer)[token]).sum())

    def step(self) -> float:
        """Take one training step and return its seconds."""
        begin = perf_counter()
        self.model(**self.batch).loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return perf_counter() - begin


def _batch(tokenizer: Any, encoder_decoder: bool) -> dict[str, torch.Tensor]:
    """The first `BATCH` problems of `LENGTH` tokens or up to 8 fewer."""
    texts = word_problems(400, SEED)
    answers = [str(1000 + index) for index in range(len(texts))]
    data = encode_pairs(tokenizer, texts, answers, encoder_decoder=encoder_decoder)
    fitting = [row for row in data if LENGTH - 8 <= len(row["input_ids"]) <= LENGTH][:BATCH]
    assert len(fitting) == BATCH
    return dict(DataCollatorForSeq2Seq(tokenizer)(fitting))


def run() -> Outcome:
    """Measure both models on `THREADS` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        found = [_measure(kind) for kind in MODELS]
    finally:
        torch.set_num_threads(before)
    config = {"tokenizer": TOKENIZER, "threads": THREADS, "seed": SEED, "warmup": WARMUP}
    config |= {"pairs": PAIRS, "batch": BATCH, "length": LENGTH}
    raw = {kind: details for kind, (_, details) in zip(MODELS, found, strict=True)}
    return Outcome(config, [check for check, _ in found], raw)


def _measure(kind: str) -> tuple[Check, dict[str, Any]]:
    agg, pause = Trained(kind, "agg"), Trained(kind, "pause")
    assert agg.parameters == pause.parameters and agg.numbers == pause.numbers
    for twin in (agg, pause) * WARMUP:
        twin.step()
    seconds = dict(zip(("agg", "pause"), take_turns(agg.step, pause.step, PAIRS), strict=True))
    ratios = [ours / other for ours, other in zip(seconds["agg"], seconds["pause"], strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4)
    reach = round(1.96 * math.sqrt(PAIRS) / 2)  # in ranks, by the sign test, which assumes no distribution of the times
    interval = sorted(ratios)[PAIRS // 2 - reach], sorted(ratios)[PAIRS // 2 + reach - 1]
    details = {
        "parameters": agg.parameters,
        "source": tuple(agg.batch["input_ids"].shape),
        "numbers": agg.numbers,
        "ratio_quartiles": [low, median, high],
        "median_interval_95": interval,
        "ratio_of_minima": min(seconds["agg"]) / min(seconds["pause"]),
        "seconds": seconds,
    }
    note = (
        f"95% interval {interval[0]:.3f} to {interval[1]:.3f}, quartiles {low:.3f} to {high:.3f}; "
        f"{agg.parameters:,} parameters, {1000 * min(seconds['pause']):.0f} ms a step"
    )
    return Check(f"{kind}: a step with [AGG] / with [PAUSE]", median, at_most=TARGET, note=note), details
