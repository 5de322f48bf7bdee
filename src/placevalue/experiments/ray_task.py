"""What a machine of a Ray cluster does for a run: it works in a process of its own, and sends back what it must."""

import os
import platform
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import placevalue
from placevalue.common.errors import PlacevalueError
from placevalue.common.lock import LOCK
from placevalue.experiments.parallel import Processes, Work
from placevalue.experiments.run_folder import RECORD

LOGS = "logs"
MARK = ".placevalue-cluster-"
"""How the name of a file in the caller's folder begins: machines that see it during a call share the folder."""
_CHUNK = 2**25  # bytes of a file that travel at once
_PAUSE = 0.5  # seconds between reports of a run's progress


@dataclass(frozen=True)
class Order:
    """What a machine is asked to do."""

    work: Work
    name: str
    piece: Any
    folder: Path
    """The caller's folder, which holds the piece's."""
    started_in: Path
    """The caller's working directory, which relative names of data start from."""
    token: str | None
    """The end of the mark's name; None if the machines do not share the folder."""
    files: Mapping[str, list[Any]]
    """What the piece needs of its folder, if it is not shared: chunks in Ray's store by the file's name."""
    version: str = placevalue.__version__


def look_here(folder: Path, token: str) -> tuple[str, bool]:
    """On a machine of the cluster: the version of placevalue, and whether the caller's folder is here."""
    return placevalue.__version__, (folder / f"{MARK}{token}").exists()


def work_here(order: Order) -> Iterator[tuple[str, Any]]:
    """On a machine of the cluster: do a piece in a process; yields what it reports, its files, and how it ended."""
    if order.version != placevalue.__version__:
        raise PlacevalueError(f"this machine has placevalue {placevalue.__version__}, the caller {order.version}")
    if order.token is not None:
        if not look_here(order.folder, order.token)[1]:
            raise PlacevalueError(f"this machine does not see {order.folder}, as the others do")
        yield from _do_in(order.folder, order)
        return
    import ray

    with TemporaryDirectory(prefix="placevalue-", ignore_cleanup_errors=True) as scratch:
        root = Path(scratch)
        for name, chunks in order.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            with (root / name).open("wb") as file:
                for chunk in chunks:
                    file.write(ray.get(chunk))
        for kind, sent in _do_in(root, order):
            if kind == "progress":
                yield kind, sent
        for path in files_below(root):
            yield from (("file", (str(path.relative_to(root)), chunk)) for chunk in chunks_of(path))
        yield kind, sent


def _do_in(root: Path, order: Order) -> Iterator[tuple[str, Any]]:
    """Do a piece below a folder; yields progress from time to time, and how it ended."""
    folder = root / order.piece.folder.absolute().relative_to(order.folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    piece = replace(order.piece, folder=folder)
    started_in = order.started_in if order.started_in.is_dir() else None
    reported = 0.0
    with Processes(order.work, 1, root / LOGS, started_in) as room:
        with (root / LOGS / f"{order.name}.log").open("a") as log:
            log.write(f"on {platform.node()}, process {os.getpid()}\n")
        room.start(order.name, piece)
        while room.running:
            for _, kind, sent in room.wait():
                if kind != "progress" or time.monotonic() - reported > _PAUSE:
                    yield kind, sent
                    reported = time.monotonic()


def files_below(folder: Path) -> list[Path]:
    """All files below a folder but locks, the record last: a run whose record is there has its model."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(LOCK)]
    return sorted(found, key=lambda path: (path.name == RECORD, path))


def chunks_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file in pieces; one, if it is empty."""
    with path.open("rb") as file:
        yield file.read(_CHUNK)
        while chunk := file.read(_CHUNK):
            yield chunk
