"""How each method got its own values, and what an experiment took, in words."""

from placevalue.experiments.search_space import name_values
from placevalue.reports.formatting import counted, duration
from placevalue.reports.results import Experiment


def tuning_remark(experiment: Experiment) -> str:
    """The values that the trials on dev chose for each method, and how many trials there were; empty without."""
    if not experiment.tuning:
        return ""
    counts = sorted({len(record.trials) for record in experiment.tuning.values()})
    trials = " to ".join(dict.fromkeys(f"{count:,}" for count in (counts[0], counts[-1])))
    chosen = {
        method: name_values(record.best["values"]).replace(",", " and ")
        for method, record in experiment.tuning.items()
        if record.best is not None
    }
    first = next(iter(experiment.tuning.values()))
    told = ", ".join(f"{method} {values}" for method, values in chosen.items())
    dev, metric = first.config["data"]["dev"], first.config["metric"]
    return f"Each method runs with the best of {trials} trials by {metric} on {dev}: {told}."


def cost_remark(experiment: Experiment) -> str:
    """The time that trials and runs took to train and answer, added up over all of them."""
    runs = sum(run.seconds for run in experiment.runs)
    told = f"{counted(len(experiment.runs), 'run')} took {duration(runs)} to train and answer"
    if not experiment.tuning:
        return f"{told}."
    trials = [trial for record in experiment.tuning.values() for trial in record.trials]
    spent = sum(trial.get("seconds", 0.0) for trial in trials)
    return f"{told}, and {counted(len(trials), 'trial')} on dev before them {duration(spent)}."
