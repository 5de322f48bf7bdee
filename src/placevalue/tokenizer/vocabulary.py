"""What the tokens of a vocabulary spell, for layouts without markers, and whether a tokenizer splits digits itself."""

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer

from placevalue.numbers.config import Layout
from placevalue.numbers.spelling import BYTE, Spelling, spell

_DIGITS = ("0123456789", "no 0123456789", "x0123456789x", "1,234.56", "a1b 22c333", "9", " 9", "\n10-20")
PROBES = ("1 2", "3, 4", "3,4", "1,000", "1, 000", "x-3", "x -3", "-3", "5. 6", "5 .6", "a 1.5 b", "(12) 3e5 3e5x")
"""Texts whose numbers differ by what stands between and before digits."""


def read_spelling(tokenizer: Tokenizer, layout: Layout, digits: tuple[int, ...], extra: Iterable[int]) -> Spelling:
    """How numbers without markers are read off a tokenizer's ids."""
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    tokens: list[str | None] = [None] * (max(vocabulary.values()) + 1)
    for token, id_ in vocabulary.items():
        tokens[id_] = token
    for id_, added in tokenizer.get_added_tokens_decoder().items():
        tokens[id_] = None if added.special and not BYTE.fullmatch(added.content) else added.content
    return spell(tokens, digits, extra, layout.pattern, layout.position == "after")


def splits_digits(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer gives every ASCII digit a token of its own in any text."""

    def split(texts: Sequence[str]) -> bool:
        encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return not any(_with_a_digit(token) for each in encoded for token in each.tokens)

    if not split(_DIGITS):
        return False
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    longer = [token for token in tokenizer.get_vocab(with_added_tokens=False) if _with_a_digit(token)]
    longer = [token for token in longer if token not in added]
    texts = [token if tokenizer.decoder is None else tokenizer.decoder.decode([token]) for token in longer]
    return split([f"{before}{text}" for text in texts for before in ("", " ", "x")])


def _with_a_digit(token: str) -> bool:
    """Whether a token is a digit together with other characters."""
    return len(token) > 1 and any(c in "0123456789" for c in token) and not BYTE.fullmatch(token)
