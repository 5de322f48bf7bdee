"""Figures of the documents that no record holds: `python -m tools.figures` writes docs/carry.svg."""

from pathlib import Path

import matplotlib
import numpy as np

from placevalue.numbers.aggregation import EASE

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "placevalue"  # the same ids whenever it is drawn
import matplotlib.pyplot as plt  # noqa: E402

DOCS = Path(__file__).parents[1] / "docs"


def draw_carry(path: Path) -> None:
    """The tens digit from 4520 to 4545, hard and soft: why a carry no longer separates neighbours."""
    numbers = np.arange(4520, 4546)
    way = numbers / 10 % 1
    soft = numbers // 10 % 10 + way + EASE * np.sin(2 * np.pi * way) / (2 * np.pi)
    figure, axes = plt.subplots(figsize=(6, 2.6))
    axes.step(numbers, numbers // 10 % 10, where="post", label="weighted: the digit itself", color="tab:red")
    axes.plot(numbers, soft, marker="o", ms=3, label="interpolated: on its way to the next", color="tab:green")
    axes.set(xlabel="number", ylabel="tens digit", yticks=[2, 3, 4], xticks=range(4520, 4546, 5))
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    draw_carry(DOCS / "carry.svg")
    print(DOCS / "carry.svg")
