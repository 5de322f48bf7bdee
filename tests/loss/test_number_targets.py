"""Numbers read off whole targets, and how little an accelerator is asked to do for them."""

from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from loss.test_aggregation_loss import TARGETS, attached, batch
from placevalue.loss.aggregation_loss import AggregationLoss
from placevalue.loss.number_targets import LONGEST, find_numbers
from placevalue.tokenizer.tokenizer import number_ids

VIEWS = {
    "view",
    "_unsafe_view",
    "unsqueeze",
    "squeeze",
    "expand",
    "slice",
    "select",
    "t",
    "transpose",
    "permute",
    "detach",
}
VIEWS |= {"alias", "split", "unbind", "diagonal", "unfold", "empty", "empty_like", "new_empty", "empty_strided"}
WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "equal"}


class Count(TorchDispatchMode):
    """How many operations an accelerator would have to be handed."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.split("::")[1]
        self.names += [name] if name not in VIEWS and name != "promote_types" else []
        return function(*args, **(kwargs or {}))


def number_texts(numbers, tokenizer):
    """Each number's tokens without its markers, by target."""
    close, found = number_ids(tokenizer).close, []
    for line, (tokens, members) in enumerate(zip(numbers.lines, numbers.members, strict=True)):
        row = line if numbers.rows is None else int(numbers.rows[line])
        found += [(row, [int(t) for t in tokens[one > 0] if t != close]) for one in members if one.any()]
    return found


@pytest.mark.parametrize("pattern", ["paper", "extended"])
def test_the_same_numbers_are_found_either_way(pattern):
    _, tokenizer = attached(pattern=pattern)
    labels = batch(tokenizer, [*TARGETS, "9" * (LONGEST + 1), "8" * LONGEST, "1 2 3", "2e5 and 4", "12"])
    labels[-1, 2:] = -100
    spacious, packed = (
        number_texts(find_numbers(labels, number_ids(tokenizer), packed=way), tokenizer) for way in (False, True)
    )
    assert spacious == packed
    digits = {id_: str(value) for value, id_ in enumerate(number_ids(tokenizer).digits)}
    read = ["".join(digits.get(token, "") for token in tokens) for _, tokens in packed]
    expected = ["320", "125", "7", "1999", "005", "12", "1000000", "5", "00", "314159", "8" * LONGEST, "1", "2", "3"]
    assert read == [*expected, *([] if pattern == "extended" else ["2", "5"]), "4"]


@pytest.mark.parametrize("aggregation, mode, forward, backward", [
    ("weighted", "soft", 125, 40), ("interpolated", "soft", 150, 40), ("weighted", "hard", 125, 45),
])  # fmt: skip
def test_an_accelerator_is_asked_for_little_and_never_waited_for(aggregation, mode, forward, backward, monkeypatch):
    monkeypatch.setattr("placevalue.loss.aggregation_loss.find_numbers", partial(find_numbers, packed=False))
    monkeypatch.setattr("placevalue.modeling.hooks.CHECKED_BATCHES", 1)
    model, tokenizer = attached("bart")
    loss = AggregationLoss(model, tokenizer, mode=mode, aggregation=aggregation)
    labels = batch(tokenizer, TARGETS)
    logits = torch.randn(*labels.shape, model.get_input_embeddings().weight.shape[0]).requires_grad_()
    loss({"logits": logits}, labels)
    with Count() as there:
        value = loss({"logits": logits}, labels)
    with Count() as back:
        value.backward()
    assert not WAITS & {*there.names, *back.names}
    assert len(there.names) <= forward and len(back.names) <= backward
