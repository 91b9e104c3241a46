"""A record of a run, and what a store's file holds."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

RECORD = {
    "test_accuracy": 0.7000000000000001,
    "settings": {"tv": 5.0},
    "name": "Größe",
    "none": None,
}
COST = {"seconds": 1.5}
CURVE = {"ce": [1.0, 0.1], "val_accuracy": [0.25, 1e-300]}


def key_of(specification: str) -> str:
    return hashlib.sha256(specification.encode()).hexdigest()


def rows_of(path: Path) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM runs ORDER BY key").fetchall()


def lock_files(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.lock")]
