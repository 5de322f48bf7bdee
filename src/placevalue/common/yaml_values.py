"""Read YAML that anyone may have written, in bounded time and memory."""

import re
from collections import Counter
from typing import Any

from placevalue.common.errors import ConfigError
from placevalue.common.files import is_deep
from placevalue.common.text import is_unicode

LONGEST = 100_000
"""Characters of a text, also with all aliases (`*name`) written out; a recipe has about a thousand."""
LONGEST_NUMBER = 400
"""Characters of a whole number; Python refuses to print one of some thousand digits."""


def parse_yaml(text: str | bytes, source: object) -> Any:
    """A recipe, or the value of an override; an error names its `source`."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Reads 1e-4 as a number, which YAML 1.1 does not."""

    number = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)[eE][-+]?\d+$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    try:
        if len(text) > LONGEST:
            raise ConfigError(f"{source} has more than {LONGEST:,} characters: expected a recipe or a value of one")
        loader = Loader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        if _size(root, {}) > LONGEST:
            raise ConfigError(f"{source} has more than {LONGEST:,} characters with its aliases written out: use fewer")
        value = loader.construct_document(root)
        if is_deep(value):
            raise RecursionError
        return value
    except RecursionError:
        raise ConfigError(f"{source} is nested too deeply: expected keys and values, and lists of values") from None
    # The last three: a value that does not fit its tag, such as a date that does not exist.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        raise ConfigError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


def _size(node: Any, sizes: dict[int, float]) -> float:
    """The number of characters below a node with all aliases written out; infinite if it contains itself."""
    if id(node) in sizes:
        return sizes[id(node)]
    sizes[id(node)] = float("inf")
    if isinstance(node.value, str):
        size = float(len(node.value))
        if node.tag.endswith(":int") and size > LONGEST_NUMBER:
            raise ValueError(f"a number of {len(node.value):,} digits")
        if not is_unicode(node.value):
            raise ValueError(f"{node.value!r} is not Unicode text")
    else:
        pairs = node.value and isinstance(node.value[0], tuple)
        repeated = Counter(key.value for key, _ in node.value if isinstance(key.value, str)) if pairs else Counter()
        if twice := [key for key, count in repeated.items() if count > 1]:
            raise ValueError(f"the key {twice[0]!r} is there twice")
        children = (child for pair in node.value for child in pair) if pairs else node.value
        size = sum((_size(child, sizes) for child in children), 1.0)
    sizes[id(node)] = size
    return size
