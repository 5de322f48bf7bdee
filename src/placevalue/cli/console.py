"""The terminal that every verb prints to, its progress bars, and flags from dataclasses."""

import argparse
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from placevalue.common.errors import PlacevalueError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def make_console(record: bool = False) -> "Console":
    """Make a rich console; with `record`, it can be exported."""
    try:
        from rich.console import Console
    except ImportError:
        raise PlacevalueError("the command line needs rich: pip install 'placevalue[all]'") from None
    return Console(highlight=False, record=record, emoji=False)


def make_progress(console: "Console", **options: Any) -> "Progress":
    """Progress bars with the time left; each task has a field `text`, such as `3 of 10`."""
    from rich import progress as rich

    texts = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TextColumn("{task.fields[text]}"))
    times = (rich.TimeElapsedColumn(), rich.TextColumn("left"), rich.TimeRemainingColumn(elapsed_when_finished=True))
    return rich.Progress(*texts, *times, console=console, **options)


def define_fields(verb: argparse.ArgumentParser, settings: Any, about: Mapping[str, str]) -> None:
    """Add a flag for each field of a dataclass, with its default."""
    kinds = get_type_hints(settings)
    for each in fields(settings):
        choices = get_args(kinds[each.name])
        kind: dict[str, Any] = {"choices": choices} if choices else {"type": kinds[each.name]}
        text = f"{about[each.name]} (default: %(default)s)"
        verb.add_argument(f"--{each.name.replace('_', '-')}", default=each.default, help=text, **kind)


def read_fields(options: argparse.Namespace, settings: Any) -> Any:
    """The dataclass from its flags."""
    return settings(**{each.name: getattr(options, each.name) for each in fields(settings)})
