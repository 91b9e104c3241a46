"""Runs and outcomes as plain data."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from everynode.experiments.analysis import CellResult, ExperimentResult


def to_json(outcome: ExperimentResult) -> dict[str, Any]:
    """An experiment's cells, as ``reproduce --json`` prints them and ``results/`` keeps them."""
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
    """All experiments, one line per cell."""
    blocks = []
    for outcome in outcomes:
        table = to_json(outcome)
        cells = ",\n".join(json.dumps(cell) for cell in table.pop("cells"))
        blocks.append(f'{json.dumps(table)[:-1]}, "cells": [\n{cells}\n]}}')
    return "[\n" + ",\n".join(blocks) + "\n]\n"


def _cell(outcome: CellResult) -> dict[str, Any]:
    cell, on_these = outcome.cell, outcome.on_these
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
        "planned": outcome.planned,
        "diverged": outcome.diverged,
        "summary": None if outcome.summary is None else outcome.summary.to_dict(),
        # Of folds, not widened for their overlap as that of the summary is: the verdict is by this one.
        "verdict_interval": None
        if not outcome.verdict or on_these is None or on_these.count < 2
        else [on_these.low, on_these.high],
        "test_oracle": None if outcome.oracle is None else outcome.oracle.mean,
        "short_at_any_epoch": outcome.short_at_any_epoch,
        "gain": None
        if outcome.gain is None
        else {"against": cell.against, **outcome.gain.to_dict(), "p_holm": outcome.p_holm},
        "verdict": outcome.verdict,
        "remark": outcome.remark,
        "runs": [key[:12] for key in outcome.keys],
    }


#: What does not fit a table.
_LARGE = ("positions", "labels")


def runs_csv(records: Mapping[str, dict[str, Any]]) -> str:
    """One line per run, in the order of the keys; what is nested has a dotted name. Maps are left out.

    Columns are in the order of their names, and one that is empty throughout is left out: so the same runs give the same bytes
    wherever they come from.
    """
    flat = {
        key: _flatten({name: value for name, value in record.items() if name not in _LARGE})
        for key, record in records.items()
    }
    names = {name for row in flat.values() for name, value in row.items() if value is not None} - {
        "key"
    }
    out = io.StringIO()
    writer = csv.DictWriter(out, ["key", *sorted(names)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: value for name, value in flat[key].items() if value is not None}
        for key in sorted(flat)
    )
    return out.getvalue()


def runs_json(records: Mapping[str, dict[str, Any]]) -> str:
    """Every record with its cost, one line each."""
    lines = ",\n".join(json.dumps(records[key], sort_keys=True) for key in sorted(records))
    return f"[\n{lines}\n]\n"


def _flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = json.dumps(value) if isinstance(value, list) else value
    return flat
