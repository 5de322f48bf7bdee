"""The settings that a model is attached with: found from arguments, its config and the tokenizer, and checked."""

from dataclasses import asdict

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from placevalue.common.errors import AttachError, ConfigError
from placevalue.numbers.aggregation import AGGREGATIONS, Aggregation, find_aggregation
from placevalue.numbers.config import FORMER, HELD, AttachedConfig, Decimals, Negatives, NumberConfig
from placevalue.numbers.rewrites import find_rewrite
from placevalue.numbers.vectors import Vector, find_vector
from placevalue.tokenizer.tokenizer import SETTINGS, check_unchanged, number_ids, number_layout, probe_ids


def recorded_config(model: PreTrainedModel) -> AttachedConfig | None:
    """The settings in a model's config, if it is or was attached."""
    values = getattr(model.config, SETTINGS, None)
    return None if values is None else AttachedConfig.from_dict(values)


def find_config(
    tokenizer: PreTrainedTokenizerBase,
    recorded: AttachedConfig | None,
    aggregation: str | Aggregation | None,
    decimals: Decimals | None,
    negatives: Negatives | None,
    vector: str | None,
) -> AttachedConfig:
    """The settings for a model: the arguments, its own config, the tokenizer's or the defaults, in this order."""
    layout, ids = number_layout(tokenizer), number_ids(tokenizer)
    check_unchanged(tokenizer)
    if recorded is not None and (recorded.layout, recorded.ids, recorded.probe) != (layout, ids, probe_ids(tokenizer)):
        raise AttachError(
            f"this checkpoint was made for a tokenizer with {recorded.layout} and {recorded.ids}, the one given has "
            f"{layout} and {ids}: use the tokenizer saved with it, or del model.config.{SETTINGS} to start again"
        )
    known = asdict(recorded) if recorded else tokenizer.init_kwargs[SETTINGS].get("attach", {})
    vector = vector or known.get("vector")
    found = None if vector is None else find_vector(vector)
    if aggregation is None:
        default = "weighted" if layout.token == "agg" and not (found and found.replaces_agg) else None
        aggregation = known.get("aggregation") or default
    name = _name_of(aggregation) if callable(aggregation) else aggregation
    config = NumberConfig(
        **asdict(layout),
        aggregation=name,
        decimals=decimals or known.get("decimals", "places"),
        negatives=negatives or known.get("negatives", FORMER["negatives"]),
        vector=vector,
    )
    if isinstance(aggregation, str):
        find_aggregation(aggregation)
    if vector is not None and found is not None:
        _check_vector(vector, found, config)
    held = {each: getattr(config, each) for each in HELD}
    return AttachedConfig(layout, ids, probe_ids(tokenizer), **held)


def _check_vector(name: str, vector: Vector, config: NumberConfig) -> None:
    """Raise an error for a vector that does not fit the layout."""
    if vector.at == "token" and config.token != "agg":
        raise ConfigError(
            f"the vector {name!r} with token={config.token!r}, which has no [AGG] to get it: make the tokenizer with "
            "token='agg'"
        )
    if vector.replaces_agg and config.aggregation is not None:
        raise ConfigError(
            f"the vector {name!r} and aggregation={config.aggregation!r} both replace [AGG]: leave one of them out"
        )
    rewritten = config.rewrite is not None and find_rewrite(config.rewrite).where == "both"
    if rewritten and vector.needs == "value" and not config.keeps_values:
        raise ConfigError(
            f"the vector {name!r} with rewrite={config.rewrite!r}: the digits of a rewritten number do not have their "
            "places, so the vector would be of another number. Leave one of them out"
        )


def _name_of(function: Aggregation) -> str:
    """The name to record for a function: its name in `AGGREGATIONS`, else its own."""
    for name, known in AGGREGATIONS.items():
        if known is function:
            return name
    name = str(getattr(function, "__name__", "custom"))
    if name in AGGREGATIONS:
        raise ConfigError(
            f"the function given is called {name!r}, as another aggregation is: rename it, or add it to "
            "placevalue.AGGREGATIONS under a new name and pass that name"
        )
    return name
