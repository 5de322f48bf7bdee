"""One run of training: a TrainConfig to a folder with the model, its tokenizer, checkpoints and `train.json`.

The engine is Trainer on accelerate, so `accelerate launch` and `torchrun` make one run use many devices or machines.
A run that was stopped goes on from its last whole checkpoint, and ends with the weights it would have had.
"""

import logging
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PrinterCallback, set_seed
from transformers.trainer_callback import ProgressCallback

from placevalue.common.errors import ConfigError, TrainingError
from placevalue.common.hub import device_name, load_model, load_tokenizer
from placevalue.common.records import TrainRecord, provenance, write_record
from placevalue.data import Problem, data_sources, load_data
from placevalue.experiments.callbacks import Clock, Progress, Told, tensorboard
from placevalue.experiments.methods import Method, find_method
from placevalue.experiments.precision import repeatable, rounding
from placevalue.experiments.recipe import RecipeOrPath, TrainConfig, default_folder, load_recipe, unknown_names
from placevalue.experiments.run_folder import CHECKPOINTS, RECORD, TRAINED_ON, claim_folder, finished_run, run_checksums
from placevalue.loss.aggregation_loss import AggregationLoss
from placevalue.loss.number_targets import find_numbers
from placevalue.loss.trainers import log_parts
from placevalue.modeling.attach import attach
from placevalue.tokenizer.collate import LikeLengths, PairCollator
from placevalue.tokenizer.encoding import IGNORED, Example, encode_and_count
from placevalue.tokenizer.tokenizer import number_ids, number_tokenizer

if TYPE_CHECKING:
    from transformers import Trainer, TrainingArguments

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """All that a run needs, loaded and checked."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    train: list[Example]
    dev: list[Example] | None
    loss: AggregationLoss | None
    counts: dict[str, int]


def train(
    recipe: RecipeOrPath | TrainConfig,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    *,
    method: str | None = None,
    seed: int | None = None,
) -> TrainRecord:
    """Train one model, save it to a folder with its record, and return the record.

    If the folder holds this run already, train() returns its record. `from_pretrained` loads the folder and each of its
    `checkpoints`.

    Args:
        recipe: A recipe, the path of its YAML file, or the config of one run.
        out: The folder of the run. Default: `runs/RECIPE/METHOD-SEED`, by the name of the recipe's file.
        resume: Continue an interrupted run from its last checkpoint.
        progress: Called after each step with the steps done and the steps in all, instead of printing a bar and losses.
        method: A name in `METHODS`. Default: the recipe's first.
        seed: Default: the recipe's first.

    Example:
        >>> train("recipes/quick.yaml", method="agg-before", seed=1)  # doctest: +SKIP
    """
    if not isinstance(recipe, TrainConfig):
        config = load_recipe(recipe).run(method, seed)
    elif method is None and seed is None:
        config = recipe
    else:
        raise ConfigError(f"method={method!r}, seed={seed}: the config of a run has both; give a recipe instead")
    folder = Path(out) if out is not None else default_folder(recipe, f"{config.method}-{config.seed}")
    if unknown := unknown_names(config.training):
        raise ConfigError("; ".join(unknown))
    checksums = run_checksums(config)
    if (folder / RECORD).exists():
        return finished_run(config, checksums, folder)
    checkpoint = claim_folder(config, checksums, folder, resume)
    began = time.monotonic()
    prepared = prepare(config)
    load = time.monotonic() - began
    trainer = make_trainer(config, prepared, folder)
    if progress is not None:
        for printing in (ProgressCallback, PrinterCallback):
            trainer.remove_callback(printing)
        trainer.add_callback(Told(progress))
    with repeatable(config.training.deterministic), rounding(config.training.precision):
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    trainer.save_model(str(folder))
    record = _record(config, checksums, prepared, trainer, load)
    if trainer.is_world_process_zero():
        write_record(record, folder / RECORD)
    trainer.accelerator.wait_for_everyone()
    return record


def prepare(config: TrainConfig) -> Prepared:
    """Load model and data, and make the one fit for the other."""
    set_seed(config.seed)
    method, settings = find_method(config.method), config.training
    problems = load_data(config.data.train)
    dev = None if config.data.dev is None else load_data(config.data.dev)
    base, model = load_tokenizer(config.model), load_model(config.model, dtype=torch.float32)
    if not model.can_generate():
        raise TrainingError(
            f"{config.model!r} is a {type(model).__name__}, which writes no answers: give one that does"
        )
    tokenizer = make_tokenizer(base, config, method)
    if method.digits:
        attach(model, tokenizer, method.aggregation, config.numbers.decimals, config.numbers.markers)
    seen = dict.fromkeys([*getattr(model.config, TRAINED_ON, []), *data_sources(config.data.train)])
    setattr(model.config, TRAINED_ON, list(seen))
    loss = None
    if method.loss is not None:
        loss = AggregationLoss(model, tokenizer, settings.ce_weight, method.loss, method.loss_aggregation)
    examples, counts = _encode(problems, tokenizer, model, config)
    if loss is not None:
        _check_numbers(examples, tokenizer, config.data.train)
    counts["parameters"] = sum(weight.numel() for weight in model.parameters())
    dev_examples = None if dev is None else _encode(dev, tokenizer, model, config)[0]
    return Prepared(model, tokenizer, examples, dev_examples, loss, counts)


def make_tokenizer(base: PreTrainedTokenizerBase, config: TrainConfig, method: Method) -> PreTrainedTokenizerBase:
    """The tokenizer of a method, from the model's own."""
    tokenizer = base
    if method.digits:
        numbers = config.numbers
        tokenizer = number_tokenizer(base, method.token, method.position, numbers.pattern, numbers.ignore)
    if tokenizer.pad_token is None:
        logger.warning("the tokenizer of %s has no padding token: its end token pads instead", config.model)
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _encode(
    problems: list[Problem], tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, config: TrainConfig
) -> tuple[list[Example], dict[str, int]]:
    """The problems as examples, and how many there are and were cut."""
    questions, answers = [each.question for each in problems], [each.answer for each in problems]
    settings, two_part = config.training, bool(model.config.is_encoder_decoder)
    examples, cut_questions, cut_answers = encode_and_count(
        tokenizer,
        questions,
        answers,
        two_part,
        settings.max_question,
        settings.max_answer,
        plain=not find_method(config.method).digits,
    )
    answer_tokens = sum(label != IGNORED for each in examples for label in each["labels"])
    tokens = sum(len(each["input_ids"]) for each in examples)
    return examples, {
        "problems": len(problems),
        "cut_questions": cut_questions,
        "cut_answers": cut_answers,
        "question_tokens": tokens if two_part else tokens - answer_tokens,
        "answer_tokens": answer_tokens,
    }


def _check_numbers(examples: list[Example], tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    """An auxiliary loss with nothing to compare would be a silent zero."""
    ids = number_ids(tokenizer)
    if not any(find_numbers(torch.tensor([each["labels"]]), ids).valid.any() for each in examples):
        raise TrainingError(
            f"not one whole number was found in the answers of {source}, so the auxiliary loss has nothing to compare: "
            "choose a method without one, or a larger training.max_answer where all numbers are cut"
        )


def make_trainer(config: TrainConfig, prepared: Prepared, folder: Path) -> "Trainer":
    """The Trainer of a run."""
    try:
        from transformers import Trainer
    except ImportError as error:
        raise TrainingError(f"training needs accelerate: pip install 'placevalue[train]' ({error})") from None
    trainer = Trainer(
        prepared.model,
        _arguments(config, folder),
        train_dataset=prepared.train,
        eval_dataset=prepared.dev,
        data_collator=PairCollator(prepared.tokenizer, prepared.model),
        processing_class=prepared.tokenizer,
        compute_loss_func=prepared.loss,
        compute_metrics=_mean_accuracy,
        preprocess_logits_for_metrics=_Exact(bool(prepared.model.config.is_encoder_decoder)),
        callbacks=tensorboard(folder) if config.training.tensorboard else [],
    )
    if config.training.group_by_length:
        lengths = [len(each["input_ids"]) for each in prepared.train]
        sampler = LikeLengths(lengths, config.training.batch_size * config.training.accumulation, config.seed)
        trainer._get_train_sampler = lambda *_: sampler  # type: ignore[method-assign]
    if prepared.loss is not None:
        log_parts(trainer, prepared.loss)
    trainer.callback_handler.callbacks.insert(0, Clock())
    return trainer


def _arguments(config: TrainConfig, folder: Path) -> "TrainingArguments":
    from transformers import TrainingArguments

    settings = config.training
    evaluates = config.data.dev is not None
    best = settings.select.removeprefix("dev-")
    return TrainingArguments(
        output_dir=str(folder / CHECKPOINTS),
        seed=config.seed,
        learning_rate=settings.learning_rate,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        optim=settings.optimizer,
        lr_scheduler_type=settings.schedule,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup_steps,
        max_grad_norm=settings.max_gradient,
        bf16=settings.precision == "bfloat16",
        fp16=settings.precision == "float16",
        use_cpu=settings.precision == "bfloat16" and not torch.accelerator.is_available(),
        eval_strategy="steps" if evaluates else "no",
        eval_steps=settings.checkpoint_every,
        save_strategy="steps",
        save_steps=settings.checkpoint_every,
        save_total_limit=settings.keep_checkpoints,
        load_best_model_at_end=settings.select != "last",
        metric_for_best_model=f"eval_{best}" if settings.select != "last" else None,
        greater_is_better=best == "accuracy" if settings.select != "last" else None,
        logging_steps=settings.log_every,
        logging_nan_inf_filter=False,  # it hides a run that went wrong, and waits for the device at every step
        torch_compile=settings.compile,
        gradient_checkpointing=settings.gradient_checkpointing,
        dataloader_num_workers=settings.workers,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        report_to=[],
    )


class _Exact:
    """Whether every token of a target is the likeliest one: exactly when greedy decoding writes the gold answer."""

    def __init__(self, encoder_decoder: bool) -> None:
        self.encoder_decoder = encoder_decoder

    def __call__(self, logits: Any, labels: Tensor) -> Tensor:
        """Rights and wrongs `(batch,)` from logits `(batch, length, vocabulary)`."""
        likeliest = (logits[0] if isinstance(logits, tuple) else logits).argmax(-1)
        if not self.encoder_decoder:
            likeliest, labels = likeliest[:, :-1], labels[:, 1:]
        return ((likeliest == labels) | (labels == IGNORED)).all(1).float()


def _mean_accuracy(found: Any) -> dict[str, float]:
    return {"accuracy": float(found.predictions.mean())}


def _record(
    config: TrainConfig, checksums: dict[str, str], prepared: Prepared, trainer: "Trainer", load: float
) -> TrainRecord:
    state = trainer.state
    selected = None
    if state.best_model_checkpoint is not None:
        name = Path(state.best_model_checkpoint).name
        selected = {"checkpoint": name, "by": config.training.select, "value": state.best_metric}
    return TrainRecord(
        config=config.to_dict(),
        seed=config.seed,
        method=config.method,
        model=config.model,
        data=checksums,
        trained_on=tuple(getattr(prepared.model.config, TRAINED_ON)),
        steps=state.global_step,
        epochs=float(state.epoch or 0),
        durations={"load": load, "train": max(row["seconds"] for row in state.log_history)},
        counts=prepared.counts,
        losses=tuple(_finite(row) for row in state.log_history),
        selected=selected,
        provenance=provenance(device_name(str(trainer.args.device))) | {"processes": trainer.args.world_size},
    )


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no words for infinity and not-a-number; as texts they are seen."""
    odd = (key for key, value in row.items() if isinstance(value, float) and not math.isfinite(value))
    return row | {key: str(row[key]) for key in odd}
