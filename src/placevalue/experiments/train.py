"""train(): one run of training, to a folder with the model, its tokenizer, checkpoints and `train.json`.

Training uses Trainer on accelerate, so `accelerate launch` and `torchrun` run it on many devices or machines. An
interrupted run continues from its last complete checkpoint and ends with the same weights.
"""

import logging
import math
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PrinterCallback, set_seed
from transformers.trainer_callback import ProgressCallback

from placevalue.common.errors import ConfigError, TrainingError
from placevalue.common.hub import CARD, device_name, load_model, load_tokenizer
from placevalue.common.lock import locked
from placevalue.common.ownership import check_folder, may_rewrite
from placevalue.common.records import TRAINED_ON, TrainRecord, provenance, write_record
from placevalue.data import Problem, load_data
from placevalue.data.corpora import problem_sources
from placevalue.experiments.adapter import add_lora, missing_peft
from placevalue.experiments.callbacks import Clock, Progress, missing_trackers, tensorboard
from placevalue.experiments.engine import speed_up
from placevalue.experiments.memory import peak_memory
from placevalue.experiments.methods import METHODS, Method
from placevalue.experiments.plateau import CONSTANT, Plateau
from placevalue.experiments.precision import repeatable, rounding
from placevalue.experiments.recipe import RecipeOrPath, TrainConfig, default_folder, load_recipe
from placevalue.experiments.resume import claim_folder, finished_run, repaired_run
from placevalue.experiments.run_folder import CHECKPOINTS, LOG, RECORD, TENSORBOARD, is_run, run_checksums, take_model
from placevalue.experiments.saving import in_main_process, save_whole
from placevalue.experiments.settings import NumberSettings, TrainingConfig, unknown_names
from placevalue.loss.aggregation_loss import AggregationLoss, Mode
from placevalue.loss.number_losses import NumberLoss
from placevalue.loss.target_loss import TargetLoss
from placevalue.loss.trainers import log_parts
from placevalue.modeling.attach import attach
from placevalue.modeling.card import write_card
from placevalue.tokenizer.collate import LikeLengths, PairCollator
from placevalue.tokenizer.encoding import IGNORED, Example, encode_and_count
from placevalue.tokenizer.tokenizer import number_tokenizer

if TYPE_CHECKING:
    from transformers import Trainer, TrainingArguments

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """Everything that a run needs, loaded and checked."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    train: list[Example]
    dev: list[Example] | None
    loss: TargetLoss | None
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
    if unknown := unknown_names(config.training) + missing_peft(config.lora) + missing_trackers(config.training):
        raise ConfigError("; ".join(unknown))
    checksums = run_checksums(config)
    check_folder(folder, is_run(folder), but=(LOG,))
    arguments = _arguments(config, folder)
    finished = in_main_process(lambda: finished_run(config, checksums, folder), arguments)
    if finished is not None:
        return finished
    with locked(folder) if arguments.process_index == 0 else nullcontext(lambda: None) as check:
        return _finish(config, checksums, arguments, resume, progress, check)


def _finish(
    config: TrainConfig,
    checksums: dict[str, str],
    arguments: "TrainingArguments",
    resume: bool,
    progress: Progress | None,
    check: Callable[[], None],
) -> TrainRecord:
    """Do what is left of a run whose folder is locked; `check` raises an error if it is not any more."""
    folder = Path(str(arguments.output_dir)).parent

    def claim() -> tuple[TrainRecord | None, Path | None]:
        finished = repaired_run(config, checksums, folder, resume)
        return finished, None if finished else claim_folder(config, checksums, folder, resume)

    finished, checkpoint = in_main_process(claim, arguments)
    if finished is not None:
        return finished
    began = time.monotonic()
    prepared = prepare(config)
    load = time.monotonic() - began
    trainer = make_trainer(config, prepared, arguments, progress)
    save_whole(trainer, config.training.keep_checkpoints, check)
    peak = _train_on(trainer, config, checkpoint)

    def finish() -> TrainRecord:
        check()
        chosen = trainer.state.best_global_step or trainer.state.global_step
        files = take_model(folder / CHECKPOINTS / f"checkpoint-{chosen}", folder)
        record = _record(config, checksums, prepared, trainer, load, files, peak)
        if may_rewrite(folder / CARD):
            write_card(folder, prepared.model, record)
        write_record(record, folder / RECORD)
        return record

    return in_main_process(finish, arguments)


def _train_on(trainer: "Trainer", config: TrainConfig, checkpoint: Path | None) -> dict[str, int]:
    """Train from a checkpoint or the beginning, and return the peak memory.

    From the checkpoint of the last step, nothing is left to train, so there is no peak.
    """
    from transformers import TrainerState

    state = None if checkpoint is None else TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
    if state is not None and state.global_step >= state.max_steps:
        trainer.state = state
        return {}
    with (
        peak_memory(trainer.args.device) as peak,
        repeatable(config.training.deterministic),
        rounding(config.training.precision),
    ):
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return peak


def prepare(config: TrainConfig) -> Prepared:
    """Load the model and encode the data."""
    set_seed(config.seed)
    method, numbers, settings = METHODS[config.method], config.numbers, config.training
    problems = load_data(config.data.train)
    dev = None if config.data.dev is None else load_data(config.data.dev)
    tokenizer, model = load_tokenizer(config.model), load_model(config.model, dtype=torch.float32)
    if not model.can_generate():
        raise TrainingError(
            f"{config.model!r} is a {type(model).__name__}, which generates no text: give a model that does"
        )
    tokenizer = method_tokenizer(tokenizer, method, numbers)
    if method.digits:
        held = (method.aggregation, numbers.decimals, numbers.new_rows, numbers.negatives)
        attach(model, tokenizer, *held, vector=method.vector)
    if tokenizer.pad_token is None:
        logger.warning("the tokenizer of %s has no padding token: using its end token", config.model)
        tokenizer.pad_token = tokenizer.eos_token
    whole = sum(weight.numel() for weight in model.parameters())  # without those that a loss trains with it
    seen = dict.fromkeys([*getattr(model.config, TRAINED_ON, []), *problem_sources(config.data.train)])
    setattr(model.config, TRAINED_ON, list(seen))
    if config.lora.rank is not None:
        model = add_lora(model, tokenizer, config.lora, config.model, method.digits)
    adapted = sum(1 for _ in model.parameters())
    loss = make_loss(method, settings, model, tokenizer)
    if config.lora.rank is not None and sum(1 for _ in model.parameters()) > adapted:
        raise TrainingError(
            f"the loss of {config.method} trains weights of its own, which an adapter's folder does not hold: leave "
            "out lora.rank, or choose another method"
        )
    examples, counts = _encode(problems, tokenizer, model, config)
    if loss is not None:
        _check_numbers(examples, loss, config.data.train)
    counts["parameters"] = whole
    if config.lora.rank is not None:
        counts["trained_parameters"] = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    dev_examples = None if dev is None else _encode(dev, tokenizer, model, config)[0]
    return Prepared(model, tokenizer, examples, dev_examples, loss, counts)


def method_tokenizer(base: PreTrainedTokenizerBase, method: Method, numbers: NumberSettings) -> PreTrainedTokenizerBase:
    """The tokenizer that a method trains with: the base itself, or one that splits numbers into digits."""
    if not method.digits:
        return base
    return number_tokenizer(
        base,
        method.token,
        method.position,
        numbers.pattern,
        numbers.ignore,
        rewrite=method.rewrite,
        pauses=method.pauses,
        markers=method.markers,
    )


def make_loss(
    method: Method, settings: TrainingConfig, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> TargetLoss | None:
    """What a method trains with; None is cross-entropy alone."""
    if method.loss is None:
        return None
    if method.mix == "add":
        weight = method.loss_weight if settings.loss_weight is None else settings.loss_weight
        loss = NumberLoss(model, tokenizer, method.loss, weight)
        if loss.head is not None and settings.engine == "fast":
            raise ConfigError(
                f"training.engine=fast replays a model's logits alone, and the loss {method.loss} reads hidden states: "
                "set training.engine: standard for this method"
            )
        return loss
    return AggregationLoss(model, tokenizer, settings.ce_weight, cast(Mode, method.loss), method.loss_aggregation)


def _encode(
    problems: list[Problem], tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, config: TrainConfig
) -> tuple[list[Example], dict[str, int]]:
    """The problems as examples, and their counts."""
    questions, answers = [each.question for each in problems], [each.answer for each in problems]
    two_part, plain = bool(model.config.is_encoder_decoder), not METHODS[config.method].digits
    lengths = config.training.max_question, config.training.max_answer
    examples, cut_questions, cut_answers = encode_and_count(
        tokenizer, questions, answers, two_part, *lengths, plain=plain, prompt=config.prompt
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


def _check_numbers(examples: list[Example], loss: TargetLoss, source: str) -> None:
    """Refuse data without numbers, on which the auxiliary loss would silently be zero."""
    if not any(loss.finds({**each}) for each in examples):
        raise TrainingError(
            f"the {loss.looks_at} of {source} contain no complete number, so the loss has nothing to compare: "
            "choose a method without it, or a larger training.max_answer if all numbers are cut"
        )


def make_trainer(
    config: TrainConfig, prepared: Prepared, arguments: "TrainingArguments", progress: Progress | None = None
) -> "Trainer":
    """The Trainer of a run; with `progress` it prints nothing."""
    from transformers import Trainer

    folder = Path(str(arguments.output_dir)).parent
    trainer = Trainer(
        prepared.model,
        arguments,
        train_dataset=prepared.train,
        eval_dataset=prepared.dev,
        data_collator=PairCollator(prepared.tokenizer, prepared.model),
        processing_class=prepared.tokenizer,
        compute_loss_func=prepared.loss,
        compute_metrics=lambda found: {"accuracy": float(np.mean(found.predictions))},
        preprocess_logits_for_metrics=partial(_exact, bool(prepared.model.config.is_encoder_decoder)),
        callbacks=tensorboard(folder / TENSORBOARD) if TENSORBOARD in config.training.trackers else [],
    )
    if config.training.group_by_length:
        lengths = [len(each["input_ids"]) for each in prepared.train]
        sampler = LikeLengths(lengths, config.training.batch_size * config.training.accumulation, config.seed)
        trainer._get_train_sampler = lambda *_: sampler  # type: ignore[method-assign]
    if prepared.loss is not None:
        log_parts(trainer, prepared.loss)
    if config.training.engine == "fast":
        speed_up(trainer, bfloat16=config.training.precision == "bfloat16")
    trainer.callback_handler.callbacks.insert(0, Clock(progress))
    if config.training.until == "plateau":
        trainer.add_callback(Plateau(config.training))
    for printing in () if progress is None else (ProgressCallback, PrinterCallback):
        trainer.remove_callback(printing)
    return trainer


def _arguments(config: TrainConfig, folder: Path) -> "TrainingArguments":
    """The arguments of a run's Trainer; making them connects its processes."""
    if find_spec("accelerate") is None:
        raise TrainingError("training needs accelerate: pip install 'placevalue[all]'")
    from transformers import TrainingArguments

    settings = config.training
    fast = settings.engine == "fast"  # which computes in bfloat16 and compiles itself
    best = None if settings.select == "last" else settings.select.removeprefix("dev-")
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
        lr_scheduler_type=CONSTANT if settings.until == "plateau" else settings.schedule,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup_steps,
        max_grad_norm=settings.max_gradient,
        bf16=settings.precision == "bfloat16" and not fast,
        fp16=settings.precision == "float16",
        use_cpu=settings.precision == "bfloat16" and not torch.accelerator.is_available(),
        eval_strategy="no" if config.data.dev is None else "steps",
        eval_steps=settings.checkpoint_every,
        save_strategy="steps",
        save_steps=settings.checkpoint_every,
        metric_for_best_model=best and f"eval_{best}",
        greater_is_better=None if best is None else best == "accuracy",
        logging_steps=settings.log_every,
        logging_nan_inf_filter=False,  # the filter would hide a NaN loss, and waits for the device at every step
        torch_compile=settings.compile and not fast,
        gradient_checkpointing=settings.gradient_checkpointing,
        dataloader_num_workers=settings.workers,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        report_to=[name for name in settings.trackers if name != TENSORBOARD],
        run_name=f"{folder.name}",
    )


def _exact(encoder_decoder: bool, logits: Any, labels: Tensor) -> Tensor:
    """Whether greedy decoding writes each gold answer, `(batch,)`, from logits `(batch, length, vocabulary)`."""
    likeliest = (logits[0] if isinstance(logits, tuple) else logits).argmax(-1)
    if not encoder_decoder:
        likeliest, labels = likeliest[:, :-1], labels[:, 1:]
    return ((likeliest == labels) | (labels == IGNORED)).all(1).float()


def _record(
    config: TrainConfig,
    checksums: dict[str, str],
    prepared: Prepared,
    trainer: "Trainer",
    load: float,
    files: dict[str, str],
    peak: dict[str, int],
) -> TrainRecord:
    state = trainer.state
    made = provenance(device_name(str(trainer.args.device))) | {"processes": trainer.args.world_size}
    selected = None
    if state.best_global_step is not None:
        name = f"checkpoint-{state.best_global_step}"
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
        provenance=made | ({"peak_memory": peak} if peak else {}),
        files=files,
    )


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """The row with infinity and NaN, which JSON does not have, as texts."""
    odd = (key for key, value in row.items() if isinstance(value, float) and not math.isfinite(value))
    return row | {key: str(row[key]) for key in odd}
