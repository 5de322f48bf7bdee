"""The page of the study, generated from its record."""

from typing import Any

from benchmarks.addition.record import MARKS, OUTCOMES

_NAMES = {"exact": "exact match", "error": "mean absolute error", "curve": "learning curve"}
_PLACES = {"exact": 3, "error": 2, "curve": 3}


def render_page(record: dict[str, Any]) -> str:
    """The page as Markdown."""
    parts = [_opening(record), _findings(record), _overview(record)]
    parts += [_cell(cell) for cell in record["cells"]]
    return "\n\n".join(parts) + "\n"


def _opening(record: dict[str, Any]) -> str:
    config, versions = record["config"], [origin["versions"] for origin in record["provenance"]]
    used = sorted({f"torch {each['torch']} and transformers {each['transformers']}" for each in versions})
    rest = f" {record['missing']} runs are missing." if record["missing"] else ""
    return f"""# Does the auxiliary loss help a tiny model to add?

Generated from `record.json`, which has every run, by `python -m benchmarks.addition report`.

A T5 with {record["parameters"]:,} parameters ({config["layers"]} + {config["layers"]} layers, dimension \
{config["dim"]}) learns `a + b` from scratch, with digits in their usual order and seeds \
{", ".join(map(str, config["seeds"]))}. All arms of a seed start with the same weights and see the same pairs in the \
same batches and order. The optimizer is AdamW with a learning rate of {config["learning_rate"]}, {config["warmup"]} \
steps of warm-up, a decay to 0 over the last {config["cooldown"]:.0%} of the steps, and batches of {config["batch"]}. \
`ce` is cross-entropy alone; `soft-weighted-0.6` is `AggregationLoss` with that mode, aggregation and `ce_weight`; \
`ce-rate-0.6` is `ce` with the learning rate times 0.6.

Models are tested by greedy decoding on {config["test"]:,} pairs that do not occur in the training data, in either \
order. An answer that is not a number counts as wrong, and as 0 in the mean absolute error. The learning curve is the \
mean exact match over the {len(config["checkpoints"])} tests during training: the higher, the faster a model learns. \
"Steps to" is the median over seeds of the first test that reaches the mark. Differences are from `ce` with the same \
seed, with {1 - record["level"]:.0%} intervals (Student's t). Differences in **bold** have an interval that excludes \
0; those with * remain significant after Holm's correction for all comparisons.

The runs used {", or ".join(used)}, with one CPU thread each, and took {record["seconds_a_run"]:.0f} s on average.\
{rest}"""


def _findings(record: dict[str, Any]) -> str:
    """What differs from cross-entropy alone, and how many differences to expect by chance."""
    count = record["comparisons"]
    better, worse = _clear(record, "better"), _clear(record, "worse")
    lines = [
        "## Findings",
        f"There are {count} comparisons with `ce`: every arm, every task and size, {len(OUTCOMES)} outcomes. In "
        f"{_count(better)} of them the arm is better and in {_count(worse)} worse, with an interval that excludes 0. "
        f"Chance alone would give about {count * record['level'] / 2:.0f} of each. After the correction for {count} "
        f"comparisons, {_count(better, '*')} remain better and {_count(worse, '*')} worse.",
    ]
    for verdict, found in (("Better", better), ("Worse", worse)):
        if found:
            lines.append(f"{verdict}:")
            lines.append("\n".join(f"- {where}: {', '.join(arms)}" for where, arms in found.items()))
    return "\n\n".join(lines)


def _count(found: dict[str, list[str]], ending: str = "") -> int:
    return sum(arm.endswith(ending) for arms in found.values() for arm in arms)


def _clear(record: dict[str, Any], verdict: str) -> dict[str, list[str]]:
    """The arms with this verdict, by task, size and outcome; * marks those that survive the correction."""
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
    """For each arm, in how many tasks and sizes it is better or worse."""
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
        return "There are too few seeds to compare arms."
    return (
        "In how many tasks and sizes each arm is better / worse than `ce`, with an interval that excludes 0:\n\n"
        + _table(["arm", "of", *(_NAMES[outcome] for outcome in OUTCOMES)], rows)
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
    return f"## {_title(cell)}\n\nTrained for {cell['steps']:,} steps.\n\n{_table(header, rows)}"


def _steps(entry: dict[str, Any], seeds: int) -> str:
    """The median, and how many seeds reached the mark if not all did."""
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
