"""A study that several processes share through its storage: who tries what, who is alive, what a dead one has left.

A trial is claimed by writing it into the storage as running, values and all; of two that claim the same values the
one with the lower number has them. So each point of a grid is tried once, by whichever process comes first. Whoever
runs a trial gives a sign of life now and then. A trial whose process is gone is marked as failed, and its values
are claimed anew.
"""

import contextlib
import json
import logging
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placevalue.common.errors import ConfigError, PlacevalueError
from placevalue.common.validation import find_differences
from placevalue.experiments.search_space import Sampler, Search, grid_points

logger = logging.getLogger(__name__)
SETUP, VALUES, SCORES, SIGN = "placevalue", "values", "scores", "sign"
"""Keys of what a study and its trials carry for us."""
BEAT, SILENCE, POLL = 20.0, 180.0, 2.0
"""Seconds between signs of life, those after which a process counts as dead, and those between two looks at others."""


@dataclass(frozen=True)
class Claim:
    """A trial that is ours to run."""

    trial: Any
    """Optuna's."""
    values: dict[str, Any]

    def finish(self, value: float, scores: Mapping[str, Any]) -> None:
        """Leave the scores, and their mean, in the study."""
        from optuna.exceptions import UpdateFinishedTrialError

        try:
            self.trial.set_user_attr(SCORES, scores)
        except UpdateFinishedTrialError:
            logger.warning("trial %d was silent for too long and went to another process", self.trial.number)
        self.trial.study.tell(self.trial, value, skip_if_finished=True)

    def give_up(self) -> None:
        """Let others have the values."""
        _fail(self.trial.study, self.trial)


def open_storage(storage: str) -> Any:
    """What Optuna keeps studies in.

    Args:
        storage: A URL of SQLAlchemy (`sqlite:///sweep.db`, `postgresql://...`), of Redis (`redis://...`), of Optuna's
            proxy server (`grpc://host:port`), or the path of a journal file.
    """
    try:
        from optuna import storages
        from optuna.storages import journal
    except ImportError as error:
        raise PlacevalueError(f"a sweep needs optuna: pip install 'placevalue[sweep]' ({error})") from None
    scheme, separator, rest = storage.partition("://")
    if not separator:
        Path(storage).parent.mkdir(parents=True, exist_ok=True)
        return storages.JournalStorage(journal.JournalFileBackend(storage))
    try:
        if scheme.startswith("redis"):
            return storages.JournalStorage(journal.JournalRedisBackend(storage))
        if scheme == "grpc":
            host, _, port = rest.strip("/").partition(":")
            return storages.GrpcStorageProxy(host=host, port=int(port or 13000))
        return _open_database(storage)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"the storage {storage!r} cannot be used: {' '.join(str(error).split())}") from None


def _open_database(url: str) -> Any:
    from optuna.exceptions import StorageInternalError
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return RDBStorage(url)
    except (SQLAlchemyError, StorageInternalError) as error:
        raise ValueError(error) from None


def open_study(storage: str, name: str, setup: Mapping[str, Any], higher: bool) -> Any:
    """The study of this name, made where there is none; one with another setup is refused with what differs."""
    kept = open_storage(storage)
    import optuna

    direction: Any = "maximize" if higher else "minimize"
    study = optuna.create_study(storage=kept, study_name=name, direction=direction, load_if_exists=True)
    if SETUP not in study.user_attrs:
        study.set_user_attr(SETUP, setup)
    if changed := find_differences(study.user_attrs[SETUP], json.loads(json.dumps(setup))):
        raise ConfigError(
            f"{storage} holds another sweep under the name {name!r}: {'; '.join(changed)}. Choose another folder, or "
            "another name (--study)"
        )
    return study


def finished_trials(study: Any) -> list[Any]:
    """The trials that have their scores, in the order they were claimed."""
    from optuna.trial import TrialState

    return list(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))


def claim_trial(
    study: Any,
    searches: Sequence[Search],
    sampler: Sampler,
    trials: int,
    seed: int,
    skipped: Sequence[Mapping[str, Any]] = (),
) -> Claim | None:
    """Something that nobody has tried or is trying; nothing where all is done or in other hands.

    Args:
        study: From `open_study`.
        searches: What is tried.
        sampler: `grid` or `tpe`.
        trials: How many there are to be.
        seed: Makes the choices of `tpe`, each trial's by itself.
        skipped: Values that are left to others, or for another time.
    """
    while True:
        taken, left = _look(study)
        if len(taken) >= trials and sampler == "tpe":
            return None
        wanted = grid_points(searches) if sampler == "grid" else left
        known = {_key(trial) for trial in taken} | {_dumps(values) for values in skipped}
        free = next((values for values in wanted if _dumps(values) not in known), None)
        if free is None and sampler == "grid":
            return None
        mine = _ask(study, searches, seed) if free is None else _start(study, searches, free)
        before = [trial for trial in _look(study)[0] if trial.number < mine.trial.number]
        enough = sampler == "tpe" and len(before) >= trials
        if free is None and not enough:
            return _wait(study, mine)
        if not enough and not any(_key(trial) == _dumps(mine.values) for trial in before):
            return mine
        mine.give_up()


def _look(study: Any) -> tuple[list[Any], list[dict[str, Any]]]:
    """The trials that are finished or running, and the values of those whose process failed or is gone."""
    from optuna.trial import TrialState

    taken, left = [], []
    for trial in study.get_trials(deepcopy=False):
        if trial.state == TrialState.COMPLETE or (trial.state == TrialState.RUNNING and _lives(trial)):
            taken.append(trial)
            continue
        if trial.state == TrialState.RUNNING:
            logger.info("trial %d has lost its process and is tried again", trial.number)
            _fail(study, trial.number)
        if VALUES in trial.user_attrs:
            left.append(trial.user_attrs[VALUES])
    return taken, left


def _start(study: Any, searches: Sequence[Search], values: dict[str, Any]) -> Claim:
    """A running trial with values that are given, written at one go."""
    from optuna.trial import Trial, TrialState, create_trial

    mark = uuid.uuid4().hex
    attributes = {VALUES: values, SIGN: _sign(), "mark": mark}
    distributions = {search.path: _distribution(search) for search in searches}
    study.add_trial(
        create_trial(state=TrialState.RUNNING, params=values, distributions=distributions, user_attrs=attributes)
    )
    ours = next(each for each in study.get_trials(deepcopy=False) if each.user_attrs.get("mark") == mark)
    return Claim(Trial(study, ours._trial_id), values)  # Optuna has no public way from a number to a trial


def _ask(study: Any, searches: Sequence[Search], seed: int) -> Claim:
    """A running trial with values that the sampler chooses."""
    from optuna.samplers import TPESampler

    trial = study.ask()
    # A seed for each trial: the same sweep tries the same, and processes side by side do not.
    study.sampler = TPESampler(seed=seed + trial.number)
    values = {search.path: _suggest(trial, search) for search in searches}
    trial.set_user_attr(SIGN, _sign())
    trial.set_user_attr(VALUES, values)
    return Claim(trial, values)


def _suggest(trial: Any, search: Search) -> Any:
    if search.low is None or len(search.values) == 1:
        return trial.suggest_categorical(search.path, search.values)
    suggest = trial.suggest_int if isinstance(search.low, int) else trial.suggest_float
    value = suggest(search.path, search.low, search.high, **_scale(search))
    if search.values:
        return min(search.values, key=lambda each: abs(each - value))  # 0.55, not 0.55000000000000004
    return value


def _distribution(search: Search) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if search.low is None or len(search.values) == 1:
        return CategoricalDistribution(search.values)
    kind: Any = IntDistribution if isinstance(search.low, int) else FloatDistribution
    return kind(search.low, search.high, **_scale(search))


def _scale(search: Search) -> dict[str, Any]:
    if not search.values:
        return {"log": search.log}
    return {"step": round(search.values[1] - search.values[0], 12)}


def _wait(study: Any, mine: Claim) -> Claim:
    """Ours once nobody else is running the same values; what they left is then found where they left it."""
    from optuna.trial import TrialState

    def rivals() -> bool:
        return any(
            trial.state == TrialState.RUNNING
            and trial.number < mine.trial.number
            and _key(trial) == _dumps(mine.values)
            for trial in _look(study)[0]
        )

    while rivals():
        time.sleep(POLL)
        mine.trial.set_user_attr(SIGN, _sign())
    return mine


@contextlib.contextmanager
def signs_of_life(claim: Claim) -> Iterator[None]:
    """A context in which others see that the trial has not lost its process."""
    stopped = threading.Event()

    def beat() -> None:
        while not stopped.wait(BEAT):
            try:
                claim.trial.set_user_attr(SIGN, _sign())
            except Exception as error:  # each storage has errors of its own, and may be back for the next sign
                logger.warning("trial %d could not give a sign of life: %s", claim.trial.number, error)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _sign() -> dict[str, Any]:
    return {"machine": _machine(), "process": os.getpid(), "time": time.time()}


def _machine() -> str:
    return f"{platform.node()}/{uuid.getnode():x}"


def _lives(trial: Any) -> bool:
    """Whether a running trial still has its process: one on this machine is looked for, others must give signs."""
    sign = trial.user_attrs.get(SIGN)
    if sign is None:
        return bool(time.time() - trial.datetime_start.timestamp() < SILENCE)
    if sign["machine"] == _machine() and not _runs(sign["process"]):
        return False
    return bool(time.time() - sign["time"] < SILENCE)


def _runs(process: int) -> bool:
    if os.name != "posix":
        return True  # it cannot be asked there without being ended: its signs must do
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _fail(study: Any, trial: Any) -> None:
    from optuna.trial import TrialState

    study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)


def _key(trial: Any) -> str:
    return _dumps(trial.user_attrs.get(VALUES, {}))


def _dumps(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)
