"""METHODS: every entry is one filling of the slots."""

import pytest

from placevalue.common.errors import ConfigError
from placevalue.experiments.methods import METHODS, Method
from placevalue.loss.number_losses import NUMBER_LOSSES
from placevalue.numbers.vectors import VECTORS


def test_every_vector_is_a_method_and_the_other_way_round():
    assert {each.vector for each in METHODS.values()} - {None} == set(VECTORS)


@pytest.mark.parametrize("slots", [
    {"loss": "ntl-was"}, {"loss": "soft", "mix": "add"}, {"mix": "add"}, {"loss_weight": 0.3},
    {"loss": "hard", "loss_weight": 0.3},
])  # fmt: skip
def test_a_loss_is_added_or_takes_a_share(slots):
    with pytest.raises(ConfigError, match="'mine' has loss=.*expected mix='add'"):
        Method("mine", **slots)


def test_every_number_loss_is_a_method_and_the_other_way_round():
    assert {each.loss for each in METHODS.values() if each.mix == "add"} == set(NUMBER_LOSSES)
