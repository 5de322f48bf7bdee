"""reproduce: a recipe to every run of it, the table and the report."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from placevalue.cli.console import make_console
from placevalue.cli.recipe_flags import define_recipe, recipe_overrides
from placevalue.common.errors import PlacevalueError
from placevalue.common.files import write_whole
from placevalue.experiments.preflight import find_obstacles
from placevalue.experiments.recipe import Recipe, make_recipe, read_values, to_yaml
from placevalue.experiments.runner import STAGES, Keep, Plan, Tell, prepare_experiment, reproduce
from placevalue.reports.page import REPORT, make_page
from placevalue.reports.results import load_experiments
from placevalue.reports.summary import summarise
from placevalue.reports.tables import SHOWN, make_table
from placevalue.reports.terminal import terminal_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SHARES = {"train": 0.9, "generate": 0.09, "evaluate": 0.01}
"""How much of the time of a run each stage is taken to need, for the time that is left."""


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `reproduce`."""
    define_recipe(verb)
    verb.add_argument("--methods", nargs="+", metavar="NAME", help="the same as methods=[NAME, ...]")
    verb.add_argument("--seeds", nargs="+", type=int, metavar="N", help="the same as seeds=[N, ...]")
    verb.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at once, on the one device")
    verb.add_argument("--out", type=Path, help="the folder of the experiment; runs/RECIPE if not given")
    verb.add_argument(
        "--keep", choices=get_args(Keep), default="model", help="what stays of a run (default: %(default)s)"
    )
    verb.add_argument(
        "--beside", nargs="*", type=Path, default=[], metavar="FOLDER", help="experiments that the report shows too"
    )
    verb.add_argument("--dry-run", action="store_true", help="print the plan and every resolved config, and stop")


def run(options: argparse.Namespace) -> None:
    """Train every method of a recipe with every seed, answer, score, compare; goes on where it was stopped."""
    console = make_console()
    folder = options.out or Path("runs") / options.recipe.stem
    recipe = _recipe(options, folder)
    load_experiments(options.beside)  # what is wrong with them is better known now
    plan = prepare_experiment(recipe, folder, options.jobs, options.keep)
    if options.dry_run:
        for run in plan.runs:
            console.print(f"---\n# {run.name}\n{to_yaml(run.config.to_dict())}", markup=False, soft_wrap=True)
        console.print(plan_table(plan))
        return
    if plan.todo:
        with progress_view(plan, console) as tell:
            reproduce(recipe, folder, options.jobs, options.keep, tell)
    else:
        console.print(f"{folder}: all {len(plan.runs)} runs are there", soft_wrap=True)
    experiments = load_experiments([folder, *options.beside])
    for metric in SHOWN:
        table = make_table(summarise(experiments[0], metric=metric))
        console.print(terminal_table(table))
        console.print(table.words, markup=False)
    console.print(f"report: {write_whole(folder / REPORT, make_page(experiments))}", soft_wrap=True, markup=False)


def _recipe(options: argparse.Namespace, folder: Path) -> Recipe:
    """The recipe; whatever is wrong with it and with what it names is reported together."""
    given = {"methods": options.methods, "seeds": options.seeds}
    overrides = recipe_overrides(options) + [
        f"{key}=[{', '.join(map(str, each))}]" for key, each in given.items() if each
    ]
    values = read_values(options.recipe, overrides)
    try:
        return make_recipe(values, str(options.recipe))
    except PlacevalueError as error:
        others = [fault for fault in find_obstacles(values, folder, 0, 0) if fault not in str(error)]
        raise PlacevalueError("; ".join([str(error), *others])) from None


def plan_table(plan: Plan) -> "Table":
    """What is there and what is left, a line for each run."""
    from rich.table import Table

    table = Table(title=f"{plan.folder}: {len(plan.todo)} of {len(plan.runs)} runs to do", title_justify="left")
    for name in ("run", *STAGES, "stale, since"):
        table.add_column(name)
    for run in plan.runs:
        table.add_row(run.name, *("to do" if stage in run.todo else "there" for stage in STAGES), run.stale)
    return table


@contextmanager
def progress_view(plan: Plan, console: "Console") -> Iterator[Tell]:
    """One line for all runs with the time left, and one for each that is under way."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    total = {run.name: sum(SHARES[stage] for stage in run.todo) for run in plan.todo}
    left = {run.name: run.todo for run in plan.todo}
    reached = dict.fromkeys(total, 0.0)
    columns = (TextColumn("{task.description:<24}"), BarColumn(), TextColumn("{task.fields[told]:>20}"))
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, *times, console=console, speed_estimate_period=600) as bars:
        whole = bars.add_task("all runs", total=sum(total.values()), told=f"0 of {len(total)}")
        lines = {}

        def tell(name: str, stage: str, done: int, everything: int) -> None:
            before = sum(SHARES[each] for each in left[name][: left[name].index(stage)])
            reached[name] = max(reached[name], before + SHARES[stage] * done / max(everything, 1))
            if name not in lines:
                lines[name] = bars.add_task(name, total=total[name], told="")
            bars.update(lines[name], completed=reached[name], told=f"{stage} {done:,} of {everything:,}")
            finished = [each for each in lines if reached[each] >= total[each] - 1e-9]
            for each in finished:
                bars.update(lines[each], visible=False)
            bars.update(whole, completed=sum(reached.values()), told=f"{len(finished)} of {len(total)} runs")

        yield tell
