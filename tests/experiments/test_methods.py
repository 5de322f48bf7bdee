"""METHODS: every entry is one filling of the slots."""

import pytest

from placevalue.common.errors import ConfigError
from placevalue.experiments.methods import Method


def test_what_is_not_built_is_refused():
    with pytest.raises(ConfigError, match="'mine' has rewrite='upside-down', mix='add', which is not built yet"):
        Method("mine", rewrite="upside-down", mix="add")
