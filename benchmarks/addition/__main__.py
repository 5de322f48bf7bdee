"""Train the models of the study, or report on them.

python -m benchmarks.addition run --jobs 16 --deadline 480    # repeat until no run is missing
python -m benchmarks.addition report
"""

import argparse
from pathlib import Path

from benchmarks.addition.grid import Grid
from benchmarks.addition.page import render_page
from benchmarks.addition.record import build_record, write_record
from benchmarks.addition.study import run_study
from placevalue.common.files import write_whole

HERE = Path(__file__).parent
RUNS = Path(".cache/addition")


def main(arguments: list[str] | None = None, grid: Grid | None = None) -> int:
    """Run the command line; returns 1 if runs are still missing."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.addition", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="train the models that are missing")
    run.add_argument("--jobs", type=int, default=1, help="runs in parallel, one thread each (default: 1)")
    run.add_argument("--deadline", type=float, metavar="SECONDS", help="start no run after this time")
    report = verbs.add_parser("report", help="write record.json and README.md from the runs")
    report.add_argument("--to", type=Path, default=HERE, help="folder for both (default: benchmarks/addition)")
    for verb in (run, report):
        verb.add_argument("--runs", type=Path, default=RUNS, help=f"folder of the runs (default: {RUNS})")
    given = parser.parse_args(arguments)
    grid = grid or Grid()
    if given.verb == "run":
        missing = run_study(grid, given.runs, given.jobs, given.deadline)
        print(f"{missing} runs are still missing" if missing else "all runs are done")
        return 1 if missing else 0
    record = build_record(grid, given.runs)
    write_record(given.to / "record.json", record)
    write_whole(given.to / "README.md", render_page(record))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
