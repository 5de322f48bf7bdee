"""Slow, obvious twins of the vectorised kernels: one number at a time, plain Python, float64."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, combinations

import numpy as np
import torch

from placevalue.data.arithmetic import evaluate_columns, parse_expression
from placevalue.numbers.aggregation import MAX_DIGITS
from placevalue.numbers.numerals import find_numerals


def value_of(expression, **values):
    """The exact value of an expression, from a column of one row: `value_of("num1 / 2", num1=3)`."""
    columns = {int(name.removeprefix("num")): np.array([value]) for name, value in values.items()}
    top, below, _ = evaluate_columns(parse_expression(expression), columns, 1, max(values.values(), default=1))
    return Fraction(int(top[0]), int(below[0]))


def numbers_in(ids, number_ids, symbols=".-,+eE"):
    """Numbers of one row as (open position, [(character, position)], positions of [AGG])."""
    names = {id_: str(value) for value, id_ in enumerate(number_ids.digits)}
    names |= dict(zip(number_ids.symbols, symbols, strict=False))
    extra = (number_ids.agg, number_ids.pause)
    found = []
    for start, token in enumerate(ids):
        if token != number_ids.open:
            continue
        characters, aggs = [], []
        for position in range(start + 1, len(ids)):
            if ids[position] in extra:
                aggs += [position] if ids[position] == number_ids.agg else []
            elif ids[position] in names and ids[position] != -1:
                characters.append((names[ids[position]], position))
            else:
                break
        found.append((start, characters, aggs))
    return found


def bare_numbers(tokens, pattern, extra=(), after=False):
    """Numbers without markers in one row as (positions, numeral): the numerals of the text that the tokens spell.

    `tokens` has None for what is no text; `extra` are the positions of [AGG] and [PAUSE], which belong to a number
    that they stand beside.
    """
    spelled = [token or "\0" for token in tokens]
    for at in extra:
        spelled[at] = "%" if after else "\0"  # what follows a number: a minus there is no sign
    ends = list(accumulate(map(len, spelled)))
    found = []
    for numeral in find_numerals("".join(spelled), pattern):
        inside = [at for at, end in enumerate(ends) if end > numeral.start and end - len(spelled[at]) < numeral.end]
        beside = inside[-1] + 1 if after else inside[0] - 1
        found.append((sorted([*inside, *({beside} & set(extra))]), numeral.text))
    return found


def digits_of(text, decimals="places"):
    """[(digit, place)] and the number of places before the point, from how a number is written."""
    mantissa, _, exponent = text.strip("()$%").replace("E", "e").replace(",", "").lstrip("+-$").partition("e")
    shift = int(exponent or 0)
    whole, _, fraction = mantissa.partition(".")
    if decimals == "ignore":
        whole, fraction = whole + fraction, ""
    leading = len(whole) + shift
    return [(int(c), leading - 1 - i) for i, c in enumerate(whole + fraction)], max(leading, 1)


def is_negative(text):
    """Whether a number as `extended` or `accounting` writes it is below zero; -0 is not."""
    mantissa = text.lower().partition("e")[0]
    return text[0] in "-(" and any(c in "123456789" for c in mantissa)


def weight(place, leading):
    n = min(leading, MAX_DIGITS)
    place -= max(leading - MAX_DIGITS, 0)
    rank = max(place, 0)
    return 2.0**place * 3 * (rank + 1) * (rank + 2) / (n * (n + 1) * (n + 2))


def signed_aggregate(name, text, embeddings, decimals="places"):
    """One number's vector in float64, the negative one of a number below zero."""
    vector = aggregate(name, text, embeddings, decimals)
    return -vector if is_negative(text) else vector


def aggregate(name, text, embeddings, decimals="places"):
    """The vector in float64 of one number without its sign."""
    digits, leading = digits_of(text, decimals)
    rows = embeddings.double()
    if not digits:
        return torch.zeros(rows.shape[1], dtype=torch.float64)
    stacked = torch.stack([rows[d] for d, _ in digits])
    if name == "weighted":
        return sum(weight(place, leading) * rows[d] for d, place in digits)
    if name == "sum":
        return stacked.sum(0)
    if name == "mean":
        return stacked.mean(0)
    if name == "max":
        return stacked.max(0).values
    if name == "min":
        return stacked.min(0).values
    if name == "median":
        ordered, n = stacked.sort(0).values, len(digits)
        return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    assert name == "interpolated"
    total = torch.zeros(rows.shape[1], dtype=torch.float64)
    for index, (digit, place) in enumerate(digits):
        behind = "".join(str(d) for d, _ in digits[index + 1 :])
        fraction = float(Decimal(f"0.{behind or 0}"))
        way = fraction + 0.3 * math.sin(2 * math.pi * fraction) / (2 * math.pi)
        point = (1 - way) * rows[digit] + way * rows[(digit + 1) % 10]
        total += min(leading, MAX_DIGITS) * 20.0 ** -(leading - 1 - place) * point
    return total


def number_cost(name, text, chances, rows, decimals="places"):
    """The soft loss's r^2 for one number: `chances` has a dict from character to probability for each position.

    Characters are digits and the point; `$` is anything else, and also follows the last character of `text`.
    """
    rows = rows.double()
    rows = rows / (rows - rows.mean(0)).square().sum(1).mean().sqrt()
    gold, written = aggregate(name, text, rows, decimals), [*text, "$"]

    def cost(position, character):
        if character.isdigit() and written[position].isdigit():
            variant = text[:position] + character + text[position + 1 :]
        else:
            variant = text[:position] + (character if character.isdigit() else "")
            if written[position] == ".":
                variant = variant.replace(".", "")
        return float((aggregate(name, variant, rows, decimals) - gold).square().sum())

    substitutions = [cost(t, c) for t in range(len(text)) if text[t].isdigit() for c in "0123456789"]
    total = 0.0
    for position, chance in enumerate(chances):
        for character, probability in chance.items():
            right = written[position] if written[position] in "0123456789." else "$"
            if character == right:
                continue
            another = 0 if character.isdigit() and right.isdigit() else max(substitutions)
            total += probability * (cost(position, character) + another)
    return total


def number_loss(name, numbers):
    """A loss of `NUMBER_LOSSES` for one target, from its numbers: [(text, ten logits for each character)]."""
    digits, runs = [], []
    for text, logits in numbers:
        point = text.find(".") if "." in text else len(text)
        for run in re.finditer("[0-9]+", text):
            guess = gold = 0
            for at in range(*run.span()):
                z, y, rank = [float(each) for each in logits[at]], int(text[at]), run.end() - 1 - at
                p = [math.exp(each - max(z)) for each in z]
                p = [each / sum(p) for each in p]
                whole = sum(c.isdigit() for c in text[at + 1 : point])
                place = whole if at < point else -sum(c.isdigit() for c in text[point : at + 1])
                digits.append((z, p, y, rank, place))
                guess, gold = 10 * guess + z.index(max(z)), 10 * gold + y
            runs.append((guess, gold))
    value = sum(_DIGIT_LOSSES[name](*digit) for digit in digits) / len(digits)
    if name == "ntil":
        for guess, gold in runs:
            apart = abs(guess - gold) / (max(guess, gold) + 1)
            value += 0.2 * (apart + math.log((max(guess, gold) + 1) / (min(guess, gold) + 1))) / len(runs)
    return value


def _del(z, p, y, rank, place):
    weight = 2 * (place + 1) if place >= 0 else 1.02 ** (place - 1)
    logistic = [1 / (1 + math.exp(-each)) for each in z]
    bce = [-math.log(s if c == y else 1 - s) for c, s in enumerate(logistic)]
    return weight * sum(a * b for a, b in zip(p, bce, strict=True)) / 10


def _smmd(z, p, y, rank, place):
    r = [p[c] - (c == y) for c in range(10)]
    k = [[math.exp(-((i - j) ** 2) / (2 * 2.0**2)) for j in range(10)] for i in range(10)]
    alpha = 1 / (2 * sum(map(sum, k)) / 10)
    discrepancy = sum(r[i] * k[i][j] * r[j] for i in range(10) for j in range(10))
    roughness = sum(k[i][j] * (r[i] - r[j]) ** 2 for i in range(10) for j in range(10)) / 2
    return discrepancy + alpha * roughness


def _dist2(z, p, y, rank, place):
    bell = [math.exp(-((c - y) ** 2)) for c in range(10)]
    bell = [each / sum(bell) for each in bell]
    return (rank + 1) * sum(q * math.log(q / p[c]) for c, q in enumerate(bell))


_DIGIT_LOSSES = {
    "ntl-was": lambda z, p, y, rank, place: sum(p[c] * abs(c - y) for c in range(10)),
    "ntl-mse": lambda z, p, y, rank, place: (sum(p[c] * c for c in range(10)) - y) ** 2,
    "del": _del,
    "smmd": _smmd,
    "ntil": lambda z, p, y, rank, place: 1.2**rank * sum(p[c] * abs(c - y) for c in range(10)),
    "dist2": _dist2,
}


def levenshtein(one, other):
    """Edit distance, row by row of the textbook's table."""
    above = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
        above = row
    return above[-1]


def bootstrap_interval(values, units, draws):
    """Percentile interval of a mean: `draws` has, for each resample, how often each unit was drawn."""
    means = []
    for counts in draws:
        drawn = [v for unit, times in enumerate(counts) for _ in range(int(times)) for v, u in zip(values, units, strict=True) if u == unit]  # fmt: skip
        drawn = [value for value in drawn if not math.isnan(value)]
        if drawn:
            means.append(sum(drawn) / len(drawn))
    means.sort()

    def quantile(share):
        at = share * (len(means) - 1)
        below, above = math.floor(at), math.ceil(at)
        return means[below] + (at - below) * (means[above] - means[below])

    return quantile(0.025), quantile(0.975)


def extended_numerals(text):
    """What `extended` calls a number, character by character: [(start, end)]."""

    def run(start):
        end = start
        while end < len(text) and text[end] in "0123456789":
            end += 1
        return end

    def group(start):
        return text[start : start + 1] == "," and run(start + 1) >= start + 4

    found, at = [], 0
    while at < len(text):
        start = at
        signed = text[at] in "+-" and not re.match(r"[0-9A-Za-z_.)\]%]", text[at - 1 : at])
        at += signed
        end = run(at)
        if 1 <= end - at <= 3:  # thousands separators, unless what follows the last group is a digit
            groups = end
            while group(groups):
                groups += 4
                end = groups if run(groups) == groups else end
        if text[end : end + 1] == "." and run(end + 1) > end + 1:
            end = run(end + 1)
        if end == at:
            at = start + 1
            continue
        power = end + 1 + (text[end + 1 : end + 2] in ("+", "-"))
        if text[end : end + 1] in ("e", "E") and 1 <= run(power) - power <= 3:
            end = end if re.match("[A-Za-z_]", text[run(power) : run(power) + 1]) else run(power)
        found.append((start, end))
        at = end
    return found


def exact_value(numeral):
    """What a number is worth, from its digits."""
    mantissa, _, power = numeral.lower().replace(",", "").partition("e")
    whole, _, decimals = mantissa.lstrip("+-").partition(".")
    value = Fraction(int(whole + decimals)) * Fraction(10) ** (int(power or 0) - len(decimals))
    return -value if mantissa.startswith("-") else value


def padded(lengths, widths):
    """Tokens in all, if each text is padded to the smallest width that holds it."""
    return sum(min((width for width in widths if width >= length), default=10**9) for length in lengths)


def ways_to_pad(lengths, most):
    """Every choice of at most so many widths, multiples of 8, that hold all texts."""
    widths = range(8, max(lengths) + 8, 8)
    chosen = (each for count in range(1, most + 1) for each in combinations(widths, count))
    return [each for each in chosen if each[-1] >= max(lengths)]


def vectors_of(name, text, rows, own, weights):
    """What a vector of `VECTORS` is for one number, in float64: one vector, or one for each digit.

    `weights` has the parameters by their names, `own` is the embedding of [AGG].
    """
    digits, _ = digits_of(text)
    weights = {key: each.double() for key, each in weights.items()}
    if name == "place":
        return [weights["weight"][min(max(place, -8), 23) + 8] for _, place in digits]
    if name == "residual":
        return [weights["weight"] * signed_aggregate("weighted", text, rows)] * len(digits)
    if name == "abacus":
        return [weights["weight"][min(rank, 130)] for rank in range(len(digits))]
    value = float(text.replace(",", "").lstrip("$"))
    sign, size, dim = (-1 if value < 0 else 1), abs(value), rows.shape[1]
    scale = math.sqrt(sum(float(each) ** 2 for each in rows.flatten()) / rows.numel())
    if name == "value-aware":
        hidden = weights["weights.0"][:, 0] * sign * math.log(1 + size) + weights["biases.0"]
        hidden = torch.tensor([h * (1 + math.erf(h / math.sqrt(2))) / 2 for h in hidden.tolist()], dtype=torch.float64)
        return [scale * (weights["weights.1"] @ hidden + weights["biases.1"])]
    if name == "fone-in":
        seen = sum(digit * Fraction(10) ** place for digit, place in digits if -6 <= place <= 15)
        turns = [float(seen / Fraction(10) ** i % 1) for i in range(-5, 17)]
        features = [math.cos(2 * math.pi * turn) for turn in turns] + [
            sign * math.sin(2 * math.pi * turn) for turn in turns
        ]
    elif name == "bits-in":
        both = np.array([value, np.inf if value == 0 else 1 / value])
        features = [2 * int(bit) - 1 for each in both for bit in f"{int(each.view(np.uint64)):064b}"[::-1]]
    elif name == "xval-in":
        return [own.double() * 5 * sign * math.log(1 + size) / math.log(1 + 1e15)]
    else:
        assert name == "dice"
        angle = math.pi * sign * min(size / 10_000, 0.99)
        vector = [math.sin(angle) ** index * math.cos(angle) for index in range(dim)]
        return [torch.tensor(vector, dtype=torch.float64) * scale * math.sqrt(dim)]
    return [scale * (weights["weights.0"] @ torch.tensor(features, dtype=torch.float64) + weights["biases.0"])]
