"""The command line: each verb parses its flags and calls one function."""

import argparse
import sys
from collections.abc import Sequence

from placevalue.cli.verbs import Verbs, add_verbs, looking, problems, reporting, reproducing, running, sweeping
from placevalue.common.errors import PlacevalueError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status is 0, or 1 where something the user can mend went wrong."""
    parser = argparse.ArgumentParser(prog="placevalue", description="Teach language models what a number is worth.")
    add_verbs(parser, "VERB", VERBS)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (PlacevalueError, OSError) as error:
        print(f"placevalue: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


VERBS: Verbs = {
    "inspect": (looking.define_inspect, looking.run_inspect),
    "fetch": (looking.define_fetch, looking.run_fetch),
    "neighbours": (looking.define_neighbours, looking.run_neighbours),
    "data": (problems.define_data, problems.run_data),
    "train": (running.define_train, running.run_train),
    "generate": (running.define_generate, running.run_generate),
    "evaluate": (running.define_evaluate, running.run_evaluate),
    "reproduce": (reproducing.define_reproduce, reproducing.run_reproduce),
    "report": (reporting.define_report, reporting.run_report),
    "sweep": (sweeping.define_sweep, sweeping.run_sweep),
}

if __name__ == "__main__":
    sys.exit(main())
