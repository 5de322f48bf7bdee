"""Text that others wrote, made safe to print and to write."""

import re

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""The text with `\x1b` in place of an escape, and so on for all that a terminal would obey instead of show."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_unicode(text: str) -> bool:
    """Whether a text can be written in UTF-8, which half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
