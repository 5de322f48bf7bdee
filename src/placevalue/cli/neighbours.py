"""placevalue neighbours: measure a model's number space."""

import argparse
import json
from pathlib import Path

from placevalue.cli.console import make_console
from placevalue.common.errors import PlacevalueError
from placevalue.common.registry import PRETRAINED


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `neighbours`."""
    verb.add_argument("--model", required=True, help=f"a hub name, a folder, or one of {', '.join(PRETRAINED)}")
    out = "where records and figures go (default: %(default)s)"
    verb.add_argument("--out", type=Path, default=Path("results/neighbours"), help=out)
    verb.add_argument("--number", type=int, default=55, help="draw this number's neighbourhood (default: %(default)s)")
    verb.add_argument("--layer", type=int, help="measure the hidden states at [AGG] after this layer instead")
    verb.add_argument("--aggregation", default="weighted", help="with --layer, the aggregation (default: %(default)s)")
    verb.add_argument("--digits", type=int, default=4, help="with --layer, the longest numbers (default: %(default)s)")


def run(options: argparse.Namespace) -> None:
    """Measure a model's number space: neighbourhood F1, precision, drift and the paper's claims; draw the figures."""
    try:
        import matplotlib  # noqa: F401
        import scipy  # noqa: F401
    except ImportError as error:
        raise PlacevalueError(f"{error.name} is missing: pip install 'placevalue[all]'") from None
    console = make_console()
    from rich.markdown import Markdown
    from rich.progress import Progress

    from placevalue.evaluation.number_space import layer_f1, load_digit_rows, load_number_tokens, survey, survey_parts
    from placevalue.numbers.aggregation import AGGREGATIONS
    from placevalue.reports.figures import draw_all, markdown

    if options.layer is not None:
        for length, f1 in layer_f1(options.model, options.aggregation, options.layer, options.digits).items():
            console.print(f"{length} digits: {f1:.3f}")
        return
    folder = options.out / Path(options.model).name
    with Progress(console=console) as progress:
        task = progress.add_task(options.model, total=sum(1 for _ in survey_parts(list(AGGREGATIONS))))
        say = lambda part: progress.update(task, advance=1, description=f"{options.model}: {part}")  # noqa: E731
        record = survey(options.model, folder / "record.json", say)
    files = draw_all(record, load_digit_rows(options.model), load_number_tokens(options.model), folder, options.number)
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(options.out.glob("*/record.json"))]
    (options.out / "README.md").write_text(markdown(records), encoding="utf-8")
    console.print(Markdown(markdown([record]).partition("## ")[2]))
    console.print(f"wrote {options.out / 'README.md'} and {len(files)} figures in {folder}")
