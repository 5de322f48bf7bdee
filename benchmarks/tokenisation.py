"""How fast a number tokenizer is, against the bare tokenizer that it was made from and against a hand-written loop.

Three ways turn the same texts into `input_ids` and `attention_mask`: the bare tokenizer on the batch, the number
tokenizer on the batch, and a Python loop that marks the numbers in each text, tokenises it, splits the pieces of its
numbers into digits and converts them to ids. Batches run on every core, as they do for a user; the loop cannot. Two
faster alternatives have no target: a loop that calls the bare tokenizer on the text around each number, and the same
with the pieces of all texts in one batch.

The target of 3 times the loop is missed on two cores, where the number tokenizer was 2.2 to 2.5 times as fast. Both use
the same Rust code for each text, so one core of ours is little faster than the loop; most of the ratio is that ours has
all cores and the loop one. Three idle cores should reach it, and whatever else runs on the machine lowers it.

Run: `python -m benchmarks tokenisation`
"""

import copy
import os
import re
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from transformers import PreTrainedTokenizerBase

from benchmarks.problems import word_problems
from benchmarks.results import Check, Outcome
from placevalue import marker_ids, number_tokenizer
from placevalue.common.errors import ModelError
from placevalue.common.hub import load_tokenizer

FAMILIES = ("flan-t5-small-title", "smollm2-135m", "gemma3-270m", "minilm-l6", "gpt2-tokenizer")
TEXTS, SEED, ROUNDS = 2000, 0, 12
BARE_TARGET, LOOP_TARGET = 0.6, 3.0
NUMERAL = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")
Batch = dict[str, list[list[int]]]


class MarkAndSplit:
    """Numbers as `[F] [AGG] digits [/F]` the obvious way: mark, tokenise, split the numbers, convert to ids."""

    def __init__(self, base: PreTrainedTokenizerBase) -> None:
        self.tokenizer = copy.deepcopy(base)
        self.tokenizer.add_tokens(["[F]", "[/F]", "[AGG]"], special_tokens=True)
        self.around = ByHand(base, {})

    def loop(self, texts: list[str]) -> Batch:
        """Encode the texts one by one."""
        return _as_batch([self._text(text) for text in texts])

    def _text(self, text: str) -> list[int]:
        marked = NUMERAL.sub(lambda match: f"[F][AGG]{match[0]}[/F]", text)
        tokens: list[str] = []
        inside = False
        for token in self.tokenizer.tokenize(marked):
            inside = (inside or token == "[F]") and token != "[/F]"
            if inside and token not in ("[F]", "[AGG]"):
                tokens += [character for character in token if character in "0123456789."]
            else:
                tokens.append(token)
        ids: Any = self.tokenizer.convert_tokens_to_ids(tokens)
        return self.around.head + ids + self.around.tail


class ByHand:
    """Numbers as `[F] [AGG] digits [/F]` with only the base tokenizer and a regular expression."""

    def __init__(self, base: PreTrainedTokenizerBase, markers: dict[str, int]) -> None:
        self.base = base
        self.markers = markers
        plain, special = base("a", add_special_tokens=False)["input_ids"], base("a")["input_ids"]
        start = special.index(plain[0])
        self.head, self.tail = special[:start], special[start + len(plain) :]

    def loop(self, texts: list[str]) -> Batch:
        """Encode the texts one by one, and in each text piece by piece."""
        return _as_batch([self._text(text) for text in texts])

    def _text(self, text: str) -> list[int]:
        ids, at = list(self.head), 0
        for match in NUMERAL.finditer(text):
            ids += self.base(text[at : match.start()], add_special_tokens=False)["input_ids"]
            ids += self._number(match.group())
            at = match.end()
        ids += self.base(text[at:], add_special_tokens=False)["input_ids"]
        return ids + self.tail

    def batched(self, texts: list[str]) -> Batch:
        """Encode the pieces of all texts in one call, then join them."""
        pieces: list[str] = []
        numbers: list[list[int] | None] = []  # the number after each piece; None ends a text
        for text in texts:
            at = 0
            for match in NUMERAL.finditer(text):
                pieces.append(text[at : match.start()])
                numbers.append(self._number(match.group()))
                at = match.end()
            pieces.append(text[at:])
            numbers.append(None)
        rows, ids = [], list(self.head)
        for piece, number in zip(self.base(pieces, add_special_tokens=False)["input_ids"], numbers, strict=True):
            ids += piece
            if number is None:
                rows.append(ids + self.tail)
                ids = list(self.head)
            else:
                ids += number
        return _as_batch(rows)

    def _number(self, numeral: str) -> list[int]:
        digits: Any = self.base.convert_tokens_to_ids(list(numeral))
        return [self.markers["open"], self.markers["agg"], *digits, self.markers["close"]]


def _as_batch(rows: list[list[int]]) -> Batch:
    return {"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]}


def load_bases() -> Iterator[tuple[str, PreTrainedTokenizerBase]]:
    """Every tokenizer that was fetched, by its family."""
    missing = 0
    for family in FAMILIES:
        try:
            yield family, load_tokenizer(family)
        except ModelError as error:
            missing += 1
            print(f"skipped {family}: {error}")
    if missing == len(FAMILIES):
        raise SystemExit("found none of the tokenizers to measure: fetch them with `make models`")


def run() -> Outcome:
    """Measure every family."""
    texts = word_problems(TEXTS, SEED)
    checks: list[Check] = []
    raw: dict[str, Any] = {}
    for family, base in load_bases():
        found, raw[family] = _measure(family, base, texts)
        checks += found
    parallel = os.environ.get("TOKENIZERS_PARALLELISM", "default")
    left_out = [family for family in FAMILIES if family not in raw]
    config = {"texts": TEXTS, "seed": SEED, "rounds": ROUNDS, "tokenizers_parallelism": parallel, "left_out": left_out}
    return Outcome(config, checks, raw)


def _measure(family: str, base: PreTrainedTokenizerBase, texts: list[str]) -> tuple[list[Check], dict[str, Any]]:
    ours = number_tokenizer(base, token="agg")
    by_hand = ByHand(base, marker_ids(ours))
    ways: dict[str, Callable[[list[str]], Any]] = {
        "bare": base, "ours": ours, "loop": MarkAndSplit(base).loop, "around": by_hand.loop, "batched": by_hand.batched
    }  # fmt: skip
    rows = {name: way(texts)["input_ids"] for name, way in ways.items()}  # also warms the tokenizers' caches
    same_texts = _compare(rows["ours"], rows["around"], marker_ids(ours))
    _compare(rows["ours"], rows["loop"], marker_ids(ours))
    assert rows["around"] == rows["batched"]
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = perf_counter()
            way(texts)
            seconds[name].append(perf_counter() - begin)
    speed = {name: len(texts) / min(times) for name, times in seconds.items()}
    tokens = {name: sum(map(len, rows[name])) for name in ("bare", "ours")}
    same = f"{same_texts:.0%} of texts have the same ids"
    checks = [
        Check(
            f"{family}: ours / bare", speed["ours"] / speed["bare"], BARE_TARGET, note=f"{speed['ours']:,.0f} texts/s"
        ),
        Check(
            f"{family}: ours / loop", speed["ours"] / speed["loop"], LOOP_TARGET, note=f"{speed['loop']:,.0f} texts/s"
        ),
        Check(f"{family}: ours / loop around numbers", speed["ours"] / speed["around"], note=same),
        Check(f"{family}: ours / the same in one batch", speed["ours"] / speed["batched"]),
        Check(f"{family}: tokens, ours / bare", tokens["ours"] / tokens["bare"]),
    ]
    return checks, {"seconds": seconds, "texts_per_second": speed, "tokens": tokens, "texts_with_same_ids": same_texts}


def _compare(ours: list[list[int]], loop: list[list[int]], markers: dict[str, int]) -> float:
    """The share of texts with the same ids; the ids of every number must be the same."""
    for one, other in zip(ours, loop, strict=True):
        assert _numbers(one, markers) == _numbers(other, markers), (
            "the loop encodes numbers differently: the comparison would be unfair"
        )
    return sum(one == other for one, other in zip(ours, loop, strict=True)) / len(ours)


def _numbers(ids: list[int], markers: dict[str, int]) -> list[list[int]]:
    ends = [index + 1 for index, token in enumerate(ids) if token == markers["close"]]
    starts = [index for index, token in enumerate(ids) if token == markers["open"]]
    return [ids[start:end] for start, end in zip(starts, ends, strict=True)]
