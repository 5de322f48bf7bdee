"""How much memory scoring takes: peak resident memory of `placevalue evaluate` on 1,000 to a million predictions.

Each size is scored in a process of its own, with few resamples: their number does not change what is in memory.

Run: `python -m benchmarks memory`
"""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.results import Check, Outcome
from placevalue import evaluate
from placevalue.common.records import Prediction, write_predictions

SIZES, DRAWS, SETS, SEED = (1_000, 10_000, 100_000, 1_000_000), 20, 4, 0
GROWTH = 400.0  # bytes


def run() -> Outcome:
    """Measure every size."""
    with TemporaryDirectory() as folder:
        peaks = {}
        for size in SIZES:
            file = Path(folder) / f"{size}.jsonl"
            write_predictions(_predictions(size), file)
            done = subprocess.run([sys.executable, "-m", "benchmarks.memory", file], capture_output=True, check=True)
            peaks[size] = int(done.stdout)
            print(f"{size:>9,} predictions: {peaks[size] / 1e6:,.0f} MB")
    small, large = SIZES[-2:]
    growth = (peaks[large] - peaks[small]) / (large - small)
    note = f"{peaks[small] / 1e6:,.0f} MB at {small:,}, {peaks[large] / 1e6:,.0f} MB at {large:,}"
    checks = [Check("bytes for each further prediction", growth, at_most=GROWTH, note=note)]
    config = {"sizes": list(SIZES), "draws": DRAWS, "sets": SETS, "seed": SEED}
    return Outcome(config, checks, {"peak_bytes": {str(size): peak for size, peak in peaks.items()}})


def _predictions(size: int) -> Iterator[Prediction]:
    """Generated problems with their questions; half of the predictions are right."""
    draw = random.Random(SEED)
    for index in range(size):
        gold, other = draw.randint(1, 99_999), draw.randint(1, 999)
        question = f"Tom has {gold} apples and buys {other} more. How many apples does he have now?"
        answer = str(gold + other)
        predicted = answer if draw.random() < 0.5 else str(draw.randint(1, 99_999))
        name = f"made:{index % SETS}"
        yield Prediction(f"{name}:{index}", answer, predicted, name, question, "+-*/"[index % 4], True)


def _measure(file: str) -> None:
    """Print the most memory that this process ever had, in bytes; `ru_maxrss` would also count its parent's."""
    evaluate(file, draws=DRAWS, seed=SEED)
    (peak,) = re.findall(r"VmHWM:\s+([0-9]+) kB", Path("/proc/self/status").read_text())
    print(int(peak) * 1024)


if __name__ == "__main__":
    _measure(sys.argv[1])
