"""Small tokenizers of every family, trained here on a few hundred sentences: no test needs a download."""

import random
from collections.abc import Callable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "had",
    "apples",
    "in",
    "room",
    "box",
    "for",
    "each",
    "girl",
    "boy",
    "who",
    "gave",
    "them",
    "away",
    "how",
    "many",
    "are",
    "left",
]
SPECIAL = ["<pad>", "</s>", "<unk>", "<s>"]
GROUPS = r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SINGLES = GROUPS.replace("{1,3}", "")


def corpus() -> list[str]:
    """Sentences with words, punctuation and enough repeated numbers that trainers learn multi-digit tokens."""
    draw = random.Random(0)
    lines = []
    for _ in range(600):
        words = [draw.choice(WORDS) for _ in range(8)]
        words[3:3] = [
            str(draw.choice([7, 12, 20, 100, 123, 1999, 2024, 55])),
            f"{draw.randint(0, 99)}.{draw.randint(0, 9)}",
        ]
        lines.append(" ".join(words).capitalize() + draw.choice([".", "!", "?", ", (yes) - naïve café"]))
    return [*lines, "0 1 2 3 4 5 6 7 8 9 0123456789 . , + - e E $ % ( ) ½ ² x½", "room12b 12b B2 x1 7th"]


def _byte_level(**options: bool) -> Callable[[], Tokenizer]:
    def build(split: str | None = None, digits: bool = False, normalizer: object = None) -> Tokenizer:
        tokenizer = Tokenizer(models.BPE())
        steps = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
        if split:
            steps.append(pre_tokenizers.Split(Regex(split), "isolated"))
        steps.append(pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": split is None} | options))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
        tokenizer.normalizer = normalizer
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        _train(tokenizer, trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL, initial_alphabet=alphabet))
        return tokenizer

    return build


def _train(tokenizer: Tokenizer, trainer: object) -> Tokenizer:
    trainer.show_progress = False
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def _sentencepiece_bpe(normalizer: object, pre_tokenizer: object, decoder: object) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.decoder = decoder
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    # SentencePiece learns from words, then runs on whole texts.
    tokenizer.normalizer, tokenizer.pre_tokenizer = _spaced(), pre_tokenizers.Split("▁", "merged_with_next")
    _train(tokenizer, trainers.BpeTrainer(vocab_size=900, special_tokens=SPECIAL + fallback))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    return tokenizer


def _unigram(normalizer: object, pre_tokenizer: object) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, pre_tokenizer, decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=SPECIAL, unk_token="<unk>")
    _train(tokenizer, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


def _wordpiece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    _train(tokenizer, trainers.WordPieceTrainer(vocab_size=400, special_tokens=SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 3), ("</s>", 1)]
    )
    return tokenizer


def _spaced(*more: object) -> normalizers.Sequence:
    return normalizers.Sequence([*more, normalizers.Replace(" ", "▁")])


def _pieces_decoder(strip: int) -> decoders.Sequence:
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + ([decoders.Strip(" ", strip, 0)] if strip else []))


FAMILIES: dict[str, Callable[[], Tokenizer]] = {
    "unigram-t5": lambda: _unigram(
        normalizers.NFKC(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    ),
    "unigram-metaspace": lambda: _unigram(
        normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), "▁")]), pre_tokenizers.Metaspace()
    ),
    "unigram-strip": lambda: _unigram(
        normalizers.Sequence([normalizers.Strip(), normalizers.NFKC()]), pre_tokenizers.Metaspace()
    ),
    "bpe-gemma": lambda: _sentencepiece_bpe(
        normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"), _pieces_decoder(0)
    ),
    "bpe-llama2": lambda: _sentencepiece_bpe(_spaced(normalizers.Prepend("▁")), None, _pieces_decoder(1)),
    "bpe-metaspace-first": lambda: _sentencepiece_bpe(
        None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), _pieces_decoder(1)
    ),
    "bytes-gpt2": _byte_level(),
    "bytes-roberta": _byte_level(add_prefix_space=True),
    "bytes-smollm2": lambda: _byte_level()(digits=True),
    "bytes-llama3": lambda: _byte_level()(split=GROUPS),
    "bytes-qwen2": lambda: _byte_level()(split=SINGLES, normalizer=normalizers.NFC()),
    "wordpiece-bert": _wordpiece,
}
_built: dict[str, PreTrainedTokenizerFast] = {}


def base_tokenizer(family: str) -> PreTrainedTokenizerFast:
    """A small tokenizer of a family; built once, so tests must not change it."""
    if family not in _built:
        names = dict(zip(("pad_token", "eos_token", "unk_token", "bos_token"), SPECIAL, strict=True))
        _built[family] = PreTrainedTokenizerFast(tokenizer_object=FAMILIES[family](), model_max_length=100_000, **names)
    return _built[family]
