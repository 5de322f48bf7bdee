"""Sets from FERMAT's templates: questions filled with drawn numbers, and their exact answers.

Train, dev and test have the same templates with other numbers, or each its own templates.

This follows the published script, with these differences: quotients are exact and not binary floats, so no answer ends
in ..0000001; the length limit applies to the answer as written; a template is left out if it computes with a number
that its question does not show; no question occurs in two parts.

The same settings give the same rows everywhere: the draws are the raw 64 bits of PCG64, whose streams numpy keeps
stable, and `_draw` turns bits into numbers. Each pair of a template and a number class has its own stream, read row by
row until enough rows are accepted.
"""

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from placevalue.common.errors import ConfigError, DataError
from placevalue.common.validation import find_faults
from placevalue.data.arithmetic import NAME, Column, Program, evaluate_columns, parse_expression
from placevalue.data.copies import fill_parts, group_alike, seeded_key
from placevalue.data.files import bundled_checksum, check_generated, read_bundled, write_generated
from placevalue.data.problem import Problem

FILE = "fermat/templates.csv.gz"
SOURCE, HELD_OUT = "fermat-templates", "fermat-held-out"
"""The corpora: of shared templates, and of templates that are held out."""
PARTS = ("train", "dev", "test")
TEMPLATE_SHARES = (0.7, 0.1, 0.2)
"""The shares of the templates that train, dev and test have if they share none."""
TEMPLATE_SEED = 42
Large = Literal["paper", "script"]
Answers = Literal["short", "rounded"]
Templates = Literal["shared", "held-out"]
Progress = Callable[[int], Any]
LONGEST_ANSWER, MOST_DECIMALS, ROUNDED_DECIMALS = 15, 13, 6
"""15 characters hold at most 13 decimals, or 13 digits before `.0`."""
MOST_ROWS, MOST_DRAWS = 2**14, 10**6
"""Rows drawn at once, which does not affect them, and draws per row after which a template is given up."""


@dataclass(frozen=True)
class FermatConfig:
    """Settings of FERMAT's generated sets."""

    size: int = field(default=200_000, metadata={"help": "number of training rows"})
    dev_size: int = field(default=1_000, metadata={"help": "number of dev rows"})
    test_size: int = field(default=10_000, metadata={"help": "number of test rows"})
    seed: int = field(default=42, metadata={"help": "seed of the draws"})
    large: Large = field(default="paper", metadata={"help": "largest integer: 100,000 (paper) or 999,999 (script)"})
    answers: Answers = field(default="short", metadata={"help": "redraw long answers (script), or round to 6 decimals"})
    templates: Templates = field(
        default="shared", metadata={"help": "whether dev and test share the templates of train, or have their own"}
    )

    def __post_init__(self) -> None:
        faults = find_faults(type(self), vars(self)) or [
            f"{name}: expected {least} or more, found {getattr(self, name)}"
            for name, least in (("size", 1), ("dev_size", 0), ("test_size", 0), ("seed", 0))
            if getattr(self, name) < least
        ]
        if faults:
            raise ConfigError("; ".join(faults))

    @property
    def sizes(self) -> dict[str, int]:
        """The number of rows of each part."""
        return dict(zip(PARTS, (self.size, self.dev_size, self.test_size), strict=True))

    @property
    def source(self) -> str:
        """The corpus that its rows belong to."""
        return SOURCE if self.templates == "shared" else HELD_OUT


@dataclass(frozen=True)
class NumberClass:
    """A class of numbers, drawn as integers that mean `drawn / 10**decimals`."""

    name: str
    decimals: int
    low: int
    high: int
    """Both ends included. A number with decimals lies between 0 and 1, 10, 100 or 1000, with equal probability."""


def number_classes(large: Large) -> tuple[NumberClass, ...]:
    """The paper's four classes; each has a quarter of the rows."""
    return (
        NumberClass("small integers", 0, 1, 999),
        NumberClass("large integers", 0, 1000, 100_000 if large == "paper" else 999_999),
        NumberClass("1 decimal place", 1, 0, 1000),
        NumberClass("2 decimal places", 2, 0, 1000),
    )


@dataclass(frozen=True)
class Template:
    """A question with the placeholders `num1` to `numN`, and the arithmetic of its answer."""

    line: int
    """Its line in the published `templates.csv`."""
    question: str
    equation: str
    program: Program
    shown: tuple[int, ...]
    """The placeholders in the question."""

    @property
    def answerable(self) -> bool:
        """Whether the question shows every number that the answer needs."""
        return set(self.program.numbers) <= set(self.shown)


def read_templates(text: str | None = None) -> list[Template]:
    """The 226 published templates, or CSV text in the same form: a header, then `templates,answers,expressions`."""
    lines = (read_bundled(FILE).decode() if text is None else text).splitlines(keepends=True)
    reader = csv.reader(lines, strict=True)
    next(reader, None)
    templates = []
    for row in reader:
        where = f"templates.csv, line {reader.line_num}"
        if len(row) < 2:
            raise DataError(f"{where}: expected a question and its arithmetic, found {row}")
        question, arithmetic = row[0].strip(), "".join(row[1].split())
        shown = tuple(sorted({int(number) for number in NAME.findall(question)}))
        program = parse_expression(row[1], where)
        templates.append(Template(reader.line_num, question, arithmetic, program, shown))
    return templates


def _with_gaps(text: str, shown: tuple[int, ...]) -> str:
    """Turn a template into a format string for its shown numbers, in order."""
    return NAME.sub(lambda name: f"{{{shown.index(int(name[1]))}}}", text.replace("{", "{{").replace("}", "}}"))


def split_templates(templates: Sequence[Template]) -> dict[str, list[Template]]:
    """Templates for each part, so that none is worded like one of another part; the same everywhere.

    Templates that are alike, directly or through others, are one group (`copies.group_alike`). The groups are ordered
    by a sha256, and each goes as a whole to the first part with room for it.
    """
    counts = [round(share * len(templates)) for share in TEMPLATE_SHARES[1:]]
    sizes = [len(templates) - sum(counts), *counts]
    groups = group_alike([NAME.sub("0", template.question) for template in templates])
    groups.sort(key=lambda group: seeded_key(TEMPLATE_SEED, templates[group[0]].line))
    parts = zip(PARTS, fill_parts(groups, sizes), strict=True)
    return {part: [templates[index] for index in sorted(indices)] for part, indices in parts}


def generate_fermat(config: FermatConfig, progress: Progress = lambda _rows: None) -> dict[str, list[Problem]]:
    """Generate `train`, `dev` and `test`; `progress` is called with the number of new rows."""
    templates = [template for template in read_templates() if template.answerable]
    shared = config.templates == "shared"
    chosen = dict.fromkeys(PARTS, templates) if shared else split_templates(templates)
    made: dict[str, list[Problem]] = {}
    taken: set[str] = set()
    for part in ("dev", "train", "test"):  # so that test, which came last, changes neither of the others
        size = config.sizes[part]
        made[part] = _generate(config, part, size, chosen[part], taken, progress) if size else []
        taken |= {problem.question for problem in made[part]}
    return {part: made[part] for part in PARTS}


def write_fermat(
    config: FermatConfig, folder: str | os.PathLike[str], progress: Progress = lambda _rows: None
) -> dict[str, Any]:
    """Write each part as `PART.jsonl`, and `data.json`; return the latter: settings, counts and checksums."""
    check_generated(folder)
    left_out = [template.line for template in read_templates() if not template.answerable]
    record = {
        "sources": [config.source],
        "config": asdict(config),
        "templates": {"sha256": bundled_checksum(FILE), "lines_left_out": left_out},
        "number_classes": [asdict(numbers) for numbers in number_classes(config.large)],
    }
    return write_generated(folder, generate_fermat(config, progress), record)


def _generate(
    config: FermatConfig, part: str, size: int, templates: list[Template], taken: set[str], progress: Progress
) -> list[Problem]:
    """Templates take turns in a random order, number classes get a quarter each; then all rows are shuffled."""
    stream = partial(_stream, config.seed, PARTS.index(part))
    classes = number_classes(config.large)
    turns = np.argsort(stream(0, 0).random_raw(len(templates)), kind="stable")
    places = np.argsort(stream(0, 1).random_raw(size), kind="stable")
    rows = np.arange(size, dtype=np.int64)
    group = rows * len(classes) // size * len(templates) + turns[rows % len(templates)]
    problems: list[Any] = [None] * size
    keys, starts = np.unique(np.sort(group), return_index=True)
    for key, wanted in zip(keys.tolist(), np.split(places[np.argsort(group, kind="stable")], starts[1:]), strict=True):
        numbers, template = classes[key // len(templates)], templates[key % len(templates)]
        bits = stream(1 + key // len(templates), template.line)
        drawn = _fill(template, numbers, len(wanted), bits, config.answers, taken)
        for place, texts in zip(wanted.tolist(), drawn, strict=True):
            problems[place] = Problem(f"{config.source}:{part}:{place}", *texts, template.program.operation)
        progress(len(wanted))
    return problems


def _stream(*key: int) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence(key))


def _fill(
    template: Template, numbers: NumberClass, count: int, bits: np.random.PCG64, answers: Answers, taken: set[str]
) -> list[tuple[str, str, str]]:
    """Question, answer and equation of the first `count` accepted rows of a stream."""
    question, equation = (_with_gaps(text, template.shown) for text in (template.question, template.equation))
    found: list[tuple[str, str, str]] = []
    drawn, accepted, places, scale = 0, 0, numbers.decimals, 10**numbers.decimals
    while len(found) < count:
        if drawn > MOST_DRAWS * count:
            raise DataError(f"templates.csv, line {template.line}: no answer with {numbers.name} in {drawn:,} draws")
        missing = count - len(found)
        block = min(MOST_ROWS, missing + missing * drawn // max(accepted, 1))
        block += block % 2  # even, since 64 bits make two numbers
        table = _draw(bits, block * len(template.shown), numbers).reshape(block, -1)
        columns = dict(zip(template.shown, table.T, strict=True))
        rows, texts = _answers(template.program, columns, numbers, answers)
        drawn, accepted = drawn + block, accepted + len(rows)
        for row, answer in zip(table[rows].tolist(), texts, strict=True):
            written = [f"{value // scale}.{value % scale:0{places}d}" for value in row] if places else row
            asked = question.format(*written)
            if asked not in taken:
                found.append((asked, answer, equation.format(*written)))
    return found[:count]


def _draw(bits: np.random.PCG64, count: int, numbers: NumberClass) -> Column:
    """Draw two integers from each 64 random bits, lower half first: the upper 30 of 32 bits, scaled to the range.

    With decimals, the lowest two bits choose one of four ranges. Twice as many steps are drawn as there are numbers and
    two make a number. Like rounding a uniform fraction, this gives both ends half the probability of the others.
    """
    halves = bits.random_raw(count // 2).astype("<u8", copy=False).view("<u4")
    fine = (halves >> np.uint32(2)).astype(np.int64)
    if not numbers.decimals:
        return (fine * (numbers.high - numbers.low + 1) >> 30) + numbers.low
    ends = np.array([2 * 10**power * 10**numbers.decimals for power in range(4)], dtype=np.int64)
    return (fine * ends[halves & np.uint32(3)] >> 30) + 1 >> 1


def _answers(
    program: Program, columns: dict[int, Column], numbers: NumberClass, answers: Answers
) -> tuple[Column, list[str]]:
    """The rows whose answer is positive and can be written, and these answers as text."""
    scale = 10**numbers.decimals
    top, below, exists = evaluate_columns(program, columns, scale, numbers.high * scale)
    accepted = exists & (top > 0)
    if answers == "short":
        accepted &= _ends_early(top, below) & (top // below < 10**MOST_DECIMALS)
    rows = np.flatnonzero(accepted)
    decimals = MOST_DECIMALS if answers == "short" else ROUNDED_DECIMALS
    texts = [_write_answer(*pair, decimals) for pair in zip(top[rows].tolist(), below[rows].tolist(), strict=True)]
    fits = [text != "0.0" and (answers == "rounded" or len(text) <= LONGEST_ANSWER) for text in texts]
    return rows[np.array(fits, dtype=bool)], [text for text, fit in zip(texts, fits, strict=True) if fit]


def _ends_early(top: Column, below: Column) -> Column:
    """Whether each positive quotient has at most 13 decimals, so that 10**13 times it is an integer."""
    largest = int(below.max())
    powers = {prime: max(n for n in range(MOST_DECIMALS + 1) if prime**n <= largest) for prime in (2, 5)}
    factor = 2 ** powers[2] * 5 ** powers[5]  # divides 10**13, and no denominator has higher powers of 2 and 5
    if largest * factor >= 2**63:
        top, below = top.astype(object), below.astype(object)
    elif int(top.max()) * factor >= 2**63:
        top = top % below
    return top * factor % below == 0


def _write_answer(top: int, below: int, decimals: int) -> str:
    """A quotient as FERMAT writes it, such as `70.0`, rounded to `decimals`, halves to the even digit."""
    whole, rest = divmod(top, below)
    if not rest:
        return f"{whole}.0"
    digits, rest = divmod(top * 10**decimals, below)
    digits += 2 * rest > below or (2 * rest == below and digits % 2)
    whole, fraction = divmod(digits, 10**decimals)
    return f"{whole}.{f'{fraction:0{decimals}d}'.rstrip('0') or '0'}"
