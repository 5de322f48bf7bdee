"""The terminal that every verb prints to, and its progress bars."""

from typing import TYPE_CHECKING, Any

from placevalue.common.errors import PlacevalueError
from placevalue.common.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def make_console(record: bool = False) -> "Console":
    """A rich console for text from anyone; with `record`, it can be exported."""
    try:
        from rich.console import Console
        from rich.control import Control
    except ImportError:
        raise PlacevalueError("the command line needs rich: pip install 'placevalue[all]'") from None

    class Terminal(Console):
        """Prints a text as it is: its control characters and markup do nothing, and the terminal wraps long lines."""

        def print(self, *objects: Any, **options: Any) -> None:
            if all(isinstance(each, str) for each in objects):
                options = {"soft_wrap": True, **options}
            elif not any(isinstance(each, Control) for each in objects):
                options = {"crop": False, **options}  # the titles of tables are names of files
            super().print(*(visible(each) if isinstance(each, str) else each for each in objects), **options)

    return Terminal(highlight=False, record=record, emoji=False, markup=False)


def make_progress(console: "Console", **options: Any) -> "Progress":
    """Progress bars with the time left; each task has a field `text`, such as `3 of 10`."""
    from rich import progress as rich

    texts = [rich.TextColumn(each, markup=False) for each in ("{task.description}", "{task.fields[text]}")]
    times = (rich.TimeElapsedColumn(), rich.TextColumn("left"), rich.TimeRemainingColumn(elapsed_when_finished=True))
    return rich.Progress(texts[0], rich.BarColumn(), texts[1], *times, console=console, **options)
