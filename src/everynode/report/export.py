"""Runs and outcomes as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from everynode.errors import UsageError
from everynode.experiments.analysis import CellResult, ExperimentResult
from everynode.experiments.exports import add_records
from everynode.storage.atomic import write_atomically
from everynode.storage.locks import changing

#: Entries of a record that are too large for a table.
_LARGE = ("positions", "labels")


def to_json(outcome: ExperimentResult) -> dict[str, Any]:
    """Return the cells of an experiment for ``reproduce --json`` and ``results/``."""
    experiment = outcome.experiment
    return {
        "id": experiment.id,
        "title": experiment.title,
        "reference": experiment.reference,
        "about": experiment.about,
        "in_paper": experiment.in_paper,
        "preset": outcome.preset,
        "over": experiment.over,
        "cells": [_cell(cell) for cell in outcome.cells],
    }


def tables_json(outcomes: Sequence[ExperimentResult]) -> str:
    """Return all experiments as JSON, one line per cell."""
    blocks = []
    for outcome in outcomes:
        table = to_json(outcome)
        cells = ",\n".join(json.dumps(cell) for cell in table.pop("cells"))
        blocks.append(f'{json.dumps(table)[:-1]}, "cells": [\n{cells}\n]}}')
    return "[\n" + ",\n".join(blocks) + "\n]\n"


def _cell(outcome: CellResult) -> dict[str, Any]:
    cell, here, gain = outcome.cell, outcome.on_these, outcome.gain
    decides = bool(outcome.verdict) and here is not None and here.count > 1
    return {
        "panel": cell.panel,
        "row": cell.row,
        "column": cell.column,
        "dataset": cell.dataset,
        "split": cell.split,
        "backbone": cell.backbone,
        "objective": cell.objective,
        "metric": cell.metric,
        "published": cell.published,
        **{name: text for name in ("reason", "mark") if (text := getattr(cell, name))},
        "planned": outcome.planned,
        "diverged": outcome.diverged,
        "summary": None if outcome.summary is None else outcome.summary.to_dict(),
        # The verdict uses this interval; the summary's is widened for the overlap of folds.
        "verdict_interval": [here.low, here.high] if decides and here is not None else None,
        "test_oracle": None if outcome.oracle is None else outcome.oracle.mean,
        "short_at_any_epoch": outcome.short_at_any_epoch,
        "gain": None
        if gain is None
        else {"against": cell.against, **gain.to_dict(), "p_holm": outcome.p_holm},
        "verdict": outcome.verdict,
        "remark": outcome.remark,
        "runs": [key[:12] for key in outcome.keys],
    }


def runs_csv(records: Mapping[str, dict[str, Any]]) -> str:
    """Return one line per run in the order of the keys; nested entries have dotted names.

    Columns are sorted by name, and empty ones are left out, so the same runs give the same
    bytes. Maps of nodes are left out.
    """
    flat = {
        key: _flatten({name: value for name, value in record.items() if name not in _LARGE})
        for key, record in records.items()
    }
    used = {name for row in flat.values() for name, value in row.items() if value is not None}
    out = io.StringIO()
    writer = csv.DictWriter(out, ["key", *sorted(used - {"key"})], lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: value for name, value in flat[key].items() if value is not None}
        for key in sorted(flat)
    )
    return out.getvalue()


def runs_json(records: Mapping[str, dict[str, Any]]) -> str:
    """Return every record with its cost, one line each."""
    lines = ",\n".join(json.dumps(records[key], sort_keys=True) for key in sorted(records))
    return f"[\n{lines}\n]\n"


#: The writer of each ending.
_WRITERS = {".csv": runs_csv, ".json": runs_json}


def check_ending(file: Path) -> None:
    """Refuse a file without the ending of a format."""
    if file.suffix.lower() not in _WRITERS:
        raise UsageError(f"{file} must end in .csv or .json, which decides the format.")


def write_runs(
    file: Path, records: Mapping[str, dict[str, Any]], *, add: bool = False
) -> tuple[int, int]:
    """Write records in the format of the file's ending; ``add`` keeps the file's other records.

    Returns
    -------
    written, left_out : int
        Number of records in the file, and of new times that were left out; see
        :func:`everynode.experiments.exports.add_records`.
    """
    check_ending(file)
    left_out = 0
    with changing(file) if add else nullcontext():
        if add and file.exists():
            records, left_out = add_records(file, records)
        write_atomically(file, _WRITERS[file.suffix.lower()](records).encode())
    return len(records), left_out


def _flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = json.dumps(value) if isinstance(value, list) else value
    return flat
