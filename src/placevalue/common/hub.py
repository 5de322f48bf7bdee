"""Find and load models: local folders, hub names, the bundled model and models that `placevalue fetch` downloaded.

`resolve_model` turns a name into what `from_pretrained` takes. `load_tokenizer`, `load_config` and `load_model` load
it, or report within seconds that it is not available.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placevalue.common.errors import ConfigError, ModelError
from placevalue.common.files import known_hash
from placevalue.common.registry import PRETRAINED
from placevalue.common.seal import VECTOR, is_sealed, own_fusions
from placevalue.common.validation import one_of

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

BUNDLED_FOLDER = Path(__file__).parent / "bundled"
TINY = "placevalue-tiny"  # the model inside the package; docs/tiny.md is its card
HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[\w.-]+)?", re.ASCII)
WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
HASHED = (*WEIGHTS, "adapter_*", "tokenizer.json")
CARD = "README.md"
HUB_SECONDS = 4.0  # how long to wait for the hub; its own client retries for half a minute


def cache_folder() -> Path:
    """Where fetched models are kept: `$PLACEVALUE_CACHE`, else `~/.cache/placevalue`."""
    return Path(os.environ.get("PLACEVALUE_CACHE") or Path.home() / ".cache" / "placevalue")


def is_fetched(folder: Path) -> bool:
    """Whether a folder of the cache holds a fetched model."""
    return (folder / "tokenizer.json").is_file()


def resolve_model(name_or_path: str | os.PathLike[str]) -> str:
    """Return what `from_pretrained` takes: a local, bundled or fetched folder, or a hub name."""
    name = os.fspath(name_or_path)
    path = Path(name).expanduser()
    if name and path.is_dir():
        return str(path)
    if name == TINY:
        return str(BUNDLED_FOLDER / name)
    if name == f"{TINY}-untrained":
        raise ModelError(
            f"{name!r} is no longer part of placevalue: run `python -m tools.tiny_model prepare runs/tiny` in its "
            "repository and give runs/tiny/untrained"
        )
    if name in PRETRAINED:
        folder = cache_folder() / name
        if not is_fetched(folder):
            raise ModelError(f"{name!r} is not in {cache_folder()} yet: run `placevalue fetch {name}`")
        return str(folder)
    if path.is_file():
        raise ModelError(f"{name!r} is a file, expected a model folder: give the folder that holds config.json")
    if not HUB_NAME.fullmatch(name):
        raise ModelError(
            f"{name!r} is not an existing folder and cannot be a hub name: give a local folder, "
            f"a hub name such as 'owner/model', or {one_of([TINY, *sorted(PRETRAINED)], name)}"
        )
    return name


def load_tokenizer(name_or_path: str | os.PathLike[str], auto_class: Any = None) -> PreTrainedTokenizerBase:
    """Load the tokenizer of anything that `resolve_model` takes, by default with `AutoTokenizer`."""
    from transformers import AutoTokenizer

    return _load(auto_class or AutoTokenizer, *_locate(name_or_path))


def load_config(name_or_path: str | os.PathLike[str]) -> PreTrainedConfig:
    """Load the config of anything that `resolve_model` takes."""
    from transformers import AutoConfig

    return _load(AutoConfig, *_locate(name_or_path))


def load_model(
    name_or_path: str | os.PathLike[str], auto_class: Any = None, *, sealed: bool = False, **options: Any
) -> PreTrainedModel:
    """Load the model of anything that `resolve_model` takes.

    By default `auto_class` is the architecture that the config names, else `AutoModel`. Options such as `dtype` and
    `device_map` go to its `from_pretrained`. `sealed` also opens models that answer wrongly until they are attached.
    """
    import transformers

    source, keywords = _locate(name_or_path)
    config = _load(transformers.AutoConfig, source, keywords)
    if not sealed:
        refuse_sealed(source, config)
    elif is_sealed(config):
        options = {"fusion_config": own_fusions(config)} | options
    if auto_class is not None:
        return _load(auto_class, source, keywords | options)
    auto_class = getattr(transformers, (config.architectures or [""])[0], None)
    if not (isinstance(auto_class, type) and issubclass(auto_class, transformers.PreTrainedModel)):
        auto_class = transformers.AutoModel
    with _expecting_vectors(auto_class):
        model, info = _load(auto_class, source, keywords | options | {"output_loading_info": True})
    if missing := sorted(info["missing_keys"]):
        raise ModelError(
            f"{source!r} has no values for {len(missing)} weights of its {auto_class.__name__}, such as {missing[0]}, "
            "which would be drawn at random: restore its weights, or mend what its config.json says"
        )
    return model


@contextmanager
def _expecting_vectors(auto_class: Any) -> Iterator[None]:
    """Keep transformers from reporting a vector's weights as unexpected: `attach` loads them."""
    known = "_keys_to_ignore_on_load_unexpected"
    before = vars(auto_class).get(known)
    setattr(auto_class, known, [*(getattr(auto_class, known, None) or []), rf"(^|\.){VECTOR}\."])
    try:
        yield
    finally:
        if before is None:
            delattr(auto_class, known)
        else:
            setattr(auto_class, known, before)


def refuse_sealed(name: str, config: PreTrainedConfig) -> None:
    """Raise an error if a model would answer wrongly until it is attached."""
    if is_sealed(config):
        raise ModelError(
            f"{name!r} holds a model that reads numbers through [AGG], expected a plain one: give the model it "
            "was trained from, or load it with placevalue.from_pretrained"
        )


def _locate(name_or_path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """The source and the keywords to load it with: without a hub, only local files."""
    source = resolve_model(name_or_path)
    offline = not Path(source).is_dir() and not _hub_reachable()
    return source, {"local_files_only": True} if offline else {}


def _load(auto_class: Any, source: str, keywords: dict[str, Any]) -> Any:
    """Call `from_pretrained`, never running code from the source, and explain why it failed."""
    try:
        return auto_class.from_pretrained(source, trust_remote_code=False, **keywords)
    except Exception as error:  # a damaged file makes transformers fail in many ways
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if Path(source).is_dir():
            raise ModelError(
                f"cannot load the folder {source!r} with {auto_class.__name__}: {reason} "
                "(expected a Hugging Face folder: config.json, model.safetensors, tokenizer.json)"
            ) from error
        hub = "cannot be reached, nor is it in its cache" if keywords else f"did not provide it: {reason}"
        raise ModelError(
            f"cannot load {source!r}: no folder of this name exists, and the model hub {hub}. "
            f"Give a local folder, or run `placevalue fetch NAME` with NAME {one_of(sorted(PRETRAINED), source)}."
        ) from error


def _hub_reachable() -> bool:
    """Whether the hub answers in `HUB_SECONDS`; asked in a thread, since name lookups have no time limit."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    answers: list[bool] = []

    def ask() -> None:
        try:
            request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
            urllib.request.urlopen(request, timeout=HUB_SECONDS).close()
            answers.append(True)
        except urllib.error.HTTPError:
            answers.append(True)  # it answered, even if it refused this request
        except (OSError, ValueError, http.client.HTTPException) as error:
            # The hub's own client may trust certificates that urllib does not.
            answers.append(isinstance(getattr(error, "reason", None), ssl.SSLError))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(HUB_SECONDS)
    return any(answers)


def is_encoder_decoder(name_or_path: str) -> bool | None:
    """Whether a model is an encoder-decoder, by its config on disk; None if there is none."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(name_or_path, local_files_only=True, trust_remote_code=False)
        return bool(config.is_encoder_decoder)
    except Exception:  # as in `_load`
        return None


def weights_hash(source: str | os.PathLike[str]) -> str | None:
    """The sha256 of a folder's weights and tokenizer; None for a model that is not in a folder."""
    files = sorted({file for pattern in HASHED for file in Path(source).glob(pattern)})
    if not files:
        return None
    listed = (f"{known_hash(file)}  {file.name}\n" for file in files)
    return hashlib.sha256("".join(listed).encode()).hexdigest()


def check_device(device: str) -> None:
    """Refuse a device that torch does not know, or that this machine does not have."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"device={device!r} cannot be used: {reason}. Give one that is there, such as cpu") from None
    if torch.device(device).type == "meta":
        raise ConfigError(f"device={device!r} computes nothing: give one that does, such as cpu")


def device_name(device: str) -> str:
    """An accelerator's product name, for records; for other devices, their kind."""
    if not device.startswith("cuda"):
        return device
    import torch

    return torch.cuda.get_device_name(device)
