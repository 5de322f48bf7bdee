"""Read and load a checkpoint, and generate answers to batches of questions.

A checkpoint is a run of `placevalue train`, one of its checkpoints, a folder that `save_pretrained`, Trainer or PEFT
wrote, or any model with its tokenizer. All of them answer in the same way: a checkpoint's own generation config
(sampling, penalties, forced tokens, minimum lengths) is ignored, except its end tokens.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig, PreTrainedTokenizerBase

from placevalue.common.errors import CheckpointError, ModelError
from placevalue.common.files import read_object
from placevalue.common.hub import load_config, load_model, load_tokenizer, resolve_model, weights_hash
from placevalue.common.records import TRAINED_ON, TrainRecord, read_record
from placevalue.common.seal import ADAPTER_CONFIG
from placevalue.common.validation import find_faults
from placevalue.experiments.checksums import find_damage, model_sums, read_sums
from placevalue.experiments.recipe import TrainConfig, with_new_names
from placevalue.experiments.run_folder import CHECKPOINTS, CONFIG, RECORD, find_model_damage
from placevalue.experiments.settings import GenerationConfig as Generation
from placevalue.modeling.attach import base_model
from placevalue.modeling.checkpoints import from_pretrained, load_number_tokenizer
from placevalue.tokenizer.tokenizer import SETTINGS, is_number_tokenizer


@dataclass(frozen=True)
class Checkpoint:
    """Everything about a checkpoint except its weights."""

    name: str
    """A hub name, or the name of the folder."""
    source: str
    """The argument for `from_pretrained`."""
    base: str | None
    """The base model of an adapter; None for a whole model."""
    config: Any
    tokenizer: PreTrainedTokenizerBase
    train: TrainRecord | None
    run: dict[str, Any]
    """The config of its run of `placevalue train`; empty for other models."""

    @property
    def trained_on(self) -> tuple[str, ...]:
        """The corpora that the weights were trained on, as far as recorded."""
        recorded = () if self.train is None else self.train.trained_on
        return tuple(dict.fromkeys([*getattr(self.config, TRAINED_ON, ()), *recorded]))

    @property
    def plain(self) -> bool:
        """Whether the tokenizer is the model's own, not a number tokenizer."""
        return not is_number_tokenizer(self.tokenizer)

    @property
    def encoder_decoder(self) -> bool:
        """Whether the model is an encoder-decoder."""
        return bool(self.config.is_encoder_decoder)

    def check(self) -> None:
        """Refuse a model whose files changed since placevalue trained it: they were damaged, or are another model."""
        folder = Path(self.source)
        if folder.parent.name == CHECKPOINTS:
            faults = find_damage(folder, model_sums(read_sums(folder) or {}))
        else:
            faults = find_model_damage(folder, self.train) if self.train is not None else []
        if faults:
            raise CheckpointError(
                f"{folder} is not as it was trained: {'; '.join(faults)}. Train it again (--resume), restore its "
                f"files, or copy the model to a folder without {RECORD}"
            )

    def weights(self) -> str | None:
        """The sha256 of weights and tokenizer; of a hub model its commit, if known."""
        commit: str | None = getattr(self.config, "_commit_hash", None)
        return weights_hash(self.source) if Path(self.source).is_dir() else commit


def read_checkpoint(name_or_path: str | os.PathLike[str]) -> Checkpoint:
    """Read everything about a checkpoint except its weights."""
    source = resolve_model(name_or_path)
    folder = Path(source)
    base = None
    if (folder / ADAPTER_CONFIG).is_file():
        base = read_object(folder / ADAPTER_CONFIG).get("base_model_name_or_path")
        if not base:
            raise CheckpointError(
                f"{folder / ADAPTER_CONFIG} does not name its base model: add base_model_name_or_path"
            )
    elif (folder / CHECKPOINTS).is_dir() and not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder} holds an unfinished run: finish it, or give one of its {CHECKPOINTS}")
    name = folder.resolve().name if folder.is_dir() else source
    home = folder.parent.parent if folder.parent.name == CHECKPOINTS else folder
    train = read_record(home / RECORD, TrainRecord) if (home / RECORD).is_file() else None
    run = train.config if train is not None else _read_begun(home / CONFIG) if (home / CONFIG).is_file() else {}
    return Checkpoint(name, source, base, load_config(base or source), _tokenizer(source, base), train, run)


def _read_begun(path: Path) -> dict[str, Any]:
    """The config of a run that has no record yet."""
    begun = read_object(path)
    config = {key: value for key, value in with_new_names(begun).items() if key in TrainConfig.__dataclass_fields__}
    if faults := find_faults(TrainConfig, config):
        raise CheckpointError(f"{path}: {'; '.join(faults)}: restore the file")
    return begun


def _tokenizer(source: str, base: str | None) -> PreTrainedTokenizerBase:
    """The tokenizer of a checkpoint, or else of its base model."""
    settings = Path(source) / "tokenizer_config.json"
    if settings.is_file() and SETTINGS in read_object(settings):
        return load_number_tokenizer(source)
    tokenizer = load_tokenizer(source if base is None or settings.is_file() else base)
    return load_number_tokenizer(source) if is_number_tokenizer(tokenizer) else tokenizer


@dataclass(frozen=True)
class Answerer:
    """A loaded model with its tokenizer and generation settings."""

    model: Any
    tokenizer: PreTrainedTokenizerBase
    encoder_decoder: bool
    settings: GenerationConfig
    stops: Tensor
    """The ids that end an answer, `(stops,)`."""

    def answer(self, questions: Sequence[Sequence[int]]) -> list[str]:
        """The answers to a batch of encoded questions as the model wrote them: numbers may still be rewritten.

        They are without special tokens, markers and surrounding spaces.
        """
        side, device = "right" if self.encoder_decoder else "left", self.stops.device
        rows = [torch.tensor(question) for question in questions]
        ids = pad_sequence(rows, True, float(self.settings.pad_token_id), side).to(device)  # (batch, length)
        mask = pad_sequence([torch.ones_like(row) for row in rows], True, 0.0, side).to(device)
        with torch.inference_mode():
            made = self.model.generate(input_ids=ids, attention_mask=mask, generation_config=self.settings)
        new = made[:, 1:] if self.encoder_decoder else made[:, ids.shape[1] :]
        ended = torch.isin(new, self.stops).cumsum(1) > 0
        lengths = (~ended).sum(1).tolist()
        bodies = [row[:length] for row, length in zip(new.tolist(), lengths, strict=True)]
        texts = self.tokenizer.batch_decode(bodies, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return [text.strip() for text in texts]


def load_answerer(checkpoint: Checkpoint, generation: Generation, max_answer: int, device: str) -> Answerer:
    """Load the model of a checkpoint, ready to answer."""
    dtype = getattr(torch, generation.precision)
    model: Any
    if not checkpoint.plain:
        model, _ = from_pretrained(checkpoint.source, checkpoint.tokenizer, dtype=dtype)
    else:
        model = load_model(checkpoint.base or checkpoint.source, dtype=dtype)
        if checkpoint.base is not None:
            from peft import PeftModel

            model = PeftModel.from_pretrained(model, checkpoint.source)
    model = model.to(device).eval()
    kind = type(base_model(model))
    if not kind.can_generate():
        raise ModelError(f"{checkpoint.name} is a {kind.__name__}, which generates no text: give a model that does")
    settings = make_settings(model, checkpoint.tokenizer, generation.beams, max_answer)
    # `generate` fills gaps in the settings from the model's own, so replace those; PEFT models have two of them.
    model.generation_config = base_model(model).generation_config = settings
    stops = torch.tensor(settings.eos_token_id, device=device)
    return Answerer(model, checkpoint.tokenizer, checkpoint.encoder_decoder, settings, stops)


def make_settings(model: Any, tokenizer: PreTrainedTokenizerBase, beams: int, max_answer: int) -> GenerationConfig:
    """Greedy or beam search and nothing else, with the special ids of the model."""

    def known(name: str) -> Any:
        own = getattr(model.generation_config, name, None)
        return getattr(model.config, name, None) if own is None else own

    ends = known("eos_token_id")
    listed = ends if isinstance(ends, list) else [ends]
    stops = [each for each in dict.fromkeys([tokenizer.eos_token_id, *listed]) if each is not None]
    pads = (tokenizer.pad_token_id, known("pad_token_id"), *stops)
    return GenerationConfig(
        num_beams=beams,
        do_sample=False,
        max_new_tokens=max_answer,
        eos_token_id=stops,
        pad_token_id=next(each for each in pads if each is not None),
        bos_token_id=known("bos_token_id"),
        decoder_start_token_id=known("decoder_start_token_id"),
    )
