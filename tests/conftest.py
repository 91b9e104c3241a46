"""What several test files need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_root() -> Path:
    """A folder with the public graphs in PyG's layout; the test is skipped where there is none."""
    named = os.environ.get("EVERYNODE_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "datasets"
    if not folder.is_dir():
        pytest.skip("needs the public graphs: set EVERYNODE_DATA to a folder that holds them")
    return folder
