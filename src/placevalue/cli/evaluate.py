"""evaluate: predictions to scores."""

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
    verb.add_argument("--compare", action="store_true", help="test two runs on the same problems against each other")
    verb.add_argument("--allow-leakage", action="store_true", help="score models on problems that they have seen")
    verb.add_argument("--draws", type=int, default=DRAWS, help="resamples behind the intervals")
    verb.add_argument("--seed", type=int, default=0, help="makes the resamples")
    verb.add_argument(
        "--max-answer", type=int, metavar="TOKENS", help="target tokens, where the predictions do not say"
    )
    verb.add_argument("--metrics", nargs="+", choices=list(METRICS), default=SHOWN, metavar="NAME", help="what to show")
    verb.add_argument("--out", type=Path, metavar="FILE", help="where the record goes; score.json in the folder if not")


def run(options: argparse.Namespace) -> None:
    """Score predictions by set and operation, with intervals; with --compare, test two runs against each other."""
    if options.compare and len(options.paths) != 2:
        raise PlacevalueError(f"--compare takes two paths, and {len(options.paths)} were given")
    if options.out is not None and len(options.paths) > 1:
        raise PlacevalueError("--out takes one path: leave it out and each folder gets its own score.json")
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
