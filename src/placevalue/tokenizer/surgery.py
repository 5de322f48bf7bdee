"""Edit a `tokenizer.json` so that it writes markers around every number and each digit as its own piece.

A fast tokenizer is a pipeline of added tokens, normalizer, pre-tokenizer, model and decoder. All changes use steps that
such pipelines have, so the result is an ordinary `tokenizer.json`:

1. The normalizer writes a close marker after each numeral, an open marker before it, and a guard character before
   each of its characters. The markers are added tokens that are matched in normalized text.
2. The pre-tokenizer splits at guards and drops them, so that the model sees each digit alone.
3. The decoder drops the markers.

Typed text cannot become a marker: the markers are characters that Unicode reserves for internal use (or very rare
symbols, if a normalizer deletes those), and the normalizer replaces typed ones first. An added token matches its own
content, normalized, so one text must become a marker: its content, which begins with a special token of the base, the
shield. Where somebody types that text, the shield is matched first, and the normalizer never sees them together.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from tokenizers import AddedToken

from placevalue.common.errors import TokenizerError
from placevalue.numbers.config import Layout
from placevalue.numbers.ignore import PRESET_STARTS, ignore_regex, own_expressions
from placevalue.numbers.numerals import NOT_AFTER, UNSIGNED, pattern_regex

Json = dict[str, Any]

# Seven characters each: start, guard, exchange, open, close, agg, pause. First Unicode's noncharacters, reserved for
# internal use, then ideographic description characters, for normalizers that delete those.
_CANDIDATES = ("\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufdd5\ufdd6", "\u2ff0\u2ff1\u2ff2\u2ff3\u2ff4\u2ff5\u2ff6")


@dataclass(frozen=True)
class Signs:
    """The reserved characters, by role."""

    start: str
    guard: str
    exchange: str
    open: str
    close: str
    agg: str
    pause: str
    shield: str = ""
    """What the content of every marker begins with; empty in tokenizers of placevalue 0.1.0."""

    @property
    def markers(self) -> str:
        """The four characters that are tokens."""
        return self.open + self.close + self.agg + self.pause

    @property
    def reserved(self) -> str:
        """All characters that a user's text must not contain."""
        return self.start + self.guard + self.markers


NO_SIGNS = Signs(*[""] * 7)
"""Of a tokenizer that stays as it is."""


def choose_signs(normalize: Callable[[str], str], vocabulary: Json, tokens: Iterable[AddedToken]) -> Signs:
    """The first set of characters that the normalizer keeps and the vocabulary does not contain, and a shield.

    The shield is the first of the base's added tokens that always match as typed. One that is not special would match
    under `split_special_tokens` too.
    """
    raw = [each for each in tokens if not (each.normalized or each.single_word or re.search(r"[\s0-9]", each.content))]
    shield = min(raw, key=lambda token: token.special).content if raw else ""
    for candidate in _CANDIDATES:
        if all(normalize(c).strip("▁ ") == c and c not in vocabulary for c in candidate):
            return replace(Signs(*candidate), shield=shield)
    raise TokenizerError(
        "this tokenizer's normalizer deletes or its vocabulary holds every character that could mark a number: "
        f"expected one of {[ascii(c) for c in _CANDIDATES]} to be free. Choose another base"
    )


_STARTS = PRESET_STARTS + ",eE$"
"""What numerals of any pattern and presets can begin with, as part of a character class."""


def write_numbers(tokenizer_json: str, layout: Layout, signs: Signs) -> str:
    """Return a `tokenizer.json` that writes numbers as digits, between markers if the layout has them."""
    spec = json.loads(tokenizer_json)
    spec["truncation"] = spec["padding"] = None
    normalizers = _steps(spec["normalizer"], "normalizers")
    pre_tokenizers = _steps(spec["pre_tokenizer"], "pretokenizers")
    prefix = _take_prefix(normalizers, pre_tokenizers, signs)
    # Also drop the shield, whatever the steps before made of it: only the content of a marker ends in its first marker.
    shielded = f"\\A{signs.start}?[^{signs.reserved}]*+(?=[{signs.markers}]\\z)"
    drop_start = _replace(f"{shielded}|\\A{signs.start}", "")
    # Numbers first: some normalizers turn ½ or ² into digits, others delete the text between two numbers.
    steps = [*_number_steps(layout, signs), *normalizers, *prefix, drop_start]
    spec["normalizer"] = {"type": "Sequence", "normalizers": steps}
    first = layout.markers or (layout.token is not None and layout.position == "before")
    spec["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": _split_digits(pre_tokenizers, signs, first)}
    if layout.needs_rows:
        spec["decoder"] = _decoder(_steps(spec["decoder"], "decoders"), signs)
    for token in spec["added_tokens"]:
        # If matched after the normalizer, the markers around its digits would split such a token.
        token["normalized"] &= not any(c in "0123456789" for c in token["content"])
    return json.dumps(spec)


def _steps(part: Json | None, key: str) -> list[Json]:
    """A normalizer, pre-tokenizer or decoder as the flat list of its steps."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [step for inner in part[key] for step in _steps(inner, key)]
    return [part]


def _replace(regex: str, content: str) -> Json:
    return {"type": "Replace", "pattern": {"Regex": regex}, "content": content}


def _number_steps(layout: Layout, signs: Signs) -> list[Json]:
    """Normalizer steps that replace typed markers, then write ours around each numeral and guards inside."""
    start, guard, close, shield = signs.start, signs.guard, signs.close, re.escape(signs.shield)
    extra = {None: "", "agg": signs.agg, "pause": signs.pause}[layout.token]
    before, after = (extra, "") if layout.position == "before" else ("", extra)
    steps = [
        # Later steps panic after an insertion at the very start of a text, so start with a character.
        {"type": "Prepend", "prepend": start},
        # Keep a marker in the content of its added token, which is normalized too.
        _replace(f"[{signs.reserved}](?<!\\A{start})(?!(?<=\\A{start}{shield}[{signs.markers}])\\z)", signs.exchange),
    ]
    if not layout.markers and layout.token is None:
        return [*steps, _replace("(?=[0-9])|(?<=[0-9])(?![0-9])", guard)]
    ends, begins, inside = _searches(layout, signs, after + close)
    steps += [
        _replace(ends, after + close),
        _replace(begins, signs.open + before + guard),
        _replace(inside, guard),
    ]
    if layout.markers:
        return steps
    # They were only needed to find the rest, but what follows a number is still not one piece with its end.
    return [*steps, _replace(signs.open, ""), _replace(close, "" if after else guard)]


def _searches(layout: Layout, signs: Signs, closing: str) -> tuple[str, str, str]:
    """Where numerals end and, once what is `closing` stands there, where they begin and continue."""
    guard, close = signs.guard, signs.close
    ignored = ignore_regex(layout.ignore, refused=close)
    if layout.pattern in UNSIGNED and ignored is None:
        return f"(?WDSP:{UNSIGNED[layout.pattern]})\\K", *_by_neighbours(layout.pattern, signs)
    # Look-around also refuses a close marker, which stands after the last character of a numeral.
    numeral = f"(?WDSP:{pattern_regex(layout.pattern).replace('(?<![', f'(?<![{close}')})"
    # Other text is passed over quickly, unless a regular expression of one's own may begin with any character.
    other = "" if own_expressions(layout.ignore) else f"[^{_STARTS}{close}]+|"

    def gap(until: str, unless: str = "") -> str:
        """Text up to `until`, in which ignored text is skipped as a whole."""
        skipped = f"(?>(?WDSP:{ignored}){unless})|" if ignored else ""
        return f"(?>(?:{other}{skipped}(?!{until})(?m:.))*)"

    ended = numeral + closing
    # Ignored text never ends where a numeral ends, though the marker there may look like a word boundary.
    begins = f"(?:\\A|{close}){gap(ended, unless=f'(?!{closing})')}\\K(?={ended})"
    inside = f"(?:{guard}|\\G(?!\\A))[^{signs.markers}]\\K(?=[^{signs.markers}])"
    return f"\\G{gap(numeral)}{numeral}\\K" if ignored else f"{numeral}\\K", begins, inside


def _by_neighbours(pattern: str, signs: Signs) -> tuple[str, str]:
    """Where the numerals of an `UNSIGNED` pattern begin and continue, by the characters beside each place.

    Every digit of a text is in a numeral, and what follows a digit without a close marker between is in the same one.
    So nothing is matched twice, and the search jumps from digit to digit.
    """
    if pattern == "paper":
        return r"(?<![0-9.])(?=[0-9])|(?<![0-9])(?=\.[0-9])", r"[0-9.]\K(?=[0-9])|[0-9]\K(?=\.[0-9])"
    bare = "." if pattern == "extended" else ""  # what a numeral can begin with beside a digit
    no_sign = NOT_AFTER + signs.close
    unsigned = f"(?<![0-9][eE][-+])(?<![^{no_sign}][-+])"
    begins = [
        f"(?<![0-9{bare}])(?=[0-9])(?<![0-9][.,eE]){unsigned}",
        f"(?=[-+]{bare and '[.]?'}[0-9])(?<![{no_sign}])",
        f"(?<![0-9])(?=[.][0-9]){unsigned}" if bare else "",
    ]
    inside = [
        r"[0-9]\K(?=[0-9.,eE])",
        r"[,eE](?<=[0-9].)\K",
        rf"[-+](?<={signs.guard}.|[0-9][eE].)\K",
        r"[.]\K(?=[0-9])" if bare else r"[.](?<=[0-9].)\K",
    ]
    return "|".join(filter(None, begins)), "|".join(inside)


def _take_prefix(normalizers: list[Json], pre_tokenizers: list[Json], signs: Signs) -> list[Json]:
    """Remove the word-boundary prefix from the base steps, in place, and return steps that write it instead.

    SentencePiece and some byte-level tokenizers add a space after every added token. Our markers are added tokens, so
    there would be a space after every number.
    """
    first = f"\\A{signs.start}(?![{signs.markers}]|\\z)"
    for index, step in enumerate(normalizers):
        if step["type"] == "Strip" and step["strip_left"]:
            strip = _replace(f"\\A{signs.start}\\K\\s+", "")
            normalizers[index : index + 1] = [step | {"strip_left": False}, strip]
        if step["type"] == "Prepend":
            del normalizers[index]
            return [_replace(first, step["prepend"])]
    for index, step in enumerate(pre_tokenizers):
        if step["type"] == "Metaspace" and step["prepend_scheme"] == "always":
            pre_tokenizers[index] = step | {"prepend_scheme": "never"}
            space = step["replacement"]
            if any(earlier["type"] == "WhitespaceSplit" for earlier in pre_tokenizers[:index]):
                pre_tokenizers[:] = [step for step in pre_tokenizers if step["type"] != "WhitespaceSplit"]
                return [
                    _replace(f"\\A{signs.start}\\K\\s+", ""),
                    {"type": "Strip", "strip_left": False, "strip_right": True},
                    # Make every gap one plain space, which Metaspace then replaces; most gaps are that already.
                    _replace(f"\\s(?:\\s+{space}?|{space}|(?<! ))", " "),
                    _replace(f"{first}(?!{space})", space),
                ]
            return [_replace(f"{first}(?![ {space}])", space)]
        if step["type"] == "ByteLevel" and step["add_prefix_space"]:
            pre_tokenizers[index] = step | {"add_prefix_space": False}
            return [_replace(f"\\A{signs.start}(?!\\z| |[{signs.markers}]\\z)", " ")]
    return []


def _split_digits(pre_tokenizers: list[Json], signs: Signs, first: bool) -> list[Json]:
    """The base steps with a split at every guard; `first` if one follows each of our tokens before a number."""
    split = {"type": "Split", "behavior": "Removed", "invert": False}
    if any(step["type"] == "Metaspace" and step["prepend_scheme"] == "first" for step in pre_tokenizers):
        # Only Metaspace knows where the text begins. Its space between our token and a guard is dropped with the guard.
        return [*pre_tokenizers, split | {"pattern": {"Regex": f"{'▁?' if first else ''}{signs.guard}"}}]
    return [split | {"pattern": {"String": signs.guard}}, *pre_tokenizers]


def _decoder(decoders: list[Json], signs: Signs) -> Json:
    """The base decoder, which now drops markers and, for WordPiece, joins the digits of a number."""
    drop = _replace(f"(?:{re.escape(signs.shield)})?[{signs.reserved}]", "")
    if any(step["type"] == "WordPiece" for step in decoders):
        join = _replace(f"(?:{signs.open}|\\G(?!\\A))[^ {signs.close}]*\\K ", "")
        decoders = [*decoders, {"type": "Fuse"}, join, drop]
    else:
        decoders = [drop, *decoders]
    return {"type": "Sequence", "decoders": decoders}
