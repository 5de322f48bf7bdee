"""The study's page, written from its record alone."""

from typing import Any

from benchmarks.addition.record import MARKS, OUTCOMES

_NAMES = {"exact": "exact match", "error": "mean absolute error", "curve": "learning curve"}
_PLACES = {"exact": 3, "error": 2, "curve": 3}


def render_page(record: dict[str, Any]) -> str:
    """The whole page as Markdown."""
    parts = [_opening(record), _findings(record), _overview(record)]
    parts += [_cell(cell) for cell in record["cells"]]
    return "\n\n".join(parts) + "\n"


def _opening(record: dict[str, Any]) -> str:
    config, versions = record["config"], record["provenance"][0]["versions"]
    rest = f" {record['missing']} runs are missing." if record["missing"] else ""
    return f"""# Does the auxiliary loss help a tiny model to add?

Written by `python -m benchmarks.addition report` from `record.json`, which holds every run; nothing here is typed.

A T5 with {record["parameters"]:,} parameters ({config["layers"]} + {config["layers"]} layers, dimension \
{config["dim"]}) learns `a + b` from scratch, digits in their usual order, on seeds {_seeds(config["seeds"])}. \
All arms of a seed share first weights, pairs, batches and their order. AdamW at {config["learning_rate"]}, \
{config["warmup"]} steps of warm-up, the last {config["cooldown"]:.0%} of the steps down to 0, batches of \
{config["batch"]}. `ce` is cross-entropy alone; `soft-weighted-0.6` is `AggregationLoss` with that mode, aggregation \
and `ce_weight`; `ce-rate-0.6` is `ce` at that share of the learning rate.

Scores are on {config["test"]:,} pairs that were not trained on, in neither order, by greedy decoding. An answer \
that is not a number counts as wrong, and in the mean absolute error as if it were 0. The learning curve is the mean \
of exact match over the {len(config["checkpoints"])} tests on the way: more is learned faster. Steps to a mark are the \
median over seeds of the first test that reaches it. Differences are from `ce` of the same seed, with \
{1 - record["level"]:.0%} intervals (Student's t); **bold** ones leave out 0, and * marks those that remain after \
Holm's correction for all comparisons.

Made with torch {versions["torch"]} and transformers {versions["transformers"]}, one CPU thread a run, \
{record["seconds_a_run"]:.0f} s a run on average.{rest}"""


def _seeds(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))


def _findings(record: dict[str, Any]) -> str:
    """What differs from cross-entropy alone, and how much of that chance would bring."""
    count = record["comparisons"]
    better, worse = _clear(record, "better"), _clear(record, "worse")
    lines = [
        "## What was found",
        f"Of {count} comparisons (arms, tasks with their sizes, {len(OUTCOMES)} outcomes), {_count(better)} are better "
        f"and {_count(worse)} worse than `ce` beyond their interval; chance alone would bring about "
        f"{count * record['level'] / 2:.0f} of each. After the correction for {count} comparisons, "
        f"{_count(better, '*')} remain better and {_count(worse, '*')} worse.",
    ]
    for verdict, found in (("Better", better), ("Worse", worse)):
        if found:
            lines.append(f"{verdict}:")
            lines.append("\n".join(f"- {where}: {', '.join(arms)}" for where, arms in found.items()))
    return "\n\n".join(lines)


def _count(found: dict[str, list[str]], ending: str = "") -> int:
    return sum(arm.endswith(ending) for arms in found.values() for arm in arms)


def _clear(record: dict[str, Any], verdict: str) -> dict[str, list[str]]:
    """By task, size and outcome, the arms with this verdict; with * where it survives the correction."""
    found: dict[str, list[str]] = {}
    for cell in record["cells"]:
        for outcome in OUTCOMES:
            for arm in cell["arms"]:
                difference = arm.get("differences", {}).get(outcome)
                if difference and difference[verdict]:
                    text = f"`{arm['arm']}`{'*' if difference['survives'] else ''}"
                    found.setdefault(f"{_title(cell)}, {_NAMES[outcome]}", []).append(text)
    return found


def _overview(record: dict[str, Any]) -> str:
    """For each arm, in how many tasks and sizes it is better or worse beyond the interval."""
    rows = []
    for arm in record["config"]["arms"]:
        entries = [
            entry["differences"]
            for cell in record["cells"]
            for entry in cell["arms"]
            if entry["arm"] == arm["name"] and "differences" in entry
        ]
        if entries:
            counts = [
                f"{sum(e[outcome]['better'] for e in entries)} / {sum(e[outcome]['worse'] for e in entries)}"
                for outcome in OUTCOMES
            ]
            rows.append([f"`{arm['name']}`", str(len(entries)), *counts])
    if not rows:
        return "Too few seeds for comparisons."
    return "Tasks and sizes in which each arm is better / worse than `ce` beyond the interval:\n\n" + _table(
        ["arm", "of", *(_NAMES[outcome] for outcome in OUTCOMES)], rows
    )


def _title(cell: dict[str, Any]) -> str:
    return f"{cell['digits']} digits, {cell['size']:,} pairs"


def _cell(cell: dict[str, Any]) -> str:
    """The table of one task and size."""
    header = ["arm", "exact", "error", *(f"steps to {mark:.0%}" for mark in MARKS), "train exact"]
    header += [f"difference in {_NAMES[outcome]}" for outcome in OUTCOMES]
    rows = []
    for arm in cell["arms"]:
        marks = [_steps(arm[f"steps_to_{mark}"], len(arm["seeds"])) for mark in MARKS]
        row = [f"`{arm['arm']}`", f"{arm['exact']:.1%}", f"{arm['error']:.2f}", *marks, f"{arm['train_exact']:.1%}"]
        differences = arm.get("differences", {})
        rows.append(row + [_difference(differences.get(outcome), _PLACES[outcome]) for outcome in OUTCOMES])
    return f"## {_title(cell)}\n\n{cell['steps']:,} steps.\n\n{_table(header, rows)}"


def _steps(entry: dict[str, Any], seeds: int) -> str:
    """The median, and how many seeds came so far where not all did."""
    reached = "" if entry["reached"] == seeds else f" ({entry['reached']} of {seeds})"
    return f"{entry['median']:,.0f}{reached}" if "median" in entry else f"not reached{reached}"


def _difference(difference: dict[str, Any] | None, places: int) -> str:
    if difference is None:
        return ""
    mean, low, high = (f"{difference[name]:+.{places}f}" for name in ("mean", "low", "high"))
    text = f"{mean} ({low} to {high})"
    clear = difference["better"] or difference["worse"]
    return f"**{text}**{'*' if difference['survives'] else ''}" if clear else text


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
