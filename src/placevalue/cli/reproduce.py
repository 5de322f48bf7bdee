"""reproduce: every run of a recipe, then the table and the report."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from placevalue.cli.arguments import SEED, Whole, a_path
from placevalue.cli.console import make_console, make_progress
from placevalue.cli.recipe_flags import define_cluster, define_recipe, read_cluster, recipe_overrides
from placevalue.common.errors import ConfigError
from placevalue.common.ownership import replace_own
from placevalue.experiments.recipe import Recipe, default_folder, read_recipe, to_yaml
from placevalue.experiments.runner import STAGES, Keep, Plan, Progress, prepare_experiment, reproduce, with_baseline
from placevalue.experiments.tuning import trials_of
from placevalue.reports.costs import cost_remark
from placevalue.reports.formatting import counted
from placevalue.reports.page import MARK, REPORT, make_page
from placevalue.reports.results import load_experiments
from placevalue.reports.summary import summarise
from placevalue.reports.tables import SHOWN, make_table
from placevalue.reports.terminal import FittedTable, terminal_table

if TYPE_CHECKING:
    from rich.console import Console

SHARES = {"train": 0.9, "generate": 0.09, "evaluate": 0.01}
"""The assumed share of each stage in the time of a run, to estimate the time left."""


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `reproduce`."""
    define_recipe(verb)
    verb.add_argument("--methods", nargs="+", metavar="NAME", help="the same as methods=[NAME, ...]")
    verb.add_argument("--seeds", nargs="+", type=SEED, metavar="N", help="the same as seeds=[N, ...]")
    verb.add_argument(
        "--jobs", type=Whole(1), metavar="N", help="runs at once (default: 1, or what the cluster has room for)"
    )
    define_cluster(verb)
    verb.add_argument("--out", type=a_path, help="the folder of the experiment (default: runs/RECIPE)")
    verb.add_argument("--keep", choices=get_args(Keep), default="model", help="what to keep (default: %(default)s)")
    others = "other experiments to show in the report"
    verb.add_argument("--beside", nargs="*", type=a_path, default=[], metavar="FOLDER", help=others)
    verb.add_argument(
        "--dry-run", action="store_true", help="print the plan, every resolved config and the estimated cost, and stop"
    )


def run(options: argparse.Namespace) -> None:
    """Train every method of a recipe with every seed, predict, score, compare; continues if interrupted."""
    console = make_console()
    cluster = read_cluster(options)
    folder = options.out or default_folder(options.recipe)
    given = {"methods": options.methods, "seeds": options.seeds}
    lists = [f"{key}=[{', '.join(map(str, each))}]" for key, each in given.items() if each]
    recipe = read_recipe(options.recipe, recipe_overrides(options) + lists)
    load_experiments(options.beside)  # report their faults before training
    if options.dry_run:
        dry_run(recipe, folder, console)
        return
    plan = prepare_experiment(recipe, folder)
    if plan.todo or options.keep == "answers":
        with progress_view(plan, console) as progress:
            reproduce(plan, jobs=options.jobs, keep=options.keep, progress=progress, cluster=cluster)
    else:
        console.print(f"{folder}: all {len(plan.runs)} runs are done")
    experiments = load_experiments([folder, *options.beside])
    for metric in SHOWN:
        console.print(terminal_table(make_table(summarise(experiments[0], metric=metric))))
    console.print(cost_remark(experiments[0]))
    console.print(f"report: {replace_own(folder / REPORT, make_page(experiments), MARK)}")


def dry_run(recipe: Recipe, folder: Path, console: "Console") -> None:
    """Print the plan, every resolved config and the cost; the cost even if something would stop the experiment."""
    from placevalue.experiments.cost import describe_cost

    try:
        plan = prepare_experiment(recipe, folder)
    except ConfigError:
        recipe = with_baseline(recipe)
        trials = [config for method in recipe.methods for config in trials_of(recipe, method)]
        runs = [recipe.run(method, seed) for seed in recipe.seeds for method in recipe.methods]
        console.print("\n".join(describe_cost(recipe, [(config, STAGES) for config in (*trials, *runs)])))
        raise
    planned = [*plan.trials, *plan.runs]
    for run in planned:
        waits = ", with values that its trials on dev will choose" if run.waits else ""
        console.print(f"---\n# {run.name}{waits}\n{to_yaml(run.config.to_dict())}")
    rows = [
        [
            run.name,
            *("to do" if each in run.todo else "done" for each in STAGES),
            run.stale or ("it waits for its trials" if run.waits else ""),
        ]
        for run in planned
    ]
    title = f"{folder}: {len(plan.todo)} of {len(planned)} runs to do"
    title += f", of them {counted(sum(run.trial for run in plan.todo), 'trial')} on dev" if plan.trials else ""
    parts = [part for part in (rows[: len(plan.trials)], rows[len(plan.trials) :]) if part]
    console.print(FittedTable(title, ["run", *STAGES, "stale because"], parts, left=5))
    if plan.todo:
        console.print("\n".join(describe_cost(recipe, [(run.config, run.todo) for run in plan.todo])))


@contextmanager
def progress_view(plan: Plan, console: "Console") -> Iterator[Progress]:
    """A progress bar for all runs with the time left, and one for each active run."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    total = {run.name: sum(SHARES[stage] for stage in run.todo) for run in plan.todo}
    left = {run.name: run.todo for run in plan.todo}
    reached = dict.fromkeys(total, 0.0)
    with make_progress(console, speed_estimate_period=600) as bars:
        whole = bars.add_task("all runs", total=sum(total.values()), text=f"0 of {len(total)}")
        lines = {}

        def show(name: str, stage: str, done: int, everything: int) -> None:
            before = sum(SHARES[each] for each in left[name][: left[name].index(stage)])
            reached[name] = max(reached[name], before + SHARES[stage] * done / max(everything, 1))
            if name not in lines:
                lines[name] = bars.add_task(name, total=total[name], text="")
            bars.update(lines[name], completed=reached[name], text=f"{stage} {done:,} of {everything:,}")
            finished = [each for each in lines if reached[each] >= total[each] - 1e-9]
            for each in finished:
                bars.update(lines[each], visible=False)
            bars.update(whole, completed=sum(reached.values()), text=f"{len(finished)} of {len(total)} runs")

        yield show
