"""An empty cache folder for the tests of public files."""

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, as on a new machine."""
    monkeypatch.delenv("EVERYNODE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "everynode"
