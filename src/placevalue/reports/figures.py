"""Figures of the number space and of sweeps, from records alone but for the map, which needs the embeddings."""

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from placevalue.common.files import write_whole
from placevalue.common.records import SweepRecord
from placevalue.numbers.neighbours import natural_neighbours, number_vectors

logger = logging.getLogger(__name__)


def draw_all(
    record: dict[str, Any], rows: Tensor, tokens: dict[int, Tensor], folder: Path, number: int = 55
) -> list[Path]:
    """Every figure of one model's survey; returns the files.

    Args:
        record: From `surveys.survey`.
        rows: The ten digit embeddings.
        tokens: The vocabulary's own number tokens, from `surveys.load_number_tokens`; may be empty.
        folder: Where the files go.
        number: The number whose neighbourhood is drawn.
    """
    parts = record["parts"]
    curves = {name.removeprefix("f1/"): part["f1"] for name, part in parts.items() if name.startswith("f1/")}
    paper = {name: curve for name, curve in curves.items() if name in ("weighted", "sum")}
    files = _draw_f1(paper, f"{record['model']}: the paper's aggregation", folder / "f1-paper")
    files += _draw_f1(curves, f"{record['model']}: all aggregations", folder / "f1-all")
    files += _draw_tradeoff(parts, folder / "tradeoff")
    names = [name for name in ("weighted", "interpolated") if name in curves]
    spaces = {name: dict(enumerate(number_vectors(rows, name, 3))) for name in names}
    if number in tokens:
        spaces = {"the vocabulary's own tokens": tokens} | spaces
    return files + _draw_map(spaces, number, folder / f"map-{number}")


def _plots() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _save(figure: Any, stem: Path) -> list[Path]:
    stem.parent.mkdir(parents=True, exist_ok=True)
    files = [stem.with_suffix(ending) for ending in (".png", ".svg")]
    for file in files:
        figure.savefig(file, dpi=130, bbox_inches="tight", metadata={"Date": None} if file.suffix == ".svg" else None)
    _plots().close(figure)
    return files


def _draw_f1(curves: dict[str, dict[str, float]], title: str, stem: Path) -> list[Path]:
    figure, axes = _plots().subplots(figsize=(6, 3.6))
    for name, curve in curves.items():
        axes.plot([int(n) for n in curve], list(curve.values()), marker="o", label=name)
    axes.set(xlabel="digits", ylabel="F1 of 10 neighbours", ylim=(-0.03, 1.03), title=title)
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    return _save(figure, stem)


def _draw_tradeoff(parts: dict[str, Any], stem: Path) -> list[Path]:
    """F1 in float64 and bfloat16, by how much the places of `interpolated` fall."""
    runs = {float(name.removeprefix("tradeoff/")): part for name, part in parts.items() if name.startswith("tradeoff/")}
    if not runs:
        return []
    figure, axes = _plots().subplots(figsize=(6, 3.6))
    for length in ("2", "3", "5"):
        (line,) = axes.plot(
            list(runs), [run["f1"][length] for run in runs.values()], marker="o", label=f"{length} digits"
        )
        half = [run["bfloat16"][length] for run in runs.values()]
        axes.plot(list(runs), half, marker="x", ls=":", color=line.get_color(), label=f"{length} digits, bfloat16")
    drift = axes.twinx()
    drift.plot(list(runs), [run["drift_6"] for run in runs.values()], color="0.5", ls="--", label="drift at 6 digits")
    drift.set(ylim=(0, None), ylabel="drift (dashed)")
    axes.set(xlabel="fall from place to place", ylabel="F1 of 10 neighbours", xscale="log", ylim=(0.5, 1.03))
    axes.set_xticks(list(runs), [f"{fall:g}" for fall in runs])
    axes.minorticks_off()
    axes.legend(fontsize=7, ncol=2)
    axes.grid(alpha=0.3)
    return _save(figure, stem)


def _draw_map(spaces: dict[str, dict[int, Tensor]], number: int, stem: Path) -> list[Path]:
    """A number's neighbours in space beside its natural ones, on the two main axes of those shown (PCA)."""
    figure, axes = _plots().subplots(1, len(spaces), figsize=(5 * len(spaces), 4.4), squeeze=False)
    for axis, (name, vectors) in zip(axes[0], spaces.items(), strict=True):
        by_distance = sorted(vectors, key=lambda n: float((vectors[n] - vectors[number]).norm()))
        near, natural = by_distance[1:11], list(natural_neighbours(number, 1000, 10))
        shown = sorted(n for n in {number, *near, *natural} if n in vectors)
        flat = torch.stack([vectors[n] for n in shown]).numpy()
        centred = flat - flat.mean(0)
        flat = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
        for n, (x, y) in zip(shown, flat, strict=True):
            colour = (
                "black"
                if n == number
                else "tab:green"
                if n in near and n in natural
                else "tab:red"
                if n in near
                else "0.6"
            )
            axis.text(x, y, str(n), color=colour, ha="center", va="center", weight="bold" if n == number else "normal")
        axis.set(xlim=(flat[:, 0].min() * 1.15, flat[:, 0].max() * 1.15), title=f"{name}, PCA", xticks=[], yticks=[])
        axis.set_ylim(flat[:, 1].min() * 1.15, flat[:, 1].max() * 1.15)
    figure.text(
        0.5, 0.01, "green: near in space and in value; red: in space only; grey: in value only", ha="center", size=8
    )
    return _save(figure, stem)


def draw_sweep(record: SweepRecord, path: Path) -> bool:
    """The scores of a sweep against each searched field; whether there was anything to draw, and to draw with."""
    if not record.trials:
        return False
    try:
        plots = _plots()
    except ImportError:
        logger.warning("there is no plot without matplotlib: start the sweep again where it is, and it only draws")
        return False
    fields = list(record.config["search"])
    figure, axes = plots.subplots(1, len(fields), figsize=(1 + 4 * len(fields), 3.6), squeeze=False, sharey=True)
    for axis, field in zip(axes[0], fields, strict=True):
        _draw_field(record, field, axis)
    axes[0][0].set_ylabel(f"{record.config['metric'].replace('_', ' ')} on {record.config['data']['dev']}")
    axes[0][0].legend(fontsize=8)
    picture = io.StringIO()
    figure.savefig(picture, format="svg", bbox_inches="tight", metadata={"Date": None})
    plots.close(figure)
    write_whole(path, picture.getvalue())
    return True


def _draw_field(record: SweepRecord, field: str, axis: Any) -> None:
    """Seeds as points, the best trial as a star; a line through the means of all trials with the same value."""
    search, best = record.config["search"][field], record.best
    assert best is not None
    listed = search.get("values", [])
    ordered = all(isinstance(value, int | float) and not isinstance(value, bool) for value in listed)
    place = (lambda value: value) if ordered else listed.index
    points = [
        (place(trial["values"][field]), 100 * score["value"])
        for trial in record.trials
        for score in trial["scores"].values()
    ]
    means: dict[Any, list[float]] = {}
    for x, score in points:
        means.setdefault(x, []).append(score)
    axis.plot(*zip(*points, strict=True), ls="", marker="o", ms=4, alpha=0.5, label="a seed")
    if listed or len(record.config["search"]) == 1:
        axis.plot(sorted(means), [sum(means[x]) / len(means[x]) for x in sorted(means)], color="tab:blue", label="mean")
    chosen = best["values"][field]
    axis.plot(place(chosen), 100 * best["value"], ls="", marker="*", ms=13, color="tab:red", label=f"best: {chosen}")
    axis.set(xlabel=field, xscale="log" if search.get("log") else "linear")
    if not ordered:  # behind the scale, which has ticks of its own
        axis.set_xticks(range(len(listed)), [str(value) for value in listed])
    axis.grid(alpha=0.3)


_HEAD = """# The number space of real models

Generated by `placevalue neighbours` from the records beside this page. F1 of the 10 nearest neighbours is exact, over
all numbers of up to six digits, ties by expectation. Drift is the distance from the origin in mean digit norms, rank
correlation is Spearman's between numeric and embedding distance of random pairs, and the closest two different numbers
are given in mean digit norms too.
"""
_F1_HEAD = """
| aggregation | 1 | 2 | 3 | 4 | 5 | 6 digits | drift at 3, 6, 12 digits | rank corr. at 6 | closest two |
|---|---|---|---|---|---|---|---|---|---|"""
_PRECISION_HEAD = """
In the precision a model sees (200 sampled numbers a length, pool of 100,000):

| aggregation | precision | 1 | 2 | 3 | 4 | 5 digits |
|---|---|---|---|---|---|---|"""


def markdown(records: list[dict[str, Any]]) -> str:
    """The tables of several surveys, generated, never typed."""
    return "\n".join([_HEAD, *(_section(record) for record in records)])


def _section(record: dict[str, Any]) -> str:
    parts, model = record["parts"], record["model"]
    lines = [f"## {model}", _F1_HEAD]
    for name in [part.removeprefix("f1/") for part in parts if part.startswith("f1/")]:
        f1, drift, rank = parts[f"f1/{name}"], parts[f"drift/{name}"], parts[f"rank/{name}"]
        cells = [name, *(f"{value:.3f}" for value in f1["f1"].values())]
        cells += [", ".join(f"{drift[n]:.1f}" for n in ("3", "6", "12")), f"{rank['6']:.2f}", f"{f1['closest']:.2g}"]
        lines.append(_row(cells))
    lines.append(_PRECISION_HEAD)
    for name, part in parts.items():
        if name.startswith("precision/"):
            lines.append(_row([*name.split("/")[1:], *(f"{value:.3f}" for value in part["f1"].values())]))
    shared = parts["claims"]["neighbours_sharing_all_but_the_last_digit"]
    apart = parts["claims"]["distance_of_0_over_distance_of_others"]
    lines += [
        "",
        f"Under `weighted`, {shared:.1f} of 10 neighbours share all but the last digit. Digit 0 is {apart:.2f} times",
    ]
    lines += ["as far from the other digits as they are from each other.", ""]
    figures = {"F1 by length": "f1-all", "Trade-off": "tradeoff", "The neighbourhood of 55": "map-55"}
    return "\n".join(lines + [f"![{title}]({model}/{stem}.svg)\n" for title, stem in figures.items()])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
