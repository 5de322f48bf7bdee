"""How fast the exact neighbourhood F1 of a million numbers is, against brute force.

Brute force computes the distances from each number to all others in the full dimension, as matrix products. It is timed
on a sample and extrapolated.

Run: `python -m benchmarks neighbours`
"""

import resource
from time import perf_counter
from typing import Any

import torch

from benchmarks.results import Check, Outcome
from placevalue.evaluation.number_space import load_digit_rows
from placevalue.numbers.aggregation import AGGREGATIONS
from placevalue.numbers.neighbours import number_vectors, search

MODEL, DIGITS, SAMPLE = "flan-t5-small-title", 6, 64
SECONDS, GIGABYTES, FASTER = 300.0, 4.0, 100.0


def run() -> Outcome:
    """Measure all aggregations, then a sample of brute force."""
    rows = load_digit_rows(MODEL)
    seconds: dict[str, float] = {}
    for name in AGGREGATIONS:
        begin = perf_counter()
        search(rows, name, DIGITS)
        seconds[name] = perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    total, brute = sum(seconds.values()), _brute_force(rows)
    checks = [
        Check("seconds for all aggregations", total, at_most=SECONDS),
        Check("gigabytes at the most", memory, at_most=GIGABYTES),
        Check("brute force / ours", brute * len(AGGREGATIONS) / total, at_least=FASTER, note=f"{brute:,.0f} s each"),
    ]
    config = {"model": MODEL, "pool": 10**DIGITS, "k": 10, "brute_force_sample": SAMPLE}
    raw: dict[str, Any] = {"seconds": seconds, "brute_force_seconds_each": brute, "peak_gigabytes": memory}
    return Outcome(config, checks, raw)


def _brute_force(rows: torch.Tensor) -> float:
    """Seconds that one aggregation would take, in float32, where brute force is fastest."""
    vectors = number_vectors(rows.float(), "weighted", DIGITS)
    squares = vectors.square().sum(1)
    queries = torch.randperm(len(vectors), generator=torch.Generator().manual_seed(0))[:SAMPLE]
    begin = perf_counter()
    (squares - 2 * vectors[queries] @ vectors.T).topk(11, largest=False)
    return (perf_counter() - begin) / SAMPLE * len(vectors)
