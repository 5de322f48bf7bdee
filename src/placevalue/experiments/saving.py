"""Save checkpoints while a run trains: each is whole before an older one is removed."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from placevalue.common.errors import RoomError
from placevalue.common.room import room_for
from placevalue.experiments.checksums import mark_unfinished, mark_whole, read_sums
from placevalue.experiments.run_folder import find_checkpoints, remove_checkpoint

if TYPE_CHECKING:
    from transformers import Trainer, TrainingArguments

T = TypeVar("T")


def save_whole(trainer: "Trainer", keep: int, check: Callable[[], None]) -> None:
    """Let a Trainer mark its checkpoints, unfinished before it writes one and whole after, and keep only the newest.

    Trainer would remove older checkpoints itself before the new one is marked, so it must not have a limit of its own.
    `check` is called before each; it raises an error if the folder is no longer this process's.
    """
    write = trainer._save_checkpoint

    def save(*given: Any, **named: Any) -> None:
        main = trainer.is_world_process_zero()
        checkpoint = Path(str(trainer.args.output_dir)) / f"checkpoint-{trainer.state.global_step}"
        if main:
            check()
        with _room_for_checkpoint(checkpoint, trainer):
            if main:
                checkpoint.mkdir(parents=True)
                mark_unfinished(checkpoint)
            trainer.accelerator.wait_for_everyone()
            write(*given, **named)
            trainer.accelerator.wait_for_everyone()
            if main:
                mark_whole(checkpoint)
        if main:
            _remove_older(checkpoint.parent.parent, keep, trainer.state.best_global_step)

    trainer._save_checkpoint = save  # type: ignore[method-assign]


@contextmanager
def _room_for_checkpoint(checkpoint: Path, trainer: "Trainer") -> Iterator[None]:
    """If the disk is full, say how large a checkpoint is, and leave no part of one behind."""

    def size() -> int:
        assert trainer.model is not None and trainer.optimizer is not None
        states = [value for state in trainer.optimizer.state.values() for value in state.values()]
        return sum(getattr(each, "nbytes", 0) for each in [*trainer.model.state_dict().values(), *states])

    try:
        with room_for(checkpoint, size, whole=True):
            yield
    except RoomError:
        shutil.rmtree(checkpoint, ignore_errors=True)
        raise


def _remove_older(folder: Path, keep: int, best: int | None) -> None:
    """Remove all checkpoints but the newest and the best, and as many before the newest as `keep` leaves room for."""
    newest_first = [path for path in reversed(find_checkpoints(folder)) if read_sums(path)]
    kept = {newest_first[0].name, f"checkpoint-{best}" if best else newest_first[0].name}
    for path in newest_first:
        if len(kept) < keep:
            kept.add(path.name)
        if path.name not in kept:
            remove_checkpoint(path)


def in_main_process(work: Callable[[], T], arguments: "TrainingArguments") -> T:
    """Do what one process alone may do, such as changing files; all get what it returned, or its error."""
    if arguments.world_size == 1:
        return work()
    from accelerate.utils import broadcast_object_list

    done: list[Any] = [None, None]
    if arguments.process_index == 0:
        try:
            done[0] = work()
        except Exception as error:
            done[1] = error
    broadcast_object_list(done)
    if done[1] is not None:
        raise done[1]
    found: T = done[0]
    return found
