"""Runs on the machines of a Ray cluster: each in its own process there, again elsewhere if its machine dies.

If all machines see the caller's folder, runs work in it, so a run that starts again continues from its last checkpoint.
If not, each works in a temporary folder of its machine, and its files come back when it ends.
"""

import logging
import os
import secrets
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import placevalue
from placevalue.common.errors import ConfigError, PlacevalueError, in_one_line
from placevalue.experiments.parallel import SECONDS_TO_END, Event, Work
from placevalue.experiments.ray_connection import connected
from placevalue.experiments.ray_task import MARK, Order, chunks_of, files_below, look_here, work_here
from placevalue.experiments.run_folder import CHECKPOINTS, RECORD

logger = logging.getLogger(__name__)
SECONDS_TO_LOOK = 120.0
MOST_DEATHS = 3
"""How often a run starts again after its machine died."""


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster, and what each run needs of it."""

    address: str
    """`HOST:PORT` of its head, `auto` for the one this machine belongs to, or `local` to start one on this machine."""
    gpus: float | None = None
    """GPUs for each run; 0.25 puts four runs on one. Default: 1, or 0 if the cluster has none."""
    cpus: float = 1.0
    """CPU cores for each run."""

    def __post_init__(self) -> None:
        faults = [] if self.address else ["the cluster's address is empty: give HOST:PORT, auto or local"]
        if self.gpus is not None and (self.gpus < 0 or (self.gpus > 1 and self.gpus % 1 != 0)):
            faults.append(f"{self.gpus} GPUs for each run: expected a fraction of 1, or a whole number")
        if self.cpus <= 0:
            faults.append(f"{self.cpus} CPU cores for each run: expected more than 0")
        if faults:
            raise ConfigError("; ".join(faults))


@dataclass(frozen=True)
class _Task:
    """A piece that is being done."""

    name: str
    piece: Any
    deaths: int
    """How often its machine died before."""
    arriving: Path
    """Where its files are put until all of them are here."""
    lent: tuple[str, ...]
    """The names of the files that it was sent."""


class Machines:
    """Room for pieces of work on the machines of a cluster; a context that ends what still runs.

    Args:
        work: What is done with each piece, on its machine. A piece is a dataclass with the field `folder`.
        folder: The folder that holds the folders of all pieces.
        cluster: The cluster, and what each piece needs of it.
        jobs: How many pieces at once, at the most. Default: as many as the machines have room for.
    """

    def __init__(self, work: Work, folder: Path, cluster: Cluster, jobs: int | None = None) -> None:
        self.work, self.folder, self.cluster, self.jobs = work, folder.absolute(), cluster, jobs
        self.tasks: dict[Any, _Task] = {}
        self.started = 0
        self.mark: str | None = None
        self.token: str | None = None

    def __enter__(self) -> Self:
        self.connection = connected(self.cluster.address)
        self.ray = self.connection.__enter__()
        try:
            self.gpus = self._gpus_of_a_run()
            self.token = self._look_around()
        except BaseException as error:
            self._remove_mark()
            self.connection.__exit__(type(error), error, error.__traceback__)
            raise
        options: dict[str, Any] = {"num_returns": "streaming", "max_retries": 0}
        self.task = self.ray.remote(num_cpus=self.cluster.cpus, num_gpus=self.gpus, **options)(work_here)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what still runs, and give it time to release its locks."""
        try:
            for task in self.tasks:
                with suppress(Exception):  # it may have ended, or its machine may be gone
                    self.ray.cancel(task)
            deadline = time.monotonic() + SECONDS_TO_END
            while self.tasks and time.monotonic() < deadline:
                self.wait(start_again=False)
        finally:
            for each in self.tasks.values():
                shutil.rmtree(each.arriving, ignore_errors=True)
            self._remove_mark()
            self.connection.__exit__(kind, error, trace)

    @property
    def running(self) -> int:
        """How many pieces are being done, or wait for a machine."""
        return len(self.tasks)

    @property
    def is_full(self) -> bool:
        """Whether another piece would have to wait."""
        places = sum(self._places(each) for each in self.ray.nodes())
        return len(self.tasks) >= max(1, places if self.jobs is None else min(self.jobs, places))

    def start(self, name: str, piece: Any, deaths: int = 0) -> None:
        """Begin a piece on any machine with room for it."""
        self.started += 1
        arriving = self.folder / f".arriving-{os.getpid()}-{self.started}"
        files = {} if self.token else self._files_to_send(piece.folder)
        order = Order(self.work, name, piece, self.folder, Path.cwd(), self.token, files)
        self.tasks[self.task.remote(order)] = _Task(name, piece, deaths, arriving, tuple(files))

    def wait(self, start_again: bool = True) -> list[Event]:
        """Wait up to a second for something to happen, and say what."""
        ready, _ = self.ray.wait(list(self.tasks), num_returns=1, timeout=1.0)
        events: list[Event] = []
        for task in ready:
            known = self.tasks[task]
            try:
                kind, sent = self.ray.get(next(task))
            except (StopIteration, self.ray.exceptions.RayError) as error:
                del self.tasks[task]
                shutil.rmtree(known.arriving, ignore_errors=True)
                if why := self._failure(known, error, start_again):
                    events.append((known.name, "died", why))
                continue
            if kind == "file":
                _append(known.arriving / sent[0], sent[1])
                continue
            if kind != "progress":
                del self.tasks[task]
                self._take(known)
            events.append((known.name, kind, sent))
        return events

    def _failure(self, known: _Task, error: Exception, start_again: bool) -> str | None:
        """Why a piece failed; None if it starts again elsewhere."""
        if isinstance(error, StopIteration):
            return "it ended without a result"
        if isinstance(error, self.ray.exceptions.RayTaskError):
            return in_one_line(error.cause)
        why = f"its machine died, or the process that watched it ({type(error).__name__})"
        if not start_again or known.deaths >= MOST_DEATHS:
            return why
        logger.warning("%s: %s: starting it again", known.name, why)
        self.start(known.name, known.piece, known.deaths + 1)
        return None

    def _places(self, node: Mapping[str, Any]) -> int:
        """How many runs fit on a machine."""
        has = node["Resources"] if node["Alive"] else {}
        wanted = {"CPU": self.cluster.cpus, "GPU": self.gpus}
        return min(int(has.get(kind, 0) / each + 1e-9) for kind, each in wanted.items() if each)

    def _gpus_of_a_run(self) -> float:
        most = max((each["Resources"].get("GPU", 0) for each in self.ray.nodes() if each["Alive"]), default=0)
        return self.cluster.gpus if self.cluster.gpus is not None else float(most >= 1)

    def _look_around(self) -> str | None:
        """Check the machines that have room for a run; returns the end of the mark's name if all see it."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = {each["NodeID"]: each["NodeManagerAddress"] for each in self.ray.nodes() if self._places(each)}
        if not nodes:
            raise ConfigError(
                f"no machine of the cluster {self.cluster.address} has {self.cluster.cpus:g} CPU cores and "
                f"{self.gpus:g} GPUs for a run: ask for less (--cpus-per-run, --gpus-per-run), or add machines"
            )
        token = self.mark = secrets.token_hex(8)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{MARK}{token}").touch()
        look = self.ray.remote(num_cpus=0, max_retries=0)(look_here)
        asked = {
            address: look.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(
                self.folder, token
            )
            for node, address in nodes.items()
        }
        faults, found = [], []
        deadline = time.monotonic() + SECONDS_TO_LOOK
        for address, answer in asked.items():
            try:
                version, seen = self.ray.get(answer, timeout=max(0.0, deadline - time.monotonic()))
            except self.ray.exceptions.RayError as error:
                faults.append(f"{address}: {in_one_line(getattr(error, 'cause', None) or error)}")
                continue
            found.append(seen)
            if version != placevalue.__version__:
                faults.append(f"{address} has placevalue {version}, this machine {placevalue.__version__}")
        if faults:
            raise PlacevalueError(
                f"{len(faults)} of {len(nodes)} machines of the cluster cannot run placevalue: {'; '.join(faults)}. "
                "Install the same version on all of them"
            )
        if all(found):
            return token
        logger.warning("not all machines of the cluster see %s: runs bring their files back to it", self.folder)
        return None

    def _files_to_send(self, folder: Path) -> dict[str, list[Any]]:
        """The files of a run whose training is done; one that began is trained again, on its machine's own disk."""
        if not (folder / RECORD).exists():
            return {}
        files = [each for each in files_below(folder) if each.relative_to(folder).parts[0] != CHECKPOINTS]
        return {
            str(path.relative_to(self.folder)): [self.ray.put(chunk) for chunk in chunks_of(path)] for path in files
        }

    def _remove_mark(self) -> None:
        if self.mark is not None:
            (self.folder / f"{MARK}{self.mark}").unlink(missing_ok=True)

    def _take(self, known: _Task) -> None:
        """Put what has arrived in its place; what was sent and has not come back was removed there."""
        for name in known.lent:
            if not (known.arriving / name).exists():
                (self.folder / name).unlink(missing_ok=True)
        for path in files_below(known.arriving):
            target = self.folder / path.relative_to(known.arriving)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        shutil.rmtree(known.arriving, ignore_errors=True)


def _append(path: Path, chunk: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(chunk)
