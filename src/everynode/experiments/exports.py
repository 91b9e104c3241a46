"""Read the files of ``everynode results export``, so their runs are not repeated.

The key of a record is checked against the run that the record describes. The results cannot be
checked in this way; only impossible values are refused.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from everynode.batches import Batches
from everynode.errors import DataError, UsageError
from everynode.evaluation.metrics import METRICS, RECORDED
from everynode.experiments.run_spec import Run, Task
from everynode.experiments.store import COST, Merged, Store, store_path
from everynode.experiments.store_file import Row, make_row
from everynode.objective_names import parse_objective
from everynode.settings import Settings

#: Columns whose cells stay text, like those below ``versions``.
TEXT = (
    "key", "dataset", "graph_digest", "split", "preset", "objective", "task", "version", "python",
    "system",
)  # fmt: skip
COUNTS = ("fold", "seed", "per_class", "split_seed", "processes", "epochs", "best_epoch")
SHARES = (
    *(f"{part}_{name}" for part in ("val", "test") for name in RECORDED if METRICS[name].percent),
    "test_oracle_accuracy",
)
OTHERS = tuple(
    f"{part}_{name}" for part in ("val", "test") for name in RECORDED if not METRICS[name].percent
)
TABLES = ("settings", "versions", "batches")
#: The entries that every record has.
REQUIRED = (*TEXT, "fold", "seed", "directed", "settings", "versions")
#: The largest plausible number in a record.
LARGEST = 1e300
#: The remedy for a file that was edited.
RESTORE = "Restore the file from its export."


@dataclass(frozen=True)
class Export:
    """The runs of an export or of another store, as rows of a store.

    Parameters
    ----------
    rows : list of Row
        The runs that a store can take.
    left_out : int
        Number of records without a row: times, which belong to another machine, and node maps
        without positions in the file.
    """

    rows: list[Row]
    left_out: int

    @classmethod
    def read(cls, file: Path) -> Export:
        """Read and check a whole file. Its runs have no training curves."""
        runs = read_runs(file)
        rows = []
        for run, record in runs.values():
            if run.task != "time" and not _lacks_positions(record):
                cost = {name: record.pop(name) for name in COST if name in record}
                rows.append(make_row(run.specification, record, cost, {}))
        if not rows:
            raise DataError(
                f"{file} has no run that a store can take. "
                "Name a file that `everynode results export` wrote."
            )
        return cls(rows, len(runs) - len(rows))

    @classmethod
    def of_store(cls, store: Store) -> Export:
        """Return the runs of a store without its times."""
        rows = store.rows()
        kept = [row for row in rows if json.loads(row[1]).get("task") != "time"]
        return cls(kept, len(rows) - len(kept))


class ExportedRuns:
    """The runs of exports, with the reading methods of a store.

    The runs have times but no curves. Maps without positions are left out.

    Parameters
    ----------
    files : iterable of Path
        Exports; for a run in several files the last one counts.
    """

    def __init__(self, files: Iterable[Path]):
        self._records = {
            key: record
            for file in files
            for key, (_, record) in read_runs(file).items()
            if not _lacks_positions(record)
        }

    def records(self) -> dict[str, dict[str, Any]]:
        """Return record and cost of every run by key."""
        return self._records

    def curve(self, key: str) -> dict[str, list[float]]:
        """Return no curve, since exports have none."""
        return {}


def read_runs(file: Path) -> dict[str, tuple[Run, dict[str, Any]]]:
    """Read every run of a file and its record, by key."""
    return {run.key: (run, {**record, **run.describe()}) for record, run in _checked(file)}


def add_records(
    file: Path, records: Mapping[str, dict[str, Any]]
) -> tuple[dict[str, dict[str, Any]], int]:
    """Add records to those of a file; a new record replaces an older one of the same run.

    Times of two machines must not be averaged. New times are therefore left out unless they
    replace all times of the file.

    Returns
    -------
    records : dict
        The records of both, by key.
    left_out : int
        Number of new times that were left out.
    """
    old = {run.key: record for record, run in _checked(file)}
    old_times, new_times = (
        {key for key, record in some.items() if record.get("task") == "time"}
        for some in (old, records)
    )
    replaced = old_times <= new_times
    new = {key: record for key, record in records.items() if replaced or key not in new_times}
    return old | new, len(records) - len(new)


def load_records(source: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a store or of an export, with their times."""
    if is_export(source):
        return {key: record for key, (_, record) in read_runs(source).items()}
    return Store(source, must_exist=True).records()


def merge(sources: Sequence[Path], into: Path) -> list[tuple[Merged, int]]:
    """Add the runs of stores and exports to a store, after all of them were read.

    Returns
    -------
    list of (Merged, int)
        For every source: what happened to its rows, and how many records were left out.
    """
    exports = [
        Export.read(path) if is_export(path) else Export.of_store(Store(path, must_exist=True))
        for path in sources
    ]
    store = Store(into)
    return [(store.put_all(export.rows), export.left_out) for export in exports]


def merge_target(into: Path) -> Path:
    """Return the store that gets the runs of a merge, from its path or its folder."""
    if is_export(into):
        raise UsageError(f"--into {into} has the name of an export: name a file that ends in .db.")
    return store_path(into) if into.is_dir() or not (into.suffix or into.exists()) else into


def is_export(file: Path) -> bool:
    """Whether the name of a file is that of an export."""
    return file.suffix.lower() in (".csv", ".json")


def has_runs(file: Path) -> bool:
    """Whether a file exists and its content is an export."""
    try:
        return file.is_file() and any("key" in record for _, record in _records(file))
    except DataError:
        return False


def _checked(file: Path) -> Iterator[tuple[dict[str, Any], Run]]:
    """Yield every record with its run; refuse a record that does not match its key."""
    seen = set[str]()
    for where, record in _records(file):
        try:
            run = _run(record)
            if run.key in seen:
                raise DataError(f"run {run.key[:12]} appears twice in the file. {RESTORE}")
            seen.add(run.key)
            _check_results(record)
            # A lone surrogate is valid JSON, but cannot be encoded in a page.
            json.dumps({**record, **run.describe()}, ensure_ascii=False).encode()
        except (DataError, UsageError, UnicodeEncodeError, OverflowError) as error:
            raise DataError(f"{file}, {where}: {error}") from error
        except RecursionError:
            raise DataError(f"{file}, {where}: lists are nested too deeply. {RESTORE}") from None
        yield record, run


def _lacks_positions(record: Mapping[str, Any]) -> bool:
    return str(record.get("task")).startswith("tsne") and "positions" not in record


def _records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every record with its place in the file."""
    not_export = f"{file} is not an export of `everynode results export`"
    try:
        if file.suffix.lower() == ".csv":
            with file.open(newline="", encoding="utf-8-sig") as lines:
                table = csv.DictReader(lines, strict=True)
                _check_columns(table.fieldnames or (), not_export)
                for row in table:
                    if None in row or None in row.values():
                        raise DataError(
                            f"{not_export}: row {table.line_num} and the header differ in length."
                        )
                    yield f"row {table.line_num}", _unflatten(row)
            return
        records = json.loads(file.read_text(encoding="utf-8-sig"))
        if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
            raise DataError(f"{not_export}: it is not a list of records.")
        yield from ((f"record {number}", record) for number, record in enumerate(records, 1))
    except FileNotFoundError:
        raise DataError(f"There is no file {file}.") from None
    except DataError:
        raise
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        raise DataError(f"{not_export} ({error}): name another file.") from error


def _check_columns(names: Sequence[str], not_export: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{not_export}: column {name!r} appears twice.")
        if name.count(".") > 1 or ("." in name and name.partition(".")[0] in names):
            raise DataError(f"{not_export}: unknown column {name[:60]!r}.")
    for name in ("key", "dataset", "task", "settings.num_layers"):
        if name not in names:
            raise DataError(f"{not_export}: column {name!r} is missing.")


def _run(record: Mapping[str, Any]) -> Run:
    """Return the run that a record describes; its key must match the record."""
    for name in REQUIRED:
        if record.get(name) is None:
            raise DataError(f"{name} is missing. {RESTORE}")
    for name in (*TEXT, *TABLES):
        kind, word = (dict, "a table") if name in TABLES else (str, "text")
        if record.get(name) is not None and not isinstance(record[name], kind):
            raise _invalid(name, word, record[name])
    for name in COUNTS:
        if record.get(name) is not None and (type(record[name]) is not int or record[name] < 0):
            raise _invalid(name, "a whole number >= 0", record[name])
    if record["task"] not in get_args(Task):
        raise _invalid("task", f"one of {', '.join(get_args(Task))}", record["task"])
    if not isinstance(record["directed"], bool):
        raise _invalid("directed", "true or false", record["directed"])
    parse_objective(record["objective"])
    fields = {f.name: record[f.name] for f in dataclasses.fields(Run) if f.name in record}
    fields["settings"] = Settings.from_dict(record["settings"], "settings")
    if "batches" in fields:
        fields["batches"] = _batches(record["batches"])
    run = Run(**{name: value for name, value in fields.items() if value is not None})
    if run.key != record["key"]:
        raise DataError(f"the record does not match its key {record['key'][:12]!r}. {RESTORE}")
    return run


def _batches(values: Mapping[str, Any]) -> Batches:
    try:
        return Batches(**{**values, "fan_out": tuple(values["fan_out"])})
    except (KeyError, TypeError) as error:
        raise DataError(f"batches: {error}. {RESTORE}") from None


def _check_results(record: Mapping[str, Any]) -> None:
    """Refuse results that no run can have, before a table or page fails on them."""
    for name in (*SHARES, *OTHERS, *COST):
        _check_number(name, record.get(name), 1.0 if name in SHARES else math.inf)
    for name in ("nodes", "terms", "statistics"):
        table = record.get(name)
        if table is not None and not isinstance(table, dict):
            raise _invalid(name, "a table", table)
        for key, value in (table or {}).items():
            _check_number(f"{name}.{key}", value, math.inf, low=-math.inf)
    if "error" in record:
        return
    if record["task"] in ("train", "tsne"):
        _check_training(record)
    if record["task"] == "describe" and record.get("statistics") is None:
        raise DataError(f"statistics is missing. {RESTORE}")
    confusion, positions, labels = (
        record.get(name) for name in ("confusion", "positions", "labels")
    )
    if confusion is not None and not (
        isinstance(confusion, list) and _is_matrix(confusion, int, columns=len(confusion))
    ):
        raise _invalid("confusion", "a square matrix of whole numbers", confusion)
    if positions is not None and not _is_matrix(positions, int | float, columns=2):
        raise _invalid("positions", "two numbers for each node", positions)
    if positions is not None and not (
        isinstance(labels, list)
        and len(labels) == len(positions)
        and all(type(label) is int for label in labels)
    ):
        raise _invalid("labels", "a whole number for each node", labels)


def _check_training(record: Mapping[str, Any]) -> None:
    nodes = record.get("nodes") or {}
    for part in ("train", "val", "test"):
        least = int(part == "train")
        if type(nodes.get(part)) is not int or nodes[part] < least:
            raise _invalid(f"nodes.{part}", f"a whole number >= {least}", nodes.get(part))
    accuracies = [f"{part}_accuracy" for part in ("val", "test") if nodes[part]]
    for name in (*accuracies, "epochs", "best_epoch", "terms"):
        if record.get(name) is None:
            raise DataError(f"{name} is missing. {RESTORE}")
    if None in record["terms"].values():
        raise _invalid("terms", "numbers", record["terms"])


def _is_matrix(rows: Any, kind: Any, *, columns: int) -> bool:
    """Whether the value is a list of one or more rows of numbers."""
    if not isinstance(rows, list) or not all(
        isinstance(row, list) and len(row) == columns for row in rows
    ):
        return False
    values = [value for row in rows for value in row]
    return bool(values) and all(
        isinstance(value, kind) and not isinstance(value, bool) and abs(value) < 1e9
        for value in values
    )


def _check_number(name: str, value: Any, high: float, *, low: float = 0.0) -> None:
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high or not -LARGEST <= value <= LARGEST:
        expected = "a number from 0 to 1" if high == 1 else "a number" if low else "a number >= 0"
        raise _invalid(name, expected, value)


def _invalid(name: str, expected: str, value: object) -> DataError:
    return DataError(f"{name} must be {expected}. Got {str(value)[:40]!r}.")


def _unflatten(row: Mapping[str, str]) -> dict[str, Any]:
    """Turn a row of the table into a record; empty cells are left out.

    >>> _unflatten({"seed": "3", "settings.mi": "0.5", "per_class": "", "versions.protocol": "1"})
    {'seed': 3, 'settings': {'mi': 0.5}, 'versions': {'protocol': '1'}}
    """
    record: dict[str, Any] = {}
    for name, text in row.items():
        outer, _, last = name.rpartition(".")
        if text != "":
            inner = record.setdefault(outer, {}) if outer else record
            inner[last] = text if name in TEXT or outer == "versions" else _value(text)
    return record


def _value(text: str) -> Any:
    """Parse a number, a truth value or a list; return other text unchanged."""
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("["):
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
