"""What an experiment would cost: accelerator time, from the rates that committed records hold.

A record of the same model, batch and data says it directly. Otherwise the nearest one gives two bounds: each step takes
as long as its steps did, as where a device waits for launches, or each sample takes longer by its arithmetic. The rates
are in `rates.json`, which `python -m tools.rates` writes from the records.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from placevalue.common.errors import PlacevalueError
from placevalue.common.files import read_json
from placevalue.common.hub import TINY, load_tokenizer
from placevalue.data import Problem, load_data
from placevalue.data.corpora import expand_data
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import Recipe, TrainConfig
from placevalue.experiments.shapes import Size, model_config, model_size
from placevalue.experiments.train import method_tokenizer
from placevalue.tokenizer.encoding import encode_and_count
from placevalue.tokenizer.prompt import SEPARATED

RATES = Path(__file__).parent / "rates.json"
FARTHEST = 30.0
"""How many times as much arithmetic a sample may take as one of the record; beyond it, there is no estimate."""
SAME = 1.25
"""Up to this ratio a sample counts as one of the record."""
_SAMPLE = 300  # problems whose tokens are counted


@dataclass(frozen=True)
class Load:
    """What the runs of an experiment do, all together."""

    runs: int
    samples: float
    steps: float
    answers: int
    tokens: tuple[float, float]
    """The mean tokens of a question and of its answer."""
    flops: float
    """Of training on one sample, padding left out."""
    size: Size
    counted_with: str
    """The model whose tokenizer counted."""


@dataclass(frozen=True)
class Estimate:
    """Accelerator time on one device: the least and the most, in seconds, and what that rests on."""

    device: str
    least: float
    most: float
    basis: str


def measure_load(recipe: Recipe, runs: Sequence[tuple[TrainConfig, tuple[str, ...]]]) -> Load:
    """The load of runs, each given as its config and the stages left of it.

    Raises:
        PlacevalueError: The data cannot be read, or nothing is known about the model.
    """
    size = model_size(model_config(recipe.model))
    problems = load_data(recipe.data.train)
    base, counted_with = _tokenizer(recipe.model)
    count = cache(lambda method: _count_tokens(recipe, method, problems, base, size.two_part, counted_with))
    samples = steps = questions = answers = 0.0
    for config, todo in runs:
        if "train" not in todo:
            continue
        batch = config.training.batch_size * config.training.accumulation
        most = math.ceil(len(problems) / batch) * config.training.epochs
        mine = float(math.ceil(most) if config.training.max_steps is None else config.training.max_steps)
        seen = len(problems) * config.training.epochs if config.training.max_steps is None else mine * batch
        question, answer = count(config.method)
        samples, steps = samples + seen, steps + mine
        questions, answers = questions + seen * question, answers + seen * answer
    tokens = (questions / samples, answers / samples) if samples else count(recipe.methods[0])
    tested = cache(lambda specs: sum(len(load_data(spec)) for spec in expand_data(specs)))
    asked = sum(tested(config.data.test) for config, todo in runs if "generate" in todo)
    return Load(len(runs), samples, steps, asked, tokens, size.flops(*tokens), size, counted_with)


def estimate(recipe: Recipe, load: Load, rates: Sequence[dict[str, Any]] | None = None) -> list[Estimate]:
    """The cost on each device that there is a fitting record of; none if there is no such device."""
    rates = read_json(RATES) if rates is None else rates
    found = []
    for device in sorted({each["device"] for each in rates}):
        fitting = [
            each
            for each in rates
            if each["device"] == device
            and each["engine"] == recipe.training.engine
            and each["two_part"] == load.size.two_part
            and 1 / FARTHEST <= load.flops / each["flops"] <= FARTHEST
        ]
        if fitting:
            found.append(_from_rate(recipe, load, min(fitting, key=lambda each: _distance(recipe, load, each))))
    return found


def describe_cost(recipe: Recipe, runs: Sequence[tuple[TrainConfig, tuple[str, ...]]]) -> list[str]:
    """The cost of runs as lines of text, or why no estimate is possible."""
    try:
        load = measure_load(recipe, runs)
    except PlacevalueError as error:
        return [f"cost: no estimate is possible: {error}"]
    training = recipe.training
    most = "at most " if training.until == "plateau" else ""
    lines = [
        f"cost: {load.runs} runs, {most}{load.samples:,.0f} samples in {load.steps:,.0f} steps, "
        f"{load.tokens[0]:.0f} + {load.tokens[1]:.0f} tokens each, and {load.answers:,} answers"
    ]
    if load.counted_with != recipe.model:
        lines.append(f"  tokens counted with {load.counted_with}, since the tokenizer of {recipe.model} is not here")
    found = estimate(recipe, load)
    for each in found:
        span = _time(each.most) if each.most < 1.1 * each.least else f"{_time(each.least)} to {_time(each.most)}"
        lines += [f"  one {each.device}: {span} of its time", f"    rests on {each.basis}"]
    if not found:
        kind = "encoder-decoder" if load.size.two_part else "decoder-only"
        lines.append(
            f"  no estimate is possible: no committed record has training.engine={training.engine} with a {kind} "
            f"model of up to {FARTHEST:.0f} times its arithmetic"
        )
    return lines


def _distance(recipe: Recipe, load: Load, rate: dict[str, Any]) -> tuple[bool, float]:
    """How far a record is: another precision first, then the arithmetic of a sample and the size of a batch."""
    batch = recipe.training.batch_size * recipe.training.accumulation
    far = abs(math.log(load.flops / rate["flops"])) + abs(math.log(batch / rate["batch"]))
    return rate["precision"] != recipe.training.precision, far


def _from_rate(recipe: Recipe, load: Load, rate: dict[str, Any]) -> Estimate:
    batch, times = recipe.training.batch_size * recipe.training.accumulation, load.flops / rate["flops"]
    by_step = load.steps * rate["seconds_a_step"]
    by_sample = load.samples * rate["seconds_a_sample"]
    same = 1 / SAME <= times <= SAME
    bounds = [by_step, by_sample] if same and batch == rate["batch"] else [by_step, by_sample * times]
    basis = (
        f"{rate['source']} ({rate['runs']} runs, {rate['at_once']:.1f} at once, {rate['precision']}, batch "
        f"{rate['batch']}, {1 / rate['seconds_a_sample']:,.0f} samples a second)"
    )
    if not (same and batch == rate["batch"]):
        basis += (
            f": as long for each step, or {times:.2g} times as long for each sample, by 6 × weights × tokens of "
            "arithmetic"
        )
    if rate["precision"] != recipe.training.precision:
        basis += f"; in {rate['precision']}, not {recipe.training.precision}"
    if recipe.lora.rank is not None:
        basis += "; an adapter takes less, since most weights need no gradient"
    answering = [0.0, 0.0]
    if "seconds_an_answer" in rate and load.answers:
        plain = load.answers * rate["seconds_an_answer"]
        wider = recipe.generation.beams / rate["beams"]
        answering = sorted([plain, plain * wider * (1.0 if same else times)])
    elif load.answers:
        basis += "; without the time for answers"
    bounds.sort()
    return Estimate(rate["device"], bounds[0] + answering[0], bounds[1] + answering[1], basis)


def _tokenizer(model: str) -> tuple[Any, str]:
    """The tokenizer of a model or, if it is not here, that of the bundled one; and whose it is."""
    try:
        return load_tokenizer(model), model
    except PlacevalueError:
        return load_tokenizer(TINY), TINY


def _count_tokens(
    recipe: Recipe, method: str, problems: Sequence[Problem], base: Any, two_part: bool, counted_with: str
) -> tuple[float, float]:
    """The mean tokens of a question and an answer, over evenly spread problems."""
    chosen = [problems[index * len(problems) // _SAMPLE] for index in range(_SAMPLE)]
    how, training = METHODS[method], recipe.training
    tokenizer = method_tokenizer(base, how, recipe.numbers)
    texts = [each.question for each in chosen], [each.answer for each in chosen]
    prompt = recipe.prompt if counted_with == recipe.model else SEPARATED
    lengths = training.max_question, training.max_answer
    examples, _, _ = encode_and_count(tokenizer, *texts, two_part, *lengths, plain=not how.digits, prompt=prompt)
    answer = sum(label >= 0 for each in examples for label in each["labels"]) / len(examples)
    everything = sum(len(each["input_ids"]) for each in examples) / len(examples)
    return (everything if two_part else everything - answer), answer


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
