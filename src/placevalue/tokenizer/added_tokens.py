"""Refuse added tokens that match inside numbers, and so take digits, points or signs out of them.

An added token is matched before the model splits a text. `<extra_id_25>` can only be itself, but `25` is also how the
number 25 is written, and a special token `25` even matches inside 1254.
"""

from collections.abc import Iterable
from itertools import product

import torch
from tokenizers import AddedToken, Tokenizer

from placevalue.common.errors import TokenizerError
from placevalue.numbers.config import Layout, NumberIds
from placevalue.numbers.numerals import find_numerals, pattern_symbols
from placevalue.numbers.spans import read_tokens

# A token is tried between these: digits, and what may connect them with a token that has none.
_BEFORE, _AFTER = ("", "0", "0.", "0e", "-"), ("", "0", "000", ".0", "e0")


def refuse_swallowing(
    tokenizer: Tokenizer, tokens: Iterable[AddedToken], layout: Layout, ids: NumberIds, reserved: str
) -> None:
    """Raise an error that names the added tokens with which numbers lose some of their characters.

    Args:
        tokenizer: The pipeline of a number tokenizer.
        tokens: Its added tokens, without the markers.
        layout: How it writes numbers.
        ids: What its numbers consist of.
        reserved: What its normalizer writes beside a number's own characters.
    """
    symbols = pattern_symbols(layout.pattern)
    roles = (symbols.point, symbols.minus, *symbols.others, *symbols.exponents, symbols.bracket)
    known = dict(zip([*"0123456789", *roles], [*ids.digits, *ids.symbols], strict=True))
    if known.get("E") == -1:  # a base that lowers all letters
        known["E"] = known["e"]
    unwritten = str.maketrans("", "", reserved)
    found: dict[str, str] = {}
    for token in tokens:
        forms = [token.content]
        if token.normalized and tokenizer.normalizer:
            written = tokenizer.normalizer.normalize_str(token.content)
            if not written:  # the library panics on the next text
                raise TokenizerError(
                    f"the added token {token.content!r} is empty text once it is normalized, at which this tokenizer "
                    "fails: add it as AddedToken(..., normalized=False)"
                )
            forms.append(written.translate(unwritten).strip(" ▁"))
        for form in forms:
            if form and (form[0] in known or form[-1] in known):
                for before, after in product(_BEFORE, _AFTER):
                    if _is_broken(tokenizer, (before, form, after), layout, ids, known):
                        found.setdefault(token.content, before + form + after)
    if found:
        text = found[min(found)]
        raise TokenizerError(
            f"the added tokens {sorted(found)} match inside numbers, which lose these characters: {text!r} becomes "
            f"{tokenizer.encode(text, add_special_tokens=False).tokens}. Make the number tokenizer anew from a base "
            "without them. Digits inside a name, as in '<x25>', may stay; so may those that ignore= leaves alone"
        )


def _is_broken(
    tokenizer: Tokenizer, parts: tuple[str, str, str], layout: Layout, ids: NumberIds, known: dict[str, int]
) -> bool:
    """Whether a number is not all there if a token stands in a text, the middle one of its three parts."""
    text, start, end = "".join(parts), len(parts[0]), len(parts[0] + parts[1])
    numerals = find_numerals(text, layout.pattern, layout.ignore)
    # With other characters of the token on both sides, a numeral is part of a name.
    outside = [each for each in numerals if each.start <= start or each.end >= end]
    written = tokenizer.encode(text, add_special_tokens=False).ids
    if not ids.marked:  # a sign or a point may be one token with what stands before it, so compare digits
        groups = [[known[c] for c in each.text if c in "0123456789"] for each in numerals]
        others = [group for group, each in zip(groups, numerals, strict=True) if each in outside]
        return [[i for i in each if i in ids.digits] for each in _bare_numbers(written, ids)] not in (groups, others)
    numbers: list[list[int]] = []
    inside = False
    for i in written:
        inside = i == ids.open or (inside and i != ids.close)
        if i == ids.open:
            numbers.append([])
        elif inside and i not in (ids.agg, ids.pause):
            numbers[-1].append(i)
    return numbers not in [[[known[c] for c in each.text] for each in kept] for kept in (numerals, outside)]


def _bare_numbers(written: list[int], ids: NumberIds) -> list[list[int]]:
    """The tokens of each number in ids without markers."""
    tokens = read_tokens(torch.tensor([written], dtype=torch.long), ids)
    found: dict[int, list[int]] = {}
    for i, start, member in zip(written, tokens.start[0].tolist(), tokens.member[0].tolist(), strict=True):
        if member:
            found.setdefault(start, []).append(i)
    return list(found.values())
