import copy
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, BertTokenizerLegacy, PreTrainedTokenizerFast

from families import FAMILIES, base_tokenizer
from placevalue import (
    IGNORE_PRESETS,
    PATTERNS,
    NumberConfig,
    encode_pairs,
    find_numerals,
    load_number_tokenizer,
    marker_ids,
    number_tokenizer,
)
from placevalue.common.errors import ConfigError, ModelError, TokenizerError
from placevalue.numbers.config import Layout
from placevalue.numbers.numerals import pattern_symbols
from placevalue.tokenizer.surgery import Signs
from placevalue.tokenizer.tokenizer import check_unchanged, number_ids, number_layout

LAYOUTS = [(None, "before"), ("agg", "before"), ("agg", "after"), ("pause", "before"), ("pause", "after")]
CASES = [
    "", " ", "7", "12", " 12 ", "12 cats", "the cat 12", "room12b", "1.2.3", ".5", "5.", "1,000.00", "2024-01-15",
    "-3 and +4", "a  12   b", "\n12\n\n3\n", "½ ² Ⅳ ٣", "1½", "x²3", "3 4", "the (12) cat's 3rd", "12%", "$12", "a.5",
    "[F] [AGG] 3 [/F] [PAUSE]", "1e5", "naïve 12 café", "e\u0301 5\u0301", "\ufdd3\ufdd55\ufdd4", "\u2ff3 5", "▁12 ▁x 3▁",
    "</s>12</s> 3", "  ", "\t12\tcat",
]  # fmt: skip
made: dict[tuple, PreTrainedTokenizerFast] = {}


def numbered(family, token="agg", position="before", **options):
    key = (family, token, position, *sorted(options.items()))
    if key not in made:
        made[key] = number_tokenizer(base_tokenizer(family), token=token, position=position, **options)
    return made[key]


def ids_of(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def expected_digits(tokenizer, text, **options):
    """What a number's tokens must be, from the slow scan: one id a character between the markers."""
    ids, layout, markers = number_ids(tokenizer), number_layout(tokenizer), marker_ids(tokenizer)
    extra = [markers[layout.token]] if layout.token else []
    written = pattern_symbols(layout.pattern)
    roles = (written.point, written.minus, *written.others, *written.exponents, written.bracket)
    symbols = {c: id_ for c, id_ in zip(roles, ids.symbols, strict=True) if c}
    if symbols.get("E") == -1:  # a base that lowers all letters
        symbols["E"] = symbols["e"]
    spans = []
    for numeral in find_numerals(text, layout.pattern, layout.ignore):
        inner = [ids.digits[int(c)] if c.isdigit() else symbols[c] for c in numeral.text]
        body = extra + inner if layout.position == "before" else inner + extra
        spans.append(([markers["open"], *body, markers["close"]], numeral))
    return spans


def found_spans(tokenizer, ids):
    markers = marker_ids(tokenizer)
    spans, start = [], None
    for index, token in enumerate(ids):
        if token == markers["open"]:
            start = index
        elif token == markers["close"]:
            spans.append((start, index + 1))
    return spans


LISTS = {"5,100,200": 1, "5, 100, 200": 3, "1,2,3": 3, "12,34": 2}


words = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="0123456789"), max_size=12)
plain = st.lists(st.one_of(words, st.sampled_from(["the cat", " sat ", "[F]", "[/F]", "½", "²", "Ⅳ", "٣", "…", "\n"])))
numbers = st.one_of(
    st.from_regex(r"\A[0-9]{1,8}\Z"),
    st.from_regex(r"\A[0-9]{0,3}\.[0-9]{1,3}\Z"),
    st.sampled_from(["1.2.3", "5.", "0"]),
)
mixed = st.lists(
    st.one_of(numbers, words, st.sampled_from([" ", "room", "b", ",", "-", "+", ".", "e5", "[AGG]", "\ufdd3"]))
)


@settings(max_examples=150)
@given(parts=plain)
@pytest.mark.parametrize("family", FAMILIES)
def test_text_without_numbers_gives_the_base_ids(family, parts):
    text = "".join(parts)
    if re.search("[\ufdd0-\ufdd6]", text):
        return  # exchanged on purpose, and tested below
    assert ids_of(numbered(family), text) == ids_of(base_tokenizer(family), text)


@settings(max_examples=150)
@given(parts=mixed)
@pytest.mark.parametrize("family", FAMILIES)
def test_each_number_is_its_digits_between_markers(family, parts):
    text = "".join(parts)
    tokenizer = numbered(family)
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    wanted = expected_digits(tokenizer, text)
    spans = found_spans(tokenizer, ids)
    assert [ids[a:b] for a, b in spans] == [tokens for tokens, _ in wanted]
    for (start, _), (_, numeral) in zip(spans, wanted, strict=True):
        inner = offsets[start + 2 : start + 2 + len(numeral.text)]
        assert inner == [(i, i + 1) for i in range(numeral.start, numeral.end)]
    count = sum(i in marker_ids(tokenizer).values() for i in ids)
    assert count == 3 * len(wanted)


OWN = r"\b(?:19|20)[0-9]{2}\b|ID-?[0-9]+"
FORMS = [" ", " ", "-", "+", ",", ".", "/", ":", "$", "%", "(", ")", "#", ",000", ".000", "e5", "E-3", "ID", "ID-",
         "1999", "2024", "12", "05", "555", "March ", " May", "pm", "am", "st", "'s", "x", "A", "T", "_", "-01-"]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        *({"pattern": pattern} for pattern in PATTERNS),
        *({"ignore": preset} for preset in IGNORE_PRESETS),
        {"ignore": OWN, "pattern": "paper"},
        {"ignore": tuple(IGNORE_PRESETS), "pattern": "european"},
        {"ignore": ("years", "phones", OWN), "pattern": "accounting"},
        {"pattern": r"\d+(?:[.]\d+)?"},
        {"pattern": r",?\d+"},
    ],
    ids=str,
)
@settings(max_examples=60)
@given(parts=st.lists(st.one_of(numbers, st.sampled_from(FORMS)), max_size=12))
@pytest.mark.parametrize("family", ["unigram-t5", "bpe-llama2", "bytes-gpt2", "bytes-qwen2", "wordpiece-bert"])
def test_patterns_and_ignore_agree_with_the_slow_scan(family, options, parts):
    text = "".join(parts)
    tokenizer = numbered(family, **options)
    ids = ids_of(tokenizer, text)
    assert [ids[a:b] for a, b in found_spans(tokenizer, ids)] == [t for t, _ in expected_digits(tokenizer, text)]


def test_a_list_is_several_numbers_only_with_spaces(family):
    tokenizer = numbered(family)
    counts = {text: len(found_spans(tokenizer, ids_of(tokenizer, text))) for text in LISTS}
    assert counts == LISTS


def test_paper_writes_the_pipeline_it_always_wrote():
    """What was saved with `paper` and what is made with it now are one tokenizer, whatever other patterns become."""
    steps = json.loads(numbered("bytes-gpt2", pattern="paper").backend_tokenizer.to_str())["normalizer"]["normalizers"]
    regexes = [step["pattern"]["Regex"] for step in steps if "Regex" in step.get("pattern", {})]
    assert regexes[1:-1] == [
        r"(?WDSP:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\K",
        r"(?<![0-9.])(?=[0-9])|(?<![0-9])(?=\.[0-9])",
        r"[0-9.]\K(?=[0-9])|[0-9]\K(?=\.[0-9])",
    ]


@pytest.mark.parametrize(("token", "position"), LAYOUTS)
def test_cases_in_every_layout(family, base, token, position):
    tokenizer = numbered(family, token, position)
    for text in CASES:
        ids = ids_of(tokenizer, text)
        assert [ids[a:b] for a, b in found_spans(tokenizer, ids)] == [t for t, _ in expected_digits(tokenizer, text)], (
            text
        )


@settings(max_examples=100)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(["the", "cat", "Apples", "mat,", "(box)", "how", "left?"]), st.integers(0, 9999).map(str)
        ),
        min_size=1,
    )
)
@pytest.mark.parametrize("family", FAMILIES)
def test_words_next_to_numbers_keep_their_pieces_and_decoding_is_the_bases(family, words):
    base, tokenizer = base_tokenizer(family), numbered(family)
    text = " ".join(words)
    ids = ids_of(tokenizer, text)
    assert tokenizer.decode(ids) == base.decode(ids_of(base, text))
    drop = set(number_ids(tokenizer).digits) | set(marker_ids(tokenizer).values())
    letters = "".join(tokenizer.convert_ids_to_tokens([i for i in ids if i not in drop]))
    kept = [p for p in tokenizer.convert_ids_to_tokens(ids) if re.search("[A-Za-z]", p)]
    ours = [p for p in base.tokenize(text) if re.search("[A-Za-z]", p)]
    assert kept == ours, letters


@pytest.mark.parametrize("text", ["room12b", "1.5 in 3.25", ".5 5.", "1,000.00 x", "3 4", "12th", "-3", "a  12 "])
def test_glued_numbers_decode_as_written(family, base, text):
    decoded = numbered(family).decode(ids_of(numbered(family), text))
    plain = base.decode(ids_of(base, text))
    if family == "wordpiece-bert":  # no space token: `room12` and `room 12` decode alike, and so do `3.5` and `3. 5`
        decoded, plain = decoded.replace(" ", ""), plain.replace(" ", "")
    assert decoded == plain


def test_typed_markers_never_become_markers(family):
    tokenizer = numbered(family)
    markers = set(marker_ids(tokenizer).values())
    signs = "".join(tokenizer.init_kwargs["placevalue"]["signs"].values())
    for typed in (
        "[F] [AGG] 5 [/F]",
        "[PAUSE]",
        f"x {signs} 5",
        f"{signs}5",
        f"5{signs}",
        signs,
        signs[3] * 2,
        f" {signs[3]}",
        *signs,
        f"the</s>{signs[3]}</s>cat",
        f"<pad>{signs[3]}",
    ):
        count = sum(i in markers for i in ids_of(tokenizer, typed))
        assert count == 3 * typed.count("5"), ascii(typed)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_typed_sign_is_read_as_the_one_it_is_exchanged_for(pattern):
    for family in ("unigram-t5", "bytes-gpt2", "wordpiece-bert"):
        tokenizer = numbered(family, pattern=pattern)
        signs = Signs(**tokenizer.init_kwargs["placevalue"]["signs"])
        for text in ("the {}cat sat", "the{} 12 cats", "cat {}", "1{}2 {}apples and 3"):
            wanted = ids_of(tokenizer, text.replace("{}", signs.exchange))
            for sign in signs.reserved:
                assert ids_of(tokenizer, text.replace("{}", sign)) == wanted, (family, ascii(sign), text)


@pytest.mark.parametrize("held", ["\ufdd0", "\ufdd1", "\ufdd6"])
def test_signs_that_the_vocabulary_holds_are_not_taken(held):
    base = copy.deepcopy(base_tokenizer("bytes-gpt2"))
    base.add_tokens([held])
    tokenizer = number_tokenizer(base, token="agg")
    assert held not in tokenizer.init_kwargs["placevalue"]["signs"].values()
    assert ids_of(tokenizer, f"the {held} cat{held}") == ids_of(base, f"the {held} cat{held}")
    base.add_tokens(["\u2ff3"])
    with pytest.raises(TokenizerError, match="its vocabulary holds every character"):
        number_tokenizer(base)


def test_ten_thousand_digits(family):
    tokenizer = numbered(family)
    assert len(found_spans(tokenizer, ids_of(tokenizer, "9" * 10_000))) == 1
    assert ids_of(tokenizer, "9" * 10_000).count(number_ids(tokenizer).digits[9]) == 10_000


def test_special_tokens_in_text_still_work(family, base):
    tokenizer = numbered(family)
    ids = ids_of(tokenizer, "the</s>12")
    assert ids.count(base.eos_token_id) == ids_of(base, "the</s>12").count(base.eos_token_id) == 1
    assert len(found_spans(tokenizer, ids)) == 1


def test_all_layouts_share_one_vocabulary(family, base):
    tables = [marker_ids(numbered(family, *layout)) for layout in LAYOUTS]
    assert all(table == tables[0] for table in tables)
    assert list(tables[0]) == ["open", "close", "agg", "pause"]
    assert list(tables[0].values()) == list(range(len(base), len(base) + 4))


def test_the_users_tokenizer_is_not_changed(family, base):
    before = base.backend_tokenizer.to_str()
    number_tokenizer(base, token="agg")
    assert base.backend_tokenizer.to_str() == before and "placevalue" not in base.init_kwargs


def test_saved_and_loaded_the_same(family, base, tmp_path):
    base = copy.deepcopy(base)
    base.chat_template, base.padding_side, base.truncation_side = "{{ messages[0].content }}", "left", "left"
    tokenizer = number_tokenizer(base, token="agg", position="after", ignore="ID[0-9]+")
    tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / "tokenizer.json").is_file()
    for loaded in (load_number_tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)):
        assert loaded.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
        assert marker_ids(loaded) == marker_ids(tokenizer) and number_layout(loaded) == number_layout(tokenizer)
        assert (loaded.chat_template, loaded.padding_side, loaded.truncation_side) == (
            base.chat_template,
            "left",
            "left",
        )
        assert (loaded.eos_token_id, loaded.pad_token_id) == (base.eos_token_id, base.pad_token_id)
        assert [loaded(text)["input_ids"] for text in CASES] == [tokenizer(text)["input_ids"] for text in CASES]
        check_unchanged(loaded)


def test_batches_equal_one_by_one(family):
    tokenizer = numbered(family)
    assert tokenizer(CASES)["input_ids"] == [tokenizer(text)["input_ids"] for text in CASES]


def test_padding_and_truncation_inside_the_file_do_not_travel(base):
    base, wanted = copy.deepcopy(base), number_tokenizer(base, token="agg")
    base.backend_tokenizer.enable_padding(length=50)
    base.backend_tokenizer.enable_truncation(3)
    tokenizer = number_tokenizer(base, token="agg")
    assert 3 < len(tokenizer.backend_tokenizer.encode("the 12 cats").ids) < 50
    assert tokenizer.backend_tokenizer.to_str() == wanted.backend_tokenizer.to_str()
    # What the copy is made from is also what its tokenizer_config.json is written from.
    noted = {key for key in tokenizer.init_kwargs if key not in wanted.init_kwargs}
    assert not noted, noted


def test_from_a_folder(tmp_path):
    base_tokenizer("bytes-gpt2").save_pretrained(tmp_path)
    assert ids_of(number_tokenizer(tmp_path), "12") == ids_of(number_tokenizer(str(tmp_path)), "12")


def test_a_tokenizer_that_came_back_changed_is_named(tmp_path):
    tokenizer = copy.deepcopy(numbered("bytes-gpt2"))
    tokenizer.backend_tokenizer.normalizer = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(TokenizerError, match="not what was saved"):
        load_number_tokenizer(tmp_path)


def test_added_tokens_with_digits_stay_whole():
    base = copy.deepcopy(base_tokenizer("unigram-t5"))
    base.add_tokens(["<extra_id_12>"])
    tokenizer = number_tokenizer(base, token="agg")
    assert ids_of(tokenizer, "a <extra_id_12> b").count(len(base) - 1) == 1


def test_a_config_says_what_keywords_say():
    base = base_tokenizer("bytes-gpt2")
    config = NumberConfig("agg", "after", "extended", "ID[0-9]+", "sum", "ignore")
    one = number_tokenizer(base, config)
    other = number_tokenizer(base, token="agg", position="after", pattern="extended", ignore="ID[0-9]+")
    assert one.backend_tokenizer.to_str() == other.backend_tokenizer.to_str()
    assert number_layout(one) == number_layout(other) == Layout("agg", "after", "extended", "ID[0-9]+")
    assert number_layout(number_tokenizer(base, "pause", "after")) == Layout("pause", "after")
    with pytest.raises(ConfigError, match="both a NumberConfig and position, ignore were given.*in the NumberConfig"):
        number_tokenizer(base, config, position="before", ignore="x")
    with pytest.raises(ConfigError, match="'wieghted' is unknown"):
        number_tokenizer(base, NumberConfig("agg", aggregation="wieghted"))


OLD_SETTINGS = """{
  "layout": {"token": "agg", "position": "before", "pattern": "paper", "ignore": null},
  "signs": {"start": "\\ufdd0", "guard": "\\ufdd1", "exchange": "\\ufdd2", "open": "\\ufdd3", "close": "\\ufdd4",
            "agg": "\\ufdd5", "pause": "\\ufdd6"},
  "probe": [], "encoder_decoder": true, "aggregation": "sum", "decimals": "ignore"
}"""


def test_settings_of_old_tokenizers_load(tmp_path):
    tokenizer = number_tokenizer(base_tokenizer("bytes-gpt2"), token="agg", pattern="paper")
    tokenizer.save_pretrained(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    saved, old = json.loads(file.read_text()), json.loads(OLD_SETTINGS)
    assert set(old) - {"aggregation", "decimals"} <= set(saved["placevalue"])
    old["probe"] = saved["placevalue"]["probe"]  # the ids of a tokenizer that was trained here
    file.write_text(json.dumps(saved | {"placevalue": old}))
    loaded = load_number_tokenizer(tmp_path)
    assert loaded.init_kwargs["placevalue"] == old and number_layout(loaded) == Layout("agg", pattern="paper")
    assert -100 not in encode_pairs(loaded, ["1"], ["2"])[0]["labels"]


class TestErrors:
    def test_slow(self, tmp_path):
        (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
        slow = BertTokenizerLegacy(tmp_path / "vocab.txt")
        with pytest.raises(TokenizerError, match="slow tokenizer"):
            number_tokenizer(slow)

    def test_digit_without_an_id(self):
        base = copy.deepcopy(base_tokenizer("wordpiece-bert"))
        spec = base.backend_tokenizer.to_str().replace('"7":', '"seven":')
        broken = PreTrainedTokenizerFast(
            tokenizer_object=type(base.backend_tokenizer).from_str(spec), unk_token="<unk>"
        )
        with pytest.raises(TokenizerError, match=r"digits \[7\] have no id of their own"):
            number_tokenizer(broken)

    @pytest.mark.parametrize(("lacking", "pattern"), [(",", "extended"), ("e", "extended"), ("$", "accounting")])
    def test_symbol_without_an_id(self, lacking, pattern):
        base = copy.deepcopy(base_tokenizer("wordpiece-bert"))
        spec = base.backend_tokenizer.to_str().replace(f'"{lacking}":', f'"{lacking}x":')
        poor = PreTrainedTokenizerFast(tokenizer_object=type(base.backend_tokenizer).from_str(spec), unk_token="<unk>")
        with pytest.raises(TokenizerError, match=re.escape(f"['{lacking}'], which the pattern '{pattern}'")) as caught:
            number_tokenizer(poor, pattern=pattern)
        assert 'use pattern="paper"' in str(caught.value)
        paper = number_tokenizer(poor, pattern="paper")
        assert len(found_spans(paper, ids_of(paper, "1,250.50"))) == 2

    def test_twice(self):
        with pytest.raises(TokenizerError, match="already writes numbers"):
            number_tokenizer(numbered("bytes-gpt2"))

    def test_not_a_number_tokenizer(self):
        with pytest.raises(TokenizerError, match="number_tokenizer"):
            marker_ids(base_tokenizer("bytes-gpt2"))

    def test_missing_folder_and_no_hub(self, tmp_path):
        with pytest.raises(ModelError):
            number_tokenizer(tmp_path / "nothing")
        with pytest.raises(ModelError):
            number_tokenizer("some-owner/some-model")

    def test_bad_layout(self):
        with pytest.raises(ConfigError, match="token: .*agg, pause, found 'sum'; position: .*found 'middle'"):
            number_tokenizer(base_tokenizer("bytes-gpt2"), token="sum", position="middle")


signs = st.sampled_from([*"\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufdd5\ufdd6\u2ff0\u2ff3", "[F]", "[/F]", "[AGG]", "[PAUSE]"])
hostile = st.lists(st.one_of(signs, numbers, words, st.sampled_from(["1", " ", ".", "-", ",", "the cat"])), max_size=12)


@settings(max_examples=40)
@given(parts=hostile)
@pytest.mark.parametrize("options", [{}, {"pattern": "extended"}, {"ignore": r"\b[0-9]{4}\b"}], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_typed_forges_a_marker(family, options, parts):
    text = "".join(parts)
    tokenizer = numbered(family, **options)
    ids, wanted = ids_of(tokenizer, text), expected_digits(tokenizer, text)
    assert [ids[a:b] for a, b in found_spans(tokenizer, ids)] == [tokens for tokens, _ in wanted]
    assert sum(i in marker_ids(tokenizer).values() for i in ids) == 3 * len(wanted)


lone = st.sampled_from(
    [*"\ufdd0\ufdd1\ufdd3\ufdd4\ufdd5\ufdd6\u2ff0\u2ff3", " ", "\n", "1", "2.5", "the", "<pad>", "</s>"]
)


@settings(max_examples=60)
@given(parts=st.lists(lone, min_size=1, max_size=5))
@pytest.mark.parametrize("family", FAMILIES)
def test_a_typed_sign_stays_text_however_it_is_encoded(family, parts):
    """Alone, as a word, between special tokens, in pairs and batches it is what the character it is exchanged for is."""
    tokenizer, text = numbered(family), "".join(parts)
    signs = Signs(**tokenizer.init_kwargs["placevalue"]["signs"])
    plain = re.sub(f"[{signs.reserved}]", signs.exchange, text)
    for encode in (
        lambda text: tokenizer(text),
        lambda text: tokenizer(text, add_special_tokens=False),
        lambda text: tokenizer(text, text, add_special_tokens=False),
        lambda text: tokenizer([text, "12", text]),
        lambda text: tokenizer([text, *text], is_split_into_words=True),
        lambda text: tokenizer(text, split_special_tokens="<pad>" not in parts),
    ):
        assert encode(text)["input_ids"] == encode(plain)["input_ids"]
    if signs.exchange not in plain or family == "wordpiece-bert":  # of which the base has no token for any character
        return
    if not find_numerals(text):
        assert ids_of(tokenizer, text) == ids_of(base_tokenizer(family), plain)


def test_a_base_without_special_tokens_works_too():
    """Nothing shields its markers: a text that is one of them alone is one, as in tokenizers of 0.1.0."""
    bare = PreTrainedTokenizerFast(tokenizer_object=FAMILIES["bytes-gpt2"]())
    spec = json.loads(bare.backend_tokenizer.to_str()) | {"added_tokens": []}
    bare = PreTrainedTokenizerFast(tokenizer_object=type(bare.backend_tokenizer).from_str(json.dumps(spec)))
    tokenizer = number_tokenizer(bare)
    assert len(found_spans(tokenizer, ids_of(tokenizer, "the 12 cats"))) == 1
    assert marker_ids(tokenizer)["open"] in ids_of(tokenizer, "\ufdd3")
    assert marker_ids(tokenizer)["open"] not in ids_of(tokenizer, " \ufdd3")


@settings(max_examples=20)
@given(st.lists(st.one_of(mixed, hostile).map("".join), max_size=5))
@pytest.mark.parametrize("family", FAMILIES)
def test_any_batch_equals_one_by_one(family, texts):
    tokenizer = numbered(family)
    assert tokenizer(texts)["input_ids"] == [tokenizer(text)["input_ids"] for text in texts] if texts else True


@settings(max_examples=50)
@given(parts=mixed)
@pytest.mark.parametrize("family", FAMILIES)
def test_decoding_any_text_is_the_bases(family, parts):
    base, tokenizer = base_tokenizer(family), numbered(family)
    signs = Signs(**tokenizer.init_kwargs["placevalue"]["signs"])
    text = re.sub(f"[{signs.reserved}]", signs.exchange, "".join(parts))
    decoded, wanted = tokenizer.decode(ids_of(tokenizer, text)), base.decode(ids_of(base, text))
    if family == "wordpiece-bert":
        if base.unk_token in wanted:
            return  # the base loses a whole word with an unknown character, digits and all
        decoded, wanted = decoded.replace(" ", ""), wanted.replace(" ", "")  # it has no space token
    assert decoded == wanted
