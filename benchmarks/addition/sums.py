"""Sums as text and as tensors, their small tokenizer, and how answers are scored."""

from dataclasses import dataclass

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import Tensor
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

import placevalue as pv
from placevalue.tokenizer.encoding import IGNORED

Pair = tuple[int, int]
SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def build_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer like T5's, for digits, the point and the plus sign."""
    pieces = [*SPECIAL.values(), "▁", "▁+", "+", ".", *"0123456789"]
    tokenizer = Tokenizer(models.Unigram([(piece, -2.0) for piece in pieces], unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    base = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **SPECIAL)
    return pv.number_tokenizer(base, pattern="paper")


def draw_pairs(digits: int, size: int, test: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Training and test pairs of numbers of `digits` digits.

    The test pairs are the same for every `size`, a smaller training set is the start of a larger one, and no training
    pair is a test pair or a test pair with its numbers swapped.
    """
    first = 10 ** (digits - 1)
    numbers = 9 * first
    order = torch.randperm(numbers**2, generator=torch.Generator().manual_seed(seed)).tolist()
    pairs = [(first + index // numbers, first + index % numbers) for index in order[: test + 4 * size]]
    held_out = pairs[:test]
    known = {frozenset(pair) for pair in held_out}
    train = [pair for pair in pairs[test:] if frozenset(pair) not in known][:size]
    if len(held_out) < test or len(train) < size:
        raise ValueError(
            f"{len(order)} pairs of {digits}-digit numbers are too few for {size} to train on and {test} to test on: "
            "choose more digits or fewer pairs"
        )
    return train, held_out


def answer(pair: Pair) -> str:
    """The text that the model should write."""
    return str(sum(pair))


@dataclass(frozen=True)
class Sums:
    """Pairs as tensors: questions `(n, question length)`, labels `(n, answer length)`."""

    pairs: list[Pair]
    questions: Tensor
    labels: Tensor


def encode_sums(tokenizer: PreTrainedTokenizerBase, pairs: list[Pair]) -> Sums:
    """Encode pairs. Questions need no padding, since all numbers have the same length; labels are padded."""
    questions, answers = [f"{a} + {b}" for a, b in pairs], [answer(pair) for pair in pairs]
    examples = pv.encode_pairs(tokenizer, questions, answers, encoder_decoder=True)
    # As wide as the longest possible answer, whether or not it was drawn.
    largest = 10 ** len(str(pairs[0][0])) - 1
    width = len(pv.encode_pairs(tokenizer, ["0"], [answer((largest, largest))], encoder_decoder=True)[0]["labels"])
    labels = [example["labels"] + [IGNORED] * (width - len(example["labels"])) for example in examples]
    return Sums(pairs, torch.tensor([example["input_ids"] for example in examples]), torch.tensor(labels))


def score_answers(texts: list[str], pairs: list[Pair]) -> dict[str, float]:
    """Score answers: three shares of all pairs, and the mean absolute error.

    `exact` and `length` are the shares of answers with the text and with the length of the sum. `no_number` is the
    share of answers that are not exactly one number; in `error`, these count as 0.
    """
    exact = length = no_number = 0
    error = 0.0
    for text, pair in zip(texts, pairs, strict=True):
        gold = answer(pair)
        numerals = pv.find_numerals(text, "paper")
        is_number = len(numerals) == 1 and numerals[0].text == text
        exact += text == gold
        length += len(text) == len(gold)
        no_number += not is_number
        error += abs(float(numerals[0].value if is_number else 0) - sum(pair))
    count = len(pairs)
    return {"exact": exact / count, "error": error / count, "no_number": no_number / count, "length": length / count}
