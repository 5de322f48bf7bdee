"""A survey of one model's number space: every measurement of `neighbours`, as one record that can be taken up again.

A survey is a list of named parts. Each is measured once and written to the record at once, so that Ctrl-C leaves what
was finished and the next run goes on from there.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from placevalue.common.errors import CheckpointError, ModelError
from placevalue.common.files import read_json, write_json
from placevalue.common.hub import load_model, load_tokenizer
from placevalue.modeling.attach import attach
from placevalue.numbers.aggregation import AGGREGATIONS, EASE, FALL, Aggregation, find_aggregation, interpolation
from placevalue.numbers.neighbours import Array, digits_of, natural_neighbours, number_vectors, search, search_vectors
from placevalue.tokenizer.tokenizer import number_ids, number_tokenizer

SCHEMA = "placevalue/number-space/1"
LENGTHS = range(1, 7)
FALLS = (4.0, 6.0, 10.0, 14.0, 20.0, 30.0, 50.0)
_DRIFT_LENGTHS = range(1, 16)
_HALF = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_SEED = 0

Say = Callable[[str], object]


def load_digit_rows(name: str) -> Tensor:
    """The ten digit embeddings of a model, as its first layer gets them: `(10, dim)`, float64."""
    model, tokenizer = load_model(name), number_tokenizer(load_tokenizer(name))
    reader: Any = model.get_encoder() if model.config.is_encoder_decoder else model
    with torch.no_grad():
        rows: Tensor = reader.get_input_embeddings()(torch.tensor(number_ids(tokenizer).digits))
    return rows.double()


def load_number_tokens(name: str) -> dict[int, Tensor]:
    """The vocabulary's own whole-number tokens of up to three digits and their embeddings, where it has any."""
    base, model = load_tokenizer(name), load_model(name)
    reader: Any = model.get_encoder() if model.config.is_encoder_decoder else model
    found: dict[int, Tensor] = {}
    with torch.no_grad():
        for token, index in base.get_vocab().items():
            digits = token.lstrip("▁Ġ")
            if not (digits.isascii() and digits.isdigit() and len(digits) <= 3 and str(int(digits)) == digits):
                continue
            # With a space before them where both exist: that is how numbers stand in text.
            if int(digits) not in found or token != digits:
                found[int(digits)] = reader.get_input_embeddings()(torch.tensor([index]))[0].double()
    return found if len(found) > 10 else {}


def survey(name: str, record: Path, say: Say, names: list[str] | None = None) -> dict[str, Any]:
    """Measure what is missing of a model's record, and return it whole.

    Args:
        name: A folder, a hub name or a fetched model.
        record: The JSON file; made if it is not there.
        say: Called with the name of each part before it is measured or found measured.
        names: The aggregations; all by default.
    """
    found = _read(record) or {"schema": SCHEMA, "model": Path(name).name, "parts": {}}
    rows: Tensor | None = None
    for part, measure in _parts(names or list(AGGREGATIONS)):
        say(part)
        if part not in found["parts"]:
            rows = load_digit_rows(name) if rows is None else rows
            found["parts"][part] = measure(rows)
            found["versions"] = _versions()
            write_json(record, found)
    return found


def _parts(names: list[str]) -> Iterator[tuple[str, Callable[[Tensor], Any]]]:
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
    """Exact F1 over all numbers of up to six digits, and how close two different numbers come."""
    space = search(rows, function, LENGTHS[-1])
    size = float(rows.norm(dim=1).mean())
    return {"f1": _by_length(space.f1(LENGTHS)), "closest": space.closest / size}


def _drift(rows: Tensor, function: Aggregation) -> dict[str, float]:
    """How far numbers of each length lie from the origin, in mean digit norms."""
    size = float(rows.norm(dim=1).mean())
    generator = torch.Generator().manual_seed(_SEED)
    drift = {}
    for length in _DRIFT_LENGTHS:
        numbers = torch.randint(10 ** (length - 1), 10**length, (500,), generator=generator)
        drift[length] = float(function(digits_of(numbers), rows)[:, 0].norm(dim=1).mean()) / size
    return _by_length(drift)


def _rank(rows: Tensor, function: Aggregation) -> dict[str, float]:
    """Spearman's correlation between numeric and embedding distance, over random pairs of one length."""
    from scipy.stats import spearmanr

    generator = torch.Generator().manual_seed(_SEED)
    found = {}
    for length in LENGTHS:
        first = 0 if length == 1 else 10 ** (length - 1)
        pairs = torch.randint(first, 10**length, (2, 5000), generator=generator)
        pairs = pairs[:, pairs[0] != pairs[1]]
        one, other = (function(digits_of(side), rows)[:, 0] for side in pairs)
        found[length] = float(spearmanr((pairs[0] - pairs[1]).abs(), (one - other).norm(dim=1)).statistic)
    return _by_length(found)


def _rounded_f1(rows: Tensor, function: Aggregation, kind: str, longest: int = 5, queries: int = 200) -> dict[str, Any]:
    """F1 of the vectors as a model in this precision sees them: rounded, in full dimension, for a sample of numbers."""
    vectors = number_vectors(rows.float(), function, longest).to(_HALF[kind]).double().numpy()
    vectors -= vectors.mean(0)
    squares = (vectors**2).sum(1)
    tolerance = float(np.sqrt(squares.max())) * (1e-8 if kind == "float32" else 1e-6)
    draw = np.random.default_rng(_SEED)
    shares = {}
    for length in range(1, longest + 1):
        first = 0 if length == 1 else 10 ** (length - 1)
        pool = np.arange(first, 10**length)
        sample = draw.choice(pool, min(queries, len(pool)), replace=False)
        gaps = np.sqrt(np.maximum(squares + squares[sample, None] - 2 * vectors[sample] @ vectors.T, 0))
        shares[length] = float(np.mean([_share(n, row, tolerance) for n, row in zip(sample, gaps, strict=True)]))
    return {"f1": _by_length(shares), "queries_a_length": queries, "pool": 10**longest}


def _share(number: int, distances: Array, tolerance: float, k: int = 10) -> float:
    """One number's share of common neighbours, from its distances to all numbers; ties by expectation."""
    distances[number] = np.inf
    edge = np.partition(distances, k - 1)[k - 1]
    closer = distances < edge - tolerance
    tied = ~closer & (distances <= edge + tolerance)
    belongs = (k - closer.sum()) / tied.sum()
    near = natural_neighbours(int(number), len(distances), k)
    return sum(part * (1.0 if closer[m] else belongs * tied[m]) for m, part in near.items()) / k


def _tradeoff(rows: Tensor, fall: float) -> dict[str, Any]:
    """F1, precision and drift of `interpolated` with another fall."""
    function = interpolation(fall, EASE)
    exact = search(rows, function, 5)
    half = _rounded_f1(rows, function, "bfloat16", queries=100)["f1"]
    drift = _drift(rows, function)
    return {"f1": _by_length(exact.f1(range(1, 6))), "bfloat16": half, "drift_6": drift["6"], "default": fall == FALL}


def _claims(rows: Tensor) -> dict[str, Any]:
    """What the paper says of its weighted sum, beyond F1."""
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
    """F1 of what stands at [AGG] after some layers of the model, each number read alone; layer 0 is the embedding."""
    model, tokenizer = load_model(name).eval(), number_tokenizer(load_tokenizer(name), token="agg")
    attach(model, tokenizer, aggregation)
    reader: Any = model.get_encoder() if model.config.is_encoder_decoder else model
    vectors = []
    with torch.no_grad():
        for length in range(1, longest + 1):
            numbers = [str(n) for n in range(0 if length == 1 else 10 ** (length - 1), 10**length)]
            for first in range(0, len(numbers), batch):
                ids = torch.tensor(tokenizer(numbers[first : first + batch])["input_ids"])
                states = reader(input_ids=ids, output_hidden_states=True).hidden_states
                if not 0 <= layer < len(states):
                    raise ModelError(f"layer {layer} was asked for, {name} has the layers 0 to {len(states) - 1}")
                vectors.append(states[layer][ids == number_ids(tokenizer).agg].double())
    return search_vectors(torch.cat(vectors).numpy(), 10).f1(range(1, longest + 1))


def count_parts(names: list[str]) -> int:
    """How many parts a survey has."""
    return len(list(_parts(names)))


def _by_length(values: dict[int, float]) -> dict[str, float]:
    return {str(length): value for length, value in values.items()}


def _versions() -> dict[str, str]:
    import scipy

    return {"torch": torch.__version__, "numpy": np.__version__, "scipy": scipy.__version__}


def _read(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    found: dict[str, Any] = read_json(path)
    if found.get("schema") != SCHEMA:
        raise CheckpointError(
            f"{path} has the schema {found.get('schema')!r}, expected {SCHEMA!r}: choose another folder"
        )
    return found
