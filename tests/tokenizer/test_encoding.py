import copy
import logging

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import processors
from transformers import DataCollatorForSeq2Seq

import placevalue as pv
from families import base_tokenizer
from placevalue.common.errors import ConfigError, TokenizerError
from tokenizer.test_tokenizer import numbered
from zoo import build

QUESTIONS, ANSWERS = ["the cat had 12 apples and 3.5", "how many?", "7"], ["15.5", "the 7 cats", "no"]


def tokens(tokenizer, ids):
    names = {v: k for k, v in pv.marker_ids(tokenizer).items()}
    return [names.get(i, t) for i, t in zip(ids, tokenizer.convert_ids_to_tokens(ids), strict=True)]


def test_encoder_decoder_by_hand():
    tokenizer = numbered("unigram-t5")
    first = pv.encode_pairs(tokenizer, ["7 cat"], ["15.5"], encoder_decoder=True)[0]
    assert tokens(tokenizer, first["input_ids"]) == ["open", "agg", "7", "close", "▁cat", "</s>"]
    assert tokens(tokenizer, first["labels"]) == ["open", "1", "5", ".", "5", "close", "</s>"]
    assert first["attention_mask"] == [1] * 6


def test_decoder_only_by_hand():
    tokenizer = numbered("bytes-gpt2")
    first = pv.encode_pairs(tokenizer, ["7 cat"], ["15"], encoder_decoder=False)[0]
    assert tokens(tokenizer, first["input_ids"]) == [
        "open", "agg", "7", "close", "Ġcat", "Ċ", "open", "1", "5", "close", "</s>"
    ]  # fmt: skip
    assert first["labels"] == [-100] * 6 + first["input_ids"][6:]


@pytest.mark.parametrize("template", ["<s> $A", "$A </s>", "<s> $A </s>"])
def test_decoder_only_with_special_tokens_around_texts(template):
    """Only the question begins with the first token, and only the answer ends with the end token."""
    base = copy.deepcopy(base_tokenizer("bytes-gpt2"))
    ids = [("<s>", base.bos_token_id), ("</s>", base.eos_token_id)]
    base.backend_tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=ids)
    tokenizer = pv.number_tokenizer(base, token="agg")
    assert tokenizer.decode(tokenizer("a")["input_ids"]) == template.replace("$A", "a").replace(" ", "")
    first = pv.encode_pairs(tokenizer, ["7 cat"], ["15"], encoder_decoder=False)[0]
    question = ["<s>"] * template.startswith("<s>") + ["open", "agg", "7", "close", "Ġcat", "Ċ"]
    assert tokens(tokenizer, first["input_ids"]) == [*question, "open", "1", "5", "close", "</s>"]
    assert first["labels"] == [-100] * len(question) + first["input_ids"][len(question) :]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.text(max_size=20), st.text(alphabet="0123456789. xy", max_size=12)), max_size=4),
    st.booleans(),
)
@pytest.mark.parametrize("layout", [(None, "before"), ("agg", "before"), ("agg", "after"), ("pause", "before")])
def test_targets_never_hold_the_extra_token_and_no_layout_changes_them(layout, pairs, two_part):
    tokenizer, plain = numbered("unigram-t5", *layout), numbered("unigram-t5", None)
    questions, answers = [q for q, _ in pairs], [a for _, a in pairs]
    ours = pv.encode_pairs(tokenizer, questions, answers, encoder_decoder=two_part)
    wanted = pv.encode_pairs(plain, questions, answers, encoder_decoder=two_part)
    for one, other in zip(ours, wanted, strict=True):
        labels = [i for i in one["labels"] if i != -100]
        assert labels == [i for i in other["labels"] if i != -100]
        assert not {pv.marker_ids(tokenizer)["agg"], pv.marker_ids(tokenizer)["pause"]} & set(labels)
        assert labels[-1] == tokenizer.eos_token_id
        assert len(one["input_ids"]) == len(one["attention_mask"])


@pytest.mark.parametrize("two_part", [True, False])
def test_questions_are_what_pairs_hold(two_part):
    tokenizer = numbered("bytes-gpt2")
    alone = pv.encode_questions(tokenizer, QUESTIONS, encoder_decoder=two_part, max_question=9)
    pairs = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS, encoder_decoder=two_part, max_question=9)
    for one, pair in zip(alone, pairs, strict=True):
        assert pair["input_ids"][: len(one["input_ids"])] == one["input_ids"] and len(one["input_ids"]) <= 9


def test_cutting_is_said(caplog):
    tokenizer = numbered("unigram-t5")
    with caplog.at_level(logging.WARNING, "placevalue"):
        data = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS, encoder_decoder=True, max_question=8, max_answer=4)
    assert "1 of 3 questions were longer than 8 tokens" in caplog.text
    assert "2 of 3 answers were longer than 4 tokens" in caplog.text
    assert max(len(e["input_ids"]) for e in data) <= 8 and max(len(e["labels"]) for e in data) == 4
    assert data[0]["input_ids"][-1] == tokenizer.eos_token_id


def test_attach_says_which_kind_of_model():
    for name, labels in (("t5", 3), ("llama", None)):
        model, base = build(name)
        tokenizer = pv.number_tokenizer(base, token="agg")
        with pytest.raises(ConfigError, match="encoder_decoder=True"):
            pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)
        pv.attach(model, tokenizer)
        data = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)
        assert (-100 in data[0]["labels"]) == (labels is None)


def test_a_folder_says_which_kind_of_model(tmp_path):
    model, base = build("t5")
    model.save_pretrained(tmp_path)
    base.save_pretrained(tmp_path)
    tokenizer = pv.number_tokenizer(tmp_path)
    assert -100 not in pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)[0]["labels"]
    tokenizer.init_kwargs["placevalue"]["encoder_decoder"] = False  # as older versions saved it
    assert -100 in pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)[0]["labels"]


def test_making_a_tokenizer_reads_no_model_config(monkeypatch):
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", None)
    pv.number_tokenizer(base_tokenizer("unigram-t5"))


@pytest.mark.parametrize("name", ["t5", "llama"])
def test_collated_examples_train(name):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, token="agg")
    pv.attach(model, tokenizer)
    data = pv.encode_pairs(tokenizer, QUESTIONS, ANSWERS)
    batch = DataCollatorForSeq2Seq(tokenizer, model=model)(data)
    loss = model(**batch).loss
    loss.backward()
    assert torch.isfinite(loss)


@pytest.mark.parametrize("layout", [("agg", "after"), ("pause", "before"), ("pause", "after")])
def test_whole_texts_mask_what_a_model_never_writes(layout):
    tokenizer = numbered("bytes-gpt2", *layout)
    example = pv.encode_texts(tokenizer, ["the 12"], max_length=20)[0]
    extra = pv.marker_ids(tokenizer)[layout[0]]
    assert [label for i, label in zip(example["input_ids"], example["labels"], strict=True) if i == extra] == [-100]
    assert example["labels"].count(-100) == 1


@pytest.mark.parametrize("two_part", [True, False])
def test_a_number_is_never_cut_through(two_part):
    tokenizer = numbered("bytes-gpt2")
    whole = pv.encode_questions(tokenizer, ["the 12 had 123456 apples"], encoder_decoder=two_part)[0]["input_ids"]
    for limit in range(3, len(whole) + 1):
        ids = pv.encode_questions(
            tokenizer, ["the 12 had 123456 apples"], encoder_decoder=two_part, max_question=limit
        )[0]
        names = tokens(tokenizer, ids["input_ids"])
        assert names.count("open") == names.count("close") and len(names) <= limit


class TestErrors:
    def test_what_is_no_text(self):
        with pytest.raises(ConfigError, match="12 was given, expected a text"):
            pv.encode_pairs(numbered("unigram-t5"), [12], ["3"], encoder_decoder=True)

    def test_agg_before_the_digits_gives_them_away(self):
        with pytest.raises(TokenizerError, match="position='after'"):
            pv.encode_texts(numbered("bytes-gpt2"), ["12"])

    def test_unequal_lengths_and_lone_texts(self):
        with pytest.raises(ConfigError, match="3 questions and 1 answers"):
            pv.encode_pairs(numbered("unigram-t5"), QUESTIONS, ["1"], encoder_decoder=True)
        with pytest.raises(ConfigError, match="put a single text into a list"):
            pv.encode_pairs(numbered("unigram-t5"), "12", "3", encoder_decoder=True)

    def test_no_room(self):
        with pytest.raises(ConfigError, match="leaves no space"):
            pv.encode_pairs(numbered("bytes-gpt2"), QUESTIONS, ANSWERS, encoder_decoder=False, max_question=1)

    def test_plain_tokenizer(self):
        with pytest.raises(TokenizerError, match="number_tokenizer"):
            pv.encode_pairs(base_tokenizer("bytes-gpt2"), QUESTIONS, ANSWERS, encoder_decoder=True)


texts = st.lists(st.one_of(st.text(max_size=5), st.sampled_from(["12", "3.5", " ", "the cat", "99999", "a"]))).map(
    "".join
)
limits = st.one_of(st.none(), st.integers(4, 20))


def whole_numbers(tokenizer, ids):
    """Every number of a row from its open to its close marker; fails if one is not whole."""
    markers, found, start = pv.marker_ids(tokenizer), [], None
    for index, i in enumerate(ids):
        if i == markers["open"]:
            assert start is None
            start = index
        elif i == markers["close"]:
            found.append(ids[start : index + 1])
            start = None
    assert start is None
    return found


@settings(max_examples=60)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4), limits, limits, st.booleans())
@pytest.mark.parametrize("family", ["unigram-t5", "bytes-gpt2", "bpe-llama2", "wordpiece-bert"])
def test_any_pairs_are_those_encoded_alone_and_cut_between_numbers(family, pairs, longest, longest_answer, two_part):
    tokenizer = numbered(family)
    kind = dict(encoder_decoder=two_part)
    limited = kind | dict(max_question=longest, max_answer=longest_answer)
    examples = pv.encode_pairs(tokenizer, *zip(*pairs, strict=True), **limited)
    for (question, answer), example in zip(pairs, examples, strict=True):
        assert pv.encode_pairs(tokenizer, [question], [answer], **limited) == [example]
        ids = pv.encode_questions(tokenizer, [question], **kind, max_question=longest)[0]["input_ids"]
        whole = pv.encode_questions(tokenizer, [question], **kind)[0]["input_ids"]
        target = [i for i in pv.encode_pairs(tokenizer, [question], [answer], **kind)[0]["labels"] if i != -100]
        target = target[:longest_answer]
        joined = (ids, target) if two_part else (ids + target, [-100] * len(ids) + target)
        assert (example["input_ids"], example["labels"]) == joined
        numbers, all_numbers = whole_numbers(tokenizer, ids), whole_numbers(tokenizer, whole)
        assert numbers == all_numbers[: len(numbers)]
        lost = max(map(len, all_numbers[len(numbers) :]), default=1)
        assert min(longest or len(whole), len(whole)) - lost < len(ids) <= (longest or len(whole))
