"""The verbs of the command line: each has a function that defines its flags and one that runs it."""

import argparse
from collections.abc import Callable, Mapping

Verbs = Mapping[str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]]


def add_verbs(parser: argparse.ArgumentParser, metavar: str, verbs: Verbs) -> None:
    """Give a parser its verbs; the one that is chosen leaves its function in `options.run`."""
    actions = parser.add_subparsers(required=True, metavar=metavar)
    for name, (define, run) in verbs.items():
        about = (run.__doc__ or "").splitlines()[0]
        verb = actions.add_parser(name, help=about, description=about)
        verb.set_defaults(run=run)
        define(verb)
