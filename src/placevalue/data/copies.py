"""Questions that copy others: with the same words, or reworded around the same numbers and answer.

Two questions are alike by the share of word trigrams that they have in common (Jaccard). A number or a full stop counts
as a word.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

from placevalue.data.problem import Problem, same_words
from placevalue.numbers.numerals import find_numerals

ALIKE = 0.2
"""The likeness from which a question with the same numbers and answer is a rewording. In MAWPS's seeded split, every
value from 0.12 to 0.4 finds the same 37 test questions."""
WORD = re.compile(r"[^\W\d_]+|[\d.]+")
Asked = tuple[str, str]
"""A question and its answer."""
Value = Decimal | str
Content = tuple[Value, tuple[Decimal, ...]]
"""The value of a question's answer, and its numbers."""


@dataclass(frozen=True)
class Copies:
    """Which questions copy others, as indices; each is in one of the two at most."""

    repeated: tuple[int, ...]
    """The same words, apart from case and spacing."""
    reworded: tuple[int, ...]
    """Other words, but the same numbers, the same answer, and a likeness of at least `ALIKE`."""

    def __len__(self) -> int:
        return len(self.repeated) + len(self.reworded)

    def __str__(self) -> str:
        kinds = (
            f"{len(self.repeated):,} word for word, {len(self.reworded):,} reworded with the same numbers and answer"
        )
        return f"{len(self):,} ({kinds})"


def word_trigrams(question: str) -> set[tuple[str, ...]]:
    """Every three words in a row, or all words if there are fewer."""
    words = WORD.findall(question.lower())
    return {tuple(words[start : start + 3]) for start in range(max(1, len(words) - 2))}


def likeness(one: str, other: str) -> float:
    """The trigrams that two questions share, divided by all that they have: from 0 to 1.

    Example:
        >>> likeness("Ann has 3 apples .", "Ann has 3 pears .")
        0.2
    """
    ours, theirs = word_trigrams(one), word_trigrams(other)
    return len(ours & theirs) / len(ours | theirs)


def pairs(problems: Iterable[Problem]) -> list[Asked]:
    """Each problem's question and answer."""
    return [(problem.question, problem.answer) for problem in problems]


def find_copies(asked: Sequence[Asked], known: Sequence[Asked]) -> Copies:
    """Which of `asked` copy one of `known`, given as questions and answers."""
    words = {same_words(question) for question, _ in known}
    repeated = [index for index, (question, _) in enumerate(asked) if same_words(question) in words]
    values = [answer_value(answer) for _, answer in asked]
    wanted: set[Value] = set(values)
    by_content: defaultdict[Content, list[str]] = defaultdict(list)
    for question, answer in known:
        if (value := answer_value(answer)) in wanted:
            by_content[value, numbers_of(question)].append(question)
    repeated, reworded = [], []
    for index, (question, _) in enumerate(asked):
        if same_words(question) in words:
            repeated.append(index)
        elif alike := by_content.get((values[index], numbers_of(question))):
            reworded += [index] * any(likeness(question, other) >= ALIKE for other in alike)
    return Copies(tuple(repeated), tuple(reworded))


def group_copies(asked: Sequence[Asked]) -> list[list[int]]:
    """All indices in groups, so that no question copies one of another group; in order of first occurrence."""
    by_words: dict[str, int] = {}
    by_content: defaultdict[Content, list[int]] = defaultdict(list)
    copied = []
    for index, (question, answer) in enumerate(asked):
        alike = by_content[answer_value(answer), numbers_of(question)]
        copied += [(other, index) for other in alike if likeness(question, asked[other][0]) >= ALIKE]
        copied.append((by_words.setdefault(same_words(question), index), index))
        alike.append(index)
    return _connect(len(asked), copied)


def group_alike(questions: Sequence[str]) -> list[list[int]]:
    """All indices in groups, so that questions of two groups are less alike than `ALIKE`, whatever their answers."""
    both = combinations(range(len(questions)), 2)
    return _connect(len(questions), [each for each in both if likeness(*(questions[i] for i in each)) >= ALIKE])


def _connect(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The numbers below `count` in groups that the pairs connect."""
    leader = list(range(count))

    def first(index: int) -> int:
        while leader[index] != index:
            index = leader[index]
        return index

    for pair in pairs:
        one, two = sorted(map(first, pair))
        leader[two] = one
    groups: dict[int, list[int]] = {}
    for index in range(count):
        groups.setdefault(first(index), []).append(index)
    return list(groups.values())


def fill_parts(groups: Iterable[Sequence[int]], sizes: Sequence[int]) -> list[list[int]]:
    """Parts of these sizes; each group in turn goes as a whole to the first part with room for it."""
    parts: list[list[int]] = [[] for _ in sizes]
    for group in groups:
        room = (part for part, size in zip(parts, sizes, strict=True) if len(part) + len(group) <= size)
        next(room).extend(group)
    return parts


def seeded_key(seed: int, name: object) -> bytes:
    """A key that puts things into an order that looks random and is the same everywhere."""
    return hashlib.sha256(f"{seed}:{name}".encode()).digest()


def numbers_of(question: str) -> tuple[Decimal, ...]:
    """The values of a question's numbers, in ascending order."""
    return tuple(sorted(numeral.value for numeral in find_numerals(question, "extended")))


def answer_value(answer: str) -> Value:
    """The value of an answer that is a number, so that 7 equals 7.0; else its text."""
    text = answer.strip()
    found = find_numerals(text, "extended")
    return found[0].value if len(found) == 1 and found[0].text == text else text
