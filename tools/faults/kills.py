"""Processes that are killed: at any operation on a file, or in the middle of writing one."""

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import modeling_utils

from placevalue.common.files import file_hash
from placevalue.experiments.predict import PARTIAL, Partial, predict
from tools.faults.bench import Bench, in_child, weights

TRAIN_KILLS, CHECKPOINT_KILLS, PREDICT_KILLS = 11, 15, 16
Watch = Callable[[str], None]


def watch_files(folder: Path, happens: Watch) -> None:
    """Call `happens` before every change of a file below a folder, for the rest of this process."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            changes = isinstance(path, str) and (flags or 0) & (os.O_WRONLY | os.O_RDWR)
        else:
            path, changes = (arguments or [None])[0], event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir")
        if changes and str(path).startswith(f"{folder}/"):
            happens(f"{event} {Path(path).relative_to(folder)}")

    sys.addaudithook(hook)


def _watch_writers(happens: Watch) -> None:
    """Call `happens` when torch, safetensors or predict() has written half of a file, for the rest of this process."""

    def half_written(write: Callable[..., Any], path_of: Callable[..., Any]) -> Callable[..., Any]:
        def half(*given: Any, **named: Any) -> Any:
            path = Path(path_of(*given, **named))
            before = path.read_bytes() if path.exists() else b""
            made = write(*given, **named)
            whole = path.read_bytes()
            start = len(before) if whole.startswith(before) else 0  # of what was appended
            path.write_bytes(whole[: (start + len(whole)) // 2])
            happens(f"half of {path}")
            path.write_bytes(whole)
            return made

        return half

    torch.save = half_written(torch.save, lambda _object, path: path)
    modeling_utils.safe_save_file = half_written(modeling_utils.safe_save_file, lambda _tensors, path, **_: path)
    Partial.add = half_written(Partial.add, lambda partial, *_: partial.path)  # type: ignore[method-assign]


def _do_watched(work: Callable[[], object], folder: Path, happens: Watch) -> None:
    watch_files(folder, happens)
    _watch_writers(happens)
    work()


def _list_moments(work: Callable[[], object], folder: Path, log: Path) -> None:
    seen: list[str] = []
    _do_watched(work, folder, seen.append)
    log.write_text(json.dumps(seen))


def _kill_at(work: Callable[[], object], folder: Path, moment: int) -> None:
    left = [moment]

    def happens(_what: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _do_watched(work, folder, happens)


def spread(moments: list[int], count: int) -> list[int]:
    """So many of the moments, evenly spread."""
    return list(dict.fromkeys(moments[index * len(moments) // count] for index in range(count)))


def _kill(bench: Bench, work: Callable[[str], object], choose: Callable[[list[str]], list[int]], few: int) -> list[str]:
    """Do a piece of work, which takes a folder's name, in processes that are killed; return the folders' names."""
    log = bench.place / "moments.json"
    assert in_child(_list_moments, partial(work, "counted"), bench.place / "counted", log) == 0
    moments = bench.some(choose(json.loads(log.read_text())), few)
    names = [f"killed-{moment}" for moment in moments]
    for name, moment in zip(names, moments, strict=True):
        assert in_child(_kill_at, partial(work, name), bench.place / name, moment) == -signal.SIGKILL
    return names


def _kill_training(bench: Bench, inside: bool, count: int) -> str:
    def choose(moments: list[str]) -> list[int]:
        chosen = [at for at, what in enumerate(moments) if ("checkpoints/checkpoint-" in what) == inside]
        return spread(chosen, count)

    names = _kill(bench, bench.train, choose, 2)
    for name in names:
        assert weights(bench.train(name, resume=True)) == bench.weights(), name
    return f"{len(names)} of {len(names)} continued to the same weights"


def checkpoint_kills(bench: Bench) -> str:
    """Training is killed while it writes or removes a checkpoint."""
    return _kill_training(bench, True, CHECKPOINT_KILLS)


def training_kills(bench: Bench) -> str:
    """Training is killed at any other moment: before the first checkpoint, or while the model is put in its place."""
    return _kill_training(bench, False, TRAIN_KILLS)


def _answer(bench: Bench, name: str) -> str:
    predict(bench.place / "run", [bench.data], bench.place / name, beams=1, batch_size=2)
    assert not (bench.place / name / PARTIAL).exists()
    return file_hash(bench.place / name / "predictions.jsonl")


def prediction_kills(bench: Bench) -> str:
    """Predicting is killed while it writes, also in the middle of a line."""
    bench.train("run", max_steps=1)
    work = partial(_answer, bench)
    names = _kill(bench, work, lambda moments: spread(list(range(len(moments))), PREDICT_KILLS), 3)
    for name in names:
        assert work(name) == work("undisturbed"), name
    return f"{len(names)} of {len(names)} continued to the same predictions"


FAULTS = {
    "`train` is killed inside the writing of a checkpoint": checkpoint_kills,
    "`train` is killed at another moment": training_kills,
    "`predict` is killed": prediction_kills,
}
