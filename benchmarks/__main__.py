"""Run benchmarks, all or those named, and print their ratios. Exits with 1 if a target is missed."""

import argparse

from benchmarks import attach, fermat_data, generation, loss, memory, neighbours, patterns, scoring, tokenisation
from benchmarks.results import measure

BENCHMARKS = {
    "tokenisation": tokenisation.run,
    "patterns": patterns.run,
    "attach": attach.run,
    "loss": loss.run,
    "neighbours": neighbours.run,
    "scoring": scoring.run,
    "memory": memory.run,
    "fermat_data": fermat_data.run,
    "generation": generation.run,
}


def main() -> int:
    """Run the benchmarks that the command line names."""
    known = ", ".join(BENCHMARKS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {known} (default: all)")
    names = parser.parse_args().names or list(BENCHMARKS)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"unknown benchmark {', '.join(unknown)}: choose from {known}")
    missed = sum(measure(name, BENCHMARKS[name]) for name in names)
    print(f"{missed} targets missed" if missed else "all targets met")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
