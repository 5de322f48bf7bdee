"""Checksums of a checkpoint's files: written last, they say that it is whole, and later whether it still is."""

import fnmatch
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open

from placevalue.common.files import known_hash, write_json
from placevalue.common.ownership import read_mark

SUMS, SCHEMA = "checksums.json", "placevalue/checkpoint/1"
STATE = (
    "optimizer*", "scheduler*", "rng_state*", "scaler*", "pytorch_model_fsdp*", "trainer_state.json",
    "training_args.bin", SUMS,
)  # fmt: skip
"""The files of a checkpoint that only training needs."""


def mark_unfinished(checkpoint: Path) -> None:
    """Say that a checkpoint is ours and not whole, before its files are written or removed."""
    write_json(checkpoint / SUMS, {"schema": SCHEMA, "files": {}})


def mark_whole(checkpoint: Path) -> None:
    """Bring the files of a checkpoint to the disk and write their checksums."""
    files = {}
    for path in sorted(checkpoint.rglob("*")):
        if path.is_file() and path.name != SUMS:
            with path.open("rb") as file:
                os.fsync(file.fileno())
            files[path.relative_to(checkpoint).as_posix()] = known_hash(path)
    write_json(checkpoint / SUMS, {"schema": SCHEMA, "files": files})


def read_sums(checkpoint: Path) -> dict[str, str] | None:
    """The checksums of a checkpoint's files by name; empty if it is not whole, None if it has no list of them."""
    if not (checkpoint / SUMS).exists():
        return None if any(not path.name.startswith(".") for path in checkpoint.iterdir()) else {}
    found = read_mark(checkpoint / SUMS)
    return dict(found["files"]) if found.get("schema") == SCHEMA else {SUMS: "of no list of ours"}


def model_sums(sums: Mapping[str, str]) -> dict[str, str]:
    """The checksums of the files that make up the model."""
    return {
        name: value
        for name, value in sums.items()
        if "/" not in name and not any(fnmatch.fnmatch(name, pattern) for pattern in STATE)
    }


def find_damage(folder: Path, sums: Mapping[str, str]) -> list[str]:
    """What is wrong with files whose checksums are known."""
    missing = [name for name in sums if not (folder / name).is_file()]
    changed = [name for name in sums if name not in missing and known_hash(folder / name) != sums[name]]
    return [f"{name} is missing" for name in missing] + [f"{name} does not fit its checksum" for name in changed]


def find_torn(folder: Path) -> list[str]:
    """The files of a model or checkpoint that are cut off, found without checksums, which earlier versions lack."""
    torn = [path.name for kind in ("*.pt", "*.pth") for path in folder.glob(kind) if not zipfile.is_zipfile(path)]
    for path in folder.glob("*.safetensors"):
        try:
            with safe_open(path, "np"):
                pass
        except SafetensorError:
            torn.append(path.name)
    return [f"{name} is cut off" for name in torn]
