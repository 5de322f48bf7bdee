"""Small SVG charts: points with intervals by category, curves by step, heat maps. Their colours are the page's."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from placevalue.evaluation.metrics import METRICS
from placevalue.evaluation.statistics import Interval
from placevalue.experiments.methods import METHODS
from placevalue.reports.breakdowns import Breakdown, Curve, Curves, TaskGrid
from placevalue.reports.formatting import format_interval, format_value

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 400, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 12, 46
_CELL, _LINE, _LABEL = 42, 19, 66  # of a heat map: the size of its cells, and the width of the tasks' names
_ORDER = list(METHODS)
_CHOSEN = 11  # colours in page.css
_DOTTED = 25  # a curve of at most so many points has a dot for each


def method_class(method: str) -> str:
    """The CSS class of a method's colour, the same in every chart."""
    return f"m{_ORDER.index(method) if method in _ORDER else _CHOSEN - 1}"


def further_colours() -> str:
    """The style of the methods for which the page's has no colour: hues as far apart as may be, by the golden angle."""
    hues = [(index, round(index * 137.508) % 360) for index in range(_CHOSEN, len(_ORDER))]
    colours = "".join(f"--m{index}: light-dark(hsl({hue} 50% 40%), hsl({hue} 60% 70%)); " for index, hue in hues)
    return f":root {{ {colours}}}\n" + "".join(f".m{index} {{ --hue: var(--m{index}); }}\n" for index, _ in hues)


def point_chart(breakdown: Breakdown) -> "Markup":
    """Each method as a point with its interval, side by side in every category."""
    methods = list(breakdown.scores)
    inner = WIDTH - _LEFT - _RIGHT
    slot = inner / len(breakdown.categories)
    gap = min(12.0, slot * 0.8 / max(1, len(methods)))
    scores = [score for found in breakdown.scores.values() for score in found if score]
    # The axis reaches the ends of the intervals, but at most 0.25 above their points.
    highest = max((max(each.value, min(each.high or 0, each.value + 0.25)) for each in scores), default=1.0)
    ceiling = _ceiling(highest)
    parts = _grid([(tick, f"{100 * tick:.0f}%") for tick in _ticks(0, ceiling)], 0, ceiling, WIDTH)
    for index, (category, count) in enumerate(zip(breakdown.categories, breakdown.counts, strict=True)):
        middle = _LEFT + slot * (index + 0.5)
        parts.append(_text(middle, HEIGHT - _BOTTOM + 15, category, "tick", "middle"))
        parts.append(_text(middle, HEIGHT - _BOTTOM + 28, f"{count:,}", "count", "middle"))
        for number, method in enumerate(methods):
            score = breakdown.scores[method][index]
            if score is not None:
                x = middle + (number - (len(methods) - 1) / 2) * gap
                parts.append(_point(x, score, ceiling, method, category))
    parts.append(_text(_LEFT + inner / 2, HEIGHT - 4, f"{breakdown.axis}, and problems", "axis", "middle"))
    return _chart(breakdown.title, parts, WIDTH)


def _point(x: float, score: Interval, ceiling: float, method: str, category: str) -> "Markup":
    span = format_interval(score.low, score.high, "accuracy_paper")
    about = f"{method}, {category}: {format_value(score.value, 'accuracy_paper')}% {span}".strip()
    bar = _svg("")
    if score.low is not None and score.high is not None:
        bottom, top = _height(score.low, 0, ceiling), _height(score.high, 0, ceiling)
        bar = _svg('<line x1="{}" x2="{}" y1="{}" y2="{}" class="bar"/>', x, x, bottom, top)
    point = '<g class="point {}" data-method="{}"><title>{}</title>{}<circle cx="{}" cy="{}" r="3.4"/></g>'
    return _svg(point, method_class(method), method, about, bar, x, _height(score.value, 0, ceiling))


def curve_chart(curves: Curves) -> "Markup":
    """Each method's mean as a thick line and its seeds as thin ones; losses of a wide range on a logarithmic scale."""
    every = [point for lines in curves.seeds.values() for line in lines for point in line]
    lowest, highest = min(value for _, value in every), max(value for _, value in every)
    lowest, highest = (0.0, _ceiling(highest)) if curves.share else (lowest, highest)
    first, last = min(step for step, _ in every), max(step for step, _ in every)
    logarithmic = lowest > 0 and highest / lowest > 8
    scale = math.log10 if logarithmic else float
    low, high = scale(lowest), scale(highest)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    inner = WIDTH - _LEFT - _RIGHT

    def across(step: int) -> float:
        return _LEFT + inner * ((step - first) / (last - first) if last > first else 0.5)

    def path(line: Curve, kind: str, method: str) -> "Markup":
        points = " ".join(f"{_short(across(step))},{_short(_height(scale(value), low, high))}" for step, value in line)
        kind = f"{kind} {method_class(method)}"
        drawn = _svg('<polyline points="{}" class="{}" data-method="{}"/>', points, kind, method)
        for step, value in line if "mean" in kind and len(line) <= _DOTTED else ():
            about = f"{method}, step {step:,}: {f'{100 * value:.1f}%' if curves.share else f'{value:.4g}'}"
            at = across(step), _height(scale(value), low, high)
            dot = '<circle cx="{}" cy="{}" r="2.6" class="dot {}" data-method="{}"><title>{}</title></circle>'
            drawn += _svg(dot, *at, method_class(method), method, about)
        return drawn

    percent = "{:.3g}%".format if curves.share else "{:g}".format
    factor = 100 if curves.share else 1
    ticks = _powers(low, high) if logarithmic else [(tick, percent(factor * tick)) for tick in _ticks(low, high)]
    parts = _grid(ticks, low, high, WIDTH)
    for method, lines in curves.seeds.items():
        parts += [path(line, "seed", method) for line in lines if len(lines) > 1]
    parts += [path(line, "mean", method) for method, line in curves.means.items()]
    for step in sorted({first, (first + last) // 2, last}):
        anchor = "end" if step == last != first else "middle"
        parts.append(_text(across(step), HEIGHT - _BOTTOM + 15, f"{step:,}", "tick", anchor))
    axis = "step; the loss on a logarithmic scale" if logarithmic else "step"
    parts.append(_text(_LEFT + inner / 2, HEIGHT - 12, axis, "axis", "middle"))
    return _chart(curves.title, parts, WIDTH)


def heat_map(grid: TaskGrid, method: str) -> "Markup":
    """Tasks by length, the darker the more accurate; behind a gap, what is over all lengths."""
    parts, gap = [], _CELL // 4
    across = [_LABEL + _CELL * index + gap * (index >= grid.lengths) for index in range(len(grid.columns))]
    for x, column in zip(across, grid.columns, strict=True):
        parts.append(_text(x + _CELL / 2, _LINE - 6, column, "tick", "middle"))
    for line, (task, counts, scores) in enumerate(zip(grid.tasks, grid.counts, grid.scores[method], strict=True), 1):
        y = line * _LINE + gap * (task == grid.tasks[-1])
        parts.append(_text(_LABEL - 7, y + _LINE - 6, task, "tick", "end"))
        for x, column, metric, count, score in zip(across, grid.columns, grid.metrics, counts, scores, strict=True):
            if score is not None:
                value, span = format_value(score.value, metric), format_interval(score.low, score.high, metric)
                about = f"{method}, {task}, {column}: {value}{'%' * METRICS[metric].is_share} {span}, n={count:,}"
                shade = score.value if METRICS[metric].is_share else 0
                box = _svg('<rect x="{}" y="{}" width="{}" height="{}" ', x, y, _CELL - 1, _LINE - 1)
                box += _svg('class="heat" fill-opacity="{}"/>', f"{shade:.2f}")
                text = _text(x + _CELL / 2, y + _LINE - 6, value, "cell", "middle")
                parts.append(_svg("<g><title>{}</title>{}{}</g>", about, box, text))
    width, height = across[-1] + _CELL + _RIGHT, (len(grid.tasks) + 1) * _LINE + 2 * gap
    return _chart(f"{grid.title}, {method}", parts, width, height)


def _powers(low: float, high: float) -> list[tuple[float, str]]:
    """1, 2 and 5 times the powers of ten between two logarithms; over a wide range, the powers alone."""
    factors = (1,) if high - low > 2.2 else (1, 2, 5)
    found = [factor * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for factor in factors]
    return [(math.log10(each), f"{each:g}") for each in found if low <= math.log10(each) <= high]


def _ticks(low: float, high: float) -> list[float]:
    """About four round values between two."""
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if rough <= factor * unit * 1.0001)
    start = math.ceil(low / step - 1e-9)
    return [round(each * step, 10) for each in range(start, math.floor(high / step + 1e-9) + 1)]


def _ceiling(share: float) -> float:
    """The top of an axis in percent that has room for a share."""
    return next((each for each in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if share <= each), 1.0)


def _height(value: float, low: float, high: float) -> float:
    share = min(max((value - low) / (high - low), 0), 1)
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - share)


def _grid(ticks: Sequence[tuple[float, str]], low: float, high: float, width: int) -> list["Markup"]:
    parts = []
    for tick, label in ticks:
        y = _height(tick, low, high)
        parts.append(_svg('<line x1="{}" x2="{}" y1="{}" y2="{}" class="grid"/>', _LEFT, width - _RIGHT, y, y))
        parts.append(_text(_LEFT - 7, y + 4, label, "tick", "end"))
    return parts


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> "Markup":
    return _svg('<text x="{}" y="{}" class="{}" text-anchor="{}">{}</text>', x, y, kind, anchor, text)


def _chart(title: str, parts: Iterable["Markup"], width: int, height: int = HEIGHT) -> "Markup":
    chart = '<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    return _svg(chart, width, height, title, _svg("").join(parts))


def _svg(template: str, *values: object) -> "Markup":
    """Put values into a template: floats are rounded, and everything that is not markup is escaped."""
    from markupsafe import Markup

    return Markup(template).format(*(_short(value) if isinstance(value, float) else value for value in values))


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
