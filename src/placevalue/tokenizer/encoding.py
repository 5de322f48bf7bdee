"""Encode questions and answers as ids and labels, for encoder-decoder and decoder-only models.

Only this module makes targets. They contain `[F] d1 .. dn [/F]`, or digits alone, without [AGG] or [PAUSE], which a
model reads but never writes: an [AGG] before the digits of a target would reveal them.
"""

import logging
from collections.abc import Sequence

import torch
from transformers import PreTrainedTokenizerBase

from placevalue.common.errors import ConfigError, TokenizerError
from placevalue.common.hub import is_encoder_decoder
from placevalue.numbers.config import NumberIds
from placevalue.numbers.rewrites import find_rewrite
from placevalue.numbers.spans import read_tokens
from placevalue.numbers.vectors import find_vector
from placevalue.tokenizer.prompt import SEPARATED, Prompt, chat_parts
from placevalue.tokenizer.rewriting import Part, rewrite_of, rewritten
from placevalue.tokenizer.tokenizer import (
    SETTINGS,
    check_added_tokens,
    check_unchanged,
    marker_ids,
    number_ids,
    number_layout,
)

logger = logging.getLogger(__name__)
Ids = list[int]
Example = dict[str, Ids]
IGNORED = -100  # the label that Hugging Face losses ignore
WRITTEN = 2
"""In an attention mask: a token that a decoder-only model writes, for vectors at the digits of what it reads.

Its hooks make it 1 before the model sees it. Labels do not always reach a model, and its mask does.
"""


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
    prompt: Prompt = SEPARATED,
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
        plain: Accept a tokenizer that is not from `number_tokenizer`, for comparison.
        prompt: `Prompt(chat=True)` puts each question into the tokenizer's chat template, without a separator.

    Example:
        >>> data = encode_pairs(tokenizer, ["2 + 2?"], ["4"])  # doctest: +SKIP
    """
    two_part = is_two_part(tokenizer, encoder_decoder)
    return encode_and_count(
        tokenizer, questions, answers, two_part, max_question, max_answer, separator, plain, prompt
    )[0]


def encode_and_count(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    answers: Sequence[str],
    encoder_decoder: bool,
    max_question: int | None,
    max_answer: int | None,
    separator: str = "\n",
    plain: bool = False,
    prompt: Prompt = SEPARATED,
) -> tuple[list[Example], int, int]:
    """`encode_pairs`, and how many questions and answers were cut."""
    if isinstance(questions, str) or isinstance(answers, str):
        raise ConfigError("a single text was given, expected lists: put a single text into a list")
    if len(questions) != len(answers):
        raise ConfigError(f"{len(questions)} questions and {len(answers)} answers: give one answer for each question")
    if not plain and number_layout(tokenizer).token == "agg" and "aggregation" not in tokenizer.init_kwargs[SETTINGS]:
        logger.warning("the tokenizer writes [AGG], but no model is attached to it yet: attach one before training")
    prompts, cut = encode_and_cut(tokenizer, questions, encoder_decoder, max_question, separator, plain, prompt)
    whole = encode_answers(tokenizer, answers, encoder_decoder, plain)
    targets, cut_targets = _fit("answers", whole, max_answer, ([], []))
    examples, marked = [], not plain and marks_written(tokenizer)
    for ids, target in zip(prompts, targets, strict=True):
        if encoder_decoder:
            examples.append(_example(ids, target))
        else:
            examples.append(_example(ids + target, [IGNORED] * len(ids) + target, marked))
    return examples, sum(cut), sum(cut_targets)


def encode_questions(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    *,
    encoder_decoder: bool | None = None,
    max_question: int | None = None,
    separator: str = "\n",
    plain: bool = False,
    prompt: Prompt = SEPARATED,
) -> list[Example]:
    """Encode questions exactly as `encode_pairs` does, ready for `generate` after `tokenizer.pad`."""
    two_part = is_two_part(tokenizer, encoder_decoder)
    prompts, _ = encode_and_cut(tokenizer, questions, two_part, max_question, separator, plain, prompt)
    return [{"input_ids": ids, "attention_mask": [1] * len(ids)} for ids in prompts]


def encode_and_cut(
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    encoder_decoder: bool,
    max_question: int | None,
    separator: str = "\n",
    plain: bool = False,
    prompt: Prompt = SEPARATED,
) -> tuple[list[Ids], list[bool]]:
    """The ids of `encode_questions`, and which questions were cut."""
    if not plain:
        check_unchanged(tokenizer)
    before, after = _around(tokenizer)
    if prompt.chat and encoder_decoder:
        raise ConfigError("prompt.chat is for decoder-only models, and this is an encoder-decoder: leave it out")
    if prompt.chat:
        before, after = _ids(tokenizer, chat_parts(tokenizer, prompt))
    elif not encoder_decoder:
        after = [i for i in after if i != tokenizer.eos_token_id] + _ids(tokenizer, [separator])[0]
    if not plain and (count := number_layout(tokenizer).pauses):
        pauses = [marker_ids(tokenizer)["pause"]] * count
        after = pauses + after if encoder_decoder else after + pauses
    numbers = None if plain else number_ids(tokenizer)
    return _fit("questions", _ids(tokenizer, questions, "question"), max_question, (before, after), numbers)


def encode_answers(
    tokenizer: PreTrainedTokenizerBase, answers: Sequence[str], encoder_decoder: bool, plain: bool = False
) -> list[Ids]:
    """The labels of `encode_pairs` for the answers alone, uncut."""
    if not plain:
        check_added_tokens(tokenizer)
    unwritten = set() if plain else unwritten_ids(tokenizer)
    end = tokenizer.eos_token_id
    if end is None:
        raise TokenizerError("the tokenizer has no eos_token, which must end every answer: set tokenizer.eos_token")
    # Only the target of an encoder-decoder may begin with special tokens.
    start = _around(tokenizer)[0] if encoder_decoder else []
    return [[*start, *(i for i in ids if i not in unwritten), end] for ids in _ids(tokenizer, answers, "answer")]


def encode_texts(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, max_length: int | None = None
) -> list[Example]:
    """Encode plain texts for a decoder-only model, with the loss on every token except [AGG] and [PAUSE].

    Raises an error if [AGG] comes before the digits, since it would reveal the digits that the model must predict.
    """
    check_added_tokens(tokenizer)
    layout = number_layout(tokenizer)
    if (layout.token, layout.position) == ("agg", "before"):
        raise TokenizerError(
            "token='agg' with position='before' reveals a number's digits before the model must predict them: for a "
            "loss on the whole text, make the tokenizer with position='after', or use encode_pairs"
        )
    if marks_written(tokenizer):
        raise TokenizerError(
            "a loss on the whole text, with a vector at digits, would reveal a number's later digits before the model "
            "must predict them: use encode_pairs"
        )
    name = rewrite_of(tokenizer)
    if layout.pauses or (name and find_rewrite(name).where == "answer"):
        setting = f"pauses={layout.pauses}" if layout.pauses else f"rewrite={name!r}"
        raise TokenizerError(
            f"{setting} is for questions with answers, which a plain text does not tell apart: use encode_pairs, or a "
            "tokenizer without it"
        )
    around = _around(tokenizer)
    fitted, _ = _fit("texts", _ids(tokenizer, texts, "answer"), max_length, around, number_ids(tokenizer))
    silent = unwritten_ids(tokenizer)
    return [_example(ids, [IGNORED if i in silent else i for i in ids]) for ids in fitted]


def unwritten_ids(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """The ids of [AGG] and [PAUSE], if the layout has new tokens: a model reads and never writes them."""
    return {id_ for name, id_ in marker_ids(tokenizer).items() if name in ("agg", "pause")}


def _ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], part: Part | None = None) -> list[Ids]:
    """Texts as ids, without special tokens; questions and answers are rewritten first."""
    texts = list(texts)
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise ConfigError(f"{wrong!r} was given, expected a text: convert it with str() first")
    texts = rewritten(tokenizer, texts, part) if part else texts
    return tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []


def _around(tokenizer: PreTrainedTokenizerBase) -> tuple[Ids, Ids]:
    """The special tokens that the tokenizer adds before and after a text."""
    whole, body = tokenizer("a")["input_ids"], _ids(tokenizer, ["a"])[0]
    at = next(i for i in range(len(whole)) if whole[i : i + len(body)] == body)
    return whole[:at], whole[at + len(body) :]


def _fit(
    what: str, bodies: list[Ids], longest: int | None, around: tuple[Ids, Ids], numbers: NumberIds | None = None
) -> tuple[list[Ids], list[bool]]:
    """Put tokens around texts and cut those that become longer than `longest`; also return which were cut."""
    before, after = around
    limit = None if longest is None else longest - len(before) - len(after)
    if limit is not None and limit < 1:
        raise ConfigError(f"a maximum of {longest} tokens leaves no space for {what}: add at least {1 - limit}")
    cut = [limit is not None and len(body) > limit for body in bodies]
    if any(cut):
        logger.warning("%d of %d %s were longer than %d tokens and were cut", sum(cut), len(cut), what, longest)
    return [before + _cut(body, limit, numbers) + after for body in bodies], cut


def _cut(ids: Ids, limit: int | None, numbers: NumberIds | None) -> Ids:
    """The first tokens of a text, without a number that would be cut in two, since that would change its value."""
    kept = ids[:limit]
    if numbers is None or len(kept) == len(ids):
        return kept
    if not numbers.marked:
        return kept[: _whole_numbers(ids, len(kept), numbers)]
    for index in reversed(range(len(kept))):
        if kept[index] == numbers.close:
            break
        if kept[index] == numbers.open:
            return kept[:index]
    return kept


def _whole_numbers(ids: Ids, limit: int, numbers: NumberIds) -> int:
    """How many of the first tokens of a text without markers hold the numbers that the whole text has there."""

    def starts(ids: Ids) -> list[int | None]:
        tokens = read_tokens(torch.tensor([ids], dtype=torch.long), numbers)
        return [s if m else None for s, m in zip(tokens.start[0].tolist(), tokens.member[0].tolist(), strict=True)]

    whole = starts(ids)
    while limit:
        start = whole[limit]
        if start is None or start == limit:  # no number goes on here
            # What follows may still decide what stands before it, as in 1e5x.
            changed = [here for here, there in zip(whole, starts(ids[:limit]), strict=False) if here != there]
            if not changed:
                break
            start = min((each for each in changed if each is not None), default=0)
        limit = start
    return limit


def is_two_part(tokenizer: PreTrainedTokenizerBase, given: bool | None) -> bool:
    """Whether examples are for an encoder-decoder; refused if nobody has said."""
    known = given if given is not None else tokenizer.init_kwargs.get(SETTINGS, {}).get("encoder_decoder")
    known = is_encoder_decoder(tokenizer.name_or_path) if known is None else known
    if known is None:
        raise ConfigError(
            "it is unknown which kind of model this tokenizer is for: call attach(model, tokenizer) first, or pass "
            "encoder_decoder=True (T5, BART) or encoder_decoder=False (GPT-2, Llama, Qwen, Gemma)"
        )
    return known


def marks_written(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether attention masks for a decoder-only model must say what it writes."""
    settings = tokenizer.init_kwargs[SETTINGS]
    name = settings.get("vector", settings.get("attach", {}).get("vector"))
    return name is not None and find_vector(name).at == "digits"


def mark_written(mask: Ids, labels: Ids) -> Ids:
    """An attention mask that says what a decoder-only model writes."""
    return [each if label == IGNORED else WRITTEN for each, label in zip(mask, labels, strict=True)]


def _example(ids: Ids, labels: Ids, marked: bool = False) -> Example:
    mask = [1] * len(ids)
    return {"input_ids": ids, "attention_mask": mark_written(mask, labels) if marked else mask, "labels": labels}
