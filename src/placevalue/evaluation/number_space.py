"""Measure a model's number space: every measurement of `neighbours` in one record.

The record is written after every part, so an interrupted run continues where it stopped.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from placevalue.common.errors import CheckpointError, ModelError
from placevalue.common.files import read_object, write_json
from placevalue.common.hub import load_model, load_tokenizer, resolve_model, weights_hash
from placevalue.common.ownership import check_folder
from placevalue.common.records import provenance
from placevalue.modeling.attach import attach
from placevalue.numbers.aggregation import AGGREGATIONS, FALL, Aggregation, find_aggregation, interpolated
from placevalue.numbers.neighbours import Array, digits_of, natural_neighbours, number_vectors, search, search_vectors
from placevalue.tokenizer.tokenizer import number_ids, number_tokenizer

SCHEMA = "placevalue/number-space/1"
LENGTHS = range(1, 7)
FALLS = (4.0, 6.0, 10.0, 14.0, 20.0, 30.0, 50.0)
_HALF = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_SEED = 0


def load_digit_rows(name: str) -> Tensor:
    """The ten digit embeddings of a model, as its first layer receives them: `(10, dim)`, float64."""
    return _embed(load_model(name), number_ids(number_tokenizer(load_tokenizer(name), pattern="paper")).digits)


def _reader(model: Any) -> Any:
    return model.get_encoder() if model.config.is_encoder_decoder else model


def _embed(model: Any, ids: Sequence[int]) -> Tensor:
    with torch.no_grad():
        rows: Tensor = _reader(model).get_input_embeddings()(torch.tensor(ids))
    return rows.double()


def load_number_tokens(name: str) -> dict[int, Tensor]:
    """The embeddings of the vocabulary's own tokens for whole numbers of up to three digits, if it has any."""
    found: dict[int, int] = {}
    for token, index in load_tokenizer(name).get_vocab().items():
        digits = token.lstrip("▁Ġ")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 3 and str(int(digits)) == digits):
            continue
        if int(digits) not in found or token != digits:  # prefer the token with a space, as numbers occur in text
            found[int(digits)] = index
    if len(found) <= 10:
        return {}
    return dict(zip(found, _embed(load_model(name), list(found.values())), strict=True))


def survey(name: str, record: Path, say: Callable[[str], object], names: list[str] | None = None) -> dict[str, Any]:
    """Measure the parts that a model's record lacks, and return the whole record.

    `say` is called with the name of each part, whether or not it has to be measured. `names` are the aggregations; all
    by default.
    """
    import scipy

    weights = weights_hash(resolve_model(name))
    new: dict[str, Any] = {"schema": SCHEMA, "model": Path(name).name, "weights_sha256": weights, "parts": {}}
    check_folder(record.parent, record.exists())
    found = read_space(record) if record.exists() else new
    if (before := found.get("weights_sha256")) not in (None, weights):
        raise CheckpointError(
            f"{record} measured other weights ({before[:12]}) than {name} has now ({str(weights)[:12]}): choose "
            "another folder, or remove the record"
        )
    rows: Tensor | None = None
    for part, measure in survey_parts(names or list(AGGREGATIONS)):
        say(part)
        if part not in found["parts"]:
            rows = load_digit_rows(name) if rows is None else rows
            found["parts"][part] = measure(rows)
            found["weights_sha256"] = weights
            found["versions"] = {each.__name__: each.__version__ for each in (torch, np, scipy)}
            found["provenance"] = provenance()
            found["hash"] = _hash(found)
            write_json(record, found)
    return found


def read_space(path: Path) -> dict[str, Any]:
    """Read a record, and check its schema and its hash, which records of version 0.1.0 do not have."""
    found = read_object(path)
    if (schema := found.get("schema")) != SCHEMA:
        raise CheckpointError(f"{path} has the schema {schema!r}, expected {SCHEMA!r}: choose another folder")
    if found.get("hash", _hash(found)) != _hash(found):
        raise CheckpointError(f"{path}: the hash does not fit, so it was edited since: restore it, or remove it")
    return found


def _hash(record: dict[str, Any]) -> str:
    text = json.dumps({name: value for name, value in record.items() if name != "hash"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def survey_parts(names: list[str]) -> Iterator[tuple[str, Callable[[Tensor], Any]]]:
    """The name of every measurement with its function."""
    for name in names:
        function = find_aggregation(name)
        yield f"f1/{name}", partial(_f1, function=function)
        yield f"drift/{name}", partial(_drift, function=function)
        yield f"rank/{name}", partial(_rank, function=function)
    for name in [name for name in ("weighted", "sum", "interpolated") if name in names]:
        for kind in _HALF:
            yield f"precision/{name}/{kind}", partial(_rounded_f1, function=find_aggregation(name), kind=kind)
    if "interpolated" in names:
        for fall in FALLS:
            yield f"tradeoff/{fall:g}", partial(_tradeoff, fall=fall)
    yield "claims", _claims


def _f1(rows: Tensor, function: Aggregation) -> dict[str, Any]:
    """Exact F1 over all numbers of up to six digits, and the smallest distance of two numbers."""
    space = search(rows, function, LENGTHS[-1])
    size = float(rows.norm(dim=1).mean())
    return {"f1": _by_length(space.f1(LENGTHS)), "closest": space.closest / size}


def _drift(rows: Tensor, function: Aggregation) -> dict[str, float]:
    """The mean distance from the origin of numbers of each length, in mean digit norms."""
    size = float(rows.norm(dim=1).mean())
    generator = torch.Generator().manual_seed(_SEED)
    drift = {}
    for length in range(1, 16):
        numbers = torch.randint(10 ** (length - 1), 10**length, (500,), generator=generator)
        drift[length] = float(function(digits_of(numbers), rows)[:, 0].norm(dim=1).mean()) / size
    return _by_length(drift)


def _rank(rows: Tensor, function: Aggregation) -> dict[str, float]:
    """Spearman's correlation of numeric and embedding distance, over random pairs of equal length."""
    from scipy.stats import spearmanr

    generator = torch.Generator().manual_seed(_SEED)
    found = {}
    for length in LENGTHS:
        pairs = torch.randint(_first(length), 10**length, (2, 5000), generator=generator)
        pairs = pairs[:, pairs[0] != pairs[1]]
        one, other = (function(digits_of(side), rows)[:, 0] for side in pairs)
        found[length] = float(spearmanr((pairs[0] - pairs[1]).abs(), (one - other).norm(dim=1)).statistic)
    return _by_length(found)


def _rounded_f1(rows: Tensor, function: Aggregation, kind: str, longest: int = 5, queries: int = 200) -> dict[str, Any]:
    """F1 of a sample of numbers, with their vectors rounded to this precision."""
    vectors = number_vectors(rows.float(), function, longest).to(_HALF[kind]).double().numpy()
    vectors -= vectors.mean(0)
    squares = (vectors**2).sum(1)
    tolerance = float(np.sqrt(squares.max())) * (1e-8 if kind == "float32" else 1e-6)
    draw = np.random.default_rng(_SEED)
    shares = {}
    for length in range(1, longest + 1):
        pool = np.arange(_first(length), 10**length)
        sample = draw.choice(pool, min(queries, len(pool)), replace=False)
        gaps = np.sqrt(np.maximum(squares + squares[sample, None] - 2 * vectors[sample] @ vectors.T, 0))
        shares[length] = float(np.mean([_share(n, row, tolerance) for n, row in zip(sample, gaps, strict=True)]))
    return {"f1": _by_length(shares), "queries_a_length": queries, "pool": 10**longest}


def _share(number: int, distances: Array, tolerance: float, k: int = 10) -> float:
    """The share of a number's natural neighbours among its nearest, from its distances to all; ties count in part."""
    distances[number] = np.inf
    edge = np.partition(distances, k - 1)[k - 1]
    closer = distances < edge - tolerance
    tied = ~closer & (distances <= edge + tolerance)
    belongs = (k - closer.sum()) / tied.sum()
    near = natural_neighbours(int(number), len(distances), k)
    return sum(part * (1.0 if closer[m] else belongs * tied[m]) for m, part in near.items()) / k


def _tradeoff(rows: Tensor, fall: float) -> dict[str, Any]:
    """F1, precision and drift of `interpolated` with another fall."""
    function = partial(interpolated, fall=fall)
    exact = _by_length(search(rows, function, 5).f1(range(1, 6)))
    half = _rounded_f1(rows, function, "bfloat16", queries=100)["f1"]
    return {"f1": exact, "bfloat16": half, "drift_6": _drift(rows, function)["6"], "default": fall == FALL}


def _claims(rows: Tensor) -> dict[str, Any]:
    """The paper's claims about its weighted sum, beyond F1."""
    from scipy.spatial import cKDTree

    turned = torch.linalg.qr(rows.T, mode="r").R.T
    vectors = number_vectors(turned, "weighted", 5).numpy()
    draw = np.random.default_rng(_SEED).choice(np.arange(1000, 100_000), 5000, replace=False)
    _, found = cKDTree(vectors).query(vectors[draw], k=11)
    shared = (found[:, 1:] // 10 == draw[:, None] // 10).sum(1).mean()
    apart = torch.cdist(rows, rows)
    others = apart[1:, 1:].sum() / 72
    return {
        "neighbours_sharing_all_but_the_last_digit": float(shared),
        "distance_of_0_over_distance_of_others": float(apart[0, 1:].mean() / others),
    }


def layer_f1(name: str, aggregation: str, layer: int, longest: int, batch: int = 500) -> dict[int, float]:
    """F1 of the hidden states at [AGG] after a layer, each number read alone; layer 0 is the embedding."""
    model, tokenizer = load_model(name).eval(), number_tokenizer(load_tokenizer(name), token="agg", pattern="paper")
    attach(model, tokenizer, aggregation)
    vectors = []
    with torch.no_grad():
        for length in range(1, longest + 1):
            numbers = [str(n) for n in range(_first(length), 10**length)]
            for first in range(0, len(numbers), batch):
                ids = torch.tensor(tokenizer(numbers[first : first + batch])["input_ids"])
                states = _reader(model)(input_ids=ids, output_hidden_states=True).hidden_states
                if not 0 <= layer < len(states):
                    raise ModelError(f"{name} has no layer {layer}: expected one from 0 to {len(states) - 1}")
                vectors.append(states[layer][ids == number_ids(tokenizer).agg].double())
    return search_vectors(torch.cat(vectors).numpy(), 10).f1(range(1, longest + 1))


def _by_length(values: dict[int, float]) -> dict[str, float]:
    return {str(length): value for length, value in values.items()}


def _first(length: int) -> int:
    """The smallest number with this many digits."""
    return 0 if length == 1 else 10 ** (length - 1)
