"""How fast `training.engine: fast` trains on FERMAT, beside Seq2SeqTrainer with the paper's settings in the same run.

Models have the shapes of FLAN-T5-small, BART base, SmolLM2-135M and FLAN base, and random weights, so no model is
downloaded. Ours is the Trainer of `placevalue train`: bfloat16, the method's markers and loss, problems of like length
in a batch. Theirs is Seq2SeqTrainer (Trainer for a decoder) as a user would set it up: float32, all questions padded to
128 tokens and answers to 16, no markers. Rates are of steady state; what the steps before took longer is set-up and
compilation, beside it. The share of the device's bfloat16 matrix rate, which is measured too, counts 6 × weights ×
tokens of a sample, padding left out. The share of time in each part is that of kernels, by their names.

Prepare the rows once, then run it with torch, transformers, accelerate, numpy and safetensors alone:

    python -m benchmarks.train_h200 --prepare 50000 --rows runs/fermat.json
    python -m benchmarks.train_h200 --rows runs/fermat.json

`--device cpu --toy --rows FILE --out FILE` rehearses it in a minute with small shapes; its rates say nothing.
"""

import argparse
import gc
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import (
    DataCollatorForSeq2Seq,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

import placevalue
from benchmarks.results import Check, Outcome, measure
from placevalue.common.errors import PlacevalueError
from placevalue.common.files import read_json, write_json
from placevalue.common.hub import TINY, load_tokenizer
from placevalue.data import load_data
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import TrainConfig
from placevalue.experiments.settings import DataConfig, NumberSettings, TrainingConfig
from placevalue.experiments.shapes import SHAPES, Size, model_size, shape_config
from placevalue.experiments.train import Prepared, _arguments, make_loss, make_trainer, method_tokenizer

SOURCE = "fermat-templates:train"
TARGETS = {
    "flan-t5-small-title": 10_000,
    "facebook/bart-base": 9_000,
    "smollm2-135m": 4_000,
    "google/flan-t5-base": 4_500,
}
"""Samples a second on an H200, by the model whose shape it is."""
TIMES = 6.0
BATCH, PAPERS_BATCH = 512, {"facebook/bart-base": 128}  # 64 for the paper's FLAN models
QUESTION, ANSWER, SEED = 128, 16, 1
STEPS = {"fast": (150, 150), "paper": (10, 30)}
"""Steps before steady state, and in it."""
PROFILED = 5
TOY = {
    "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip
PARTS = {
    "matrices": ("gemm", "matmul", "cutlass", "cublas", "nvjet", "aten::mm", "aten::addmm", "aten::bmm"),
    "attention": ("flash", "fmha", "attention", "sdpa"),
    "optimizer": ("adam", "multi_tensor", "foreach", "l2norm", "lpnorm"),
    "compiled": ("triton",),
    "copies": ("memcpy", "memset", "copy"),
}
"""Parts of a step, by what is in the names of their kernels; the first that fits counts, and `other` is the rest."""


class Clock(TrainerCallback):
    """Notes when the steady steps began and ended, then profiles a few more."""

    def __init__(self, before: int, steady: int, profiled: int, sync: Callable[[], object]) -> None:
        self.first, self.last, self.profiled, self.sync = before, before + steady, profiled, sync
        self.began = self.entered = self.left = 0.0
        self.profile: Any = None
        self.took = 0.0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Set-up counts from here."""
        self.began = time.perf_counter()

    def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Wait for the device at the ends only."""
        if state.global_step not in (self.first, self.last, self.last + self.profiled):
            return
        self.sync()
        now = time.perf_counter()
        if state.global_step == self.first:
            self.entered = now
        elif state.global_step == self.last:
            self.left = now
            if self.profiled:
                self.profile = torch.profiler.profile()
                self.profile.__enter__()
                self.took = time.perf_counter()
        else:
            self.took = now - self.took
            self.profile.__exit__(None, None, None)

    def step(self) -> float:
        """Seconds of a steady step."""
        return (self.left - self.entered) / (self.last - self.first)

    def set_up(self) -> float:
        """Seconds that the steps before took longer than steady ones do."""
        return self.entered - self.began - self.first * self.step()


def run(
    rows: Path,
    names: list[str],
    device: str = "cuda",
    toy: bool = False,
    batch: int = BATCH,
    method: str = "agg-before",
    tokenizer: str | None = None,
) -> Outcome:
    """Measure each model.

    Args:
        rows: The file of `--prepare`.
        names: Names in `TARGETS`.
        device: `cuda` or `cpu`.
        toy: Small shapes, batches and counts.
        batch: Problems in a batch of ours.
        method: What ours trains.
        tokenizer: Whose tokenizer to use. Default: the model's, or that of the bundled model if it is not here.
    """
    texts = read_json(rows)["rows"]
    sync = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    peak = matrix_rate(device, 256 if toy else 8192, sync)
    checks, raw = [], {"matrix_flops": peak, "rates": [], "details": {}}
    for name in names:
        found = _Model(name, texts, device, toy, 8 if toy else batch, method, tokenizer, sync).measure(peak)
        raw["rates"].append(found.pop("rate"))
        raw["details"][name] = found
        goal = device == "cuda" and not toy
        fast, paper = found["fast"]["samples_a_second"], found["paper"]["samples_a_second"]
        note = f"{found['fast']['set_up']:.0f} s of set-up and compilation; tokens of {found['tokenizer']}"
        checks += [
            Check(f"{name}: samples a second", fast, at_least=TARGETS[name] if goal else None, note=note),
            Check(f"{name}: ours / Seq2SeqTrainer's", fast / paper, at_least=TIMES if goal else None),
            Check(
                f"{name}: share of the matrix rate", found["fast"]["share_of_matrix_rate"], note=_shown(found["parts"])
            ),
        ]
    config = {"device": torch.cuda.get_device_name() if device == "cuda" else device, "toy": toy, "method": method}
    config |= {
        "source": SOURCE,
        "rows": len(texts),
        "batch": batch,
        "steps": {each: list(n) for each, n in STEPS.items()},
    }
    return Outcome(config | {"seed": SEED, "padded_to": [QUESTION, ANSWER]}, checks, raw)


class _Model:
    """One model's shape, its encoded rows, and both Trainers."""

    def __init__(
        self, name: str, texts: list[list[str]], device: str, toy: bool, batch: int, method: str,
        tokenizer: str | None, sync: Callable[[], object],
    ) -> None:  # fmt: skip
        self.name, self.device, self.toy, self.batch, self.method, self.sync = name, device, toy, batch, method, sync
        self.steps = {"fast": (25, 4), "paper": (1, 3)} if toy else STEPS
        self.config = _shape(name, toy)
        self.size: Size = model_size(self.config)
        self.base, self.named = _tokenizer(tokenizer or name)
        questions, answers = zip(*texts, strict=True)
        self.pairs = list(questions), list(answers)

    def measure(self, peak: float) -> dict[str, Any]:
        """Rates of both, and what ours spends its time on."""
        fast, clock, tokens = self._time_ours()
        paper = self._time_theirs()
        fast["share_of_matrix_rate"] = self.size.flops(*tokens) * fast["samples_a_second"] / peak
        training = self._training()
        rate = {
            "model": self.name, "two_part": self.size.two_part, "engine": training.engine,
            "precision": training.precision, "batch": self.batch, "runs": 1, "at_once": 1.0,
            "flops": round(self.size.flops(*tokens)), "seconds_a_step": self.batch / fast["samples_a_second"],
            "seconds_a_sample": 1 / fast["samples_a_second"],
        }  # fmt: skip
        found = {"fast": fast, "paper": paper, "parts": parts_of(clock.profile, clock.took, self.device)}
        return found | {"tokens": list(tokens), "tokenizer": self.named, "rate": rate}

    def _training(self) -> TrainingConfig:
        count = sum(self.steps["fast"]) + PROFILED
        return TrainingConfig(
            engine="fast", precision="bfloat16", batch_size=self.batch, max_steps=count, group_by_length=True,
            max_question=QUESTION, max_answer=ANSWER, log_every=10**6, checkpoint_every=10**6, deterministic=False,
        )  # fmt: skip

    def _time_ours(self) -> tuple[dict[str, float], Clock, tuple[float, float]]:
        method, training = METHODS[self.method], self._training()
        tokenizer, model = method_tokenizer(self.base, method, NumberSettings("paper")), self._build()
        if method.digits:
            placevalue.attach(model, tokenizer, method.aggregation)
        examples = self._encode(tokenizer, plain=not method.digits)
        tokens = _mean_tokens(examples, self.size.two_part)
        config = TrainConfig(self.name, DataConfig(SOURCE), self.method, SEED, training=training)
        prepared = Prepared(model, tokenizer, examples, None, make_loss(method, training, model, tokenizer), {})
        with tempfile.TemporaryDirectory() as folder:
            arguments = _arguments(config, Path(folder) / "run")
            trainer = make_trainer(config, prepared, self._quiet(arguments))
            clock = self._train(trainer, *self.steps["fast"], PROFILED)
        return self._rates(clock, self.batch), clock, tokens

    def _time_theirs(self) -> dict[str, float]:
        tokenizer, model = self.base, self._build()
        batch = 8 if self.toy else PAPERS_BATCH.get(self.name, 64)
        settings = dict(
            per_device_train_batch_size=batch, max_steps=sum(self.steps["paper"]), learning_rate=1e-4,
            weight_decay=0.005, warmup_steps=100, remove_unused_columns=False, report_to=[],
            use_cpu=self.device == "cpu",
        )  # fmt: skip
        kinds = (Seq2SeqTrainer, Seq2SeqTrainingArguments) if self.size.two_part else (Trainer, TrainingArguments)
        with tempfile.TemporaryDirectory() as folder:
            arguments = self._quiet(kinds[1](folder, **settings))
            collate = partial(_padded, DataCollatorForSeq2Seq(tokenizer, model=model), tokenizer, self.size.two_part)
            trainer = kinds[0](
                model, arguments, train_dataset=self._encode(tokenizer, plain=True), data_collator=collate
            )
            clock = self._train(trainer, *self.steps["paper"], 0)
        return self._rates(clock, batch)

    def _build(self) -> Any:
        """The model, with random weights."""
        from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

        set_seed(SEED)
        gc.collect()  # the model before it
        return (AutoModelForSeq2SeqLM if self.size.two_part else AutoModelForCausalLM).from_config(self.config)

    def _encode(self, tokenizer: PreTrainedTokenizerBase, plain: bool) -> list[dict[str, list[int]]]:
        return placevalue.encode_pairs(
            tokenizer,
            *self.pairs,
            encoder_decoder=self.size.two_part,
            max_question=QUESTION,
            max_answer=ANSWER,
            plain=plain,
        )

    def _quiet(self, arguments: Any) -> Any:
        """Arguments that write and print nothing."""
        return replace(arguments, save_strategy="no", logging_strategy="no", disable_tqdm=True)

    def _train(self, trainer: Any, before: int, steady: int, profiled: int) -> Clock:
        clock = Clock(before, steady, profiled, self.sync)
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(clock)
        trainer.train()
        return clock

    def _rates(self, clock: Clock, batch: int) -> dict[str, float]:
        return {"samples_a_second": batch / clock.step(), "seconds_a_step": clock.step(), "set_up": clock.set_up()}


def _padded(collate: Any, tokenizer: Any, two_part: bool, examples: list[dict[str, list[int]]]) -> Any:
    """A batch with every question padded to `QUESTION` tokens, and answers to `ANSWER`; one text if it is one part."""
    width = QUESTION if two_part else QUESTION + ANSWER
    target = ANSWER if two_part else width
    full = []
    for each in examples:
        space, left = width - len(each["input_ids"]), target - len(each["labels"])
        ids, mask = each["input_ids"] + [tokenizer.pad_token_id] * space, [1] * len(each["input_ids"]) + [0] * space
        full.append({"input_ids": ids, "attention_mask": mask, "labels": each["labels"] + [-100] * left})
    return collate(full)


def _shape(name: str, toy: bool) -> Any:
    config = shape_config(name)
    for key, value in TOY.items() if toy else ():
        if key in SHAPES[name]:
            setattr(config, key, value)
    if toy and hasattr(config, "head_dim"):
        config.head_dim = TOY["d_kv"]
    return config


def _tokenizer(name: str) -> tuple[PreTrainedTokenizerBase, str]:
    try:
        found, whose = load_tokenizer(name), name
    except PlacevalueError:
        found, whose = load_tokenizer(TINY), TINY
    found.pad_token = found.pad_token or found.eos_token
    return found, whose


def _mean_tokens(examples: list[dict[str, list[int]]], two_part: bool) -> tuple[float, float]:
    answer = sum(label >= 0 for each in examples for label in each["labels"]) / len(examples)
    everything = sum(len(each["input_ids"]) for each in examples) / len(examples)
    return (everything if two_part else everything - answer), answer


def matrix_rate(device: str, size: int, sync: Callable[[], object]) -> float:
    """Floating-point operations a second of a product of two bfloat16 matrices; the best of three."""
    one, other = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    best = float("inf")
    for _ in range(3):
        sync()
        began = time.perf_counter()
        for _ in range(10):
            one @ other
        sync()
        best = min(best, (time.perf_counter() - began) / 10)
    return 2 * size**3 / best


def parts_of(profile: Any, took: float, device: str) -> dict[str, float]:
    """The share of the time of the profiled steps in each part, and in none: `idle`."""
    total: dict[str, float] = {}
    for each in profile.key_averages():
        on_device = device == "cuda"
        seconds = (each.self_device_time_total if on_device else each.self_cpu_time_total) / 1e6
        if on_device and each.device_type != torch.autograd.DeviceType.CUDA:
            continue
        part = next((part for part, names in PARTS.items() if any(n in each.key.lower() for n in names)), "other")
        total[part] = total.get(part, 0.0) + seconds
    shares = {part: seconds / took for part, seconds in total.items()}
    return shares | {"idle": max(0.0, 1 - sum(shares.values()))}


def _shown(parts: dict[str, float]) -> str:
    return ", ".join(f"{part} {share:.0%}" for part, share in sorted(parts.items(), key=lambda each: -each[1]))


def prepare(count: int, path: Path) -> None:
    """Write evenly spread rows of FERMAT's training set."""
    problems = load_data(SOURCE)
    chosen = [problems[index * len(problems) // count] for index in range(count)]
    write_json(path, {"source": SOURCE, "rows": [[each.question, each.answer] for each in chosen]})


def main() -> int:
    """Prepare the rows, or measure with the settings of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.train_h200", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--prepare", type=int, metavar="COUNT", help="write so many rows to --rows, and stop")
    parser.add_argument("--rows", type=Path, required=True, help="the file of rows")
    parser.add_argument("--models", nargs="+", choices=TARGETS, default=list(TARGETS), help="default: all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="default: %(default)s")
    parser.add_argument("--toy", action="store_true", help="rehearse with small shapes")
    parser.add_argument("--batch", type=int, default=BATCH, help="problems in a batch of ours (default: %(default)s)")
    parser.add_argument(
        "--method", choices=METHODS, default="agg-before", help="what ours trains (default: %(default)s)"
    )
    parser.add_argument("--tokenizer", help="a name or folder (default: the model's, else the bundled one)")
    parser.add_argument("--out", type=Path, help="file for the record (default: benchmarks/records/train_h200.json)")
    options = parser.parse_args()
    if options.prepare:
        prepare(options.prepare, options.rows)
        return 0
    if options.out is None and (options.toy or options.device == "cpu"):
        parser.error("--toy and --device cpu are rehearsals: give a file for their record with --out")
    work = partial(run, options.rows, options.models, options.device, options.toy, options.batch, options.method)
    return 1 if measure("train_h200", partial(work, options.tokenizer), options.out) else 0


if __name__ == "__main__":
    raise SystemExit(main())
