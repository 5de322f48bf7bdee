"""Figures of number spaces and sweeps."""

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
    """Draw every figure of one model's number space, and the neighbourhood of one number; return the files.

    `record`, `rows` and `tokens` come from `survey`, `load_digit_rows` and `load_number_tokens` of `number_space`.
    """
    curves = _of(record["parts"], "f1")
    paper = {name: curve for name, curve in curves.items() if name in ("weighted", "sum")}
    files = _draw_f1(paper, f"{record['model']}: the paper's aggregation", folder / "f1-paper")
    files += _draw_f1(curves, f"{record['model']}: all aggregations", folder / "f1-all")
    files += _draw_tradeoff(_of(record["parts"], "tradeoff"), folder / "tradeoff")
    names = [name for name in ("weighted", "interpolated") if name in curves]
    spaces = {"the vocabulary's own tokens": tokens} if number in tokens else {}
    spaces |= {name: dict(enumerate(number_vectors(rows, name, 3))) for name in names}
    return files + _draw_map(spaces, number, folder / f"map-{number}")


def _of(parts: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name.partition("/")[2]: part for name, part in parts.items() if name.startswith(f"{kind}/")}


def _new_figure(width: float, height: float) -> Any:
    import matplotlib.figure

    return matplotlib.figure.Figure(figsize=(width, height))


def _save(figure: Any, stem: Path, formats: tuple[str, ...] = ("png", "svg")) -> list[Path]:
    files = []
    for kind in formats:
        picture, metadata = io.BytesIO(), {"Date": None} if kind == "svg" else None
        figure.savefig(picture, format=kind, dpi=130, bbox_inches="tight", metadata=metadata)
        files.append(write_whole(stem.with_suffix(f".{kind}"), picture.getvalue()))
    return files


def _draw_f1(curves: dict[str, Any], title: str, stem: Path) -> list[Path]:
    figure = _new_figure(6, 3.6)
    axes = figure.subplots()
    for name, part in curves.items():
        axes.plot([int(n) for n in part["f1"]], list(part["f1"].values()), marker="o", label=name)
    axes.set(xlabel="digits", ylabel="F1 of 10 neighbours", ylim=(-0.03, 1.03), title=title)
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    return _save(figure, stem)


def _draw_tradeoff(parts: dict[str, Any], stem: Path) -> list[Path]:
    """F1 in float64 and bfloat16, by the ratio of neighbouring places in `interpolated`."""
    if not parts:
        return []
    falls, runs = [float(fall) for fall in parts], list(parts.values())
    figure = _new_figure(6, 3.6)
    axes = figure.subplots()
    for length in ("2", "3", "5"):
        (line,) = axes.plot(falls, [run["f1"][length] for run in runs], marker="o", label=f"{length} digits")
        half = [run["bfloat16"][length] for run in runs]
        axes.plot(falls, half, marker="x", ls=":", color=line.get_color(), label=f"{length} digits, bfloat16")
    drift = axes.twinx()
    drift.plot(falls, [run["drift_6"] for run in runs], color="0.5", ls="--", label="drift at 6 digits")
    drift.set(ylim=(0, None), ylabel="drift (dashed)")
    axes.set(xlabel="fall from place to place", ylabel="F1 of 10 neighbours", xscale="log", ylim=(0.5, 1.03))
    axes.set_xticks(falls, [f"{fall:g}" for fall in falls])
    axes.minorticks_off()
    axes.legend(fontsize=7, ncol=2)
    axes.grid(alpha=0.3)
    return _save(figure, stem)


def _draw_map(spaces: dict[str, dict[int, Tensor]], number: int, stem: Path) -> list[Path]:
    """A number's neighbours in space and in value, on their first two principal components."""
    figure = _new_figure(5 * len(spaces), 4.4)
    axes = figure.subplots(1, len(spaces), squeeze=False)[0]
    for axis, (name, vectors) in zip(axes, spaces.items(), strict=True):
        by_distance = sorted(vectors, key=lambda n: float((vectors[n] - vectors[number]).norm()))
        near, natural = set(by_distance[1:11]), set(natural_neighbours(number, 1000, 10))
        colours = dict.fromkeys(natural, "0.6") | dict.fromkeys(near, "tab:red")
        colours |= dict.fromkeys(near & natural, "tab:green") | {number: "black"}
        shown = sorted(n for n in colours if n in vectors)
        flat = torch.stack([vectors[n] for n in shown]).numpy()
        centred = flat - flat.mean(0)
        flat = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
        for n, (x, y) in zip(shown, flat, strict=True):
            weight = "bold" if n == number else "normal"
            axis.text(x, y, str(n), color=colours[n], ha="center", va="center", weight=weight)
        (left, bottom), (right, top) = flat.min(0) * 1.15, flat.max(0) * 1.15
        axis.set(xlim=(left, right), ylim=(bottom, top), title=f"{name}, PCA", xticks=[], yticks=[])
    key = "green: near in space and in value; red: in space only; grey: in value only"
    figure.text(0.5, 0.01, key, ha="center", size=8)
    return _save(figure, stem)


def draw_sweep(record: SweepRecord, path: Path) -> bool:
    """Plot the scores of a sweep by each searched field; False if there are no trials, or no matplotlib."""
    if not record.trials:
        return False
    fields = list(record.config["search"])
    try:
        figure = _new_figure(1 + 4 * len(fields), 3.6)
    except ImportError:
        logger.warning("matplotlib is missing, so there is no plot: install it and run the same sweep again to draw it")
        return False
    axes = figure.subplots(1, len(fields), squeeze=False, sharey=True)[0]
    for axis, field in zip(axes, fields, strict=True):
        _draw_field(record, field, axis)
    axes[0].set_ylabel(f"{record.config['metric'].replace('_', ' ')} on {record.config['data']['dev']}")
    axes[0].legend(fontsize=8)
    _save(figure, path, ("svg",))
    return True


def _draw_field(record: SweepRecord, field: str, axis: Any) -> None:
    """Seeds as points, the best trial as a star, and a line through the means of trials with the same value."""
    search, best = record.config["search"][field], record.best
    assert best is not None
    listed = search.get("values", [])
    ordered = all(isinstance(value, int | float) and not isinstance(value, bool) for value in listed)
    place = (lambda value: value) if ordered else listed.index
    scores: dict[Any, list[float]] = {}
    for trial in record.trials:
        found = [100 * score["value"] for score in trial["scores"].values()]
        scores.setdefault(place(trial["values"][field]), []).extend(found)
    points = [(x, score) for x, found in scores.items() for score in found]
    axis.plot(*zip(*points, strict=True), ls="", marker="o", ms=4, alpha=0.5, label="a seed")
    if listed or len(record.config["search"]) == 1:
        axis.plot(sorted(scores), [np.mean(scores[x]) for x in sorted(scores)], color="tab:blue", label="mean")
    chosen = best["values"][field]
    axis.plot(place(chosen), 100 * best["value"], ls="", marker="*", ms=13, color="tab:red", label=f"best: {chosen}")
    axis.set(xlabel=field, xscale="log" if search.get("log") else "linear")
    if not ordered:  # after the scale, which sets its own ticks
        axis.set_xticks(range(len(listed)), [str(value) for value in listed])
    axis.grid(alpha=0.3)


def markdown(records: list[dict[str, Any]]) -> str:
    """The tables of several number spaces as one page."""
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader("placevalue.reports", "template")
    templates = Environment(loader=loader, trim_blocks=True, keep_trailing_newline=True)
    return templates.get_template("number_space.md.j2").render(records=records)
