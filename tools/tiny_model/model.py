"""The bundled model: its tokenizer, learnt from the pre-training text, its shape, and the files of each step."""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from placevalue.common.errors import ModelError
from placevalue.common.hub import BUNDLED_FOLDER, TINY, load_model
from placevalue.data.files import write_generated
from placevalue.data.problem import Problem
from placevalue.experiments.run_folder import RECORD
from tools.tiny_model.gsm8k import SHA256, read_gsm8k
from tools.tiny_model.pretraining import ROWS, SEED, SENTINELS, SOURCES, generate_pretraining

WEIGHTS_SEED = 1
PIECES = 4096
SAMPLE = 40_000
"""How many training rows the tokenizer learns from, besides GSM8K's questions."""
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
SHAPE: dict[str, Any] = {
    "d_model": 192,
    "d_kv": 32,
    "num_heads": 6,
    "d_ff": 512,
    "num_layers": 3,
    "num_decoder_layers": 3,
    "feed_forward_proj": "relu",
    "dropout_rate": 0.0,
    "relative_attention_max_distance": 64,
}
"""A T5 of 3.3M parameters. Wide and shallow: on a CPU, three layers of 192 are as fast as four of 128."""


def prepare(folder: Path, advance: Callable[[int], Any], say: Callable[[str], Any]) -> None:
    """Write `train.jsonl`, `dev.jsonl`, their record `data.json`, and the model before training, `untrained/`.

    Args:
        folder: Where the files go.
        advance: Called with the number of rows made since the last call.
        say: Called with one line of text after each part.
    """
    parts: dict[str, list[Problem]] = {}
    for part in ROWS:
        parts[part] = []
        for row in generate_pretraining(part):
            parts[part].append(row)
            advance(1)
    config = {"seed": SEED, "weights_seed": WEIGHTS_SEED, "gsm8k_sha256": SHA256}
    write_generated(folder, parts, {"sources": list(SOURCES), "config": config})
    say(f"{folder}: {', '.join(f'{part}.jsonl with {len(rows):,} rows' for part, rows in parts.items())}")
    write_untrained(folder / "untrained", parts["train"])
    say(f"{folder / 'untrained'}: tokenizer and model, weights drawn from seed {WEIGHTS_SEED}")


def build_tokenizer(rows: Iterable[Problem]) -> PreTrainedTokenizerFast:
    """Learn byte-level pieces from training rows; each digit is a piece, so no text is unknown and no number a word."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("[0-9]"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [*SPECIAL.values(), *SENTINELS]
    trainer = trainers.BpeTrainer(
        vocab_size=PIECES,
        special_tokens=[AddedToken(content, special=True, normalized=False) for content in special],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    problems = [*islice(rows, SAMPLE), *read_gsm8k()]
    tokenizer.train_from_iterator([problem.question for problem in problems], trainer)
    end = SPECIAL["eos_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, tokenizer.token_to_id(end))]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **SPECIAL)


def build_config(tokenizer: PreTrainedTokenizerFast) -> T5Config:
    """The shape of the model, with the ids of its tokenizer."""
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    ids = {"pad_token_id": pad, "eos_token_id": end, "decoder_start_token_id": pad}
    return T5Config(vocab_size=len(tokenizer), architectures=["T5ForConditionalGeneration"], **ids, **SHAPE)


def write_untrained(folder: Path, rows: Iterable[Problem]) -> None:
    """Write the tokenizer and a model with weights drawn from `WEIGHTS_SEED`."""
    tokenizer = build_tokenizer(rows)
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(WEIGHTS_SEED)
        T5ForConditionalGeneration(build_config(tokenizer)).save_pretrained(folder)


def take(run: Path, folder: Path = BUNDLED_FOLDER / TINY) -> Path:
    """Copy a trained run as the bundled model: its weights in float16, its tokenizer, its record."""
    if not (run / RECORD).is_file():
        raise ModelError(f"{run} has no {RECORD}: give the folder of a finished run")
    load_model(run, dtype=torch.float16).save_pretrained(folder)
    for name in (*TOKENIZER_FILES, RECORD):
        (folder / name).write_bytes((run / name).read_bytes())
    return folder
