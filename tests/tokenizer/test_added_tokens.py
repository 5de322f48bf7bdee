"""Tokens that somebody adds: welcome if every number stays whole, else refused wherever the tokenizer is used."""

import copy

import pytest
from tokenizers import normalizers

import placevalue as pv
from families import base_tokenizer
from placevalue.common.errors import TokenizerError
from placevalue.tokenizer.tokenizer import check_added_tokens, marker_ids, number_ids
from zoo import build

WELCOME = ["<extra>", "<extra_id_25>", "<|0.00|>", "H2O", "en_XX", "(5)", "x-y", "the"]
REFUSED = ["25", "5", "12.5", "mp3", "3d", "5 apples", "-5", ".5", "1e5", "$25"]


def made(base, *tokens, special=False, **options):
    tokenizer = pv.number_tokenizer(base, token="agg", **options)
    tokenizer.add_tokens(list(tokens), special_tokens=special)
    return tokenizer


@pytest.mark.parametrize("special", [False, True])
def test_names_are_welcome_and_digits_are_not(family, base, special):
    check_added_tokens(made(base, *WELCOME, special=special))
    with pytest.raises(TokenizerError, match="match inside numbers") as caught:
        check_added_tokens(made(base, *WELCOME, *REFUSED, special=special))
    assert f"the added tokens {sorted(REFUSED)}" in str(caught.value)


@pytest.mark.parametrize("token", [".", ",", "-", "e", "...", "e.g."])
def test_what_a_number_is_written_with_is_refused_only_if_it_matches_before_numbers_are_found(token):
    base = base_tokenizer("bytes-gpt2")
    check_added_tokens(made(base, token))
    with pytest.raises(TokenizerError, match="match inside numbers"):
        check_added_tokens(made(base, token, special=True))


@pytest.mark.parametrize("token", ["²", "５"])
def test_a_token_that_the_base_turns_into_a_digit(token):
    base = copy.deepcopy(base_tokenizer("bytes-gpt2"))
    check_added_tokens(made(base, token))
    base.backend_tokenizer.normalizer = normalizers.NFKC()
    with pytest.raises(TokenizerError, match="match inside numbers"):
        check_added_tokens(made(base, token))


def test_a_token_that_normalizes_to_nothing():
    check_added_tokens(made(base_tokenizer("bytes-gpt2"), "  "))
    check_added_tokens(made(base_tokenizer("unigram-t5"), "  ", special=True))
    try:
        tokenizer = made(base_tokenizer("unigram-t5"), "  ")
    except Exception as refused:  # by tokenizers 0.23.1 itself
        assert "pattern.len() must be >= 1" in str(refused)
        return
    with pytest.raises(TokenizerError, match="'  ' is empty text once it is normalized"):
        check_added_tokens(tokenizer)


def test_digits_that_are_left_alone_may_be_a_token():
    base = base_tokenizer("bytes-gpt2")
    check_added_tokens(made(base, "mp3", ignore=r"mp3"))
    check_added_tokens(made(base, "(5)"))
    with pytest.raises(TokenizerError, match=r"\['\(5\)'\]"):  # there it is the number -5
        check_added_tokens(made(base, "(5)", pattern="accounting"))


@pytest.mark.parametrize("token", ["25", "5"])
def test_a_base_with_such_a_token_is_refused(token):
    base = copy.deepcopy(base_tokenizer("unigram-t5"))
    base.add_tokens([token])
    with pytest.raises(TokenizerError, match="from a base without them"):
        pv.number_tokenizer(base)


USES = {
    "ids": lambda model, tokenizer, folder: number_ids(tokenizer),
    "encode_pairs": lambda model, tokenizer, folder: pv.encode_pairs(tokenizer, ["25?"], ["5"], encoder_decoder=True),
    "encode_texts": lambda model, tokenizer, folder: pv.encode_texts(tokenizer, ["25"]),
    "collator": lambda model, tokenizer, folder: pv.NumberCollator(tokenizer, model),
    "attach": lambda model, tokenizer, folder: pv.attach(build("t5")[0], tokenizer),
    "loss": lambda model, tokenizer, folder: pv.AggregationLoss(model, tokenizer),
    "save": lambda model, tokenizer, folder: pv.save_pretrained(model, tokenizer, folder),
    "load": lambda model, tokenizer, folder: pv.load_number_tokenizer(folder),
}


@pytest.mark.parametrize("use", USES)
def test_wherever_a_tokenizer_is_used(use, tmp_path):
    model, base = build("t5")
    tokenizer = made(base, position="after")
    pv.attach(model, tokenizer)
    tokenizer.save_pretrained(tmp_path)
    USES[use](model, tokenizer, tmp_path)
    tokenizer.add_tokens(["<extra>"])
    USES[use](model, tokenizer, tmp_path)
    tokenizer.add_tokens(["25"])
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(TokenizerError, match=r"the added tokens \['25'\] match inside numbers.*'25' becomes"):
        USES[use](model, tokenizer, tmp_path)


def test_tokens_are_tried_once(monkeypatch):
    tokenizer = made(base_tokenizer("bytes-gpt2"), "<extra>")
    check_added_tokens(tokenizer)
    monkeypatch.setattr("placevalue.tokenizer.tokenizer.refuse_swallowing", None)  # calling it would fail
    check_added_tokens(tokenizer)
    assert len(number_ids(tokenizer).digits) == 10 and len(marker_ids(tokenizer)) == 4


@pytest.mark.parametrize("extra", [None, "agg"])
@pytest.mark.parametrize("family", ["unigram-t5", "bpe-llama2", "bytes-gpt2", "bytes-smollm2"])
def test_without_markers_the_same_tokens_are_refused(family, extra):
    """But for a single digit, which has the id that it had."""
    for token in [*WELCOME, *REFUSED]:
        tokenizer = pv.number_tokenizer(base_tokenizer(family), markers=False, token=extra)
        tokenizer.add_tokens([token])
        if token in WELCOME or token == "5":
            check_added_tokens(tokenizer)
        else:
            with pytest.raises(TokenizerError, match="match inside numbers"):
                check_added_tokens(tokenizer)
