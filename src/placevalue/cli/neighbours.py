"""placevalue neighbours: measure a model's number space."""

import argparse
import json
from pathlib import Path

from placevalue.cli.arguments import Whole, a_path
from placevalue.cli.console import make_console, make_progress
from placevalue.common.errors import PlacevalueError
from placevalue.common.ownership import replace_own
from placevalue.common.registry import PRETRAINED


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `neighbours`."""
    verb.add_argument("--model", required=True, help=f"a hub name, a folder, or one of {', '.join(PRETRAINED)}")
    out = "where records and figures go (default: %(default)s)"
    verb.add_argument("--out", type=a_path, default=Path("results/neighbours"), help=out)
    number = "draw the neighbourhood of this number (default: %(default)s)"
    verb.add_argument("--number", type=Whole(0, 999), default=55, help=number)
    verb.add_argument("--layer", type=Whole(), help="measure the hidden states at [AGG] after this layer instead")
    verb.add_argument("--aggregation", default="weighted", help="with --layer, the aggregation (default: %(default)s)")
    digits = "with --layer, the longest numbers (default: %(default)s)"
    verb.add_argument("--digits", type=Whole(1, 6), default=4, help=digits)


def run(options: argparse.Namespace) -> None:
    """Measure a model's number space: neighbourhood F1, precision, drift and the paper's claims; draw the figures."""
    try:
        import matplotlib  # noqa: F401
        import scipy  # noqa: F401
    except ImportError as error:
        raise PlacevalueError(f"{error.name} is missing: pip install 'placevalue[all]'") from None
    console = make_console()
    from placevalue.evaluation.number_space import layer_f1, load_digit_rows, load_number_tokens, survey, survey_parts
    from placevalue.numbers.aggregation import AGGREGATIONS
    from placevalue.reports.figures import MARK, draw_all, markdown
    from placevalue.reports.terminal import space_tables

    if options.layer is not None:
        for length, f1 in layer_f1(options.model, options.aggregation, options.layer, options.digits).items():
            console.print(f"{length} digits: {f1:.3f}")
        return
    folder = options.out / Path(options.model).name
    with make_progress(console) as bar:
        task = bar.add_task(options.model, total=sum(1 for _ in survey_parts(list(AGGREGATIONS))), text="")
        say = lambda part: bar.update(task, advance=1, text=part)  # noqa: E731
        record = survey(options.model, folder / "record.json", say)
    files = draw_all(record, load_digit_rows(options.model), load_number_tokens(options.model), folder, options.number)
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(options.out.glob("*/record.json"))]
    replace_own(options.out / "README.md", markdown(records), MARK)
    for table in space_tables(record):
        console.print(table)
    console.print(f"wrote {options.out / 'README.md'} and {len(files)} figures in {folder}")
