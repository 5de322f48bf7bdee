"""What the study compares: tasks, training sizes, arms and seeds; and the settings that all runs share."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from placevalue.loss.aggregation_loss import Mode


@dataclass(frozen=True)
class Arm:
    """One way to train; `ce_weight` 1 is cross-entropy alone."""

    ce_weight: float = 1.0
    mode: Mode = "soft"
    aggregation: str = "weighted"
    rate: float = 1.0
    """Factor of the learning rate."""

    @property
    def name(self) -> str:
        """Its name in files and tables."""
        if self.ce_weight == 1:
            return "ce" if self.rate == 1 else f"ce-rate-{self.rate}"
        return f"{self.mode}-{self.aggregation}-{self.ce_weight}"


@dataclass(frozen=True)
class Cell:
    """A task: numbers of `digits` digits, `size` training pairs, `steps` training steps."""

    digits: int
    size: int
    steps: int

    @property
    def name(self) -> str:
        """Its name in files and tables."""
        return f"{self.digits}-digit-{self.size}"


@dataclass(frozen=True)
class Settings:
    """Settings that all runs of a study share."""

    dim: int = 64
    layers: int = 2
    heads: int = 4
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    clip: float = 1.0
    warmup: int = 100
    cooldown: float = 0.2
    """The last share of the steps, in which the learning rate falls to 0, so that final scores fluctuate less."""
    batch: int = 64
    test: int = 1000
    train_sample: int = 500
    """Number of training pairs that are scored too."""
    checkpoints: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
    """When the model is tested, as shares of the steps."""

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
        """Its name in files."""
        return f"{self.cell.name}-{self.arm.name}-seed-{self.seed}"

    def config(self) -> dict[str, Any]:
        """Everything that determines the outcome, as JSON values."""
        config = asdict(self)
        config["settings"]["checkpoints"] = list(self.settings.checkpoints)
        return config


CE = Arm()
ARMS = (
    CE,
    Arm(rate=0.6),  # control: a smaller weight on cross-entropy may act only as a smaller step
    *(Arm(weight, "soft", name) for name in ("weighted", "interpolated") for weight in (0.3, 0.6, 0.9)),
    *(Arm(0.6, "soft", name) for name in ("sum", "mean")),
    *(Arm(weight, "hard", "weighted") for weight in (0.3, 0.6)),
    Arm(0.6, "hard", "interpolated"),
)
# From so few pairs that cross-entropy memorises them to so many that it learns to add.
CELLS = (Cell(2, 500, 1000), Cell(2, 1000, 1000), Cell(3, 1000, 1200), Cell(3, 1500, 1200))


@dataclass(frozen=True)
class Grid:
    """A study: every cell with every arm and seed."""

    cells: Sequence[Cell] = CELLS
    arms: Sequence[Arm] = ARMS
    seeds: Sequence[int] = (1, 2, 3, 4, 5)
    """Without 0, whose outcomes were seen when sizes and steps were chosen."""
    settings: Settings = field(default_factory=Settings)

    def runs(self) -> list[Run]:
        """Every run, seed by seed, so that an interrupted study has complete seeds; longest first within a seed."""
        return [
            Run(cell, arm, seed, self.settings)
            for seed in self.seeds
            for cell in sorted(self.cells, key=lambda cell: -cell.steps)
            for arm in self.arms
        ]
