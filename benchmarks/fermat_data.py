"""How fast FERMAT's training set is generated: draw 200,000 rows, compute them exactly and write them, on one core.

The alternative is a plain Python loop. For each row it draws the numbers with `random`, runs the same parsed program on
`fractions.Fraction`, draws again if the answer is not above 0 or has more than 15 characters, and fills in the
question; it writes nothing. The loop is timed on a sample and extrapolated. Both run in one thread. Times are CPU
seconds, which other processes hardly affect; the record also has wall-clock seconds.

Run: `python -m benchmarks fermat_data`
"""

import operator
import random
import tempfile
from decimal import Decimal
from fractions import Fraction
from time import perf_counter, process_time
from typing import Any

from benchmarks.results import Check, Outcome
from placevalue.data import FermatConfig, write_fermat
from placevalue.data.arithmetic import NEGATE, Program
from placevalue.data.fermat_templates import (
    LONGEST_ANSWER,
    Large,
    NumberClass,
    Template,
    number_classes,
    read_templates,
)

SIZE, SAMPLE, SEED, ROUNDS = 200_000, 1_000, 42, 2
SECONDS, FASTER = 10.0, 5.0
WORK = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def run() -> Outcome:
    """Measure with both ranges of large integers: the paper's and its script's."""
    checks: list[Check] = []
    raw: dict[str, Any] = {}
    for large in ("paper", "script"):
        found = [_ours(large) for _ in range(ROUNDS)]
        clock, seconds = min(found, key=lambda pair: pair[1])
        loop = _loop(large)
        note = f"{SIZE / seconds:,.0f} rows/s; {clock:.1f} s by the clock"
        checks.append(Check(f"{large}: seconds for {SIZE:,} rows", seconds, at_most=SECONDS, note=note))
        note = f"{loop:,.0f} s by the loop"
        checks.append(Check(f"{large}: loop / ours", loop / seconds, at_least=FASTER, note=note))
        raw[large] = {"clock_and_processor": found, "loop": loop}
    return Outcome({"size": SIZE, "sample": SAMPLE, "seed": SEED, "rounds": ROUNDS}, checks, raw)


def _ours(large: Large) -> tuple[float, float]:
    """Wall-clock and CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        begin, busy = perf_counter(), process_time()
        write_fermat(FermatConfig(size=SIZE, test_size=0, seed=SEED, large=large), folder)
        return perf_counter() - begin, process_time() - busy


def _loop(large: Large) -> float:
    """CPU seconds that the loop would take for all rows."""
    rng = random.Random(SEED)
    templates = [template for template in read_templates() if template.answerable]
    rng.shuffle(templates)
    classes = number_classes(large)
    begin = process_time()
    rows = [_row(rng, templates[row % len(templates)], classes[row * 4 // SAMPLE]) for row in range(SAMPLE)]
    assert len(rows) == SAMPLE
    return (process_time() - begin) / SAMPLE * SIZE


def _row(rng: random.Random, template: Template, numbers: NumberClass) -> tuple[str, str]:
    while True:
        texts = {number: _number(rng, numbers) for number in template.shown}
        try:
            value = _evaluate(template.program, {number: Fraction(text) for number, text in texts.items()})
        except ZeroDivisionError:
            continue
        if value <= 0 or 10**13 % value.denominator:
            continue
        answer = format(Decimal(value.numerator) / value.denominator, "f")
        answer = answer if "." in answer else f"{answer}.0"
        if len(answer) <= LONGEST_ANSWER:
            question = template.question
            for number, text in texts.items():
                question = question.replace(f"num{number}", text)
            return question, answer


def _evaluate(program: Program, values: dict[int, Fraction]) -> Fraction:
    stack: list[Fraction] = []
    for step in program.steps:
        if not isinstance(step, str):
            stack.append(values[step] if isinstance(step, int) else step)
        elif step == NEGATE:
            stack.append(-stack.pop())
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(WORK[step](left, right))
    return stack.pop()


def _number(rng: random.Random, numbers: NumberClass) -> str:
    if not numbers.decimals:
        return str(rng.randint(numbers.low, numbers.high))
    return f"{rng.random() * 10 ** rng.randint(0, 3):.{numbers.decimals}f}"
