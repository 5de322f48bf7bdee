"""Answers that need no model: whatever a method scores, it should be more than these.

They know the training problems and read each question, but compute nothing more than one operation.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np

from placevalue.data.copies import answer_value, numbers_of, word_trigrams
from placevalue.data.problem import Problem
from placevalue.numbers.numerals import shortest_form

NEAREST, FREQUENT, OPERATION = "nearest question", "frequent answer", "best operation"
ABOUT = {
    NEAREST: "the answer of the training question that shares the most word trigrams with this one (Jaccard)",
    FREQUENT: "the most frequent answer of the training data",
    OPERATION: "the operation on the question's numbers that is right most often in the training data",
}
"""The names of the trivial answers, and how each is found."""
SAMPLE = 10_000
"""How many training problems the operation is chosen on: the first ones."""
Trigram = tuple[str, ...]
Numbers = tuple[Decimal, ...]
OPERATIONS: dict[str, Callable[[Numbers], Decimal]] = {
    "sum": lambda numbers: sum(numbers, Decimal(0)),
    "difference": lambda numbers: numbers[-1] - numbers[0],
    "product": lambda numbers: math.prod(numbers, start=Decimal(1)),
    "quotient": lambda numbers: numbers[-1] / numbers[0],
}
"""Operations on numbers in ascending order; difference and quotient are of the largest and the smallest."""


def trivial_answers(questions: Sequence[str | None], train: Sequence[Problem]) -> dict[str, list[str]]:
    """Every kind of trivial answer to each question, by the names of `ABOUT`.

    What cannot be found is left out: all without training problems, those that read the questions if one is None, and
    the operation if no training problem has an equation.
    """
    if not train:
        return {}
    found = {}
    known = [question for question in questions if question is not None]
    frequent = most_frequent(train)
    if len(known) == len(questions):
        copied = nearest_questions(known, [problem.question for problem in train])
        found[NEAREST] = [frequent if index is None else train[index].answer for index in copied]
    found[FREQUENT] = [frequent] * len(questions)
    if len(known) == len(questions) and any(problem.equation for problem in train):
        operation = best_operation(train)
        found[OPERATION] = [apply_operation(operation, numbers_of(question)) for question in known]
    return found


def most_frequent(train: Sequence[Problem]) -> str:
    """The answer with the most frequent value, as its first problem writes it."""
    values = [answer_value(problem.answer) for problem in train]
    ((value, _),) = Counter(values).most_common(1)
    return train[values.index(value)].answer


def nearest_questions(asked: Sequence[str], known: Sequence[str]) -> list[int | None]:
    """The index of the known question that is most like each question; None if none shares a trigram.

    Likeness is that of `copies.likeness`. Of equally alike questions the first counts.
    """
    trigrams = {question: word_trigrams(question) for question in dict.fromkeys(asked)}
    wanted = set().union(*trigrams.values())
    # Questions of one template share nearly everything that anyone asks for, so few of them have to be compared.
    different: dict[tuple[frozenset[Trigram], int], int] = {}
    for index, question in enumerate(known):
        theirs = word_trigrams(question)
        different.setdefault((frozenset(theirs & wanted), len(theirs)), index)
    sizes = np.array([size for _, size in different])
    holders: defaultdict[Trigram, list[int]] = defaultdict(list)
    for place, (shared, _) in enumerate(different):
        for each in shared:
            holders[each].append(place)
    places = {each: np.array(found) for each, found in holders.items()}
    indices = list(different.values())
    nearest: dict[str, int | None] = {}
    for question, ours in trigrams.items():
        found = [places[each] for each in ours if each in places]
        counts = np.bincount(np.concatenate(found), minlength=len(sizes)) if found else None
        nearest[question] = None if counts is None else indices[int((counts / (len(ours) + sizes - counts)).argmax())]
    return [nearest[question] for question in asked]


def best_operation(train: Sequence[Problem]) -> str:
    """The key of `OPERATIONS` that gives the answer of most of the first training problems."""
    right = dict.fromkeys(OPERATIONS, 0)
    for problem in train[:SAMPLE]:
        numbers, answer = numbers_of(problem.question), answer_value(problem.answer)
        for name in OPERATIONS:
            right[name] += answer_value(apply_operation(name, numbers)) == answer
    return max(right, key=right.__getitem__)


def apply_operation(name: str, numbers: Numbers) -> str:
    """The result of an operation on a question's numbers; empty if there are none, or the result is no number."""
    try:
        value = float(OPERATIONS[name](numbers)) if numbers else math.nan
    except ArithmeticError:
        return ""
    return shortest_form(value) if math.isfinite(value) else ""
