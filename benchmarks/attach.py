"""What [AGG] costs in training: the same step with [AGG] folded and with [PAUSE], an ordinary token, in its place.

Forward, backward and AdamW of a T5 and a Llama of about ten million parameters on one batch. Two twins of each model
take steps in turn, each pair in the other order than the one before, so that whatever else the machine does hits both.

Run: `python -m benchmarks attach`
"""

import math
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from transformers import (
    DataCollatorForSeq2Seq,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from benchmarks.problems import word_problems
from benchmarks.results import Check, Outcome
from placevalue import attach, encode_pairs, marker_ids, number_tokenizer
from placevalue.numbers.config import Token

TARGET = 1.03
THREADS, SEED, WARMUP, PAIRS = 2, 0, 3, 100
BATCH, LENGTH = 16, 64


def _t5(vocabulary: int) -> PreTrainedModel:
    config = T5Config(vocab_size=vocabulary, d_model=192, d_kv=32, num_heads=6, d_ff=768, num_layers=4)
    config.dropout_rate, config.decoder_start_token_id = 0.0, 0
    return T5ForConditionalGeneration(config)


def _llama(vocabulary: int) -> PreTrainedModel:
    config = LlamaConfig(vocab_size=vocabulary, hidden_size=192, intermediate_size=512, tie_word_embeddings=True)
    config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads = 8, 6, 6
    config.head_dim = 32
    return LlamaForCausalLM(config)


MODELS: dict[str, Callable[[int], PreTrainedModel]] = {"t5": _t5, "llama": _llama}
TOKENIZER = "flan-t5-small-title"  # for both: of the real ones, it leaves most of ten million parameters to the layers


class Trained:
    """A model that takes training steps on one batch, with one extra token in every number."""

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
        """One training step, in seconds."""
        begin = perf_counter()
        self.model(**self.batch).loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return perf_counter() - begin


def _batch(tokenizer: Any, encoder_decoder: bool) -> dict[str, torch.Tensor]:
    """The first `BATCH` problems of at most `LENGTH` tokens and not much less."""
    texts = word_problems(400, SEED)
    answers = [str(1000 + index) for index in range(len(texts))]
    data = encode_pairs(tokenizer, texts, answers, encoder_decoder=encoder_decoder)
    fitting = [row for row in data if LENGTH - 8 <= len(row["input_ids"]) <= LENGTH][:BATCH]
    assert len(fitting) == BATCH
    return dict(DataCollatorForSeq2Seq(tokenizer)(fitting))


def run() -> Outcome:
    """Measure both kinds of model on `THREADS` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        found = [_measure(kind) for kind in MODELS]
    finally:
        torch.set_num_threads(before)
    config = {
        "tokenizer": TOKENIZER,
        "threads": THREADS,
        "seed": SEED,
        "warmup": WARMUP,
        "pairs": PAIRS,
        "batch": BATCH,
        "length": LENGTH,
    }
    raw = {kind: details for kind, (_, details) in zip(MODELS, found, strict=True)}
    return Outcome(config, [check for check, _ in found], raw)


def _measure(kind: str) -> tuple[Check, dict[str, Any]]:
    agg, pause = Trained(kind, "agg"), Trained(kind, "pause")
    assert agg.parameters == pause.parameters and agg.numbers == pause.numbers
    for twin in (agg, pause) * WARMUP:
        twin.step()
    seconds: dict[str, list[float]] = {"agg": [], "pause": []}
    for pair in range(PAIRS):
        turns = [("agg", agg), ("pause", pause)]
        for name, twin in turns if pair % 2 else reversed(turns):
            seconds[name].append(twin.step())
    ratios = [ours / other for ours, other in zip(seconds["agg"], seconds["pause"], strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4)
    reach = round(1.96 * math.sqrt(PAIRS) / 2)  # in ranks, by the sign test: no assumption on how times are distributed
    sure = sorted(ratios)[PAIRS // 2 - reach], sorted(ratios)[PAIRS // 2 + reach - 1]
    details = {
        "parameters": agg.parameters,
        "source": tuple(agg.batch["input_ids"].shape),
        "numbers": agg.numbers,
        "ratio_quartiles": [low, median, high],
        "median_interval_95": sure,
        "ratio_of_minima": min(seconds["agg"]) / min(seconds["pause"]),
        "seconds": seconds,
    }
    note = (
        f"95% interval {sure[0]:.3f} to {sure[1]:.3f}, quartiles {low:.3f} to {high:.3f}; "
        f"{agg.parameters:,} parameters, {1000 * min(seconds['pause']):.0f} ms a step"
    )
    return Check(f"{kind}: a step with [AGG] / with [PAUSE]", median, at_most=TARGET, note=note), details
