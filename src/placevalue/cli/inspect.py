"""inspect: show how a text is tokenized."""

import argparse
import re
from typing import get_args

from placevalue.cli.arguments import a_path
from placevalue.cli.console import make_console
from placevalue.common.hub import load_tokenizer
from placevalue.common.ownership import replace_own
from placevalue.common.registry import PRETRAINED
from placevalue.numbers.config import Decimals, Position, Token
from placevalue.numbers.ignore import IGNORE_PRESETS
from placevalue.numbers.numerals import DEFAULT_PATTERN, PATTERNS


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `inspect`."""
    verb.add_argument("text", help="the text to look at")
    verb.add_argument("--model", required=True, help=f"a hub name, a folder, or one of {', '.join(PRETRAINED)}")
    verb.add_argument("--token", choices=["none", *get_args(Token)], default="agg", help="the extra token of a number")
    verb.add_argument("--position", choices=get_args(Position), default="before", help="where the extra token goes")
    verb.add_argument("--no-markers", action="store_true", help="write numbers without [F] and [/F]")
    patterns = f"what counts as a number: {', '.join(PATTERNS)}, or a regular expression (default: %(default)s)"
    verb.add_argument("--pattern", default=DEFAULT_PATTERN, help=patterns)
    ignored = f"text to leave alone: {', '.join(IGNORE_PRESETS)}, or a regular expression; may be given several times"
    verb.add_argument("--ignore", action="append", help=ignored)
    decimals = "how digits after the point count"
    verb.add_argument("--decimals", choices=get_args(Decimals), default="places", help=decimals)
    verb.add_argument("--svg", type=a_path, metavar="FILE", help="also write the picture to a file")


def run(options: argparse.Namespace) -> None:
    """Show what a text becomes: its pieces, each number's digits, places, weights and value, and the cost."""
    from placevalue.tokenizer.inspection import inspect_text, render
    from placevalue.tokenizer.tokenizer import number_tokenizer

    base = load_tokenizer(options.model)
    token = None if options.token == "none" else options.token
    ignore = None if options.ignore is None else tuple(options.ignore)
    markers = not options.no_markers
    tokenizer = number_tokenizer(base, token, options.position, options.pattern, ignore, markers=markers)
    title = f"{options.model}: token={options.token}, position={options.position}, pattern={options.pattern}"
    title += (f", ignore={', '.join(ignore)}" if ignore else "") + ("" if markers else ", no markers")
    console = make_console(record=options.svg is not None)
    console.print(render(inspect_text(options.text, base, tokenizer, options.decimals), title))
    if options.svg is not None:
        picture = console.export_svg(title="placevalue inspect")
        # Opening the picture must not download fonts.
        replace_own(options.svg, re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL), "placevalue&#160;inspect")
