"""What a comparison shows, in words: differences, what they account for, and the smallest that could have been seen."""

from collections.abc import Mapping, Sequence

from placevalue.evaluation.metrics import METRICS
from placevalue.reports.formatting import counted, format_interval, format_value, listed
from placevalue.reports.summary import SIGNIFICANT, Change, Summary, headline, is_gain

Changes = Mapping[str, Change]


def conclusion(summary: Summary) -> str:
    """What the intervals allow you to conclude, in words."""
    index, column = headline(summary), summary.columns[headline(summary)]
    where = f"Over the {column.n} sets" if column.kind == "mean" else f"On {column.name}"
    changes = {row.method: cell.change for row in summary.rows if (cell := row.cells[index]) and cell.change}
    fixed = {method: change for method, change in changes.items() if not change.exploratory}
    others = {each.first: (each.second, change) for each in summary.contrasts if (change := each.changes[index])}
    if not changes:
        told = [f"{where} there is nothing to compare {summary.baseline} with."]
    else:
        told = [_compared(where, summary, index, summary.baseline, fixed)] if fixed else []
        told += [_compared(where, summary, index, second, {first: each}) for first, (second, each) in others.items()]
        told.append(_exploratory(summary, {method: each for method, each in changes.items() if each.exploratory}))
    every = {**changes, **{f"{first} − {second}": change for first, (second, change) in others.items()}}
    return " ".join(filter(None, (*told, _coverage(every), _visible(summary, index, every), *_remarks(summary))))


def _compared(where: str, summary: Summary, index: int, second: str, changes: Changes) -> str:
    """Which methods are better or worse than another; from one seed none is."""
    sure = {method: change for method, change in changes.items() if change.is_shown}
    once = {method: change for method, change in changes.items() if change.seeds == 1}
    unsure = [method for method in changes if method not in sure and method not in once]
    levels = {row.method: cell.score.value for row in summary.rows if (cell := row.cells[index])}
    unit, parts = _unit(summary.metric), []
    for method, change in sure.items():
        better = "better" if is_gain(change, summary.metric, levels[second]) else "worse"
        parts.append(f"{method} is {better} than {second} ({_points(change, summary.metric)}{unit})")
    differ = f"{listed(unsure)} {'does' if len(unsure) == 1 else 'do'} not differ significantly from {second}"
    told = []
    if parts:
        each = "each " if len(parts) > 1 else ""
        first = f"{where}, {'; '.join(parts)}, {each}with p < {SIGNIFICANT} after Holm's correction"
        told.append(first + (f"; {differ}." if unsure else "."))
    elif unsure:
        spans = ", ".join(f"{method} {_points(changes[method], summary.metric)}" for method in unsure)
        told.append(f"{where}, {differ}: {spans}{unit}.")
    if once:
        spans = listed([f"{method} {_points(change, summary.metric)}" for method, change in once.items()])
        changed = f"change{'s' if len(once) > 1 else ''} from {second} {'are' if len(once) > 1 else 'is'}"
        told.append(f"{where}, one seed shows no method to be better; the {changed} {spans}{unit}.")
    return " ".join(told)


def _exploratory(summary: Summary, changes: Changes) -> str:
    if not changes:
        return ""
    spans = listed([f"{method} {_points(change, summary.metric)}" for method, change in changes.items()])
    unit = _unit(summary.metric)
    return f"Exploratory, since the recipe did not fix these contrasts: {spans}{unit} from {summary.baseline}."


def _unit(metric: str) -> str:
    return " points" if METRICS[metric].is_share else ""


def _points(change: Change, metric: str) -> str:
    span = format_interval(change.low, change.high, metric, signed=True)
    return f"{format_value(change.value, metric, signed=True)} {span}".strip()


def _coverage(changes: Changes) -> str:
    """What the intervals of the changes account for."""
    if not changes:
        return ""
    single = [method for method, change in changes.items() if change.seeds == 1]
    counts = sorted({change.seeds for change in changes.values()} - {1})
    if not counts:
        only = "so the intervals account for the choice of problems only: another seed may change the order."
        return f"Every method was trained once, {only}"
    seeds = " to ".join(dict.fromkeys(map(str, (counts[0], counts[-1]))))
    but = f"; those of {listed(single)} rest on one seed and account for the problems only" if single else ""
    return f"The intervals account for the choice of problems and of seeds ({seeds} per method){but}."


def _visible(summary: Summary, index: int, changes: Changes) -> str:
    """The smallest difference that these seeds and problems could have shown."""
    several = {name: each for name, each in changes.items() if each.seeds > 1}
    sizes = {name: each.visible for name, each in (several or changes).items() if each.visible is not None}
    if not sizes:
        return ""
    least, most = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    low, high = (format_value(sizes[name], summary.metric) for name in (least, most))
    size = f"{high}{_unit(summary.metric)}"
    if low != high:
        size = f"{low} ({least}) to {high}{_unit(summary.metric)} ({most})"
    problems = counted(_problems(summary, index), "problem")
    if not several:
        return f"The smallest difference that these {problems} alone could have shown is {size}; one seed shows none."
    counts = sorted({each.seeds for each in several.values()})
    seeds = " to ".join(dict.fromkeys(map(str, (counts[0], counts[-1]))))
    return f"The smallest difference that these {seeds} seeds and {problems} could have shown is {size}."


def _problems(summary: Summary, index: int) -> int:
    """The number of problems of a column."""
    if summary.columns[index].kind != "mean":
        return summary.columns[index].n
    return sum(column.n for column in summary.columns if column.kind == "set")


def copy_remark(summary: Summary) -> str:
    """How many test questions copy training questions; empty if none does."""
    if not summary.copies:
        return ""
    asked = sum(column.n for column in summary.columns if column.kind == "set")
    return f"Copies of training questions among the {asked:,} test questions: {summary.copies}."


def _remarks(summary: Summary) -> Sequence[str]:
    """How methods were tuned; copies, trivial answers, answers that cannot be written, missing runs."""
    trivial = summary.trivial.remark(headline(summary), summary.metric)
    if trivial and all(len(row.seeds) == 1 for row in summary.rows):
        trivial = f"{trivial.removesuffix('.')}, with one seed each."
    found = [summary.tuning, copy_remark(summary), trivial]
    counts = sorted({row.unreachable for row in summary.rows})
    counted_wrong = summary.metric.startswith("accuracy") and not summary.metric.endswith("_reachable")
    if len(counts) > 1 and counted_wrong:
        methods = {count: [row.method for row in summary.rows if row.unreachable == count] for count in counts}
        parts = ", ".join(f"{count} for {listed(names)}" for count, names in methods.items())
        found.append(f"Answers longer than the token limit count as wrong: {parts}.")
    if unread := [f"{no:,} of {of:,} for {row.method}" for row in summary.rows for no, of in [row.unreadable] if no]:
        found.append(f"Predictions whose rewritten numbers cannot be read back count as wrong: {', '.join(unread)}.")
    if missing := len(summary.missing):
        found.append(f"{missing} run{' is' if missing == 1 else 's are'} missing.")
    return found
