"""Outcomes as plain data."""

from __future__ import annotations

from typing import Any

from everynode.experiments.outcome import CellOutcome, Outcome


def to_json(outcome: Outcome) -> dict[str, Any]:
    """An experiment's cells, as ``reproduce --json`` prints them and ``results/`` keeps them."""
    experiment = outcome.experiment
    return {
        "id": experiment.id,
        "title": experiment.title,
        "reference": experiment.reference,
        "preset": outcome.preset,
        "over": experiment.over,
        "cells": [_cell(cell) for cell in outcome.cells],
    }


def _cell(outcome: CellOutcome) -> dict[str, Any]:
    cell = outcome.cell
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
        "test_oracle": outcome.oracle,
        "gain": None if outcome.gain is None else {"against": cell.against, **outcome.gain.to_dict(), "p_holm": outcome.p_holm},
        "verdict": outcome.verdict,
        "runs": [key[:12] for key in outcome.keys],
    }
