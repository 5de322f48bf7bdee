"""Batches: what transformers' own collator makes of the same examples."""

import pytest
import torch
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
