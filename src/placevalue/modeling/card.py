"""The model card of a saved folder: how to load it, how it reads numbers, what it was trained on."""

from pathlib import Path
from typing import Any

from placevalue.common.files import write_whole
from placevalue.common.hub import CARD, HUB_NAME, TINY
from placevalue.common.ownership import signed
from placevalue.common.records import TRAINED_ON, TrainRecord
from placevalue.common.registry import PRETRAINED
from placevalue.common.seal import ADAPTER_CONFIG, is_sealed, read_adapter
from placevalue.modeling.attach import base_model
from placevalue.modeling.attached_config import recorded_config
from placevalue.numbers.config import AttachedConfig
from placevalue.tokenizer.tokenizer import MARKER_NAMES

_UNKNOWN = "not recorded"


def write_card(folder: Path, model: Any, record: TrainRecord | None = None) -> None:
    """Write the card of a model into the folder that it was saved to."""
    base = base_model(model)
    name, kind = folder.resolve().name, (base.config.architectures or [type(base).__name__])[0]
    config = recorded_config(base)
    text = f"{_metadata(folder, base, record)}\n# {name}\n\n"
    text += f"A `{kind}` that reads numbers with placevalue.\n\n" if config else f"A `{kind}`.\n\n"
    text += f"## How to load it\n\n{_loading(name, kind, _library(folder, base))}\n"
    text += f"## How it reads numbers\n\n{_numbers(config)}\n## What it was trained on\n\n{_training(base, record)}\n"
    write_whole(folder / CARD, signed(text))


def _library(folder: Path, base: Any) -> str:
    """The library that loads a folder."""
    if (folder / ADAPTER_CONFIG).is_file():
        return "placevalue" if read_adapter(folder)[1] else "peft"
    return "placevalue" if is_sealed(base.config) else "transformers"


def _metadata(folder: Path, base: Any, record: TrainRecord | None) -> str:
    """The front matter, which the hub reads; it names a base model only if the hub can know it."""
    from huggingface_hub import ModelCardData

    source = _source(base, record)
    on_hub = source if _is_on_hub(source) else None
    data = ModelCardData(base_model=on_hub, library_name=_library(folder, base), tags=["placevalue"])
    return f"---\n{data.to_yaml()}\n---\n"


def _source(base: Any, record: TrainRecord | None) -> str:
    """The name or folder of the model that training began with; empty if it is not known."""
    return base.config.name_or_path if record is None else record.model


def _is_on_hub(source: str) -> bool:
    return bool(HUB_NAME.fullmatch(source)) and not Path(source).exists() and source not in (TINY, *PRETRAINED)


def _loading(name: str, kind: str, library: str) -> str:
    ours = f'import placevalue as pv\n\nmodel, tokenizer = pv.from_pretrained("{name}")\n'
    plain = f'from transformers import AutoTokenizer, {kind}\n\nmodel = {kind}.from_pretrained("{name}")\n'
    plain += f'tokenizer = AutoTokenizer.from_pretrained("{name}")\n'
    note = {
        "placevalue": "Other libraries refuse this folder: without placevalue the model would read numbers wrongly.\n",
        "peft": "PEFT loads this adapter too.\n",
        "transformers": "",
    }[library]
    return f"```python\n{plain if library == 'transformers' else ours}```\n\n{note}"


def _numbers(config: AttachedConfig | None) -> str:
    if config is None:
        return "With the tokenizer of its base model.\n"
    layout = config.layout
    extra = [MARKER_NAMES[layout.token]] if layout.token else []
    parts = [*extra, "1", "2"] if layout.position == "before" else ["1", "2", *extra]
    parts = [MARKER_NAMES["open"], *parts, MARKER_NAMES["close"]] if layout.markers else parts
    lines = [f"12 is written `{' '.join(parts)}`."]
    lines.append(f"What counts as a number: `{layout.pattern}`.")
    if layout.ignore:
        several = layout.ignore if isinstance(layout.ignore, tuple) else (layout.ignore,)
        lines.append(f"Left alone: {', '.join(f'`{each}`' for each in several)}.")
    if layout.rewrite:
        lines.append(
            f"Numbers are rewritten as `{layout.rewrite}`, by placevalue alone: encode questions with "
            "`pv.encode_questions` and decode answers with `pv.decode`."
        )
    if layout.pauses:
        lines.append(f"{layout.pauses} [PAUSE] follow each question: encode questions with `pv.encode_questions`.")
    if config.vector:
        lines.append(f"Its digits or [AGG] have the vector `{config.vector}`, by placevalue alone.")
    if config.aggregation:
        lines.append(
            f"[AGG] holds `{config.aggregation}`, with decimals as `{config.decimals}` and numbers below zero as "
            f"`{config.negatives}`."
        )
    return "".join(f"- {line}\n" for line in lines)


def _training(base: Any, record: TrainRecord | None) -> str:
    source = _source(base, record)
    corpora = getattr(base.config, TRAINED_ON, ()) if record is None else record.trained_on
    data = [each.replace("file:", "a file whose sha256 begins with ") for each in corpora]
    shown = source if _is_on_hub(source) else Path(source).name  # not where it lies on this machine
    lines = [f"Base model: {shown or _UNKNOWN}."]
    lines.append(f"Data, as far as recorded: {', '.join(data)}." if data else f"Data: {_UNKNOWN}.")
    if record is not None:
        lines.append(
            f"`placevalue train`: method {record.method}, seed {record.seed}, {record.steps} steps on "
            f"{Path(record.config['data']['train']).name}. `train.json` has every setting."
        )
    return "".join(f"- {line}\n" for line in lines)
