"""What the default pattern, `extended`, costs beside `paper`, which was the default before.

Text without numbers must keep the base tokenizer's ids. Texts with numbers must take no more time: half of them have
plain numbers, half have numbers as people write them (`$1,250.50`, `-3.5`, `2e-3`). The same texts go through both
tokenizers, a few at a time and in turn, on one core. The fastest turn of each few counts, in seconds of the processor,
so that other work on the machine hardly matters.

Run: `python -m benchmarks patterns`
"""

import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

from transformers import PreTrainedTokenizerBase

from benchmarks.problems import word_problems
from benchmarks.results import Check, Outcome
from benchmarks.tokenisation import NUMERAL, load_bases
from placevalue import number_tokenizer

TEXTS, SEED, TURNS, AT_ONCE = 1000, 0, 10, 50
TARGET = 1.0
PARALLEL = "TOKENIZERS_PARALLELISM"


def run() -> Outcome:
    """Measure every family."""
    plain = word_problems(TEXTS, SEED)
    draw = random.Random(SEED)
    kinds = {
        "without numbers": [NUMERAL.sub("some", text) for text in plain],
        "plain numbers": plain,
        "numbers as written": [_written(text, draw) for text in plain],
    }
    checks: list[Check] = []
    raw: dict[str, Any] = {}
    for family, base in load_bases():
        with _one_core():
            raw[family] = _measure(base, kinds)
        checks += _compare(family, raw[family])
    return Outcome({"texts": TEXTS, "seed": SEED, "turns": TURNS, "at_once": AT_ONCE}, checks, raw)


def _measure(base: PreTrainedTokenizerBase, kinds: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    """The seconds that each pattern takes for each kind of text."""
    patterns = {name: number_tokenizer(base, token="agg", pattern=name) for name in ("paper", "extended")}
    without = kinds["without numbers"]
    for tokenizer in patterns.values():
        assert tokenizer(without)["input_ids"] == base(without)["input_ids"], "text without numbers is changed"
    seconds = {kind: dict.fromkeys(patterns, 0.0) for kind in kinds}
    for kind, texts in kinds.items():
        for start in range(0, len(texts), AT_ONCE):
            fastest = dict.fromkeys(patterns, float("inf"))
            for turn in range(TURNS):
                for name in list(patterns)[:: 1 if turn % 2 else -1]:
                    begin = process_time()
                    patterns[name](texts[start : start + AT_ONCE])
                    fastest[name] = min(fastest[name], process_time() - begin)
            for name, found in fastest.items():
                seconds[kind][name] += found
    return seconds


def _compare(family: str, seconds: dict[str, dict[str, float]]) -> list[Check]:
    """The time of `extended` by that of `paper`: for all texts with numbers, and for each kind."""
    with_numbers = [found for kind, found in seconds.items() if kind != "without numbers"]
    whole = sum(found["extended"] for found in with_numbers) / sum(found["paper"] for found in with_numbers)
    checks = [Check(f"{family}: time on texts with numbers, extended / paper", whole, at_most=TARGET)]
    for kind, found in seconds.items():
        note = f"{TEXTS} texts have the base's ids" if kind == "without numbers" else ""
        checks.append(Check(f"{family}: {kind}", found["extended"] / found["paper"], note=note))
    return checks


@contextmanager
def _one_core() -> Iterator[None]:
    before = os.environ.get(PARALLEL)
    os.environ[PARALLEL] = "false"
    try:
        yield
    finally:
        del os.environ[PARALLEL]
        if before is not None:
            os.environ[PARALLEL] = before


def _written(text: str, draw: random.Random) -> str:
    """The text with its numbers as people write them."""

    def write(match: re.Match[str]) -> str:
        whole = draw.randrange(1, 10_000_000)
        return draw.choice([f"${whole:,}.50", f"{whole:,}", f"-{match[0]}", f"{match[0]}e-{whole % 9}", match[0]])

    return NUMERAL.sub(write, text)
