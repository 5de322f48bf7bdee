"""Run the benchmarks, all or those named, print their ratios, and exit with 1 if a target is missed."""

import argparse
import os

from benchmarks import attach, fermat_data, generation, loss, neighbours, scoring, tokenisation
from benchmarks.results import print_table, write_record

BENCHMARKS = {
    "tokenisation": tokenisation.run,
    "attach": attach.run,
    "loss": loss.run,
    "neighbours": neighbours.run,
    "scoring": scoring.run,
    "fermat_data": fermat_data.run,
    "generation": generation.run,
}


def main() -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all where none is given")
    names = parser.parse_args().names or list(BENCHMARKS)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"{', '.join(unknown)}: expected names of {', '.join(BENCHMARKS)}")
    missed = 0
    for name in names:
        load = os.getloadavg()
        outcome = BENCHMARKS[name]()
        path = write_record(name, outcome, load)
        print_table(name, outcome.checks)
        missed += sum(check.passed is False for check in outcome.checks)
        print(f"recorded in {path.parent.name}/{path.name}; load was {load[0]:.1f} at the start\n")
    print(f"{missed} targets missed" if missed else "every target met")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
