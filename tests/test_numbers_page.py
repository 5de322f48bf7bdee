"""docs/numbers.md: its tables are what the code does."""

import re
from pathlib import Path

import pytest

from placevalue import IGNORE_PRESETS, PATTERNS, find_numerals

PAGE = Path(__file__).parents[1] / "docs" / "numbers.md"
FORMS = [
    "12", "3.5", ".5", "5.", "-5", "+5", "-0", "5-3", "page 3-4", "- 5", "−5", "$1,250.50", "-$1,250", "1,000,000", "1e5", "2.5E-3",
    "1.250,00", "1.250", "0,5", "5,100,200", "5, 100, 200", "1,2,3", "12,34", "(1,250)", "($1,250)", "(12.5%)", "f(5)", "(-3)", "50%", "5kg",
    "3/4", "3x4", "1.2.3", "1 250", "½ ² Ⅳ",
]  # fmt: skip
TEXTS = [
    "1999", "1990s", "$1999", "2000 apples", "1850", "2024-01-15", "15.01.2024", "1/15/2024", "March 3, 2024", "3rd of May", "10:30",
    "3 pm", "4:3", "2024-01-15T10:30:00Z", "+49 30 1234567", "(555) 123-4567", "555-1234", "030 1234567", "room12b", "ID-4711",
    "v2.0.1", "192.168.0.1", "0x1F", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "#5", "5kg", "12th", "1e5",
]  # fmt: skip


def numbers(text, pattern="extended", ignore=None):
    values = [format(each.value, "f") for each in find_numerals(text, pattern, ignore)]
    return " and ".join(values) or "none"


def forms():
    rows = [[f"`{text}`", *(numbers(text, pattern) for pattern in PATTERNS)] for text in FORMS]
    return table(["text", *(f"`{pattern}`" for pattern in PATTERNS)], rows)


def presets():
    rows = []
    for text in TEXTS:
        alone = [name for name in IGNORE_PRESETS if numbers(text, ignore=name) == "none"]
        partly = [
            f"{name} in part" for name in IGNORE_PRESETS if numbers(text, ignore=name) not in ("none", numbers(text))
        ]
        rows.append([f"`{text}`", numbers(text), ", ".join([*alone, *partly])])
    return table(["text", "numbers", "left alone by"], rows)


def table(head, rows):
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in [head, ["---"] * len(head), *rows])


@pytest.mark.parametrize("name, made", [("forms", forms), ("presets", presets)])
def test_the_tables_are_what_the_code_does(name, made):
    found = re.search(rf"<!-- {name} -->\n\n(.*?)\n\n<!-- end of {name} -->", PAGE.read_text(), re.DOTALL)
    assert found[1] == made(), f"write this into docs/numbers.md:\n{made()}"


def test_every_pattern_and_preset_is_explained():
    for name in [*PATTERNS, *IGNORE_PRESETS]:
        assert f"\n| `{name}` | " in PAGE.read_text(), name
