"""What each preset takes for a year, a date, a time, a phone number or an identifier, and what it leaves a number."""

import pytest

from placevalue import IGNORE_PRESETS, find_numerals

# A text, and the numbers that are left in it.
CASES = {
    "years": {
        "in 1999, 2024 and 1850": ["1850"],
        "the 1990s, 2000's (2010) mid-1970s 1999-2005": [],
        "$1999 1999.5 1,999 2000% €2000 2,000 20000 -2000": ["1999", "1999.5", "1,999", "2000", "2000", "2,000", "20000", "-2000"],
        "x2000 2000x 2000:30 #2000": ["2000", "2000", "2000", "30", "2000"],
        "2000 apples": [],  # the word after it does not count
    },
    "dates": {
        "2024-01-15, 2024/1/15 and 2024.01.15": [],
        "1/15/2024 15.01.2024 1-2-2024 3/4/24": [],
        "2024-01-15T10:30:00Z 2024-01-15T10:30+01:00": [],
        "March 3, 2024; Jan. 5; 3rd of March 2024; 3 May, 2024; Sept 30th; May 2024": [],
        "May 45, 3,500 in March, March 3,500, Marches 3": ["45", "3,500", "3,500", "3"],
        "3/4 and 1/2/3 in 1999": ["3", "4", "1", "2", "3", "1999"],
    },
    "times": {
        "10:30, 9:05:30.25, 23:59 and 10:30-11:15": [],
        "3 pm, 3pm, 11:30 p.m., 12 AM": [],
        "3:2 25:00 12:345 13 pm $3:30": ["3", "2", "25", "00", "12", "345", "13", "3", "30"],
    },
    "phones": {
        "+49 30 1234567, +1 (555) 123-4567, +49(30)1234567, +493012345678": [],
        "(555) 123-4567, 555-123-4567, 555.123.4567, 1-800-555-0199": [],
        "030 1234567, (089) 1234567, 020 7946 0958, 01 23 45 67 89": [],
        "+5, +49, 555-1234, 100-2000, 1,234,567, 03-04-2024": ["+5", "+49", "555", "1234", "100", "2000", "1,234,567", "03", "04", "2024"],
    },
    "identifiers": {
        "room12b A4 x_1 ID-4711 COVID-19 AB-12-34 v2.0.1 #5": [],
        "1.2.3 192.168.0.1 0x1F 12345678-1234-1234-1234-123456789abc 3f2504e0-4f89-11d3-9a0c-0305e82c3301": [],
        "3f2504e 4B2": [],
        "5kg 12th 3x4 1e5 2.5E3 3D top-10 12.345.678,9 1.5": ["5", "12", "3", "4", "1e5", "2.5E3", "3", "10", "12.345", ".678", "9", "1.5"],
    },
}  # fmt: skip


@pytest.mark.parametrize(("preset", "text"), [(preset, text) for preset, texts in CASES.items() for text in texts])
def test_presets_by_hand(preset, text):
    assert [each.text for each in find_numerals(text, ignore=preset)] == CASES[preset][text]


def test_presets_combine_with_each_other_and_with_your_own_in_any_order():
    text = "On 2024-01-15 at 10:30 room12b had 3 of 1999 and ID 7"
    every = [*IGNORE_PRESETS, "ID [0-9]+"]
    for parts in (every, every[::-1]):
        assert [each.text for each in find_numerals(text, ignore=tuple(parts))] == ["3"]
    assert [each.text for each in find_numerals(text, ignore=("years", "times"))] == ["01", "15", "12", "3", "7"]
    assert find_numerals(text, ignore=()) == find_numerals(text)


def test_a_bracketed_year_is_no_amount():
    assert [each.text for each in find_numerals("(1999) (1,999)", "accounting", "years")] == ["(1,999)"]
