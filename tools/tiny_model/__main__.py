"""The command line: `python -m tools.tiny_model prepare FOLDER`, then, after training, `... take RUN`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.progress import Progress

from placevalue.common.errors import PlacevalueError
from tools.tiny_model.model import prepare, take
from tools.tiny_model.pretraining import ROWS


def main(words: Sequence[str] | None = None) -> int:
    """Run one step; the exit status is 0, or 1 after an error that the user can fix."""
    parser = argparse.ArgumentParser(prog="python -m tools.tiny_model", description="Build the bundled model.")
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    step = steps.add_parser("prepare", help="write the pre-training data and the untrained model")
    step.add_argument("folder", type=Path, help="where they go; pretrain.yaml expects runs/tiny")
    step = steps.add_parser("take", help="copy a trained run into the wheel as its bundled model")
    step.add_argument("run", type=Path, help="the folder of a finished run")
    options = parser.parse_args(words)
    try:
        if options.step == "take":
            print(f"{take(options.run)}: the model of {options.run}")
            return 0
        with Progress() as progress:
            task = progress.add_task("rows", total=sum(ROWS.values()))
            prepare(options.folder, lambda rows: progress.advance(task, rows), progress.console.print)
    except (PlacevalueError, OSError) as error:
        print(f"tools.tiny_model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
