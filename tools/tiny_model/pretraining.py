"""The pre-training corpus of the bundled model: gaps in GSM8K's questions, generated word problems, bare arithmetic.

Rows are the same on every machine. A row that equals a MAWPS or FERMAT question in all but its numbers is drawn again,
so the corpus holds nothing that the model is tested on.
"""

import re
from bisect import bisect
from collections.abc import Iterator
from functools import cache
from itertools import accumulate

from placevalue.data.fermat import FERMAT_SETS, read_fermat
from placevalue.data.mawps import SPLITS, read_mawps
from placevalue.data.problem import Problem
from tools.tiny_model.grammar import Draw, draw_numbers, write_text
from tools.tiny_model.gsm8k import read_gsm8k
from tools.tiny_model.wordproblems import BARE, COUNTED, MEASURED, OPENINGS, Texts

ROWS = {"train": 500_000, "dev": 1_000}
SEED = 42
SOURCES = ("gsm8k", "word-problems")
"""The corpora that the rows count as when models are checked for test problems they have seen."""
SENTINELS = tuple(f"<extra_id_{index}>" for index in range(8))
"""The markers of the gaps in a text, named as in T5."""
GSM8K_DEV = 200
"""The last of GSM8K's training questions, kept for dev."""

_KINDS = ("gaps",) * 3 + ("counted",) * 10 + ("measured",) * 4 + ("bare",) * 3  # a twentieth of the rows each
_WEIGHTS = {
    1: 6,
    2: 2,
    3: 1,
}  # how often equations of 1, 2 and 3 operators are drawn, given equally many texts
_WINDOW = (12, 60)  # how many words of a question a row shows
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NO_LETTER = re.compile(r"[^a-z#]+")
_PUNCTUATION = re.compile(r"(?<=[A-Za-z0-9)])([.,?!])(?= |$)|(?<=\$)(?=\d)|(?<=[a-z])(?='s\b)")


def generate_pretraining(part: str, rows: int | None = None) -> Iterator[Problem]:
    """Generate the rows of a part: the question is what the model reads, the answer what it should write.

    Args:
        part: A key of `ROWS`.
        rows: How many; all by default.

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
    """A text's letters, each number a `#`, so that problems which differ only in numbers become equal.

    Example:
        >>> mask_text("Joe has 12.5 pies.")
        'joehas#pies'
    """
    return _NO_LETTER.sub("", _NUMBER.sub("#", text.lower()))


@cache
def _tested() -> frozenset[str]:
    """Every question of MAWPS and FERMAT, masked."""
    mawps = (problem for split in SPLITS for problem in read_mawps(split))
    fermat = (problem for name in FERMAT_SETS for problem in read_fermat(name))
    return frozenset(mask_text(problem.question) for problems in (mawps, fermat) for problem in problems)


@cache
def _gsm8k_words(part: str) -> list[list[str]]:
    problems = read_gsm8k()
    return [each.question.split() for each in (problems[-GSM8K_DEV:] if part == "dev" else problems[:-GSM8K_DEV])]


@cache
def _equations(kind: str) -> tuple[list[tuple[str, tuple[str, ...]]], list[float]]:
    """The equations of a kind with their texts, and the cumulative share of each in the draws."""
    texts: Texts = {"counted": COUNTED, "measured": MEASURED, "bare": BARE}[kind]
    operators = {equation: len(re.findall("[-+*/:]", equation)) for equation in texts}
    weights = [_WEIGHTS[operators[equation]] * len(texts[equation]) ** 0.5 for equation in texts]
    shares = [each / sum(weights) for each in accumulate(weights)]
    return list(texts.items()), shares


def _row(draw: Draw, questions: list[list[str]]) -> tuple[str, str]:
    kind = draw.pick(_KINDS)
    spaced = draw.uniform() < 0.5
    question, answer = _gaps(draw, questions) if kind == "gaps" else _problem(draw, kind)
    if spaced:  # many corpora put a space before every punctuation mark
        question, answer = (_PUNCTUATION.sub(r" \1", text) for text in (question, answer))
    return question, answer


def _problem(draw: Draw, kind: str) -> tuple[str, str]:
    """A question of a kind, and its answer."""
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
    """Part of a question with gaps, and the missing words, each after its sentinel."""
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
