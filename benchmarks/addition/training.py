"""One run: train a tiny T5 in a plain loop and test it at intervals.

All randomness comes from the seed of the run, so the arms of one seed start with the same weights and see the same
batches in the same order.
"""

from collections.abc import Iterator
from time import perf_counter, process_time
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase, T5Config, T5ForConditionalGeneration

import placevalue as pv
from benchmarks.addition.grid import Cell, Run, Settings
from benchmarks.addition.sums import Sums, build_tokenizer, draw_pairs, encode_sums, score_answers
from placevalue.common import records

SCHEMA = 1


def train_run(run: Run) -> dict[str, Any]:
    """Train one model and return its scores during training."""
    began, cpu = perf_counter(), process_time()
    cell, arm, settings = run.cell, run.arm, run.settings
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, settings, run.seed)
    train, test = (
        encode_sums(tokenizer, pairs) for pairs in draw_pairs(cell.digits, cell.size, settings.test, run.seed)
    )
    loss = pv.AggregationLoss(model, tokenizer, arm.ce_weight, arm.mode, arm.aggregation)
    shift = model.prepare_decoder_input_ids_from_labels
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=settings.weight_decay, fused=True)
    tested_at, checkpoints = set(settings.tested_at(cell)), []
    for step, chosen in enumerate(batches(cell, settings, run.seed), 1):
        for group in optimizer.param_groups:
            group["lr"] = arm.rate * learning_rate(step, cell.steps, settings)
        labels = train.labels[chosen]
        outputs = model(input_ids=train.questions[chosen], decoder_input_ids=shift(labels), use_cache=False)
        optimizer.zero_grad()
        loss(outputs, labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        if step in tested_at:
            checkpoints.append({"step": step} | test_model(model, tokenizer, train, test, settings) | _means(loss))
    return {
        "schema": SCHEMA,
        "config": run.config(),
        "checkpoints": checkpoints,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "seconds": round(perf_counter() - began, 2),
        "cpu_seconds": round(process_time() - cpu, 2),
        "provenance": provenance(),
    }


def provenance() -> dict[str, Any]:
    """Versions, CPU and commit; without the time, so that runs of one origin have equal provenance."""
    origin = records.provenance()
    machine = {"count": origin["platform"]["cpus"], "machine": origin["platform"]["machine"]}
    machine["capability"] = torch.backends.cpu.get_cpu_capability()
    return {
        "versions": origin["versions"],
        "device": {"kind": "cpu", "threads": torch.get_num_threads()} | machine,
        "git": origin.get("git", {}),
    }


def build_model(tokenizer: PreTrainedTokenizerBase, settings: Settings, seed: int) -> T5ForConditionalGeneration:
    """An attached T5 with random weights."""
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=settings.dim,
        d_kv=settings.dim // settings.heads,
        d_ff=4 * settings.dim,
        num_layers=settings.layers,
        num_heads=settings.heads,
        dropout_rate=0.0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    config.decoder_start_token_id = tokenizer.pad_token_id
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = T5ForConditionalGeneration(config)
        pv.attach(model, tokenizer)
    return model


def batches(cell: Cell, settings: Settings, seed: int) -> Iterator[Tensor]:
    """The indices of the training pairs of each step. Batches are full; a pass has no pair twice."""
    generator = torch.Generator().manual_seed(seed)
    order, at = torch.randperm(cell.size, generator=generator), 0
    for _ in range(cell.steps):
        if at + settings.batch > cell.size:
            order, at = torch.randperm(cell.size, generator=generator), 0
        yield order[at : at + settings.batch]
        at += settings.batch


def learning_rate(step: int, steps: int, settings: Settings) -> float:
    """Warm up from 0, stay constant, and fall to 0 at the end."""
    down = (steps - step + 1) / max(1, round(settings.cooldown * steps))
    return settings.learning_rate * min(1.0, step / settings.warmup, down)


def test_model(
    model: T5ForConditionalGeneration, tokenizer: PreTrainedTokenizerBase, train: Sums, test: Sums, settings: Settings
) -> dict[str, Any]:
    """Scores on the test pairs and on a sample of the training pairs, and the mean norm of the digit embeddings."""
    sample = slice(settings.train_sample)
    questions = torch.cat([test.questions, train.questions[sample]])
    texts = decode(model, tokenizer, questions, test.labels.shape[1])
    digits = model.get_input_embeddings()(torch.tensor(tokenizer.convert_tokens_to_ids(list("0123456789"))))
    return {
        "test": score_answers(texts[: len(test.pairs)], test.pairs),
        "train": score_answers(texts[len(test.pairs) :], train.pairs[sample]),
        "digit_norm": digits.detach().norm(dim=1).mean().item(),
    }


@torch.no_grad()
def decode(model: Any, tokenizer: PreTrainedTokenizerBase, questions: Tensor, length: int) -> list[str]:
    """Greedy decoding of at most `length` tokens, as text."""
    model.eval()
    encoded = model.get_encoder()(input_ids=questions)
    written = torch.full((len(questions), 1), model.config.decoder_start_token_id)
    for _ in range(length):
        logits = model(encoder_outputs=encoded, decoder_input_ids=written, use_cache=False).logits
        written = torch.cat([written, logits[:, -1].argmax(-1, keepdim=True)], 1)
    model.train()
    ended = (written[:, 1:] == model.config.eos_token_id).cumsum(1) > 0
    written = torch.where(ended, model.config.pad_token_id, written[:, 1:])
    return [text.strip() for text in tokenizer.batch_decode(written, skip_special_tokens=True)]


def _means(loss: pv.AggregationLoss) -> dict[str, float]:
    """The mean parts of the loss since the last test."""
    return {name: value for name, value in loss.take_means().items() if name != "numbers"}
