"""HTML and SVG from Python: whatever is not markup already is escaped, so no text can become any."""

from html import escape


class Markup(str):
    """Text that is markup, made by `tag`."""

    __slots__ = ()


def tag(name: str, *inner: object, **attributes: object) -> Markup:
    """An element; attributes that are None or False are left out, `_` in their names stands for `-`.

    Example:
        >>> tag("td", "a < b", class_="best", data_n=3)
        '<td class="best" data-n="3">a &lt; b</td>'
    """
    made = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        written = key.rstrip("_").replace("_", "-")
        made.append(f" {written}" if value is True else f' {written}="{escape(str(value))}"')
    return Markup(f"<{name}{''.join(made)}>{join(*inner)}</{name}>")


def join(*parts: object) -> Markup:
    """Several parts one after the other; None is left out."""
    return Markup(
        "".join(part if isinstance(part, Markup) else escape(str(part)) for part in parts if part is not None)
    )
