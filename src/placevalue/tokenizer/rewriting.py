"""Texts as the rewrite of a tokenizer writes their numbers, and generated texts with plain numbers again."""

from collections.abc import Sequence
from typing import Any, Literal, overload

from transformers import PreTrainedTokenizerBase

from placevalue.numbers.config import Layout
from placevalue.numbers.rewrites import find_rewrite, is_readable, read_text, reads_back, rewrite_text
from placevalue.tokenizer.tokenizer import is_number_tokenizer, number_layout

Part = Literal["question", "answer"]


def rewrite_of(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The name of a tokenizer's rewrite; None if it has none or does not write numbers."""
    return number_layout(tokenizer).rewrite if is_number_tokenizer(tokenizer) else None


def rewritten(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], part: Part) -> list[str]:
    """Questions or answers as the tokenizer's rewrite writes their numbers."""
    name = rewrite_of(tokenizer)
    if name is None or (part == "question" and find_rewrite(name).where == "answer"):
        return list(texts)
    layout = number_layout(tokenizer)
    return [rewrite_text(text, name, layout.pattern, layout.ignore) for text in texts]


def plain_text(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[str, bool | None]:
    """A decoded answer with plain numbers, and whether it could be read back; None if nothing was rewritten."""
    name = rewrite_of(tokenizer)
    if name is None:
        return text, None
    plain = read_text(text, name, number_layout(tokenizer).ignore)
    return plain, is_readable(plain, name)


def writable(tokenizer: PreTrainedTokenizerBase, answer: str) -> bool:
    """Whether an answer would be read back as it was, once a model has written it."""
    name = rewrite_of(tokenizer)
    layout = number_layout(tokenizer) if name else Layout()
    return name is None or reads_back(answer, name, layout.pattern, layout.ignore)


@overload
def decode(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str: ...
@overload
def decode(tokenizer: PreTrainedTokenizerBase, ids: Any) -> str | list[str]: ...
def decode(tokenizer: PreTrainedTokenizerBase, ids: Any) -> str | list[str]:
    """Decode what a model generated, with plain numbers, whatever the tokenizer's rewrite.

    Args:
        tokenizer: From `number_tokenizer`, or any other.
        ids: The new ids of one answer, or a batch of them: lists or a tensor, without the question.

    Returns:
        A text, or one for each row of a batch; without special tokens, markers and surrounding spaces.

    Example:
        >>> decode(tokenizer, model.generate(**batch)[0])  # doctest: +SKIP
        '42'
    """
    rows = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if rows and not isinstance(rows[0], int):
        return [decode(tokenizer, row) for row in rows]
    text = str(tokenizer.decode(rows, skip_special_tokens=True, clean_up_tokenization_spaces=False))
    return plain_text(tokenizer, text.strip())[0]
