"""Fixtures for finding and fetching models."""

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("PLACEVALUE_CACHE", str(folder))
    return folder
