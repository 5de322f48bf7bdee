"""sweep: search the best values of some fields of a recipe on dev."""

import argparse
import contextlib
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placevalue.cli.console import make_console
from placevalue.cli.recipe_flags import define_recipe, recipe_overrides
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import default_folder, read_recipe, to_yaml
from placevalue.experiments.search_space import PAPER_SEARCH, SAMPLERS, grid_points, name_values
from placevalue.reports.terminal import sweep_table

PLOT = "sweep.svg"

if TYPE_CHECKING:
    from rich.console import Console

    from placevalue.experiments.sweep import SweepPlan


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `sweep`."""
    define_recipe(verb)
    verb.add_argument("--method", choices=list(METHODS), help="(default: the recipe's first)")
    verb.add_argument(
        "--search",
        action="append",
        metavar="KEY=VALUES",
        help=f"LOW:HIGH:STEP, LOW:HIGH:log, LOW:HIGH or A,B,C; repeatable (default: {PAPER_SEARCH})",
    )
    verb.add_argument("--sampler", choices=SAMPLERS, default="grid", help="(default: %(default)s)")
    verb.add_argument("--sampler-seed", type=int, default=0, metavar="N", help="the seed of tpe (default: %(default)s)")
    verb.add_argument("--trials", type=int, metavar="N", help="how many combinations tpe tries")
    verb.add_argument("--seeds", type=int, nargs="+", metavar="N", help="(default: the recipe's)")
    verb.add_argument("--metric", default="accuracy_paper", help="the metric to optimize (default: %(default)s)")
    verb.add_argument("--out", type=Path, help="the folder of the sweep (default: runs/RECIPE/sweep-METHOD)")
    verb.add_argument(
        "--storage", metavar="URL", help="an Optuna storage or journal file (default: a journal in the folder)"
    )
    verb.add_argument(
        "--study", default="sweep", metavar="NAME", help="the sweep's name in the storage (default: %(default)s)"
    )
    verb.add_argument("--keep-weights", action="store_true", help="keep the weights of every run")
    verb.add_argument("--dry-run", action="store_true", help="print what would be done and stop")


def run(options: argparse.Namespace) -> None:
    """Search the best values of a recipe's fields on dev; started twice, the command splits the work."""
    console = make_console()
    from placevalue.experiments.sweep import plan_sweep, sweep
    from placevalue.reports.figures import draw_sweep

    names = ("method", "seeds", "sampler", "trials", "sampler_seed", "metric")
    recipe = read_recipe(options.recipe, recipe_overrides(options))
    plan = plan_sweep(recipe, options.search or [PAPER_SEARCH], **{name: getattr(options, name) for name in names})
    out = options.out or default_folder(options.recipe, f"sweep-{plan.method}")
    if options.dry_run:
        _show_plan(plan, out, console)
        return
    _hush()
    console.file = sys.stdout  # keep printing here while the output of a run is redirected to its log
    with _Bar(console) as bar:
        record = sweep(
            plan,
            out=out,
            storage=options.storage,
            study=options.study,
            keep_weights=options.keep_weights,
            progress=bar.show,
        )
    draw_sweep(record, out / PLOT)
    console.print(sweep_table(record, f"{options.recipe.stem}, {plan.method}"))
    if record.best is not None:
        console.print(f"best: {' '.join(record.best['overrides'])}", markup=False, soft_wrap=True)
    console.print(f"wrote {out}", markup=False, soft_wrap=True)


def _hush() -> None:
    """Keep log lines of transformers and Optuna out of the progress bar; the sweep reports failures itself."""
    import transformers

    transformers.logging.set_verbosity_error()
    with contextlib.suppress(ImportError):  # the sweep itself says what to install
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)


def _show_plan(plan: "SweepPlan", out: Path, console: "Console") -> None:
    text = to_yaml(plan.setup) + f"# {plan.trials} trials of {len(plan.seeds)} runs each go to {out}"
    if plan.sampler == "grid":
        text += "".join(f"\n#   {name_values(point)}" for point in grid_points(plan.searches))
    console.print(text, markup=False, soft_wrap=True)


class _Bar:
    """A progress bar over runs, with the time left estimated from the runs of this session."""

    def __init__(self, console: "Console") -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"))
        self.progress: Any = Progress(
            *columns,
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.task = self.progress.add_task("", total=None, left="")
        self.first: int | None = None
        self.began = time.monotonic()

    def __enter__(self) -> "_Bar":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, done: int, total: int, what: str) -> None:
        """Update the bar; runs finished before this session do not count for the speed."""
        self.first = done if self.first is None else self.first
        left = ""
        if done > self.first:
            seconds = (time.monotonic() - self.began) / (done - self.first) * (total - done)
            left = f"{timedelta(seconds=round(seconds))} left"
        self.progress.update(self.task, completed=done, total=total, description=what, left=left)
