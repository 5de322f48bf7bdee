"""placevalue evaluate: score predictions."""

import argparse

from placevalue.cli.arguments import SEED, Whole, a_path
from placevalue.cli.console import make_console
from placevalue.common.errors import PlacevalueError
from placevalue.data.corpora import copy_note
from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.scoring import compare, evaluate, load_predictions
from placevalue.evaluation.statistics import DRAWS
from placevalue.reports.terminal import SHOWN, comparison_table, score_table


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `evaluate`."""
    verb.add_argument("paths", nargs="+", type=a_path, metavar="PATH", help="folders of predictions, or JSONL files")
    verb.add_argument("--compare", action="store_true", help="test whether two runs on the same problems differ")
    verb.add_argument("--allow-leakage", action="store_true", help="score models on problems that they were trained on")
    verb.add_argument("--draws", type=Whole(1), default=DRAWS, help="bootstrap resamples (default: %(default)s)")
    verb.add_argument("--seed", type=SEED, default=0, help="seed of the resamples (default: %(default)s)")
    verb.add_argument("--max-answer", type=Whole(1), metavar="TOKENS", help="if the predictions record no token limit")
    verb.add_argument("--metrics", nargs="+", choices=list(METRICS), default=SHOWN, metavar="NAME", help="what to show")
    verb.add_argument("--out", type=a_path, metavar="FILE", help="for the record (default: score.json in the folder)")


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
        for note in (*record.notes, *filter(None, map(copy_note, record.scores))):
            console.print(f"note: {note}")
    if options.compare:
        first, second = map(load_predictions, options.paths)
        console.print(comparison_table(compare(first, second, options.draws, options.seed), *map(str, options.paths)))
