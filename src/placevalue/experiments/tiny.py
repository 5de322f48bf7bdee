"""The bundled model before it is trained: its tokenizer, learnt from its own pre-training text, and its shape.

`python -m placevalue.experiments.tiny untrained` makes the bundled folder without weights anew, for
`recipes/pretrain-tiny.yaml` to train; `... trained RUN` takes the trained run in beside it.
`docs/tiny.md` is the model's card.
"""

import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, T5Config

from placevalue.common.errors import ModelError
from placevalue.common.hub import BUNDLED_FOLDER, TINY, UNTRAINED, load_model
from placevalue.data.gsm8k import read_gsm8k
from placevalue.data.pretraining import SENTINELS, generate_pretraining
from placevalue.experiments.run_folder import RECORD

PIECES = 4096
SAMPLE = 40_000
"""Rows of made-up text that the tokenizer learns from, beside GSM8K's questions."""
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
"""A T5 of 3.3M parameters. Wide and shallow: on a CPU, questions pass three layers of 192 as fast as four of 128."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Learn the tokenizer: byte-level pieces, each digit its own, so that no text is unknown and no number a word."""
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
    made = (row.question for row in islice(generate_pretraining("train"), SAMPLE))
    tokenizer.train_from_iterator([*made, *(problem.question for problem in read_gsm8k())], trainer)
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


def write_untrained(folder: Path) -> None:
    """Write tokenizer and shape; there are no weights, since they are drawn when a run begins."""
    tokenizer = build_tokenizer()
    tokenizer.save_pretrained(folder)
    build_config(tokenizer).save_pretrained(folder)


def take_in(run: Path, folder: Path) -> None:
    """Write a trained run as the bundled model: its weights in half the bytes, its tokenizer, its record."""
    if not (run / RECORD).is_file():
        raise ModelError(f"{run} has no {RECORD}: give the folder of a finished run")
    load_model(run, dtype=torch.float16).save_pretrained(folder)
    for name in (*TOKENIZER_FILES, RECORD):
        (folder / name).write_bytes((run / name).read_bytes())


def main(words: Sequence[str]) -> None:
    """Make one of the two bundled folders anew."""
    match list(words):
        case ["untrained"]:
            write_untrained(BUNDLED_FOLDER / UNTRAINED)
        case ["trained", run]:
            take_in(Path(run), BUNDLED_FOLDER / TINY)
        case _:
            raise ModelError("expected `untrained`, or `trained` and the folder of a run")


if __name__ == "__main__":
    main(sys.argv[1:])
