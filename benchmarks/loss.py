"""What losses on numbers cost: a training step with each against the model's own cross-entropy, and the losses alone.

On a CPU, the model is a T5 of ten million parameters with a vocabulary of 32,128; on a GPU, a BART-base with random
weights, with batches of 1,024 in bfloat16. Two copies of the model take runs of steps in turn. Alone, forward and
backward, the losses of `NUMBER_LOSSES` must cost little more than the one-pass cross-entropy that they share. If ntloss
is installed, its `NTLoss` with cross-entropy, weighted as its authors recommend, is measured too.

Run: `python -m benchmarks loss`, or `python -m benchmarks.loss --device cuda --out FILE`
"""

import argparse
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import BartConfig, BartForConditionalGeneration

from benchmarks.addition.sums import build_tokenizer
from benchmarks.results import Check, Outcome, measure
from benchmarks.twins import small_t5, take_turns
from placevalue import NUMBER_LOSSES, AggregationLoss, NumberLoss, attach, encode_pairs
from placevalue.loss.cross_entropy import TokenLoss
from placevalue.modeling.hooks import CHECKED_BATCHES

SEED, THREADS, WARMUP = 0, 2, 3
# A training loop prepares the next step while the GPU works on this one. So a run on a GPU has several steps, and the
# clock waits for the GPU only before the first and after the last.
SETTINGS = {
    "cpu": dict(model="t5", vocabulary=32_128, dtype="float32", batch=16, source=64, target=12)
    | dict(pairs=40, run=1, target_ratio=1.05, alone_ratio=1.1),
    "cuda": dict(model="bart-base", vocabulary=50_265, dtype="bfloat16", batch=1024, source=80, target=14)
    | dict(pairs=10, run=5, target_ratio=1.03),
}
ARMS: dict[str, dict[str, Any] | None] = {
    "cross-entropy": None,
    "soft": dict(mode="soft"),
    "soft interpolated": dict(mode="soft", aggregation="interpolated"),
    "hard": dict(mode="hard"),
    **{name: dict(loss=name) for name in NUMBER_LOSSES},
}
ONE_PASS = "one-pass cross-entropy"
READING = {name for name, each in NUMBER_LOSSES.items() if each.watches}
"""Losses on what a model reads, which cannot be measured without it."""


def _model(kind: str, vocabulary: int) -> Any:
    torch.manual_seed(SEED)
    if kind == "t5":
        return small_t5(vocabulary)
    config = BartConfig(vocab_size=vocabulary, d_model=768, encoder_layers=6, decoder_layers=6, dropout=0.0)
    config.encoder_attention_heads = config.decoder_attention_heads = 12
    config.encoder_ffn_dim = config.decoder_ffn_dim = 3072
    config.pad_token_id, config.decoder_start_token_id, config.eos_token_id = 0, 1, 1
    return BartForConditionalGeneration(config)


def _loss(model: Any, tokenizer: Any, options: dict[str, Any]) -> Any:
    return (NumberLoss if "loss" in options else AggregationLoss)(model, tokenizer, **options)


class Trained:
    """A model, its loss, its optimizer and one batch."""

    def __init__(self, device: str, arm: str) -> None:
        settings: Any = SETTINGS[device]
        tokenizer = build_tokenizer()
        self.device, self.steps = device, settings["run"]
        self.model = _model(settings["model"], settings["vocabulary"])
        attach(self.model, tokenizer)
        self.model.to(device, getattr(torch, settings["dtype"])).train()
        options = ARMS[arm]
        self.loss = None if options is None else _loss(self.model, tokenizer, options)
        generator = torch.Generator().manual_seed(SEED)
        shape = (settings["batch"], settings["source"])
        self.inputs = torch.randint(5, settings["vocabulary"], shape, generator=generator).to(device)
        self.labels = _labels(tokenizer, settings["batch"], settings["target"], generator).to(device)
        self.fed = self.model.prepare_decoder_input_ids_from_labels(labels=self.labels)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)

    def run(self) -> float:
        """Take a run of training steps and return the seconds per step."""
        begin = _now(self.device)
        for _ in range(self.steps):
            self.step()
        return (_now(self.device) - begin) / self.steps

    def step(self) -> None:
        """Take one training step."""
        # Without labels, a model would cache keys and values as in generation; Trainer turns this off too.
        given = {"input_ids": self.inputs, "decoder_input_ids": self.fed, "use_cache": False}
        if self.loss is None:
            value = self.model(**given, labels=self.labels).loss
        else:
            value = self.loss(self.model(**given), self.labels)
        value.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def _labels(tokenizer: Any, count: int, width: int, generator: torch.Generator) -> Tensor:
    """Numbers of 1 to 9 digits, as labels padded to `width` tokens."""
    sizes = torch.randint(1, 10, (count,), generator=generator).tolist()
    answers = [str(10 ** (size - 1) + index) for index, size in enumerate(sizes)]
    answers = [answer[:9] for answer in answers]
    rows = [row["labels"] for row in encode_pairs(tokenizer, answers, answers, encoder_decoder=True)]
    return torch.tensor([row + [-100] * (width - len(row)) for row in rows])


def _now(device: str) -> float:
    if device != "cpu":
        torch.cuda.synchronize()
    return perf_counter()


def _ratio(first: list[float], second: list[float]) -> float:
    """The median ratio of neighbouring runs, both of which a slow spell of the machine affects."""
    return math.exp(statistics.median(math.log(b / a) for a, b in zip(first, second, strict=True)))


def _steps(device: str, arm: str) -> tuple[list[float], list[float]]:
    """Seconds per step of each run without and with a loss."""
    settings: Any = SETTINGS[device]
    without, with_ = Trained(device, "cross-entropy"), Trained(device, arm)
    for twin in (without, with_) * WARMUP:
        twin.step()
    return take_turns(without.run, with_.run, settings["pairs"])


def _alone(device: str) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """The losses as functions of logits and labels."""
    settings: Any = SETTINGS[device]
    tokenizer = build_tokenizer()
    model = _model("t5", settings["vocabulary"])
    attach(model, tokenizer)
    model.to(device)
    losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "F.cross_entropy": lambda logits, labels: F.cross_entropy(logits.flatten(0, 1), labels.flatten()),
        ONE_PASS: _with_outputs(TokenLoss(model)),
    }
    for arm, options in ARMS.items():
        if options is not None and arm not in READING:
            losses[arm] = _with_outputs(_loss(model, tokenizer, options))
    try:
        from ntloss import NTLoss
    except ImportError:
        return losses
    rival = NTLoss(tokenizer, vocab_size=settings["vocabulary"])
    losses["ntloss with cross-entropy"] = lambda logits, labels: (
        F.cross_entropy(logits.flatten(0, 1), labels.flatten()) + 0.3 * rival(logits, labels)
    )
    return losses


def _with_outputs(loss: Any) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda logits, labels: loss({"logits": logits}, labels)


def _losses(device: str) -> dict[str, list[float]]:
    """Seconds of forward and backward of each loss, measured in turn."""
    settings: Any = SETTINGS[device]
    generator = torch.Generator().manual_seed(SEED)
    labels = _labels(build_tokenizer(), settings["batch"], settings["target"], generator).to(device)
    logits = torch.randn(*labels.shape, settings["vocabulary"], generator=generator).to(device)
    seconds: dict[str, list[float]] = {}
    losses = _alone(device)
    warmup = WARMUP + CHECKED_BATCHES  # in which targets are checked as well
    for turn in range(warmup + settings["pairs"]):
        for name, loss in losses.items():
            given = logits.clone().requires_grad_()
            begin = _now(device)
            loss(given, labels).backward()
            if turn >= warmup:
                seconds.setdefault(name, []).append(_now(device) - begin)
    return seconds


def run(device: str = "cpu") -> Outcome:
    """Measure training steps with each loss, then the losses alone."""
    if device == "cpu":
        torch.set_num_threads(THREADS)
    settings: Any = SETTINGS[device]
    checks, raw = [], {}
    for arm in list(ARMS)[1:]:
        without, with_ = _steps(device, arm)
        raw[f"step, {arm}"] = {"without": without, "with": with_}
        checks.append(Check(f"step with {arm} / without", _ratio(without, with_), at_most=settings["target_ratio"]))
    alone = _losses(device)
    raw["alone"] = alone
    for name, seconds in alone.items():
        if name != "F.cross_entropy":
            checks.append(Check(f"{name} / F.cross_entropy, alone", _ratio(alone["F.cross_entropy"], seconds)))
        if name in NUMBER_LOSSES:
            ratio, most = _ratio(alone[ONE_PASS], seconds), settings.get("alone_ratio")
            checks.append(Check(f"{name} / {ONE_PASS}, alone", ratio, at_most=most))
    name = torch.cuda.get_device_name() if device == "cuda" else device
    config = {"device": name, "seed": SEED, "threads": THREADS, "warmup": WARMUP, **settings}
    return Outcome(config, checks, raw)


def main() -> int:
    """Measure on the device that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loss", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=list(SETTINGS), default="cuda", help="default: %(default)s")
    parser.add_argument("--out", type=Path, required=True, help="file for the record")
    options = parser.parse_args()
    return 1 if measure("loss", lambda: run(options.device), options.out) else 0


if __name__ == "__main__":
    raise SystemExit(main())
