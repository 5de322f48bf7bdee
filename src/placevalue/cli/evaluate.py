"""placevalue evaluate: score predictions."""

import argparse
from pathlib import Path

from placevalue.cli.console import make_console
from placevalue.common.errors import PlacevalueError
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.scoring import compare, evaluate, load_predictions
from placevalue.evaluation.statistics import DRAWS
from placevalue.reports.terminal import SHOWN, comparison_table, score_table


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `evaluate`."""
    verb.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a folder of predictions, or a JSONL file")
    verb.add_argument("--compare", action="store_true", help="test whether two runs on the same problems differ")
    verb.add_argument("--allow-leakage", action="store_true", help="score models on problems that they were trained on")
    verb.add_argument("--draws", type=int, default=DRAWS, help="number of bootstrap resamples (default: %(default)s)")
    verb.add_argument("--seed", type=int, default=0, help="seed of the resamples (default: %(default)s)")
    verb.add_argument("--max-answer", type=int, metavar="TOKENS", help="token limit, if the predictions record none")
    verb.add_argument("--metrics", nargs="+", choices=list(METRICS), default=SHOWN, metavar="NAME", help="what to show")
    verb.add_argument("--out", type=Path, metavar="FILE", help="the record's file (default: score.json in the folder)")


def run(options: argparse.Namespace) -> None:
    """Score predictions by set and operation, with intervals; with --compare, test whether two runs differ."""
    if options.compare and len(options.paths) != 2:
        raise PlacevalueError(f"--compare got {len(options.paths)} paths, expected two: give two runs to compare")
    if options.out is not None and len(options.paths) > 1:
        raise PlacevalueError("--out works with one path only: without it, each folder gets its own score.json")
    console = make_console()
    settings = (options.out, options.draws, options.seed, options.allow_leakage, options.max_answer)
    records = [evaluate(path, *settings) for path in options.paths]
    for path, record in zip(options.paths, records, strict=True):
        console.print(score_table(record, str(path), options.metrics))
        for note in record.notes:
            console.print(f"note: {note}", markup=False)
    if options.compare:
        first, second = map(load_predictions, options.paths)
        console.print(comparison_table(compare(first, second, options.draws, options.seed), *map(str, options.paths)))
