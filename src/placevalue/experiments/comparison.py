"""What a recipe fixes before its runs, so that a comparison is fair: contrasts, and the search of each method's values.

Every method has the same number of trials: all learning rates of the grid or, if a weight of its loss is searched too,
a part of them with every weight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placevalue.common.validation import one_of
from placevalue.evaluation.metrics import METRICS
from placevalue.experiments.methods import METHODS

RATE, CE_WEIGHT, LOSS_WEIGHT = "training.learning_rate", "training.ce_weight", "training.loss_weight"
UNTOUCHED = "untouched"
RANKING = tuple(name for name, metric in METRICS.items() if metric.direction in ("higher", "lower"))
"""The metrics that say which of two trials is better."""


@dataclass(frozen=True)
class TuningSettings:
    """The values that `reproduce` tries for each method; the best on `data.dev` are those it then runs with."""

    learning_rates: tuple[float, ...] = ()
    """Learning rates to try for every method; none searches nothing."""
    ce_weights: tuple[float, ...] = ()
    """`training.ce_weight` to try for methods that have it, each with fewer of the learning rates."""
    loss_weights: tuple[float, ...] = ()
    """`training.loss_weight` to try for methods that have it, each with fewer of the learning rates."""
    seeds: tuple[int, ...] = (0,)
    """Each trial is the mean over these seeds, which the runs that count may not use."""
    metric: str = "accuracy_paper"
    """What the best trial is the best in."""


def weight_of(method: str) -> str | None:
    """The field with the weight of a method's loss; None without such a loss."""
    if METHODS[method].loss is None:
        return None
    return LOSS_WEIGHT if METHODS[method].mix == "add" else CE_WEIGHT


def trial_values(tuning: TuningSettings, method: str) -> list[dict[str, float]]:
    """The trials of a method: as many for each method, in the same order every time.

    With weights to try, the learning rates are the middle ones of equal blocks of the grid.

    Example:
        >>> trial_values(TuningSettings((1e-4, 2e-4, 5e-4, 1e-3), ce_weights=(0.4, 0.8)), "digits")[0]
        {'training.learning_rate': 0.0001}
        >>> [each["training.learning_rate"] for each in trial_values(
        ...     TuningSettings((1e-4, 2e-4, 5e-4, 1e-3), ce_weights=(0.4, 0.8)), "aux-soft")]
        [0.0002, 0.0002, 0.001, 0.001]
    """
    rates, field = sorted(tuning.learning_rates), weight_of(method)
    weights = {CE_WEIGHT: tuning.ce_weights, LOSS_WEIGHT: tuning.loss_weights, None: ()}[field]
    if field is None or not weights:
        return [{RATE: rate} for rate in rates]
    return [{RATE: rate, field: weight} for rate in rates[len(weights) // 2 :: len(weights)] for weight in weights]


def comparison_faults(values: Mapping[str, Any]) -> list[str]:
    """A baseline and contrasts that make no sense; absent values have no fault."""
    baseline, contrasts = values.get("baseline", UNTOUCHED), [tuple(pair) for pair in values.get("contrasts", ())]
    faults = [] if baseline in METHODS else [f"baseline={baseline!r}: expected {one_of(METHODS, baseline)}"]
    there = [*values.get("methods", METHODS), baseline]
    for pair in contrasts:
        if len(pair) != 2 or len(set(pair)) != 2:
            faults.append(f"contrasts names {list(pair)}: expected two methods, such as [digits, untouched]")
        faults += [
            f"contrasts names {name}, which is not trained: add it to methods, or leave the contrast out"
            if name in METHODS
            else f"contrasts names {name}: expected {one_of(METHODS, name)}"
            for name in pair
            if name not in there
        ]
    if len({frozenset(pair) for pair in contrasts}) < len(contrasts):
        faults.append(f"contrasts={[list(pair) for pair in contrasts]}: expected each pair once")
    return faults


def tuning_faults(tuning: Mapping[str, Any], seeds: Sequence[int], dev: str | None) -> list[str]:
    """What is wrong with a search of values, besides types; absent settings have no fault."""
    rates = tuning.get("learning_rates", ())
    faults = [f"tuning.learning_rates: expected more than 0, found {rate}" for rate in rates if rate <= 0]
    for name in ("learning_rates", "ce_weights", "loss_weights", "seeds"):
        given = list(tuning.get(name, ()))
        if len(set(given)) < len(given):
            faults.append(f"tuning.{name}={given}: expected each of them once")
    for name, most in (("ce_weights", 1.0), ("loss_weights", None)):
        weights = tuning.get(name, ())
        wrong = [each for each in weights if each < 0 or (most is not None and each > most)]
        faults += [f"tuning.{name}: expected {'from 0 to 1' if most else '0 or more'}, found {each}" for each in wrong]
        if weights and not rates:
            faults.append(f"tuning.{name} needs tuning.learning_rates: every method is tuned, and all have these")
        elif weights and len(rates) % len(weights):
            faults.append(
                f"tuning.{name} has {len(weights)} values and tuning.learning_rates {len(rates)}: for as many trials "
                f"of every method, give a number of learning rates that {len(weights)} divides"
            )
    if not rates:
        return faults
    metric = tuning.get("metric", TuningSettings.metric)
    if metric not in RANKING:
        faults.append(f"tuning.metric={metric!r}: expected {one_of(RANKING, metric)}")
    if dev is None:
        faults.append("tuning needs data.dev, which is not given: values are chosen by it")
    chosen_by = tuning.get("seeds", TuningSettings.seeds)
    if not chosen_by:
        faults.append("tuning.seeds=[]: expected at least one")
    if both := sorted(set(chosen_by) & set(seeds)):
        faults.append(f"tuning.seeds={list(chosen_by)}: {both} are among seeds, and what counts must not choose")
    return faults
