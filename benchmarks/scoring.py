"""How fast 11,110 predictions are scored: every metric, 1,000 bootstrap resamples, one core.

Timed from file to record, as in `placevalue evaluate`: by set, by operation, by both, and as means over sets. The
alternative is code without arrays: it computes the same metrics for each problem, then for each group, metric and
resample draws problems in a plain loop and averages them. It is timed on a few resamples and extrapolated. Times are
CPU seconds, which do not count the time that other processes have the core; the record also has wall-clock seconds.

Run: `python -m benchmarks scoring`
"""

import math
import os
import random
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from benchmarks.results import Check, Outcome
from placevalue import METRICS, evaluate
from placevalue.common.records import Prediction, read_predictions, write_predictions
from placevalue.evaluation.metrics import read_answer

SETS, PROBLEMS, DRAWS, LOOP_DRAWS, ROUNDS, SEED = 10, 1111, 1000, 5, 3, 0
OPERATIONS = ("a+b", "a-b", "a*b", "a/b", "(a+b)-c", "a*(b+c)", "a*(b-c)", "(a+b)/c", "(a-b)/c")
MAX_ANSWER, SECONDS, FASTER = 16, 5.0, 10.0


def run() -> Outcome:
    """Measure both on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:  # a new process, since numpy's threads from earlier benchmarks would run on the other cores
        with get_context("spawn").Pool(1) as pool:
            times, (reading, drawing) = pool.apply(_measure)
    finally:
        os.sched_setaffinity(0, cores)
    loop = reading + drawing * DRAWS / LOOP_DRAWS
    rows, seconds = SETS * PROBLEMS, [processor for processor, _ in times]
    checks = [
        Check(f"CPU seconds for {rows:,} predictions", min(seconds), at_most=SECONDS, note=f"{DRAWS:,} resamples"),
        Check("loop / ours", loop / min(seconds), at_least=FASTER, note=f"{loop:,.0f} s, from {LOOP_DRAWS} resamples"),
    ]
    config = {"sets": SETS, "problems": PROBLEMS, "operations": len(OPERATIONS), "metrics": len(METRICS), "seed": SEED}
    config |= {"draws": DRAWS, "loop_draws": LOOP_DRAWS, "rounds": ROUNDS, "cores": 1}
    raw: dict[str, Any] = {"seconds": seconds, "wall_seconds": [wall for _, wall in times]}
    raw |= {"loop_metrics": reading, "loop_draws": drawing, "loop_extrapolated": loop}
    return Outcome(config, checks, raw)


def _measure() -> tuple[list[tuple[float, float]], tuple[float, float]]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "predictions.jsonl"
        write_predictions(_predictions(), file)
        return [_ours(file, Path(folder) / f"score-{index}.json") for index in range(ROUNDS)], _loop(file)


def _predictions() -> list[Prediction]:
    """Answers of 3 to 14 characters; about a third of the predictions are right, some are empty."""
    rng = random.Random(SEED)
    rows = []
    for name in range(SETS):
        for index in range(PROBLEMS):
            answer = f"{rng.randrange(10 ** rng.randint(1, 12))}.{rng.choice('05')}"
            wrong = (f"{rng.randrange(1000)}", f"{answer[:-1]}7", "", "it is 7")
            predicted = answer if rng.random() < 0.3 else rng.choice(wrong)
            operation = OPERATIONS[index % len(OPERATIONS)]
            rows.append(Prediction(f"made:{name}:{index}", answer, predicted, f"made:{name}", None, operation))
    return rows


def _ours(file: Path, out: Path) -> tuple[float, float]:
    """CPU and wall-clock seconds."""
    begin, begin_wall = process_time(), perf_counter()
    evaluate(file, out, draws=DRAWS, seed=SEED, max_answer=MAX_ANSWER)
    return process_time() - begin, perf_counter() - begin_wall


def _loop(file: Path) -> tuple[float, float]:
    """CPU seconds for the metrics of each problem, and for `LOOP_DRAWS` resamples of every group."""
    begin = process_time()
    rows = read_predictions(file)
    answers = [read_answer(row.answer, row.prediction, max_answer=MAX_ANSWER) for row in rows]
    columns = {name: [metric.function(answer) for answer in answers] for name, metric in METRICS.items()}
    read = process_time()
    groups: dict[Any, list[int]] = {}
    for index, row in enumerate(rows):
        for key in (row.set, row.operation, (row.set, row.operation)):
            groups.setdefault(key, []).append(index)
    rng = random.Random(SEED)
    for chosen in groups.values():
        for column in columns.values():
            for _ in range(LOOP_DRAWS):
                drawn = [column[index] for index in rng.choices(chosen, k=len(chosen))]
                present = [value for value in drawn if value is not None]
                _ = sum(present) / len(present) if present else math.nan
    return read - begin, process_time() - read
