"""What a command line may say: whole numbers in a range, paths, flags from dataclasses, overrides anywhere."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from placevalue.common.validation import nearest
from placevalue.experiments.recipe import SEEDS
from placevalue.experiments.settings import LARGEST

_OVERRIDE = re.compile(r"[A-Za-z_][\w.]*=.*", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """Says which choice was probably meant."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = nearest(value, map(str, action.choices or ()))
            error.message += f": is {near} meant?" if near else ""
            raise


@dataclass(frozen=True)
class Whole:
    """The type of an option that is a whole number, both ends included."""

    least: int = 0
    most: int = LARGEST

    def __call__(self, text: str) -> int:
        """The number, or an error that says what was expected."""
        try:
            number = int(text)
        except ValueError:
            number = self.least - 1
        if not self.least <= number <= self.most:
            given = text if len(text) <= 40 else f"{text[:37]}..."
            raise argparse.ArgumentTypeError(f"{given!r}: expected a whole number from {self.least} to {self.most:,}")
        return number


SEED = Whole(0, SEEDS - 1)


def a_path(text: str) -> Path:
    """The type of an option that is a path; an empty one, from a variable that is not set, is refused."""
    if not text:
        raise argparse.ArgumentTypeError("'': expected a path")
    return Path(text)


def define_fields(verb: argparse.ArgumentParser, settings: Any, about: Mapping[str, str]) -> None:
    """Add a flag for each field of a dataclass, with its default."""
    kinds = get_type_hints(settings)
    for each in fields(settings):
        choices = get_args(kinds[each.name])
        kind: dict[str, Any] = {"choices": choices} if choices else {"type": Whole()}
        assert choices or kinds[each.name] is int
        text = f"{about[each.name]} (default: %(default)s)"
        verb.add_argument(f"--{each.name.replace('_', '-')}", default=each.default, help=text, **kind)


def read_fields(options: argparse.Namespace, settings: Any) -> Any:
    """The dataclass from its flags."""
    return settings(**{each.name: getattr(options, each.name) for each in fields(settings)})


def pull_overrides(verb: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words without KEY=VALUE overrides, and these: all but the values of options such as `--search KEY=VALUES`.

    A list such as that of `--methods` ends where an override begins. argparse takes none after the first option.
    """
    if not any(action.dest == "overrides" for action in verb._actions):
        return list(words), []
    rest: list[str] = []
    overrides: list[str] = []
    is_value = False
    for word in words:
        (overrides if _OVERRIDE.fullmatch(word) and not is_value else rest).append(word)
        is_value = word.startswith("--") and any(
            name.startswith(word) and action.nargs is None for action in verb._actions for name in action.option_strings
        )
    return rest, overrides
