"""Generated word problems to measure on, so that benchmarks need no data file.

They read like school maths: 10 to 40 words and 2 to 4 numbers of 1 to 4 digits, one number in five a decimal.
"""

import random
from functools import partial

NAMES = ["Maria", "Tom", "Aisha", "Mr. Jones", "Keiko", "the baker", "Daniel", "Mrs. Okafor", "Lucas", "Priya"]
THINGS = ["apples", "marbles", "stickers", "pencils", "tickets", "pounds of flour", "baseball cards", "bags of cookies"]
PLACES = ["at the market", "in the classroom", "on the farm", "at the school fair", "in her garden", "at the library"]
OPENINGS = [
    "{name} had {number} {thing}.",
    "There were {number} {thing} {place}.",
    "Each box {place} holds {number} {thing}.",
    "{name} paid ${number} for the {thing}.",
]
MIDDLES = [
    "{name} lost {number} of them",
    "Then {name} gave {number} of the {thing} to a friend",
    "Later that day {name} bought {number} more",
    "After {number} minutes, {name} counted all of the {thing} again",
    "The next week {number}% of the {thing} were lost {place}",
]
FILLERS = ["", "", "", "because the weather was nice", "while everybody else was playing outside {place}"]
QUESTIONS = ["How many are left?", "What is the total?", "How much did {name} spend on {thing} altogether?"]


def word_problems(count: int, seed: int) -> list[str]:
    """Generated word problems, determined by the seed."""
    rng = random.Random(seed)
    problems: list[str] = []
    while len(problems) < count:
        text = _problem(rng)
        if 10 <= len(text.split()) <= 40:
            problems.append(text)
    return problems


def _problem(rng: random.Random) -> str:
    fill = partial(_filled, rng)
    middles = [
        f"{fill(middle)} {fill(rng.choice(FILLERS))}".strip() for middle in rng.sample(MIDDLES, rng.randint(1, 3))
    ]
    sentences = [fill(rng.choice(OPENINGS)), *(f"{middle}." for middle in middles), fill(rng.choice(QUESTIONS))]
    return " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)


def _filled(rng: random.Random, template: str) -> str:
    name, thing, place = rng.choice(NAMES), rng.choice(THINGS), rng.choice(PLACES)
    return template.format(name=name, thing=thing, place=place, number=_number(rng))


def _number(rng: random.Random) -> str:
    """A number of 1 to 4 digits, each length equally likely."""
    digits = rng.randint(1, 4)
    whole = str(rng.randrange(10 ** (digits - 1), 10**digits))
    if digits > 1 and rng.random() < 0.25:
        point = rng.randint(1, digits - 1)
        return f"{whole[:point]}.{whole[point:]}"
    return whole
