"""Select the stored records of a preset, an experiment or a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everynode.datasets.files import Root
from everynode.errors import UsageError, unknown
from everynode.experiments.experiment import experiments
from everynode.experiments.run_spec import WITH_MODEL

if TYPE_CHECKING:  # needs SciPy
    from everynode.experiments.analysis import ExperimentResult

#: The fields that `everynode results show` counts runs by.
KIND = ("preset", "task", "dataset", "split", "backbone", "num_layers", "objective")


def select_records(
    runs: Mapping[str, tuple[str, dict[str, Any]]],
    root: Root,
    *,
    preset: str | None = None,
    experiment: str | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the records of a preset, or of an experiment with that preset.

    Parameters
    ----------
    runs : mapping
        Specification and record of each run, by key, see
        :meth:`~everynode.experiments.store.Store.runs`.
    root : Root
        Folder of the graphs.
    preset : str, optional
        The preset; None: any, or ``paper`` for an experiment.
    experiment : str, optional
        Only the runs of this experiment, of all seeds, folds and versions.
    """
    if experiment is None:
        name = None if preset is None else Path(preset).name
        return {
            key: record for key, (_, record) in runs.items() if name in (None, record["preset"])
        }
    if experiment not in experiments():
        unknown("experiment", experiment, experiments())
    plan, _ = experiments()[experiment].plan(preset or "paper", 1, root)
    kinds = {_kind(run.specification) for planned in plan.values() for run in planned}
    return {
        key: record
        for key, (specification, record) in runs.items()
        if _kind(specification) in kinds
    }


def _kind(specification: str) -> str:
    """Return the specification without seed, fold, split and versions, which a cell shares."""
    content = json.loads(specification)
    for name in ("seed", "fold", "split_seed", "versions"):
        content.pop(name, None)
    return json.dumps(content, sort_keys=True)


def count_kinds(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count records by :data:`KIND`; the number of each kind is its entry ``runs``."""
    counts = Counter(tuple(record[name] for name in KIND) for record in records)
    return [
        {**dict(zip(KIND, kind, strict=True)), "runs": number}
        for kind, number in sorted(counts.items())
    ]


def find_key(keys: Iterable[str], start: str, store: Path) -> str:
    """Return the only key that begins with ``start``; ``store`` is for the message."""
    matches = [key for key in keys if key.startswith(start.lower())]
    if len(matches) != 1:
        raise UsageError(
            f"{len(matches) or 'No'} runs in {store} have a key that starts with {start!r}: "
            "`everynode results export` lists all."
        )
    return matches[0]


def has_runs_of(
    preset: str, results: Iterable[ExperimentResult], records: Mapping[str, dict[str, Any]]
) -> bool:
    """Whether a result belongs to the preset. Statistics of a graph belong to every preset."""
    cells = [cell for result in results for cell in result.cells]
    return any(cell.keys and cell.cell.task in WITH_MODEL for cell in cells) or any(
        records[key]["preset"] == Path(preset).name for cell in cells for key in cell.keys
    )


def nothing_selected(store: Path, records: Iterable[dict[str, Any]]) -> UsageError:
    """Return the error for a store without any of the requested runs."""
    presets = presets_of(records)
    others = f", which has runs of {', '.join(presets)}" if presets else ""
    return UsageError(f"There is no such run in {store}{others}: nothing was written.")


def nothing_of(preset: str, store: Path | str, records: Iterable[dict[str, Any]]) -> UsageError:
    """Return the error for a store without runs of any table or figure of a preset."""
    presets = presets_of(records)
    if not presets:
        return UsageError(f"There is no run in {store}: nothing was written.")
    if Path(preset).name in presets:
        return UsageError(
            f"The runs in {store} with --preset {preset} belong to no table or figure: their "
            "settings, graphs, splits or seeds differ. `everynode results export` writes them, "
            "`everynode reproduce` does the runs of a table. Nothing was written."
        )
    return UsageError(
        f"No run in {store} belongs to a table or figure with --preset {preset} (it has runs of "
        f"{', '.join(presets)}): nothing was written."
    )


def presets_of(records: Iterable[dict[str, Any]]) -> list[str]:
    """Return the presets of some records, sorted."""
    return sorted({record["preset"] for record in records})
