"""The settings object: validated as a whole, and stored in the same JSON as ever."""

import json
from dataclasses import asdict

import pytest

import placevalue as pv
from placevalue.common.errors import ConfigError
from placevalue.numbers.config import AttachedConfig, Layout, NumberIds

OLD_MODEL_JSON = """{
  "layout": {"token": "agg", "position": "after", "pattern": "extended", "ignore": "ID[0-9]+"},
  "ids": {"open": 100, "close": 101, "agg": 102, "pause": 103, "digits": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "point": 10,
          "minus": 11, "others": [12, 13], "exponents": [14, 15]},
  "probe": [5, 6, 7], "aggregation": "interpolated", "decimals": "ignore"
}"""


def test_it_has_flat_fields_and_defaults():
    config = pv.NumberConfig()
    assert vars(config) == {
        "token": None, "position": "before", "pattern": "extended", "ignore": None, "aggregation": None,
        "decimals": "places", "negatives": "opposite", "rewrite": None, "pauses": 0, "vector": None,
        "markers": True,
    }  # fmt: skip
    with pytest.raises(AttributeError):
        config.token = "agg"


def test_every_fault_is_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        pv.NumberConfig(token="sum", position="middle", pattern="a+", ignore="^x", aggregation="sum", decimals="drop",
                        negatives="drop")  # fmt: skip
    for part in ("token: expected", "position: expected", "pattern 'a+'", "ignore='^x'", "aggregation='sum' with",
                 "decimals: expected", "negatives: expected"):  # fmt: skip
        assert part in str(caught.value)
    with pytest.raises(ConfigError, match="pattern: expected a text, found 3"):
        pv.NumberConfig(pattern=3)


def test_settings_of_old_models_are_read_and_written_the_same():
    values = json.loads(OLD_MODEL_JSON)
    config = AttachedConfig.from_dict(values)
    ids = NumberIds(100, 101, 102, 103, tuple(range(10)), 10, 11, (12, 13), (14, 15))
    layout = Layout("agg", "after", "extended", "ID[0-9]+")
    assert config == AttachedConfig(layout, ids, (5, 6, 7), "interpolated", "ignore", "ignore")
    written = json.loads(json.dumps(config.to_dict()))
    assert AttachedConfig.from_dict(written) == config and config.layout.markers
    written["ids"].pop("bracket"), [written["layout"].pop(name) for name in ("rewrite", "pauses", "markers")]
    assert written == values | {"negatives": "ignore", "vector": None}


def test_what_old_settings_do_not_name_is_what_it_was_then():
    values = json.loads(OLD_MODEL_JSON)
    del values["layout"]["pattern"]
    assert AttachedConfig.from_dict(values).layout.pattern == "paper"


def test_several_kinds_of_text_to_ignore_survive_json():
    config = pv.NumberConfig(ignore=("years", "ID[0-9]+"))
    assert pv.NumberConfig(**json.loads(json.dumps(asdict(config)))) == config
    with pytest.raises(ConfigError, match=r"ignore\[1\]: expected a text, found 3"):
        pv.NumberConfig(ignore=["years", 3])
    with pytest.raises(ConfigError, match="ignore: expected a text, found 3"):
        pv.NumberConfig(ignore=3)


def test_damaged_settings_are_named_by_their_path():
    values = json.loads(OLD_MODEL_JSON) | {"decimals": "drop", "more": 1}
    values["ids"]["digits"][3] = "3"
    with pytest.raises(
        ConfigError, match=r"more is unknown.*; ids.digits\[3\].*; decimals: .*found 'drop': expected the"
    ):
        AttachedConfig.from_dict(values)


def test_symbols_that_a_pattern_never_writes_are_no_id():
    ids = NumberIds(100, 101, 102, 103, tuple(range(10)), 10)
    assert {id_ for id_ in ids.symbols if id_ >= 0} == {10}
