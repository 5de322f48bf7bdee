"""Small models of every architecture, from their configs, with a tokenizer of their own family."""

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from families import base_tokenizer

DIM = 16
_DECODER = dict(hidden_size=DIM, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
                pad_token_id=0, eos_token_id=1, bos_token_id=3)  # fmt: skip
_BART = dict(d_model=DIM, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
             encoder_ffn_dim=24, decoder_ffn_dim=24, pad_token_id=0, bos_token_id=3, eos_token_id=1,
             decoder_start_token_id=1, forced_eos_token_id=None, dropout=0.0)  # fmt: skip
_T5 = dict(d_model=DIM, d_kv=8, d_ff=24, num_layers=2, num_heads=2, decoder_start_token_id=0, dropout_rate=0.0)


def _t5(vocab, tied=True):
    model = T5ForConditionalGeneration(T5Config(vocab_size=vocab, **_T5))
    if not tied:  # FLAN-T5 checkpoints hold the output apart, while T5Config goes on saying that it is tied
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    return model


MODELS = {
    "t5": ("unigram-t5", _t5),
    "t5-untied": ("unigram-t5", lambda vocab: _t5(vocab, tied=False)),
    "t5-flan": ("unigram-t5", lambda vocab: _t5(vocab + 9, tied=False)),
    "t5-padded": ("unigram-metaspace", lambda vocab: _t5(vocab + 9)),
    "bart": ("bytes-gpt2", lambda vocab: BartForConditionalGeneration(BartConfig(vocab_size=vocab, **_BART))),
    "bart-scaled": (
        "bytes-gpt2",
        lambda vocab: BartForConditionalGeneration(BartConfig(vocab_size=vocab, scale_embedding=True, **_BART)),
    ),
    "llama": ("bytes-llama3", lambda vocab: LlamaForCausalLM(LlamaConfig(vocab_size=vocab, **_DECODER))),
    "llama-tied": (
        "bpe-llama2",
        lambda vocab: LlamaForCausalLM(LlamaConfig(vocab_size=vocab, tie_word_embeddings=True, **_DECODER)),
    ),
    "gemma3": (
        "bpe-gemma",
        lambda vocab: Gemma3ForCausalLM(Gemma3TextConfig(vocab_size=vocab, head_dim=8, **_DECODER)),
    ),
    "qwen2": ("bytes-qwen2", lambda vocab: Qwen2ForCausalLM(Qwen2Config(vocab_size=vocab, **_DECODER))),
    "gpt2": (
        "bytes-gpt2",
        lambda vocab: GPT2LMHeadModel(
            GPT2Config(
                vocab_size=vocab,
                n_embd=DIM,
                n_layer=2,
                n_head=2,
                pad_token_id=0,
                eos_token_id=1,
                bos_token_id=3,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
            )
        ),
    ),
    "bert": (
        "wordpiece-bert",
        lambda vocab: BertForMaskedLM(
            BertConfig(
                vocab_size=vocab,
                hidden_size=DIM,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=24,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            )
        ),
    ),
}
SEQ2SEQ = [name for name in MODELS if name.startswith(("t5", "bart"))]
CAUSAL = ["llama", "llama-tied", "gemma3", "qwen2", "gpt2"]


def build(name, seed=0):
    """A fresh model in evaluation mode, and its base tokenizer."""
    family, make = MODELS[name]
    base = base_tokenizer(family)
    torch.manual_seed(seed)
    model = make(len(base)).eval()
    with torch.no_grad():
        for (
            parameter
        ) in model.parameters():  # fresh models have zeros and tiny weights: give differences a chance to show
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model, base
