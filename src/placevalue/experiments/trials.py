"""Several trials of a sweep at once: this process chooses their values and tells the study, others do their runs."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from placevalue.experiments.parallel import Room


class Search(Protocol):
    """What decides on the trials of a sweep."""

    def choose(self, trial: Any) -> dict[str, Any]:
        """Choose a trial's values, and note them in the study."""

    def wants_more(self, study: Any, running: list[dict[str, Any]]) -> bool:
        """Whether to start another trial, beside those with these values."""

    def pieces(self, values: dict[str, Any]) -> Iterable[tuple[str, str, Any]]:
        """The runs of a trial, each as its seed, its name and its piece of work."""

    def finish(self, study: Any, trial: Any, scores: dict[str, Any]) -> None:
        """Tell the study the scores of a trial's seeds."""

    def fail(self, study: Any, trial: Any, values: dict[str, Any], why: str) -> None:
        """Tell the study that a trial failed; raises an error if the sweep must end."""

    def show(self, study: Any, done: int, what: str) -> None:
        """Say how many runs of unfinished trials are done, and what happens."""


@dataclass
class _Open:
    trial: Any
    values: dict[str, Any]
    seeds: dict[str, str]
    """The seeds that are not done, by the names of their runs."""
    scores: dict[str, Any] = field(default_factory=dict)
    why: str = ""


def run_trials(study: Any, search: Search, room: Room) -> None:
    """Do trials, as many at once as there is room for their runs, until nothing is left to try.

    The work of a run returns `("score", found)` or `("failed", why)`.
    """
    trials: list[_Open] = []
    waiting: list[tuple[str, Any]] = []
    while True:
        while not room.is_full and (waiting or search.wants_more(study, [each.values for each in trials])):
            if not waiting:
                trials.append(_begin(study, search, waiting))
            room.start(*waiting.pop(0))
        if not room.running:
            return
        for name, kind, sent in room.wait():
            if kind == "progress":
                continue
            opened = next(each for each in trials if name in each.seeds)
            seed = opened.seeds.pop(name)
            outcome, found = sent if kind == "done" else ("failed", sent)
            if outcome == "score":
                opened.scores[seed] = found
            else:
                opened.why = opened.why or str(found)
                left = {each for each, _ in waiting} & opened.seeds.keys()
                waiting = [each for each in waiting if each[0] not in left]
                opened.seeds = {each: seed for each, seed in opened.seeds.items() if each not in left}
            if not opened.seeds:
                trials.remove(opened)
                _end(study, search, opened)
            search.show(study, sum(len(each.scores) for each in trials), name)


def _begin(study: Any, search: Search, waiting: list[tuple[str, Any]]) -> _Open:
    trial = study.ask()
    values = search.choose(trial)
    seeds = {}
    for seed, name, piece in search.pieces(values):
        seeds[name] = seed
        waiting.append((name, piece))
    return _Open(trial, values, seeds)


def _end(study: Any, search: Search, opened: _Open) -> None:
    if opened.why:
        search.fail(study, opened.trial, opened.values, opened.why)
    else:
        search.finish(study, opened.trial, opened.scores)
