"""Reading back what ``everynode results export`` wrote, so that runs that are kept as a table (in a repository, say) are not done again."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everynode.data.entries import find
from everynode.data.files import Root
from everynode.errors import DataError, EverynodeError
from everynode.experiments.run import Run
from everynode.experiments.store import Store
from everynode.settings import Batches, Settings

#: What a run took; everything else in a record is what it got.
COST = ("seconds", "seconds_per_epoch", "peak_mb", "training_ms", "inference_ms")
#: Columns of a table that are text, whatever they look like; those below ``versions`` are too.
TEXT = frozenset({"key", "dataset", "split", "preset", "objective", "backbone", "task", "version", "python", "system", "error"})


@dataclass(frozen=True)
class Export:
    """The runs of an exported table (.csv) or list (.json), each with its record."""

    runs: list[tuple[Run, dict[str, Any]]]
    #: How many records are not whole: without their run's settings, or maps in a table, which has no room for them.
    left_out: int

    @classmethod
    def read(cls, file: Path, root: Root) -> Export:
        """Read a file. A record whose run has another key than it says is refused: it was changed, or its graph was another."""
        runs, left_out = [], 0
        for where, record in _records(file):
            run = _run(record, root, f"{file}, {where}")
            if run is None or (run.task in ("tsne", "tsne-input") and "positions" not in record):
                left_out += 1
            else:
                runs.append((run, record))
        return cls(runs, left_out)

    def merge_into(self, store: Store) -> tuple[int, int]:
        """Put what is new into a store; how many that were, and how many were there already.

        An export has no curves, and a table no confusion matrices, so these runs have none.
        """
        known = store.keys()
        fresh = [(run, record) for run, record in self.runs if run.key not in known]
        for run, record in fresh:
            got = {name: value for name, value in {**run.describe(), **record}.items() if name not in COST}
            store.put(run.specification, got, {name: record[name] for name in COST if name in record}, {})
        return len(fresh), len(self.runs) - len(fresh)


def _records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record with its place in the file."""
    try:
        if file.suffix == ".csv":
            with file.open(newline="", encoding="utf-8") as lines:
                table = csv.DictReader(lines, strict=True)
                if "key" not in (table.fieldnames or ()):
                    raise ValueError("it has no column 'key'")
                for row in table:
                    if None in row or None in row.values():
                        raise ValueError(f"row {table.line_num} has more or fewer cells than the header")
                    yield f"row {table.line_num}", _unflatten(row)
            return
        listed = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(listed, list) or not all(isinstance(record, dict) for record in listed):
            raise ValueError("it is no list of records")
        yield from ((f"record {number}", record) for number, record in enumerate(listed, 1))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{file} is no export of `everynode results export` ({error}): name another file.") from error


def _run(record: Mapping[str, Any], root: Root, where: str) -> Run | None:
    """The run that a record describes; None if the record does not say with which settings."""
    if not isinstance(record.get("settings"), dict):
        return None
    try:
        batches = Batches(**record["batches"]) if record.get("batches") else None
        runs = [
            Run(
                record["dataset"], find(record["dataset"]).digest(record["split"], root), record["split"], record["fold"], record["seed"],
                record["preset"], record["objective"], Settings(**record["settings"]), record.get("per_class"), record.get("split_seed"),
                directed, record["task"], record["versions"], batches, record.get("processes") or 1,
            )
            for directed in (False, True)  # which no record says
        ]  # fmt: skip
    except (EverynodeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}: this does not describe a run ({error}): take the file as it was exported.") from error
    for run in runs:
        if run.key == record.get("key"):
            return run
    raise DataError(f"{where}: the record is not of the run that its key names: it was changed, or its graph was another.")


def _unflatten(row: Mapping[str, str]) -> dict[str, Any]:
    """A line of the table as a record.

    >>> _unflatten({"seed": "3", "settings.mi": "0.5", "settings.halves": "fixed", "per_class": "", "versions.protocol": "1"})
    {'seed': 3, 'settings': {'mi': 0.5, 'halves': 'fixed'}, 'versions': {'protocol': '1'}}
    """
    record: dict[str, Any] = {}
    for name, text in row.items():
        if text == "":
            continue
        *path, last = name.split(".")
        inner = record
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = text if name in TEXT or path == ["versions"] else _value(text)
    return record


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("["):
        return json.loads(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
