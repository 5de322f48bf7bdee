"""inspect: show how a text is tokenized."""

import argparse
import re
from pathlib import Path
from typing import get_args

from placevalue.cli.console import make_console
from placevalue.common.hub import load_tokenizer
from placevalue.common.registry import PRETRAINED
from placevalue.numbers.config import Decimals, Position, Token


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `inspect`."""
    verb.add_argument("text", help="the text to look at")
    verb.add_argument("--model", required=True, help=f"a hub name, a folder, or one of {', '.join(PRETRAINED)}")
    verb.add_argument("--token", choices=["none", *get_args(Token)], default="agg", help="the extra token of a number")
    verb.add_argument("--position", choices=get_args(Position), default="before", help="where the extra token goes")
    verb.add_argument("--pattern", default="paper", help="paper, extended, or a regular expression for numbers")
    verb.add_argument("--ignore", help="a regular expression for text to leave alone")
    decimals = "how digits after the point count"
    verb.add_argument("--decimals", choices=get_args(Decimals), default="places", help=decimals)
    verb.add_argument("--svg", type=Path, metavar="FILE", help="also write the picture to a file")


def run(options: argparse.Namespace) -> None:
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
        # Opening the picture must not download fonts.
        options.svg.write_text(re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL), encoding="utf-8")
