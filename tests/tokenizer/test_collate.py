"""Batches: what transformers' own collator makes of the same examples."""

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DataCollatorForSeq2Seq

import placevalue as pv
from placevalue.tokenizer.collate import LikeLengths, PairCollator
from zoo import build


@pytest.mark.parametrize("name", ["t5-flan", "bart", "llama"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_it_is_what_transformers_makes(name, side):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, "agg")
    pv.attach(model, tokenizer)
    tokenizer.padding_side = side
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    texts = ["12 and 3?", "7", "one more than 1250.5 is how much in all?"]
    examples = pv.encode_pairs(tokenizer, texts, ["15", "1234", "1251.5"])
    expected = DataCollatorForSeq2Seq(tokenizer, model=model)(examples)
    found = PairCollator(tokenizer, model)(examples)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in found)
    assert ("decoder_input_ids" in found) == model.config.is_encoder_decoder


class TestLikeLengths:
    def test_each_example_comes_once_and_the_batch_that_is_not_whole_last(self):
        for count in (1, 7, 64, 997):
            assert sorted(LikeLengths(list(range(count)), 8, seed=3)) == list(range(count))
        *_, last = torch.tensor(list(LikeLengths([5] * 4 + [900], 4, seed=3))).split(4)
        assert last.tolist() == [4]

    def test_little_is_padded(self):
        lengths = torch.randint(5, 100, (1000,), generator=torch.Generator().manual_seed(0)).tolist()
        order = list(LikeLengths(lengths, 10, seed=1))
        padded = sum(10 * max(lengths[i] for i in order[k : k + 10]) for k in range(0, 1000, 10))
        at_random = sum(10 * max(lengths[k : k + 10]) for k in range(0, 1000, 10))
        assert sum(lengths) <= padded < 1.1 * sum(lengths) < 1.5 * sum(lengths) < at_random

    def test_another_order_each_epoch_and_the_same_for_a_seed(self):
        def orders(seed):
            sampler = LikeLengths([1] * 50, 4, seed)
            found = [list(sampler)]
            sampler.set_epoch(1)
            return [*found, list(sampler)]

        assert orders(1) == orders(1) != orders(2) and orders(1)[0] != orders(1)[1]


texts = st.lists(st.sampled_from(["12", " and 3.5", " cat", "?", "99999"]), max_size=6).map("".join)


@cache
def prepared(name, token="agg", position="before"):
    model, base = build(name)
    tokenizer = pv.number_tokenizer(base, token, position)
    pv.attach(model, tokenizer)
    return model, tokenizer


@settings(max_examples=60)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5), st.sampled_from(["left", "right"]))
@pytest.mark.parametrize("name", ["t5", "llama"])
def test_padding_takes_nothing_away_and_adds_nothing_that_counts(name, pairs, side):
    model, tokenizer = prepared(name)
    tokenizer.padding_side = side
    examples = pv.encode_pairs(tokenizer, *zip(*pairs, strict=True))
    batch = PairCollator(tokenizer, model)(examples)
    for row, example in enumerate(examples):
        mask = batch["attention_mask"][row]
        assert batch["input_ids"][row][mask == 1].tolist() == example["input_ids"]
        assert mask[-1 if side == "left" else 0] == 1 and mask.diff().count_nonzero() <= 1
        wanted = [label for label in example["labels"] if label != -100]
        assert [label for label in batch["labels"][row].tolist() if label != -100] == wanted


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4))
@pytest.mark.parametrize("token", ["agg", "pause"])
@pytest.mark.parametrize("position", ["before", "after"])
def test_any_turns_are_cleaned_where_they_carry_loss_and_once_is_enough(token, position, turns):
    _, tokenizer = prepared("llama", token, position)
    unwritten, ids, labels, expected = pv.marker_ids(tokenizer)[token], [], [], []
    for read, written in turns:
        prompt, target = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (read + "\n", written))
        ids, labels = ids + prompt + target, labels + [-100] * len(prompt) + target
        expected += prompt + [i for i in target if i != unwritten]
    cleaned = pv.clean_targets(tokenizer, {"input_ids": ids, "labels": labels})
    assert cleaned["input_ids"] == expected
    learnt = [label for label in labels if label not in (-100, unwritten)]
    assert [label for label in cleaned["labels"] if label != -100] == learnt
    assert all(label in (-100, i) for label, i in zip(cleaned["labels"], cleaned["input_ids"], strict=True))
    assert pv.clean_targets(tokenizer, cleaned) == cleaned
