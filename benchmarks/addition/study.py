"""Train every run of a grid in parallel, one file per run; finished runs are not repeated."""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.addition.grid import Grid, Run
from benchmarks.addition.training import SCHEMA, train_run
from placevalue.common.errors import DataError
from placevalue.common.files import read_json, write_json


def run_study(grid: Grid, folder: Path, jobs: int = 1, deadline: float | None = None) -> int:
    """Train the missing runs, in processes of one thread each, and return how many are still missing.

    Args:
        grid: The runs of the study.
        folder: Where each finished run is written to one file.
        jobs: Number of runs in parallel.
        deadline: Start no run after this many seconds; runs that have started are finished.
    """
    missing = [run for run in grid.runs() if read_run(folder, run) is None]
    print(f"{len(grid.runs()) - len(missing)} of {len(grid.runs())} runs are done, {len(missing)} to do", flush=True)
    end = None if deadline is None else time.time() + deadline
    done = 0
    for line in _lines(missing, folder, jobs, end):
        if line is not None:
            done += 1
            print(f"[{done}/{len(missing)}] {line}", flush=True)
    return len(missing) - done


def _lines(missing: list[Run], folder: Path, jobs: int, end: float | None) -> Iterator[str | None]:
    """A line for each finished run; None for each run that the deadline prevented."""
    if jobs == 1:
        _prepare()
        yield from (_run_one(run, folder, end) for run in missing)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_prepare) as pool:
        waiting = [pool.submit(_run_one, run, folder, end) for run in missing]
        try:
            yield from (future.result() for future in as_completed(waiting))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def read_run(folder: Path, run: Run) -> dict[str, Any] | None:
    """The outcome of a finished run; None if it is not finished."""
    path = folder / f"{run.name}.json"
    if not path.exists():
        return None
    found = read_json(path)
    if (found["schema"], found["config"]) != (SCHEMA, run.config()):
        raise DataError(
            f"{path} has a run with other settings: {found['config']}, expected {run.config()}. Choose another folder"
        )
    return found


def _prepare() -> None:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()


def _run_one(run: Run, folder: Path, end: float | None) -> str | None:
    if end is not None and time.time() > end:
        return None
    outcome = train_run(run)
    write_json(folder / f"{run.name}.json", outcome)
    last = outcome["checkpoints"][-1]["test"]
    return f"{run.name}: exact {last['exact']:.3f}, error {last['error']:.2f}, {outcome['seconds']:.0f} s"
