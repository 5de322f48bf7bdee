"""Encode questions and answers as ids and labels, for encoder-decoder and decoder-only models.

Only this module makes targets. They contain `[F] d1 .. dn [/F]` without [AGG] or [PAUSE], which a model reads but never
writes: an [AGG] before the digits of a target would reveal them.
"""

import logging
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from placevalue.common.errors import ConfigError, TokenizerError
from placevalue.common.hub import is_encoder_decoder
from placevalue.tokenizer.tokenizer import SETTINGS, marker_ids, number_layout

logger = logging.getLogger(__name__)
Example = dict[str, list[int]]
IGNORED = -100  # the label that Hugging Face losses ignore


def encode_pairs(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    answers: Sequence[str],
    *,
    encoder_decoder: bool | None = None,
    max_question: int | None = None,
    max_answer: int | None = None,
    separator: str = "\n",
    plain: bool = False,
) -> list[Example]:
    """Encode examples for a Trainer: `input_ids`, `attention_mask` and `labels`, with the loss on the answer only.

    Args:
        tokenizer: From `number_tokenizer`.
        questions: What the model reads.
        answers: What the model should write.
        encoder_decoder: Which kind of model; None takes what `attach` noted, else what the config.json in the base
            tokenizer's folder says.
        max_question: Cut questions to this many tokens; a warning says how many were cut.
        max_answer: Cut answers to this many tokens.
        separator: The text between question and answer for decoder-only models.
        plain: Accept a tokenizer without number markers, for comparison.

    Example:
        >>> data = encode_pairs(tokenizer, ["2 + 2?"], ["4"])  # doctest: +SKIP
    """
    two_part = _is_two_part(tokenizer, encoder_decoder)
    return encode_and_count(tokenizer, questions, answers, two_part, max_question, max_answer, separator, plain)[0]


def encode_and_count(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    answers: Sequence[str],
    encoder_decoder: bool,
    max_question: int | None,
    max_answer: int | None,
    separator: str = "\n",
    plain: bool = False,
) -> tuple[list[Example], int, int]:
    """`encode_pairs`, and how many questions and answers were cut."""
    if isinstance(questions, str) or isinstance(answers, str):
        raise ConfigError(
            "a single text was given, expected lists of questions and answers: put a single text into a list"
        )
    if len(questions) != len(answers):
        raise ConfigError(
            f"{len(questions)} questions and {len(answers)} answers were given: expected one answer for each"
        )
    if not plain and number_layout(tokenizer).token == "agg" and "aggregation" not in tokenizer.init_kwargs[SETTINGS]:
        logger.warning("the tokenizer writes [AGG], but no model is attached to it yet: attach one before training")
    prompts, cut = encode_and_cut(tokenizer, questions, encoder_decoder, max_question, separator, plain)
    targets = _encode_answers(tokenizer, answers, encoder_decoder, plain)
    too_long = _warn_cut("answers", targets, max_answer, max_answer)
    pairs = zip(prompts, (target[:max_answer] for target in targets), strict=True)
    if encoder_decoder:
        return [{**prompt, "labels": target} for prompt, target in pairs], sum(cut), too_long
    both = ((prompt["input_ids"], target) for prompt, target in pairs)
    examples = [{**_example(ids + target), "labels": [IGNORED] * len(ids) + target} for ids, target in both]
    return examples, sum(cut), too_long


def encode_questions(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    *,
    encoder_decoder: bool | None = None,
    max_question: int | None = None,
    separator: str = "\n",
    plain: bool = False,
) -> list[Example]:
    """Encode questions exactly as `encode_pairs` does, ready for `generate` after `tokenizer.pad`."""
    two_part = _is_two_part(tokenizer, encoder_decoder)
    return encode_and_cut(tokenizer, questions, two_part, max_question, separator, plain)[0]


def encode_and_cut(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    encoder_decoder: bool,
    max_question: int | None,
    separator: str = "\n",
    plain: bool = False,
) -> tuple[list[Example], list[bool]]:
    """`encode_questions`, and which questions were cut."""
    before, after = _around(tokenizer)
    if not encoder_decoder:
        after = [i for i in after if i != tokenizer.eos_token_id] + _ids(tokenizer, [separator])[0]
    limit = None if max_question is None else max_question - len(before) - len(after)
    if limit is not None and limit < 1:
        raise ConfigError(f"max_question={max_question} leaves no space for a question: add at least {1 - limit}")
    bodies = _ids(tokenizer, questions)
    _warn_cut("questions", bodies, limit, max_question)
    markers = {} if plain else marker_ids(tokenizer)
    examples = [_example(before + _cut(markers, body, limit) + after) for body in bodies]
    return examples, [limit is not None and len(body) > limit for body in bodies]


def answer_lengths(
    tokenizer: PreTrainedTokenizerBase,
    answers: Sequence[str],
    *,
    encoder_decoder: bool | None = None,
    plain: bool = False,
) -> list[int]:
    """How many tokens `encode_pairs` needs for each answer, including the end: the least `max_answer` that fits."""
    two_part = _is_two_part(tokenizer, encoder_decoder)
    return [len(target) for target in _encode_answers(tokenizer, answers, two_part, plain)]


def encode_texts(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, max_length: int | None = None
) -> list[Example]:
    """Encode plain texts for a decoder-only model, with the loss on every token except [AGG] and [PAUSE].

    Raises an error if [AGG] comes before the digits, since it would reveal the digits that the model must predict.
    """
    layout, markers = number_layout(tokenizer), marker_ids(tokenizer)
    if (layout.token, layout.position) == ("agg", "before"):
        raise TokenizerError(
            "token='agg' with position='before' reveals a number's digits before the model must predict them: for a "
            "loss on the whole text, make the tokenizer with position='after', or use encode_pairs"
        )
    before, after = _around(tokenizer)
    limit = None if max_length is None else max_length - len(before) - len(after)
    bodies = _ids(tokenizer, texts)
    _warn_cut("texts", bodies, limit, max_length)
    silent = {markers["agg"], markers["pause"]}
    cut = [before + _cut(markers, body, limit) + after for body in bodies]
    return [{**_example(ids), "labels": [IGNORED if i in silent else i for i in ids]} for ids in cut]


def _encode_answers(
    tokenizer: PreTrainedTokenizerBase, answers: Sequence[str], two_part: bool, plain: bool
) -> list[list[int]]:
    unwritten = set() if plain else {marker_ids(tokenizer)[name] for name in ("agg", "pause")}
    end = tokenizer.eos_token_id
    if end is None:
        raise TokenizerError("the tokenizer has no eos_token, which must end every answer: set tokenizer.eos_token")
    # Only the target of an encoder-decoder may begin with special tokens.
    start = _around(tokenizer)[0] if two_part else []
    return [[*start, *(i for i in ids if i not in unwritten), end] for ids in _ids(tokenizer, answers)]


def _ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Texts as ids, without special tokens."""
    texts = list(texts)
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise ConfigError(f"{wrong!r} was given, expected a text: convert it with str() first")
    return tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []


def _around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer adds before and after a text."""
    whole, body = tokenizer("a")["input_ids"], _ids(tokenizer, ["a"])[0]
    at = next(i for i in range(len(whole)) if whole[i : i + len(body)] == body)
    return whole[:at], whole[at + len(body) :]


def _cut(markers: dict[str, int], ids: list[int], limit: int | None) -> list[int]:
    """The first tokens of a text, without a number that would be cut in two, since that would change its value."""
    if limit is None or len(ids) <= limit:
        return ids
    kept = ids[:limit]
    for index in reversed(range(limit)):
        if kept[index] == markers.get("close"):
            break
        if kept[index] == markers.get("open"):
            return kept[:index]
    return kept


def _is_two_part(tokenizer: PreTrainedTokenizerBase, given: bool | None) -> bool:
    known = given if given is not None else tokenizer.init_kwargs.get(SETTINGS, {}).get("encoder_decoder")
    known = is_encoder_decoder(tokenizer.name_or_path) if known is None else known
    if known is None:
        raise ConfigError(
            "it is unknown which kind of model this tokenizer is for: call attach(model, tokenizer) first, or pass "
            "encoder_decoder=True (T5, BART) or encoder_decoder=False (GPT-2, Llama, Qwen, Gemma)"
        )
    return known


def _example(ids: list[int]) -> Example:
    return {"input_ids": ids, "attention_mask": [1] * len(ids)}


def _warn_cut(what: str, encoded: list[list[int]], limit: int | None, asked: int | None) -> int:
    """How many are longer than the limit."""
    cut = 0 if limit is None else sum(len(ids) > limit for ids in encoded)
    if cut:
        logger.warning("%d of %d %s were longer than %d tokens and were cut", cut, len(encoded), what, asked)
    return cut
