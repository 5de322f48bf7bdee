"""sweep: the best values of some fields of a recipe, by scores on dev."""

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
from placevalue.experiments.recipe import read_recipe, to_yaml
from placevalue.experiments.search_space import PAPER_SEARCH, SAMPLERS, grid_points, name_values
from placevalue.reports.terminal import sweep_table

PLOT = "sweep.svg"

if TYPE_CHECKING:
    from rich.console import Console

    from placevalue.experiments.sweep import SweepPlan


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `sweep`."""
    define_recipe(verb)
    verb.add_argument("--method", choices=list(METHODS), help="the first of the recipe where none is given")
    verb.add_argument(
        "--search",
        action="append",
        metavar="KEY=VALUES",
        help=f"LOW:HIGH:STEP, LOW:HIGH:log, LOW:HIGH or A,B,C; again for more fields (default: {PAPER_SEARCH})",
    )
    verb.add_argument("--sampler", choices=SAMPLERS, default="grid", help="(default: %(default)s)")
    verb.add_argument("--sampler-seed", type=int, default=0, metavar="N", help="makes the choices of tpe")
    verb.add_argument("--trials", type=int, metavar="N", help="how many tpe tries")
    verb.add_argument("--seeds", type=int, nargs="+", metavar="N", help="those of the recipe where none are given")
    verb.add_argument("--metric", default="accuracy_paper", help="what is best (default: %(default)s)")
    verb.add_argument("--out", type=Path, help="where the sweep goes; runs/RECIPE/sweep-METHOD if not given")
    verb.add_argument(
        "--storage", metavar="URL", help="of Optuna, or a journal file; one in the folder where none is given"
    )
    verb.add_argument("--study", default="sweep", metavar="NAME", help="the sweep's name in a storage that holds many")
    verb.add_argument("--keep-weights", action="store_true", help="keep the weights of every run")
    verb.add_argument("--dry-run", action="store_true", help="print what would be done and stop")


def run(options: argparse.Namespace) -> None:
    """Search the best values of a recipe's fields by scores on dev; started twice, the same command splits the work."""
    console = make_console()
    from placevalue.experiments.sweep import plan_sweep, sweep
    from placevalue.reports.figures import draw_sweep

    names = ("method", "seeds", "sampler", "trials", "sampler_seed", "metric")
    recipe = read_recipe(options.recipe, recipe_overrides(options))
    plan = plan_sweep(recipe, options.search or [PAPER_SEARCH], **{name: getattr(options, name) for name in names})
    out = options.out or Path("runs") / options.recipe.stem / f"sweep-{plan.method}"
    if options.dry_run:
        _show_plan(plan, out, console)
        return
    _hush()
    console.file = sys.stdout  # itself, not what it is replaced by while the output of a run goes to its log
    with _Bar(console) as bar:
        record = sweep(
            plan,
            out,
            storage=options.storage,
            study=options.study,
            keep_weights=options.keep_weights,
            progress=bar.show,
        )
    draw_sweep(record, out / PLOT)
    console.print(sweep_table(record, f"{options.recipe.stem}, {plan.method}"))
    if (missing := record.planned - len(record.trials)) > 0:
        console.print(f"{missing} of {record.planned} trials are running elsewhere: start again when they are done")
    if record.best is not None:
        console.print(f"best: {' '.join(record.best['overrides'])}", markup=False, soft_wrap=True)
    console.print(f"wrote {out}", markup=False, soft_wrap=True)


def _hush() -> None:
    """Only what went wrong may stand between the bars of a sweep."""
    import transformers

    transformers.logging.set_verbosity_error()
    with contextlib.suppress(ImportError):  # the sweep itself says what to install
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)


def _show_plan(plan: "SweepPlan", out: Path, console: "Console") -> None:
    text = to_yaml(plan.setup) + f"# {plan.trials} trials of {len(plan.seeds)} runs each go to {out}"
    if plan.sampler == "grid":
        text += "".join(f"\n#   {name_values(point)}" for point in grid_points(plan.searches))
    console.print(text, markup=False, soft_wrap=True)


class _Bar:
    """Runs that are done, and the time left as far as this session can tell."""

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
        """Note how far it is; what was done before this session says nothing of how fast it is."""
        self.first = done if self.first is None else self.first
        left = ""
        if done > self.first:
            seconds = (time.monotonic() - self.began) / (done - self.first) * (total - done)
            left = f"{timedelta(seconds=round(seconds))} left"
        self.progress.update(self.task, completed=done, total=total, description=what, left=left)
