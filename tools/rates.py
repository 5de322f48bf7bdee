"""Write src/placevalue/experiments/rates.json: how fast training and answering went in the committed records.

Run: `python -m tools.rates`; `make results` does. A test compares the file with the records.
"""

from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any

from placevalue.common.files import read_json, write_json
from placevalue.common.records import PREDICTION_RECORD, PredictionRecord, TrainRecord, read_record
from placevalue.experiments.cost import RATES
from placevalue.experiments.run_folder import ANSWERS, RECORD
from placevalue.experiments.shapes import model_config, model_size

TOKENS = ("question_tokens", "answer_tokens")
ROOT = Path(__file__).parents[1]


def rates() -> list[dict[str, Any]]:
    """One row for each committed experiment, and for each model of a benchmark of training."""
    folders = sorted({path.parents[1] for path in (ROOT / "results").glob(f"*/*/{RECORD}")})
    benchmarks = sorted((ROOT / "benchmarks" / "records").glob("train_*.json"))
    return [_of_experiment(each) for each in folders] + [row for each in benchmarks for row in _of_benchmark(each)]


def _of_experiment(folder: Path) -> dict[str, Any]:
    places = [path.parent for path in sorted(folder.glob(f"*/{RECORD}"))]
    runs = [read_record(each / RECORD, TrainRecord) for each in places]
    answers = [read_record(each / ANSWERS / PREDICTION_RECORD, PredictionRecord) for each in places]
    (device,) = {each.provenance["device"] for each in runs}
    (model,) = {each.model for each in runs}
    training = runs[0].config["training"]
    batch = training["batch_size"] * training.get("accumulation", 1)
    seconds = [sum(each.durations.values()) for each in runs]
    # A record's time is its end, so the runs that shared the device are known.
    ends = [datetime.fromisoformat(each.provenance["time"]).timestamp() for each in runs]
    busy = _covered([(end - took, end) for end, took in zip(ends, seconds, strict=True)])
    size = model_size(model_config(model))
    problems = sum(each.counts["problems"] for each in runs)
    samples = sum(each.epochs * each.counts["problems"] for each in runs)
    question, answer = (sum(each.counts[name] for each in runs) / problems for name in TOKENS)
    at_once = sum(seconds) / busy
    return {
        "source": folder.relative_to(ROOT).as_posix(),
        "device": device,
        "two_part": size.two_part,
        "engine": training.get("engine", "standard"),
        "precision": training["precision"],
        "batch": batch,
        "runs": len(runs),
        "at_once": round(at_once, 2),
        "flops": round(size.flops(question, answer)),
        "seconds_a_step": float(f"{busy / sum(each.steps for each in runs):.4g}"),
        "seconds_a_sample": float(f"{busy / samples:.4g}"),
        "beams": answers[0].config["beams"],
        "seconds_an_answer": float(
            f"{mean(each.durations['generate'] for each in answers) / answers[0].counts['problems'] / at_once:.4g}"
        ),
    }


def _of_benchmark(path: Path) -> list[dict[str, Any]]:
    record = read_json(path)
    source = path.relative_to(ROOT).as_posix()
    return [{"source": source, "device": record["config"]["device"]} | row for row in record["raw"]["rates"]]


def _covered(spans: list[tuple[float, float]]) -> float:
    """The seconds that are in at least one span."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


if __name__ == "__main__":
    write_json(RATES, rates())
