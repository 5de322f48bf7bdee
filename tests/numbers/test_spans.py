from itertools import takewhile

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from placevalue.numbers.spans import find_digits
from placevalue.tokenizer.tokenizer import number_ids
from tokenizer.test_tokenizer import numbered

TOKENIZER = numbered("bytes-gpt2", pattern="accounting")
IDS = number_ids(TOKENIZER)
SYMBOLS = "".join(TOKENIZER.convert_ids_to_tokens(list(IDS.symbols)))
tokens = st.sampled_from([IDS.open, IDS.open, IDS.close, IDS.agg, IDS.pause, *IDS.digits, *IDS.symbols, 300, 0])  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.lists(tokens, min_size=12, max_size=12), min_size=1, max_size=3))
def test_any_ids_equal_the_slow_loop(rows):
    """Whatever a model may generate or a cut may leave: digits, values and places as the slow loop reads them."""
    digits = find_digits(torch.tensor(rows), IDS)
    for row, ids in enumerate(rows):
        wanted = {}
        for start, characters, _ in oracle.numbers_in(ids, IDS, SYMBOLS):
            before = takewhile(lambda each: not each[0].isdigit(), characters)
            below = any(character in "-(" for character, _ in before)
            point = exponent = False
            mantissa, power, sign = [], "", 1
            for character, position in characters:
                if character in "eE":
                    exponent = True
                elif character == ".":
                    point = True
                elif character == "-" and exponent:
                    sign = -1
                elif character.isdigit() and exponent:
                    power += character
                elif character.isdigit():
                    mantissa.append((position, int(character), point))
            if len(power) > 4:
                return  # beyond what any pattern writes
            leading = sum(not behind for _, _, behind in mantissa) + sign * int(power or 0)
            for index, (position, value, _) in enumerate(mantissa):
                below = below and any(each for _, each, _ in mantissa)
                wanted[position] = (value, leading - 1 - index, max(leading, 1), start, int(below))
        read = (digits.values, digits.places, digits.leading, digits.numbers, digits.negative)
        found = {p: tuple(int(each[row, p]) for each in read) for p in range(len(ids)) if digits.mask[row, p]}
        assert found == wanted


def test_padding_and_position_change_nothing():
    tokenizer = numbered("bytes-gpt2")
    ids = tokenizer("the 12.5 and 3 cats")["input_ids"]
    alone = find_digits(torch.tensor([ids]), number_ids(tokenizer))
    shifted = find_digits(torch.tensor([[0, 0, *ids, 0]]), number_ids(tokenizer))
    assert torch.equal(alone.places[alone.mask], shifted.places[shifted.mask])
    assert torch.equal(alone.numbers[alone.mask] + 2, shifted.numbers[shifted.mask])


@pytest.mark.parametrize("layout", ["before", "after"])
def test_a_number_that_was_cut_counts_with_the_digits_it_has(layout):
    tokenizer = numbered("bytes-gpt2", "agg", layout)
    ids = number_ids(tokenizer)
    row = [ids.open, ids.agg, ids.digits[1], ids.digits[2]]
    digits = find_digits(torch.tensor([row]), ids, at_agg=True)
    assert digits.places[digits.mask].tolist() == [1, 0]


def test_a_number_without_the_token_it_is_folded_to_is_masked():
    one, two, three = IDS.digits[1:4]
    bare, whole = [IDS.open, one, two, IDS.close], [IDS.open, IDS.agg, three, IDS.close]
    digits = find_digits(torch.tensor([bare + whole, whole + bare]), IDS, at_agg=True)
    assert digits.mask.nonzero().tolist() == [[0, 6], [1, 2]]
    assert digits.numbers[digits.mask].tolist() == [5, 1]
    assert find_digits(torch.tensor([bare + whole]), IDS).mask.sum() == 3


def test_an_empty_batch():
    digits = find_digits(torch.zeros((2, 0), dtype=torch.long), IDS)
    assert digits.mask.shape == (2, 0)


@settings(max_examples=200)
@given(st.lists(st.lists(tokens, max_size=12), min_size=1, max_size=4), st.integers(0, 3), st.booleans(), st.booleans())
def test_padding_and_the_rest_of_a_batch_change_nothing(rows, padding, left, at_agg):
    width = max(map(len, rows)) + padding
    fill = [[0] * (width - len(row)) for row in rows]
    padded = [more + row if left else row + more for row, more in zip(rows, fill, strict=True)]
    together = find_digits(torch.tensor(padded, dtype=torch.long), IDS, at_agg=at_agg)
    for index, (row, more) in enumerate(zip(rows, fill, strict=True)):
        start = len(more) if left else 0
        alone = find_digits(torch.tensor([row], dtype=torch.long), IDS, at_agg=at_agg)
        mask = together.mask[index]
        assert mask.nonzero().flatten().tolist() == [start + i for i in alone.mask[0].nonzero().flatten().tolist()]
        for name in ("values", "places", "leading", "numbers"):
            shift = start if name == "numbers" else 0
            here, there = getattr(together, name)[index][mask], getattr(alone, name)[0][alone.mask[0]]
            assert here.tolist() == (there + shift).tolist()


@settings(max_examples=200)
@given(st.lists(tokens, min_size=1, max_size=16))
def test_numbers_at_their_agg_equal_the_slow_loop(ids):
    """Each digit's slot is the last [AGG] of its number; digits of a number without one are masked."""
    digits, everywhere = find_digits(torch.tensor([ids]), IDS, at_agg=True), find_digits(torch.tensor([ids]), IDS)
    last = {start: aggs[-1] for start, _, aggs in oracle.numbers_in(ids, IDS) if aggs}
    wanted = {p: last[s] for p, s in enumerate(everywhere.numbers[0].tolist()) if everywhere.mask[0, p] and s in last}
    assert {p: int(digits.numbers[0, p]) for p in range(len(ids)) if digits.mask[0, p]} == wanted
