"""Compile regular expressions that Python and the tokenizer must read alike."""

import re
from functools import lru_cache

from placevalue.common.errors import ConfigError


@lru_cache(maxsize=64)
def compiled(regex: str, setting: str) -> re.Pattern[str]:
    """A regular expression over ASCII classes; an error names the setting that it comes from."""
    try:
        found = re.compile(regex, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"{setting}={regex!r} is not a valid regular expression: {error}") from None
    if found.match(""):
        raise ConfigError(f"{setting}={regex!r} matches empty text: make it match at least one character")
    return found
