"""What the study compares: tasks, sizes, arms and seeds, and the settings that all runs share."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from placevalue.loss.aggregation_loss import Mode


@dataclass(frozen=True)
class Arm:
    """One way to train: `ce_weight` 1 is cross-entropy alone."""

    ce_weight: float = 1.0
    mode: Mode = "soft"
    aggregation: str = "weighted"
    rate: float = 1.0
    """What the learning rate is multiplied by."""

    @property
    def name(self) -> str:
        """How files and tables call it."""
        if self.ce_weight == 1:
            return "ce" if self.rate == 1 else f"ce-rate-{self.rate}"
        return f"{self.mode}-{self.aggregation}-{self.ce_weight}"


@dataclass(frozen=True)
class Cell:
    """One task with so many training pairs, and for how long it is trained."""

    digits: int
    size: int
    steps: int

    @property
    def name(self) -> str:
        """How files and tables call it."""
        return f"{self.digits}-digit-{self.size}"


@dataclass(frozen=True)
class Settings:
    """What is the same in every run of a study."""

    dim: int = 64
    layers: int = 2
    heads: int = 4
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    clip: float = 1.0
    warmup: int = 100
    cooldown: float = 0.2
    """The share of the steps, at the end, over which the learning rate falls to 0, so that the end is no lucky dip."""
    batch: int = 64
    test: int = 1000
    train_sample: int = 500
    """How many training pairs are decoded to see whether they were learned."""
    checkpoints: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
    """When the model is tested, as shares of a cell's steps."""

    def tested_at(self, cell: Cell) -> list[int]:
        """The steps after which the model is tested."""
        return [max(1, round(share * cell.steps)) for share in self.checkpoints]


@dataclass(frozen=True)
class Run:
    """One model to train."""

    cell: Cell
    arm: Arm
    seed: int
    settings: Settings

    @property
    def name(self) -> str:
        """How its file is called."""
        return f"{self.cell.name}-{self.arm.name}-seed-{self.seed}"

    def config(self) -> dict[str, Any]:
        """All that decides the outcome, as JSON holds it."""
        config = asdict(self)
        config["settings"]["checkpoints"] = list(self.settings.checkpoints)
        return config


CE = Arm()
ARMS = (
    CE,
    Arm(rate=0.6),  # a smaller weight on cross-entropy might be no more than a smaller step
    *(Arm(weight, "soft", name) for name in ("weighted", "interpolated") for weight in (0.3, 0.6, 0.9)),
    *(Arm(0.6, "soft", name) for name in ("sum", "mean")),
    *(Arm(weight, "hard", "weighted") for weight in (0.3, 0.6)),
    Arm(0.6, "hard", "interpolated"),
)
# From pairs so few that cross-entropy learns them by heart to so many that it learns to add.
CELLS = (Cell(2, 500, 1000), Cell(2, 1000, 1000), Cell(3, 1000, 1200), Cell(3, 1500, 1200))


@dataclass(frozen=True)
class Grid:
    """A whole study."""

    cells: Sequence[Cell] = CELLS
    arms: Sequence[Arm] = ARMS
    seeds: Sequence[int] = (1, 2, 3, 4, 5)
    """Without 0, on which sizes and steps were chosen: some of its outcomes were seen before the study began."""
    settings: Settings = field(default_factory=Settings)

    def runs(self) -> list[Run]:
        """Every run, seed by seed, so that a study that was stopped has whole seeds; the longest first."""
        return [
            Run(cell, arm, seed, self.settings)
            for seed in self.seeds
            for cell in sorted(self.cells, key=lambda cell: -cell.steps)
            for arm in self.arms
        ]
