"""Numbers in ids without markers: as the text that the ids spell, read slowly, and as the text that was encoded."""

import random

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

import oracle
from families import FAMILIES, base_tokenizer
from placevalue import find_numerals, number_tokenizer
from placevalue.numbers.config import NumberIds
from placevalue.numbers.spans import find_digits, read_tokens
from placevalue.numbers.spelling import BARE_PATTERNS, spell
from placevalue.tokenizer.tokenizer import marker_ids, number_ids

READABLE = [*(name for name in FAMILIES if name != "wordpiece-bert"), "bytes-punctuation"]
LAYOUTS = [{}, {"token": "agg"}, {"token": "agg", "position": "after"}]
made = {}


def base_of(family):
    """A tokenizer of a family, or one that has tokens of several signs and points, as large vocabularies do."""
    if family != "bytes-punctuation":
        return base_tokenizer(family)
    tokenizer, draw = Tokenizer(models.BPE()), random.Random(0)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])
    tokenizer.decoder = decoders.ByteLevel()
    lines = [" ".join("".join(draw.choices("(.,-+e$%)", k=3)) + "5" for _ in range(9)) for _ in range(300)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")


def bare(family, **options):
    key = (family, *sorted(options.items()))
    if key not in made:
        made[key] = number_tokenizer(base_of(family), markers=False, **options)
    return made[key]


def ids_of(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def read(ids, known, at_agg=False):
    """[(positions, [(digit, place)], below zero)] for each number in one row of ids, as tensors say."""
    row = torch.tensor([ids], dtype=torch.long)
    tokens, digits = read_tokens(row, known), find_digits(row, known, at_agg=at_agg)
    starts, members, found = tokens.start[0].tolist(), tokens.member[0].tolist(), {}
    for at in range(len(ids)):
        if members[at]:
            found.setdefault(starts[at], ([], [], []))[0].append(at)
        if digits.mask[0, at]:
            found[starts[at]][1].append((int(digits.values[0, at]), int(digits.places[0, at])))
            found[starts[at]][2].append(digits.negative is not None and bool(digits.negative[0, at]))
    return [(positions, values, any(below)) for positions, values, below in found.values()]


def worth(numeral, pattern):
    """A numeral's digits and places, and whether it is below zero."""
    numeral = numeral.translate(str.maketrans(",.", ".,")) if pattern == "european" else numeral
    return oracle.digits_of(numeral)[0], oracle.is_negative(numeral)


PIECES = [*"0123456789", ",", ".", "-", "+", "e", "E", "Ġ", "Ġ-", "Ġ.", "Ġ+", "the", "x", ")", "(", "%", "$",
          ",-", "-.", "..", "Ġ(-", ".-", "e-", "E+", "_", "x-", "Ġ-.", "x.", "<0x2D>", "</s>", "agg", "pause"]  # fmt: skip
SPECIAL = ("</s>", "agg", "pause")


def made_up(pattern, after):
    """The ids of a vocabulary with all kinds of tokens."""
    spelled = [None if piece in SPECIAL else piece for piece in PIECES]
    extra = PIECES.index("agg"), PIECES.index("pause")
    spelling = spell(spelled, tuple(range(10)), extra, pattern, after)
    points = {"point": PIECES.index("," if pattern == "european" else ".")}
    signs = {} if pattern == "paper" else {"minus": PIECES.index("-"), "exponents": (14, 15)}
    return NumberIds(-1, -1, *extra, tuple(range(10)), **points, **signs, spelling=spelling)


piece = st.one_of(st.integers(0, 9), st.integers(0, len(PIECES) - 1), st.sampled_from([-100, 10_000]))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("pattern", BARE_PATTERNS)
@settings(max_examples=250)
@given(st.lists(piece, min_size=1, max_size=16))
def test_any_ids_equal_the_slow_loop(pattern, after, ids):
    """Whatever a model may generate or a cut may leave."""
    known = made_up(pattern, after)
    spelled = [
        None if not 0 <= i < len(PIECES) or PIECES[i] in SPECIAL else PIECES[i].replace("<0x2D>", "-") for i in ids
    ]
    extra = [at for at, i in enumerate(ids) if i in (known.agg, known.pause)]
    numbers = oracle.bare_numbers(spelled, pattern, extra, after)
    wanted = [(positions, *worth(numeral, pattern)) for positions, numeral in numbers]
    assert read(ids, known) == wanted
    with_agg = [each for each in wanted if any(ids[at] == known.agg for at in each[0])]
    assert [each for each in read(ids, known, at_agg=True) if each[1]] == with_agg


NUMBERS = st.one_of(
    st.from_regex(r"\A[0-9]{1,8}\Z"),
    st.from_regex(r"\A[0-9]{0,3}\.[0-9]{1,3}\Z"),
    st.from_regex(r"\A[-+]?[0-9]{1,3}(,[0-9]{3}){0,3}(\.[0-9]{1,2})?([eE][-+]?[0-9]{1,4})?\Z"),
)
BESIDE = st.sampled_from([
    " ", " ", "-", "+", ",", ".", "(", ")", "$", "%", "e", "E", "e5", "E-3", ", ", ". ", " -", " .", "-.", "..", "...",
    "the", " cat", "room", "a", "x", "_", "\n", " - ", ",000", ".000", "½", "é", "1.2.3", "3-4", "a-3", "(-3)", "5.\n",
])  # fmt: skip


@settings(max_examples=80)
@given(
    parts=st.lists(st.one_of(NUMBERS, BESIDE), max_size=12),
    pattern=st.sampled_from(BARE_PATTERNS),
    options=st.sampled_from(LAYOUTS),
)
@example(parts=["3, 4"], pattern="extended", options={})
@example(parts=["3,4"], pattern="european", options={})
@example(parts=["It costs 5. 6 of them"], pattern="extended", options={})
@example(parts=["1,000, 2,000,30 and 4,0000"], pattern="extended", options={"token": "agg"})
@example(parts=["x-3 x -3 -3-3 1e-3 1e-3x"], pattern="extended", options={"token": "agg", "position": "after"})
@pytest.mark.parametrize("family", READABLE)
def test_ids_give_the_numbers_of_their_text(family, pattern, options, parts):
    text = "".join(parts)
    text = text.replace("½", "") if family.startswith("unigram") else text  # see the test below
    tokenizer = bare(family, pattern=pattern, **options)
    ids = ids_of(tokenizer, text)
    if tokenizer.unk_token_id in ids and tokenizer.unk_token_id is not None:
        return  # which may be any character
    wanted = [worth(each.text, pattern) for each in find_numerals(text, pattern)]
    extra = set(marker_ids(tokenizer).values())
    for written in (ids, [i for i in ids if i not in extra]):  # as in a question, and as in a target
        assert [each[1:] for each in read(written, number_ids(tokenizer))] == wanted
    if options:
        slots = [positions for positions, values, _ in read(ids, number_ids(tokenizer), at_agg=True) if values]
        assert len(slots) == len(wanted) == sum(i == number_ids(tokenizer).agg for i in ids)
        side = -1 if "position" in options else 0
        assert all(ids[positions[side]] == number_ids(tokenizer).agg for positions in slots)


def test_what_the_base_turns_into_digits_are_digits_without_markers():
    """NFKC writes ½ as 1⁄2: text without ASCII digits keeps the base's ids, and these are the ids of 1 and 2."""
    tokenizer = bare("unigram-t5")
    assert ids_of(tokenizer, "½") == ids_of(base_tokenizer("unigram-t5"), "½")
    assert [values for _, values, _ in read(ids_of(tokenizer, "½"), number_ids(tokenizer))] == [[(1, 0)], [(2, 0)]]
    assert read(ids_of(bare("bytes-gpt2"), "½ ² Ⅳ ٣"), number_ids(bare("bytes-gpt2"))) == []
