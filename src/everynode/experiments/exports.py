"""Reading back what ``everynode results export`` wrote, so that runs that are kept as a table (in a repository, say) are not done again.

A record's key tells which run it is of, and is checked; what the run got cannot be: it is only looked at for whether it could be.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from everynode.datasets.entries import find
from everynode.datasets.files import Root
from everynode.errors import DataError, UsageError
from everynode.evaluation.metrics import METRICS, RECORDED
from everynode.experiments.experiment import BACKBONES
from everynode.experiments.run_spec import Run, Task
from everynode.experiments.store import COST, Row, Store, row_of
from everynode.objective_names import parse_objective
from everynode.settings import Batches, Settings

T = TypeVar("T", Settings, Batches)

#: Columns of a table that are text, whatever they look like; those below ``versions`` are too.
TEXT = ("key", "dataset", "split", "preset", "objective", "task", "version", "python", "system")
COUNTS = ("fold", "seed", "per_class", "split_seed", "processes", "epochs", "best_epoch")
SHARES = (
    *(f"{part}_{name}" for part in ("val", "test") for name in RECORDED if METRICS[name].percent),
    "test_oracle_accuracy",
)
OTHERS = tuple(
    f"{part}_{name}" for part in ("val", "test") for name in RECORDED if not METRICS[name].percent
)
#: No number of a run is larger.
LARGEST = 1e300
#: Without these nobody knows of which run a record is.
NEEDED = (*TEXT, "fold", "seed", "settings", "versions")


@dataclass(frozen=True)
class Export:
    """The runs of an exported table (.csv) or list (.json), or of another store, as rows of a store."""

    rows: list[Row]
    #: How many records were left out: maps in a table, which has no room for them; times, which are of another machine; and records of
    #: graphs that everynode 0.8 and before wrote without their settings.
    left_out: int

    @classmethod
    def read(cls, file: Path, root: Root) -> Export:
        """Read a file, all of it before anything is made of it. What is wrong in it is told with its place.

        An export has no curves, so these runs have none.
        """
        runs, left_out = read_runs(file, root)
        rows = []
        for run, record in runs.values():
            if run.task == "time" or _lost_its_map(record):
                left_out += 1
                continue
            cost = {name: record.pop(name) for name in COST if name in record}
            rows.append(row_of(run.specification, record, cost, {}))
        if not rows:
            raise DataError(
                f"There is no run in {file} that could be taken over: is it what `everynode results export` wrote?"
            )
        return cls(rows, left_out)

    @classmethod
    def of_store(cls, store: Store) -> Export:
        """What a store has to give to another one: all but times, too."""
        rows = store.rows()
        kept = [row for row in rows if json.loads(row[1])["task"] != "time"]
        return cls(kept, len(rows) - len(kept))


class Exports:
    """Exports as a store that can only be read: with their times, without curves, and without the maps that are in no file."""

    def __init__(self, files: Iterable[Path], root: Root):
        read = [read_runs(file, root)[0] for file in files]
        self._records = {
            key: record
            for runs in read
            for key, (_, record) in runs.items()
            if not _lost_its_map(record)
        }

    def records(self) -> dict[str, dict[str, Any]]:
        """Record and cost of every run, by key; of a run that stands in several files, those of the last."""
        return self._records

    def curve(self, key: str) -> dict[str, list[float]]:
        """None of any run."""
        return {}


def read_runs(file: Path, root: Root) -> tuple[dict[str, tuple[Run, dict[str, Any]]], int]:
    """Every run of a file with its record, by key; and how many records there are that do not say of which run they are."""
    runs: dict[str, tuple[Run, dict[str, Any]]] = {}
    nameless = 0
    for _, record, run in _checked(file, root):
        if run is None:
            nameless += 1
        else:
            runs[run.key] = run, {**record, **run.describe()}
    return runs, nameless


def added(
    file: Path, records: Mapping[str, dict[str, Any]], root: Root
) -> tuple[dict[str, dict[str, Any]], int]:
    """The records of a file, as they stand there, and these, which count where both have a run; and how many of these were left out.

    Times of two machines have no mean: these are left out unless they are there for all runs that the file has times of.
    """
    found: dict[str, dict[str, Any]] = {}
    for where, record, _ in _checked(file, root):
        if not isinstance(record.get("key"), str) or record["key"] in found:
            raise DataError(
                f"{file}, {where}: it has no key, or one that stands in the file twice: take the file as it was exported."
            )
        found[record["key"]] = record
    theirs, ours = (
        {key for key, record in one.items() if record.get("task") == "time"}
        for one in (found, records)
    )
    taken = {key: record for key, record in records.items() if theirs <= ours or key not in ours}
    return found | taken, len(records) - len(taken)


def is_export(file: Path) -> bool:
    """Whether a file is to be read as an export: by its name."""
    return file.suffix.lower() in (".csv", ".json")


def has_runs(file: Path) -> bool:
    """Whether a file is there that is an export, by what is in it."""
    try:
        return file.is_file() and any("key" in record for _, record in _records(file))
    except DataError:
        return False


def _checked(file: Path, root: Root) -> Iterator[tuple[str, dict[str, Any], Run | None]]:
    """Every record with its place in the file and its run, once it is known to be of that run; None: it does not say of which it is."""
    seen, digests = set[str](), dict[tuple[str, str], str]()
    for where, record in _records(file):
        run = None
        try:
            if "settings" in record:
                run = _run(record, root, digests)
                if run.key in seen:
                    raise DataError(
                        f"run {run.key[:12]} stands in the file twice: take the file as it was exported."
                    )
                seen.add(run.key)
                _look_at(record)
                json.dumps(
                    {**record, **run.describe()}, ensure_ascii=False
                ).encode()  # half a character, which no page could show
        except (DataError, UsageError, UnicodeEncodeError) as error:
            raise DataError(f"{file}, {where}: {error}") from error
        except RecursionError:
            raise DataError(
                f"{file}, {where}: lists within lists without end: take the file as it was exported."
            ) from None
        yield where, record, run


def _lost_its_map(record: Mapping[str, Any]) -> bool:
    return str(record.get("task")).startswith("tsne") and "positions" not in record


def _records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record with its place in the file."""
    no_export = f"{file} is no export of `everynode results export`"
    try:
        if file.suffix.lower() == ".csv":
            with file.open(newline="", encoding="utf-8-sig") as lines:
                table = csv.DictReader(lines, strict=True)
                _check_columns(table.fieldnames or (), no_export)
                for row in table:
                    if None in row or None in row.values():
                        raise DataError(
                            f"{no_export}: row {table.line_num} has more or fewer cells than the header."
                        )
                    yield f"row {table.line_num}", _unflatten(row)
            return
        listed = json.loads(file.read_text(encoding="utf-8-sig"))
        if not isinstance(listed, list) or not all(isinstance(record, dict) for record in listed):
            raise DataError(f"{no_export}: it is not a list of records.")
        yield from ((f"record {number}", record) for number, record in enumerate(listed, 1))
    except FileNotFoundError:
        raise DataError(f"There is no file {file}.") from None
    except DataError:
        raise
    except (
        OSError,
        ValueError,
        csv.Error,
        RecursionError,
    ) as error:  # a number of 5,000 digits is a ValueError
        raise DataError(f"{no_export} ({error}): name another file.") from error


def _check_columns(names: Any, no_export: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{no_export}: it has two columns {name!r}.")
        if name.count(".") > 1 or ("." in name and name.partition(".")[0] in names):
            raise DataError(f"{no_export}: its column {name!r} is none of a run.")
    missing = [
        name for name in ("key", "dataset", "task", "settings.num_layers") if name not in names
    ]
    if missing:
        raise DataError(f"{no_export}: it has no column {missing[0]!r}.")


def _run(record: Mapping[str, Any], root: Root, digests: dict[tuple[str, str], str]) -> Run:
    """The run that a record describes, which has to have the record's key."""
    missing = [name for name in NEEDED if record.get(name) is None]
    if missing:
        raise DataError(f"{missing[0]} is missing: take the file as it was exported.")
    for name in (*TEXT, "settings", "versions", "batches"):
        kind = dict if name in ("settings", "versions", "batches") else str
        if record.get(name) is not None and not isinstance(record[name], kind):
            raise _wrong(name, "a table" if kind is dict else "text", record[name])
    for name in COUNTS:
        if record.get(name) is not None and (type(record[name]) is not int or record[name] < 0):
            raise _wrong(name, "a whole number >= 0", record[name])
    if record["task"] not in get_args(Task):
        raise _wrong("task", f"one of {', '.join(get_args(Task))}", record["task"])
    parse_objective(record["objective"])
    place = record["dataset"], record["split"]
    if (
        "graph_digest" not in record and place not in digests
    ):  # everynode 0.8 and before did not write it down
        digests[place] = find(record["dataset"]).digest(record["split"], root)
    settings = _made(Settings, record["settings"], "settings")
    batches = _made(Batches, record["batches"], "batches") if record.get("batches") else None
    if settings.backbone not in BACKBONES:
        raise _wrong("settings.backbone", f"one of {', '.join(BACKBONES)}", settings.backbone)
    for directed in (record["directed"],) if "directed" in record else (False, True):
        run = Run(
            dataset=record["dataset"], graph_digest=record.get("graph_digest") or digests[place], split=record["split"],
            fold=record["fold"], seed=record["seed"], preset=record["preset"], objective=record["objective"], settings=settings,
            per_class=record.get("per_class"), split_seed=record.get("split_seed"), directed=bool(directed), task=record["task"],
            versions=record["versions"], batches=batches, processes=record.get("processes") or 1,
        )  # fmt: skip
        if run.key == record["key"]:
            return run
    raise DataError(
        "it describes another run than its key names (it was changed, or is of another graph): take the file as it was exported."
    )


def _made(kind: type[T], fields: Mapping[str, Any], where: str) -> T:
    """Settings or batches of a record's values, each of the kind that the default has."""
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    for name, value in fields.items():
        if name not in defaults:
            raise DataError(
                f"{where}.{name} is no setting of this everynode: take another version, or the file as it was exported."
            )
        if isinstance(defaults[name], int | float):
            _number(f"{where}.{name}", value, math.inf, low=-math.inf)
    try:
        return kind(**fields)
    except TypeError:
        raise DataError(
            f"the {where} are none of a run: take the file as it was exported."
        ) from None


def _look_at(record: Mapping[str, Any]) -> None:
    """Refuse what no run can have got, so that no table or page trips over it later."""
    for name in (*SHARES, *OTHERS, *COST):
        _number(name, record.get(name), 1.0 if name in SHARES else math.inf)
    for name in ("nodes", "terms", "statistics"):
        inner = record.get(name)
        if inner is not None and not isinstance(inner, dict):
            raise _wrong(name, "a table", inner)
        for key, value in (inner or {}).items():
            _number(f"{name}.{key}", value, math.inf, low=-math.inf)
    if "error" in record:
        return
    trained = record["task"] in ("train", "tsne")
    nodes = record.get("nodes") or {}
    for part in ("train", "val", "test") if trained else ():
        if type(nodes.get(part)) is not int or nodes[part] < (part == "train"):
            raise _wrong(
                f"nodes.{part}", f"a whole number >= {int(part == 'train')}", nodes.get(part)
            )
    parts = [part for part in ("val", "test") if trained and nodes[part]]
    wanted = [
        *(f"{part}_accuracy" for part in parts),
        *(("epochs", "best_epoch", "terms") if trained else ()),
    ]
    for name in [*wanted, *(("statistics",) if record["task"] == "describe" else ())]:
        if record.get(name) is None:
            raise DataError(f"{name} is missing: take the file as it was exported.")
    if None in (record.get("terms") or {}).values():
        raise _wrong("terms", "numbers", record["terms"])
    confusion, positions, labels = (
        record.get(name) for name in ("confusion", "positions", "labels")
    )
    if confusion is not None and not (
        isinstance(confusion, list) and _is_table(confusion, int, columns=len(confusion))
    ):
        raise _wrong("confusion", "as many whole numbers a row as it has rows", confusion)
    if positions is not None and not _is_table(positions, int | float, columns=2):
        raise _wrong("positions", "two numbers for every node", positions)
    if positions is not None and not (
        isinstance(labels, list)
        and len(labels) == len(positions)
        and all(type(x) is int for x in labels)
    ):
        raise _wrong("labels", "a whole number for every node", labels)


def _is_table(found: Any, kind: Any, *, columns: int) -> bool:
    """Whether it is a list of rows, at least one, of so many numbers each."""
    if not isinstance(found, list) or not all(
        isinstance(row, list) and len(row) == columns for row in found
    ):
        return False
    values = [value for row in found for value in row]
    return bool(values) and all(
        isinstance(value, kind) and not isinstance(value, bool) and abs(value) < 1e9
        for value in values
    )


def _number(name: str, value: Any, high: float, *, low: float = 0.0) -> None:
    if value is not None and (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not low <= value <= high
        or not -LARGEST <= value <= LARGEST
    ):
        raise _wrong(
            name,
            "a number from 0 to 1" if high == 1 else "a number" if low else "a number >= 0",
            value,
        )


def _wrong(name: str, expected: str, given: object) -> DataError:
    return DataError(f"{name} must be {expected}. Got {str(given)[:40]!r}.")


def _unflatten(row: Mapping[str, str]) -> dict[str, Any]:
    """A line of the table as a record.

    >>> _unflatten({"seed": "3", "settings.mi": "0.5", "settings.halves": "fixed", "per_class": "", "versions.protocol": "1"})
    {'seed': 3, 'settings': {'mi': 0.5, 'halves': 'fixed'}, 'versions': {'protocol': '1'}}
    """
    record: dict[str, Any] = {}
    for name, text in row.items():
        outer, _, last = name.rpartition(".")
        if text != "":
            inner = record.setdefault(outer, {}) if outer else record
            inner[last] = text if name in TEXT or outer == "versions" else _value(text)
    return record


def _value(text: str) -> Any:
    """A cell's number, truth value or list; else its text."""
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
