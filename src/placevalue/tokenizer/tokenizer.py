"""Number tokenizers: copies of fast tokenizers that write numbers as `[F] [AGG] d1 .. dn [/F]`, or without markers.

The copy is an ordinary fast tokenizer with a plain `tokenizer.json`. Text without numbers keeps its ids.
"""

from dataclasses import asdict
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from placevalue.common.errors import ConfigError, TokenizerError
from placevalue.common.hub import load_tokenizer
from placevalue.numbers.aggregation import find_aggregation
from placevalue.numbers.config import FORMER, HELD, Layout, NumberConfig, NumberIds, Position, Token
from placevalue.numbers.ignore import Ignore
from placevalue.numbers.numerals import find_numerals, pattern_symbols
from placevalue.numbers.rewrites import read_text, rewrite_text
from placevalue.numbers.spans import find_digits
from placevalue.numbers.spelling import Spelling
from placevalue.numbers.vectors import find_vector
from placevalue.tokenizer.added_tokens import refuse_swallowing
from placevalue.tokenizer.surgery import NO_SIGNS, Signs, choose_signs, write_numbers
from placevalue.tokenizer.vocabulary import PROBES, read_spelling, splits_digits

# The key of the settings in `tokenizer_config.json` and in a model's `config.json`.
SETTINGS = "placevalue"
MARKER_NAMES = {"open": "[F]", "close": "[/F]", "agg": "[AGG]", "pause": "[PAUSE]"}
# Text without numbers, which must keep its ids: boundaries, spaces, accents, digits that do not count.
_PLAIN = " The cat (it's ours)  sat, then ran.\nNaïve café! ½ x² Ⅳ ٣ [F] [AGG] [/F] é ..."
# Text with every kind of number and boundary, to recognise a changed pipeline.
_PROBE = "In 1999, room12b had -3.50 of 1,000 (7%). Naïve ½ [F] ends in .5"
# AutoTokenizer rebuilds the tokenizers of some model types from their vocabulary. For these types it leaves alone, and
# ignores, what claims code of its own; with trust_remote_code=True it looks for a file of this name, and says so.
CODE_MAP = {"AutoTokenizer": [None, "leave out trust_remote_code=True, since this tokenizer has no code.none"]}
_NUMBERS = ("0", "7", "42", "305", "-16", "2.5", "0.75", "1234567")
"""What a rewrite must carry through a tokenizer."""
_KEPT = ("padding_side", "truncation_side", "model_max_length", "clean_up_tokenization_spaces", "chat_template",
         "model_input_names", "split_special_tokens", "name_or_path")  # fmt: skip


class NumberTokenizer(PreTrainedTokenizerFast):
    """An ordinary fast tokenizer whose repr says how it writes numbers, without the markers' private characters."""

    def __repr__(self) -> str:
        if not is_number_tokenizer(self):
            return super().__repr__()
        layout, name = number_layout(self), str(self.name_or_path)
        shown = Path(name).name if Path(name).is_dir() else name
        ignored = "" if layout.ignore is None else f", ignore={layout.ignore!r}"
        return (
            f"NumberTokenizer({shown!r}, {describe_layout(layout)}, pattern={layout.pattern!r}{ignored}, "
            f"{len(self):,} tokens)"
        )


# Under this name it is saved, and every library knows it.
NumberTokenizer.__name__ = PreTrainedTokenizerFast.__name__


def describe_layout(layout: Layout) -> str:
    """How the layout writes 12."""
    extra = [MARKER_NAMES[layout.token]] if layout.token else []
    digits = [*extra, "1", "2"] if layout.position == "before" else ["1", "2", *extra]
    parts = [MARKER_NAMES["open"], *digits, MARKER_NAMES["close"]] if layout.markers else digits
    return f"12 as {' '.join(parts)}"


def number_tokenizer(
    base: str | PathLike[str] | PreTrainedTokenizerBase,
    config: NumberConfig | Token | None = None,
    position: Position | None = None,
    pattern: str | None = None,
    ignore: Ignore | None = None,
    *,
    token: Token | None = None,
    rewrite: str | None = None,
    pauses: int | None = None,
    markers: bool | None = None,
) -> PreTrainedTokenizerFast:
    """Copy a tokenizer so that it writes each number digit by digit, between markers unless you leave them out.

    Every layout with new tokens adds all four in the same order, so all these share one vocabulary. Without markers,
    an extra token and pauses none is added, and a base that splits digits already keeps its pipeline as it is.

    Args:
        base: A hub name, a folder, or a fast tokenizer; it is not changed.
        config: All settings in one object, which is stored with the tokenizer for `attach`; or only the token.
        position: Without a config, see `NumberConfig` for this and the following, and for the defaults.
        pattern: What counts as a number.
        ignore: Text to leave alone.
        token: The extra token of each number.
        rewrite: How numerals are written in text. Only `encode_pairs` and the other functions of placevalue rewrite
            texts, and `decode` reads answers back: the tokenizer alone encodes a text as it is.
        pauses: How many [PAUSE] `encode_pairs` and `encode_questions` put after each question.
        markers: Whether each number stands between [F] and [/F].

    Example:
        >>> tokenizer = number_tokenizer("google/flan-t5-base", token="agg")  # doctest: +SKIP
    """
    given = {"position": position, "pattern": pattern, "ignore": ignore, "rewrite": rewrite, "pauses": pauses}
    config = _configured(config, token=token, markers=markers, **given)
    tokenizer = base if isinstance(base, PreTrainedTokenizerBase) else load_tokenizer(base)
    if not tokenizer.is_fast:
        raise TokenizerError(
            f"{type(tokenizer).__name__} is a slow tokenizer: expected a fast one, which has a tokenizer.json. "
            "Load it with AutoTokenizer, or convert it with transformers.convert_slow_tokenizer"
        )
    if is_number_tokenizer(tokenizer):
        raise TokenizerError(
            f"the tokenizer already writes numbers ({number_layout(tokenizer)}): give its base tokenizer instead"
        )
    changed, signs = _changed(tokenizer, config)
    layout = asdict(config)
    for_attach = {name: layout.pop(name) for name in HELD}
    settings = {"layout": layout, "signs": asdict(signs), "attach": for_attach}
    result = NumberTokenizer(tokenizer_object=changed, **_kept(tokenizer), **{SETTINGS: settings})
    _verify(tokenizer, result)
    _verify_rewrite(result, config)
    result.init_kwargs[SETTINGS] |= {"probe": _ids(result, _PROBE), "encoder_decoder": None}  # attach says which
    return result


def _changed(tokenizer: PreTrainedTokenizerBase, layout: Layout) -> tuple[Tokenizer, Signs]:
    """The pipeline that writes numbers, and the characters that it reserves."""
    backend = tokenizer.backend_tokenizer
    if not layout.needs_rows and splits_digits(backend):
        changed = Tokenizer.from_str(backend.to_str())
        changed.no_padding()
        changed.no_truncation()
        return changed, NO_SIGNS
    normalize = backend.normalizer.normalize_str if backend.normalizer else str
    tokens = backend.get_added_tokens_decoder()
    signs = choose_signs(normalize, tokenizer.get_vocab(), (tokens[id_] for id_ in sorted(tokens)))
    changed = Tokenizer.from_str(write_numbers(backend.to_str(), layout, signs))
    if layout.needs_rows:
        changed.add_tokens([AddedToken(signs.shield + sign, normalized=True, special=False) for sign in signs.markers])
    return changed, signs


def _configured(config: NumberConfig | Token | None, **settings: Any) -> NumberConfig:
    """The config given, or one made from the settings that are not None."""
    if not isinstance(config, NumberConfig | None):
        settings["token"], config = config, None
    given = {name: value for name, value in settings.items() if value is not None}
    if config is None:
        return NumberConfig(**given)
    if given:
        names = ", ".join(given)
        raise ConfigError(f"both a NumberConfig and {names} were given, expected one: set {names} in the NumberConfig")
    if config.aggregation is not None:
        find_aggregation(config.aggregation)
    if config.vector is not None:
        find_vector(config.vector)
    return config


def _kept(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """What the copy keeps besides the pipeline: special tokens, sides, lengths, chat template."""
    kept = {name: getattr(tokenizer, name) for name in _KEPT if getattr(tokenizer, name, None) is not None}
    if extra := getattr(tokenizer, "extra_special_tokens", None):
        kept["extra_special_tokens"] = extra
    return kept | {name: value for name, value in tokenizer.special_tokens_map.items() if isinstance(value, str)}


def is_number_tokenizer(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a tokenizer was made by `number_tokenizer`."""
    return SETTINGS in tokenizer.init_kwargs


def number_layout(tokenizer: PreTrainedTokenizerBase) -> Layout:
    """The layout a tokenizer was made with."""
    return Layout(**{"pattern": FORMER["pattern"]} | _settings(tokenizer)["layout"])


def marker_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """The ids of the markers: `open`, `close`, `agg`, `pause`; empty if the layout added none.

    Example:
        >>> marker_ids(tokenizer)  # doctest: +SKIP
        {'open': 32100, 'close': 32101, 'agg': 32102, 'pause': 32103}
    """
    if not number_layout(tokenizer).needs_rows:
        return {}
    signs = Signs(**_settings(tokenizer)["signs"])
    return {name: tokenizer.backend_tokenizer.token_to_id(signs.shield + getattr(signs, name)) for name in MARKER_NAMES}


_checked: WeakKeyDictionary[PreTrainedTokenizerBase, int] = WeakKeyDictionary()


def check_added_tokens(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise an error if somebody added tokens that match inside numbers; tokens that were checked before are not again.

    Reading a tokenizer's added tokens takes as long as encoding a text for every ten of them, so call this once for
    many texts.
    """
    settings = _settings(tokenizer)
    tokens = tokenizer.backend_tokenizer.get_added_tokens_decoder()
    if _checked.get(tokenizer) == len(tokens):  # tokens cannot be removed
        return
    markers, reserved = marker_ids(tokenizer).values(), Signs(**settings["signs"]).reserved
    others = [token for id_, token in tokens.items() if id_ not in markers]
    layout, ids = number_layout(tokenizer), _number_ids(tokenizer)
    refuse_swallowing(tokenizer.backend_tokenizer, others, layout, ids, reserved)
    _checked[tokenizer] = len(tokens)


def number_ids(tokenizer: PreTrainedTokenizerBase) -> NumberIds:
    """Every id that a number can contain; symbols that the pattern or the vocabulary lacks are -1."""
    check_added_tokens(tokenizer)
    return _number_ids(tokenizer)


def _number_ids(tokenizer: PreTrainedTokenizerBase) -> NumberIds:
    model, unknown = tokenizer.backend_tokenizer.model, tokenizer.unk_token_id

    def single(character: str) -> int:
        pieces = model.tokenize(character)
        return pieces[0].id if len(pieces) == 1 and pieces[0].id != unknown else -1

    digits = tuple(single(digit) for digit in "0123456789")
    if -1 in digits or len(set(digits)) < 10:
        missing = [digit for digit, id_ in enumerate(digits) if id_ == -1 or digits.count(id_) > 1]
        raise TokenizerError(
            f"the digits {missing} have no id of their own in this {type(model).__name__} vocabulary: expected a "
            "token for each of 0 to 9. Choose another base"
        )
    layout = number_layout(tokenizer)
    pattern = layout.pattern
    symbols = pattern_symbols(pattern)
    needed = symbols.point + symbols.minus + symbols.others + symbols.bracket + symbols.exponents[:1]
    if lacking := [character for character in needed if single(character) == -1]:
        other = 'use pattern="paper", which needs digits and a point alone' if pattern != "paper" else ""
        raise TokenizerError(
            f"the characters {lacking}, which the pattern {pattern!r} can write, have no id of their own in this "
            f"{type(model).__name__} vocabulary: {other or 'choose another base'}"
        )
    written = dict.fromkeys(MARKER_NAMES, -1) | marker_ids(tokenizer)
    spelling = None
    if not layout.markers:
        written |= {"open": -1, "close": -1}
        spelling = _spelling(tokenizer, layout, digits, [i for i in (written["agg"], written["pause"]) if i != -1])
    return NumberIds(
        **written,
        digits=digits,
        point=single(symbols.point),
        minus=single(symbols.minus) if symbols.minus else -1,
        others=tuple(map(single, symbols.others)),
        exponents=tuple(map(single, symbols.exponents)),
        bracket=single(symbols.bracket) if symbols.bracket else -1,
        spelling=spelling,
    )


_spellings: WeakKeyDictionary[PreTrainedTokenizerBase, tuple[int, Spelling]] = WeakKeyDictionary()


def _spelling(
    tokenizer: PreTrainedTokenizerBase, layout: Layout, digits: tuple[int, ...], extra: list[int]
) -> Spelling:
    """What the tokens spell; reading a large vocabulary takes a second, so it is kept until tokens are added."""
    size, kept = len(tokenizer), _spellings.get(tokenizer)
    if kept is None or kept[0] != size:
        kept = size, read_spelling(tokenizer.backend_tokenizer, layout, digits, extra)
        _spellings[tokenizer] = kept
    return kept[1]


def probe_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """A fixed text as the tokenizer encoded it when it was made."""
    return tuple(_settings(tokenizer)["probe"])


def is_rebuilt(model_type: str) -> bool:
    """Whether `AutoTokenizer` rebuilds the tokenizers of a model type, whatever class their folder names."""
    from transformers.models.auto import tokenization_auto as auto

    mistrusted = getattr(auto, "MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS", ())
    own = auto.TOKENIZER_MAPPING_NAMES.get(model_type) or "TokenizersBackend"
    return model_type in mistrusted and own != "TokenizersBackend"


def check_unchanged(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise an error if a tokenizer was changed by saving and loading, or by added tokens."""
    check_added_tokens(tokenizer)
    made, now = list(probe_ids(tokenizer)), _ids(tokenizer, _PROBE)
    if made != now:
        raise TokenizerError(
            f"this {type(tokenizer).__name__} is not what was saved: it writes {_PROBE!r} as "
            f"{tokenizer.convert_ids_to_tokens(now)}, expected {tokenizer.convert_ids_to_tokens(made)}. Classes of one "
            "family, such as Qwen2Tokenizer, drop its pipeline, as may AutoTokenizer in folders of placevalue 0.1.0: "
            "load it with placevalue.from_pretrained or placevalue.load_number_tokenizer"
        )


def _ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def _settings(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    if not is_number_tokenizer(tokenizer):
        raise TokenizerError(
            f"this {type(tokenizer).__name__} does not say what a number is, as a number tokenizer does: make one with "
            "placevalue.number_tokenizer(tokenizer), or with markers=False, which keeps the ids of a tokenizer that "
            "splits digits already"
        )
    return tokenizer.init_kwargs[SETTINGS]


def _verify(base: PreTrainedTokenizerBase, changed: PreTrainedTokenizerFast) -> None:
    """Raise an error if the edited pipeline does not work as expected."""
    numbers, layout = number_ids(changed), number_layout(changed)
    family = type(base.backend_tokenizer.model).__name__
    if _ids(base, _PLAIN) != _ids(changed, _PLAIN):
        raise TokenizerError(
            f"this {family} tokenizer ({type(base).__name__}) splits text in a way that placevalue would change: "
            f"expected {base.tokenize(_PLAIN)}, got {changed.tokenize(_PLAIN)}. Please report it"
        )
    for text in ("0123456789", "no 0123456789", "x0123456789x"):
        numerals = find_numerals(text, layout.pattern, layout.ignore)
        wanted = [int(c) for numeral in numerals for c in numeral.text if c in "0123456789"]
        ids = _ids(changed, text)
        digits = find_digits(torch.tensor([ids]), numbers)
        if digits.values[digits.mask].tolist() != wanted:
            raise TokenizerError(
                f"this {family} tokenizer does not give each digit its own id: {text!r} became "
                f"{changed.convert_ids_to_tokens(ids)}. Choose another base"
            )
    if not layout.markers:
        _verify_bare(changed, numbers, layout)


def _verify_bare(tokenizer: PreTrainedTokenizerFast, ids: NumberIds, layout: Layout) -> None:
    """Raise an error if numbers cannot be told apart without markers; targets do not have the extra token either."""
    family = type(tokenizer.backend_tokenizer.model).__name__
    for text, extra in product(PROBES, (True, False)):
        written = [i for i in _ids(tokenizer, text) if extra or i not in (ids.agg, ids.pause)]
        digits = find_digits(torch.tensor([written]), ids)
        found: dict[int, str] = {}
        for start, value in zip(digits.numbers[digits.mask].tolist(), digits.values[digits.mask].tolist(), strict=True):
            found[start] = found.get(start, "") + str(value)
        wanted = [_mantissa(each.text) for each in find_numerals(text, layout.pattern)]
        if list(found.values()) != wanted:
            raise TokenizerError(
                f"without markers numbers cannot be told apart in the ids of this {family} tokenizer: {text!r} becomes "
                f"{tokenizer.convert_ids_to_tokens(written)}, in which {wanted} are expected. Leave the markers in "
                "(markers=True), or choose a base whose ids show spaces"
            )


def _mantissa(numeral: str) -> str:
    """The digits of a numeral, without those of its exponent."""
    return "".join(c for c in numeral.lower().partition("e")[0] if c in "0123456789")


def _verify_rewrite(tokenizer: PreTrainedTokenizerBase, layout: Layout) -> None:
    """Raise an error if rewritten numbers are not read back once they were encoded and decoded."""
    if layout.rewrite is None:
        return
    for number in _NUMBERS:
        text = rewrite_text(f"It is {number}.", layout.rewrite, layout.pattern)
        ids = _ids(tokenizer, text)
        decoded = str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        read = read_text(decoded, layout.rewrite)
        if [each.text for each in find_numerals(read)] != [number]:
            family = type(tokenizer.backend_tokenizer.model).__name__
            raise TokenizerError(
                f"this {family} tokenizer cannot carry rewrite={layout.rewrite!r}: {text!r} becomes "
                f"{tokenizer.convert_ids_to_tokens(ids)}, which is read back as {read!r}. Choose another rewrite "
                "or base"
            )
