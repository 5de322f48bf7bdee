"""What every fault needs: a folder, a small model and a recipe, child processes, and ways to damage files."""

import contextlib
import hashlib
import io
import logging
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import torch
import transformers

from placevalue.cli.main import main
from placevalue.common.files import file_hash
from placevalue.common.records import TrainRecord, read_record
from placevalue.experiments.recipe import make_recipe, to_yaml
from placevalue.experiments.run_folder import RECORD
from placevalue.experiments.train import train

SUMS = "question,answer\n" + "".join(f"{i} and {i + 3} more?,{2 * i + 3}\n" for i in range(24))


@dataclass(frozen=True)
class Bench:
    """A folder for one fault, and the small run that it is injected into."""

    place: Path
    all: bool = True
    """Whether to inject a repeated fault every time, or only a few times."""

    @property
    def data(self) -> str:
        """A file of problems."""
        path = self.place / "sums.csv"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(SUMS)
        return str(path)

    def values(self, **training: Any) -> dict[str, Any]:
        """A recipe as its author writes it: six steps of the bundled model, with a checkpoint after every second."""
        settings = {"max_steps": 6, "checkpoint_every": 2, "batch_size": 4, "log_every": 2, "learning_rate": 1e-3}
        return {
            "model": "placevalue-tiny",
            "data": {"train": self.data, "dev": self.data, "test": [self.data]},
            "methods": ["agg-aux"],
            "seeds": [1],
            "training": settings | training,
            "generation": {"beams": 1, "batch_size": 4},
        }

    def recipe_file(self, **training: Any) -> Path:
        """The recipe as a file."""
        path = self.place / "toy.yaml"
        path.write_text(to_yaml(self.values(**training)))
        return path

    def train(self, name: str, resume: bool = False, **training: Any) -> Path:
        """Train the small run in a folder of this name."""
        train(make_recipe(self.values(**training)).run(), self.place / name, resume, lambda *_: None)
        return self.place / name

    def stop(self, name: str, after: int, **training: Any) -> Path:
        """The small run in a folder of this name, stopped after this many steps."""

        def interrupt(step: int, _all: int) -> None:
            if step == after:
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            train(make_recipe(self.values(**training)).run(), self.place / name, progress=interrupt)
        assert not (self.place / name / RECORD).exists()
        return self.place / name

    def weights(self) -> str:
        """The weights that the small run ends with if nothing happens."""
        if not (self.place / "undisturbed").exists():
            self.train("undisturbed")
        return weights(self.place / "undisturbed")

    def record(self, run: Path) -> TrainRecord:
        """The record of a finished run."""
        return read_record(run / RECORD, TrainRecord)

    def some(self, repetitions: Sequence[Any], few: int = 3) -> list[Any]:
        """All repetitions of a fault or, in a test, a few, evenly spread."""
        count = len(repetitions)
        if self.all or count <= few:
            return list(repetitions)
        return [repetitions[(2 * index + 1) * count // (2 * few)] for index in range(few)]


def weights(run: Path) -> str:
    """The checksum of a finished run's weights."""
    assert (run / RECORD).exists()
    return file_hash(run / "model.safetensors")


def run_verb(*words: object) -> tuple[int, str]:
    """Run a verb of the command line here; return its exit status and what it printed."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown), _logged(shown):
        status = main([str(word) for word in words])
    return status, shown.getvalue()


@contextlib.contextmanager
def _logged(shown: io.StringIO) -> Iterator[None]:
    handler = logging.StreamHandler(shown)
    logging.getLogger("placevalue").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("placevalue").removeHandler(handler)


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tools.faults.kills", "transformers.trainer", "transformers.models.t5.modeling_t5"])


def in_child(work: Callable[..., object], *given: Any) -> int:
    """Do a piece of work in a process of its own; return its exit status, negative if a signal ended it.

    The process is the fork of one that has imported everything and done nothing, so it starts at once.
    """
    process = start_child(work, *given)
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def start_child(work: Callable[..., object], *given: Any) -> ForkServerProcess:
    """Start a process that does a piece of work."""
    process = _FORKS.Process(target=_alone, args=(work, *given))
    process.start()
    return process


def pipe() -> tuple[Connection, Connection]:
    """The two ends of a pipe: one to receive from, and one for a process to send through."""
    return _FORKS.Pipe(duplex=False)


def _alone(work: Callable[..., object], *given: Any) -> None:
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    work(*given)


def snapshot(folder: Path) -> dict[str, str]:
    """What each path below a folder is, without following links: to see that nothing was touched."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            about = f"link to {path.readlink()}"
        elif path.is_file():
            about = f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
        else:
            about = "folder"
        found[str(path.relative_to(folder))] = about
    return found


def flip(path: Path) -> None:
    """Flip one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    """Cut a file to half of its length."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
