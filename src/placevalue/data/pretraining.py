"""What the bundled model was pre-trained on: gaps in GSM8K's questions, made-up word problems, bare arithmetic.

All of it is made when it is asked for, the same on every machine. A row whose text, its numbers masked, stands in MAWPS
or FERMAT is drawn anew, so that nothing the model is tested on can be in it.
"""

import re
from bisect import bisect
from collections.abc import Iterator
from functools import cache
from itertools import accumulate

from placevalue.data.fermat import FERMAT_SETS, read_fermat
from placevalue.data.grammar import Draw, draw_numbers, write_text
from placevalue.data.gsm8k import read_gsm8k
from placevalue.data.mawps import SPLITS, read_mawps
from placevalue.data.problem import Problem
from placevalue.data.wordproblems import BARE, COUNTED, MEASURED, OPENINGS, Texts

ROWS = {"train": 500_000, "dev": 1_000}
SEED = 42
SENTINELS = tuple(f"<extra_id_{index}>" for index in range(8))
"""What stands for the gaps of a text, as T5 names them."""
GSM8K_DEV = 200
"""How many of GSM8K's training questions are kept for dev."""

_KINDS = ("gaps",) * 3 + ("counted",) * 10 + ("measured",) * 4 + ("bare",) * 3  # one in twenty each
_WEIGHTS = {1: 6, 2: 2, 3: 1}  # how often an equation of so many operators is asked, for a list of texts of one size
_WINDOW = (12, 60)  # the words of a question that are shown at once
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NO_LETTER = re.compile(r"[^a-z#]+")
_PUNCTUATION = re.compile(r"(?<=[A-Za-z0-9)])([.,?!])(?= |$)|(?<=\$)(?=\d)|(?<=[a-z])(?='s\b)")


def generate_pretraining(part: str, rows: int | None = None) -> Iterator[Problem]:
    """The rows of a part, one by one: what the model reads as question, what it is to write as answer.

    Args:
        part: Of `ROWS`.
        rows: How many; by default all.

    Example:
        >>> next(generate_pretraining("dev")).id
        'pretraining:dev:0'
    """
    held_out = set() if part == "dev" else {problem.question for problem in generate_pretraining("dev")}
    draw, tested = Draw(f"{SEED}:{part}"), _tested()
    questions = _gsm8k_words(part)
    for index in range(ROWS[part] if rows is None else rows):
        question, answer = _row(draw, questions)
        while question in held_out or mask_text(question) in tested:
            question, answer = _row(draw, questions)
        yield Problem(f"pretraining:{part}:{index}", question, answer)


def mask_text(text: str) -> str:
    """A text as its letters alone, each number a `#`: two problems that differ only in numbers are the same.

    Example:
        >>> mask_text("Joe has 12.5 pies.")
        'joehas#pies'
    """
    return _NO_LETTER.sub("", _NUMBER.sub("#", text.lower()))


@cache
def _tested() -> frozenset[str]:
    """All that the project tests on, masked."""
    mawps = (problem for split in SPLITS for problem in read_mawps(split))
    fermat = (problem for name in FERMAT_SETS for problem in read_fermat(name))
    return frozenset(mask_text(problem.question) for problems in (mawps, fermat) for problem in problems)


@cache
def _gsm8k_words(part: str) -> list[list[str]]:
    problems = read_gsm8k()
    return [each.question.split() for each in (problems[-GSM8K_DEV:] if part == "dev" else problems[:-GSM8K_DEV])]


@cache
def _equations(kind: str) -> tuple[list[tuple[str, tuple[str, ...]]], list[float]]:
    """The equations of a kind with their texts, and the share of the draws up to each."""
    texts: Texts = {"counted": COUNTED, "measured": MEASURED, "bare": BARE}[kind]
    operators = {equation: len(re.findall("[-+*/:]", equation)) for equation in texts}
    weights = [_WEIGHTS[operators[equation]] * len(texts[equation]) ** 0.5 for equation in texts]
    shares = [each / sum(weights) for each in accumulate(weights)]
    return list(texts.items()), shares


def _row(draw: Draw, questions: list[list[str]]) -> tuple[str, str]:
    kind = draw.pick(_KINDS)
    spaced = draw.uniform() < 0.5
    question, answer = _gaps(draw, questions) if kind == "gaps" else _problem(draw, kind)
    if spaced:  # many corpora set every mark apart from its word
        question, answer = (_PUNCTUATION.sub(r" \1", text) for text in (question, answer))
    return question, answer


def _problem(draw: Draw, kind: str) -> tuple[str, str]:
    """A question from the texts of a kind, and its answer."""
    equations, shares = _equations(kind)
    place = draw.uniform()
    equation, texts = equations[min(bisect(shares, place), len(shares) - 1)]
    decimals, padded = 0, False
    if kind != "counted" and draw.uniform() < (0.5 if kind == "measured" else 0.25):
        decimals, padded = draw.pick((1, 2, 2)), draw.uniform() < 0.5
    numbers, answer = draw_numbers(equation, draw, decimals, padded)
    text = draw.pick(texts)
    if kind == "counted" and draw.uniform() < 0.1:
        text = f"{OPENINGS} {text}"
        numbers["z"] = str(draw.whole(2, 99))
    if kind == "bare" and text[-1] not in "?.":
        text += draw.pick(("", "?", " ?", "."))
    return write_text(text, numbers, draw), answer


def _gaps(draw: Draw, questions: list[list[str]]) -> tuple[str, str]:
    """A stretch of a question with gaps, and what stood in them, each behind its sentinel."""
    words = draw.pick(questions)
    size = min(len(words), draw.whole(*_WINDOW))
    start = draw.whole(0, len(words) - size)
    shown, hidden, index, gap = [], [], start, 0
    while index < start + size:
        if gap < len(SENTINELS) and draw.uniform() < 0.09:
            length = draw.whole(1, 4)
            shown.append(SENTINELS[gap])
            hidden += [SENTINELS[gap], *words[index : min(index + length, start + size)]]
            index, gap = index + length, gap + 1
        else:
            length = draw.whole(1, 2)
            shown += words[index : min(index + length, start + size)]
            index += length
    if not hidden:  # every row has at least one gap
        shown[-1], hidden = SENTINELS[0], [SENTINELS[0], shown[-1]]
    return " ".join(shown), " ".join(hidden)
