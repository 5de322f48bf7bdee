"""The tokenizer's properties on the real tokenizers."""

import re

import pytest
from hypothesis import given, settings
from real import load_base
from transformers import AutoTokenizer

import placevalue as pv
from placevalue.tokenizer.tokenizer import check_unchanged, number_ids
from tokenizer.test_tokenizer import CASES, expected_digits, found_spans, ids_of, mixed, plain

TEXT = "Dan had 1250 marbles in room12b, gave 3.5% to 7 friends on 2024-01-15, and kept .25 of 1,000 for himself."
_made = {}


def pair(name):
    if name not in _made:
        base = load_base(name)
        _made[name] = base, pv.number_tokenizer(base, token="agg")
    return _made[name]


def test_text_without_numbers_gives_the_base_ids(tokenizer_name):
    base, tokenizer = pair(tokenizer_name)

    @settings(max_examples=400)
    @given(plain)
    def check(parts):
        text = "".join(parts)
        if not re.search("[\ufdd0-\ufdd6]", text):
            assert ids_of(tokenizer, text) == ids_of(base, text)

    check()


def test_each_number_is_its_digits_between_markers(tokenizer_name):
    _, tokenizer = pair(tokenizer_name)

    @settings(max_examples=400)
    @given(mixed)
    def check(parts):
        text = "".join(parts)
        ids = ids_of(tokenizer, text)
        assert [ids[a:b] for a, b in found_spans(tokenizer, ids)] == [t for t, _ in expected_digits(tokenizer, text)]

    check()


def test_cases_and_decoding(tokenizer_name):
    base, tokenizer = pair(tokenizer_name)
    for text in [*CASES, TEXT]:
        ids = ids_of(tokenizer, text)
        assert [ids[a:b] for a, b in found_spans(tokenizer, ids)] == [t for t, _ in expected_digits(tokenizer, text)]
    squeeze = (lambda text: text.replace(" ", "")) if tokenizer_name == "minilm-l6" else str
    assert squeeze(tokenizer.decode(ids_of(tokenizer, TEXT))) == squeeze(base.decode(ids_of(base, TEXT)))


def test_words_keep_their_pieces(tokenizer_name):
    base, tokenizer = pair(tokenizer_name)
    text = "Dan had 1250 marbles, gave 3.5 to 7 friends (yes) on Monday 12 and kept 99 for himself!"
    numbers = set(number_ids(tokenizer).digits) | set(pv.marker_ids(tokenizer).values())
    words = [p for p in tokenizer.convert_ids_to_tokens(ids_of(tokenizer, text)) if re.search("[A-Za-z]", p)]
    assert words == [p for p in base.tokenize(text) if re.search("[A-Za-z]", p)]
    assert numbers


def test_saved_and_loaded_the_same_by_auto_tokenizer_and_by_us(tokenizer_name, tmp_path):
    base = load_base(tokenizer_name)
    base.padding_side, base.chat_template = "left", base.chat_template or "{{ messages[0].content }}"
    tokenizer = pv.number_tokenizer(base, token="agg")
    tokenizer.save_pretrained(tmp_path)
    for loaded in (AutoTokenizer.from_pretrained(tmp_path), pv.load_number_tokenizer(tmp_path)):
        assert loaded.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
        assert loaded(CASES)["input_ids"] == tokenizer(CASES)["input_ids"]
        assert (loaded.padding_side, loaded.chat_template) == ("left", base.chat_template)
        check_unchanged(loaded)


def test_ten_thousand_digits(tokenizer_name):
    _, tokenizer = pair(tokenizer_name)
    ids = ids_of(tokenizer, "7" * 10_000)
    assert ids.count(number_ids(tokenizer).digits[7]) == 10_000


@pytest.mark.parametrize(
    "options",
    [
        *({"pattern": pattern} for pattern in pv.PATTERNS),
        {"ignore": r"\b(?:19|20)[0-9]{2}\b"},
        {"ignore": tuple(pv.IGNORE_PRESETS)},
    ],
    ids=str,
)
def test_other_patterns(tokenizer_name, options):
    tokenizer = pv.number_tokenizer(load_base(tokenizer_name), token="agg", **options)
    for text in [
        TEXT,
        "-3.5e-4 +7 1,234,567 in 1999",
        "5-3 (-3) -$5 (1,250) 1.250,5",
        "May 3, 2024 at 10:30, ID-7, 5,100,200",
    ]:
        ids = ids_of(tokenizer, text)
        assert [ids[a:b] for a, b in found_spans(tokenizer, ids)] == [t for t, _ in expected_digits(tokenizer, text)]
