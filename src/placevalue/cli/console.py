"""The terminal that every verb prints to."""

from typing import TYPE_CHECKING

from placevalue.common.errors import PlacevalueError

if TYPE_CHECKING:
    from rich.console import Console


def make_console(record: bool = False) -> "Console":
    """Make a rich console; with `record`, it can be exported."""
    try:
        from rich.console import Console
    except ImportError:
        raise PlacevalueError("the command line needs rich: pip install 'placevalue[cli]'") from None
    return Console(highlight=False, record=record, emoji=False)
