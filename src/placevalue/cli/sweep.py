"""sweep: search the best values of some fields of a recipe on dev."""

import argparse
import contextlib
import sys

from placevalue.cli.arguments import SEED, Whole, a_path
from placevalue.cli.console import make_console, make_progress
from placevalue.cli.recipe_flags import define_cluster, define_recipe, read_cluster, recipe_overrides
from placevalue.experiments.methods import METHODS
from placevalue.experiments.recipe import default_folder, read_recipe, to_yaml
from placevalue.experiments.search_space import PAPER_SEARCH, SAMPLERS, grid_points, name_values, override
from placevalue.reports.formatting import listed
from placevalue.reports.terminal import sweep_table

PLOT = "sweep.svg"


def define(verb: argparse.ArgumentParser) -> None:
    """The flags of `sweep`."""
    define_recipe(verb)
    verb.add_argument("--method", choices=list(METHODS), help="(default: the recipe's first)")
    values = f"LOW:HIGH:STEP, LOW:HIGH:log, LOW:HIGH or A,B,C; repeatable (default: {PAPER_SEARCH})"
    verb.add_argument("--search", action="append", metavar="KEY=VALUES", help=values)
    verb.add_argument("--sampler", choices=SAMPLERS, default="grid", help="(default: %(default)s)")
    verb.add_argument("--sampler-seed", type=SEED, default=0, metavar="N", help="seed of tpe (default: %(default)s)")
    verb.add_argument("--trials", type=Whole(1), metavar="N", help="how many combinations tpe tries")
    verb.add_argument("--seeds", type=SEED, nargs="+", metavar="N", help="(default: the recipe's)")
    verb.add_argument("--metric", default="accuracy_paper", help="the metric to optimize (default: %(default)s)")
    verb.add_argument("--out", type=a_path, help="the folder of the sweep (default: runs/RECIPE/sweep-METHOD)")
    verb.add_argument("--storage", metavar="URL", help="an Optuna storage (default: a journal file in the folder)")
    verb.add_argument("--study", default="sweep", metavar="NAME", help="its name in the storage (default: %(default)s)")
    define_cluster(verb)
    verb.add_argument("--keep-weights", action="store_true", help="keep the weights of every run")
    verb.add_argument("--dry-run", action="store_true", help="print what would be done and stop")


def run(options: argparse.Namespace) -> None:
    """Search the best values of a recipe's fields on dev; started twice, the command splits the work."""
    console = make_console()
    cluster = read_cluster(options)
    import transformers

    from placevalue.experiments.sweep import plan_sweep, sweep
    from placevalue.reports.figures import draw_sweep

    names = ("method", "seeds", "sampler", "trials", "sampler_seed", "metric")
    recipe = read_recipe(options.recipe, recipe_overrides(options))
    plan = plan_sweep(recipe, options.search or [PAPER_SEARCH], **{name: getattr(options, name) for name in names})
    out = options.out or default_folder(options.recipe, f"sweep-{plan.method}")
    if options.dry_run:
        text = to_yaml(plan.setup) + f"# {plan.trials} trials of {len(plan.seeds)} runs each go to {out}"
        if plan.sampler == "grid":
            text += "".join(f"\n#   {name_values(point)}" for point in grid_points(plan.searches))
        console.print(text)
        return
    # Log lines would disturb the progress bar, and the sweep reports failures itself.
    transformers.logging.set_verbosity_error()
    with contextlib.suppress(ImportError):  # the sweep itself says what to install
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
    console.file = sys.stdout  # keep printing here while the output of a run is redirected to its log
    session = {"speed_estimate_period": float("inf"), "redirect_stdout": False, "redirect_stderr": False}
    with make_progress(console, **session) as bar:
        task = bar.add_task("", total=None, text="")

        def show(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what, text=f"{done}/{total} runs")

        settings = {name: getattr(options, name) for name in ("storage", "study", "keep_weights")}
        record = sweep(plan, out=out, progress=show, cluster=cluster, **settings)
    draw_sweep(record, out / PLOT)
    console.print(sweep_table(record, f"{options.recipe.stem}, {plan.method}"))
    if record.best is not None:
        console.print(f"best: {' '.join(record.best['overrides'])}")
        equal = [trial["values"] for trial in record.winners if trial["values"] != record.best["values"]]
        if equal:
            others = listed([" ".join(override(*each) for each in values.items()) for values in equal])
            console.print(f"a tie: {others} scored the same")
    console.print(f"wrote {out}")
