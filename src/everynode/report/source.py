"""The source of the numbers of a page: records, planned runs, curves, and the commands for them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everynode.experiments.analysis import Outcome
from everynode.experiments.experiment import Cell
from everynode.experiments.run_spec import Run
from everynode.experiments.store import store_path

#: Number of digits of a run key on a page; ``everynode results show`` accepts them.
KEY_DIGITS = 12


@dataclass(frozen=True)
class Source:
    """The records, runs and curves behind a page.

    Parameters
    ----------
    records : mapping of str to dict
        The records, by run key.
    runs : mapping of str to Run
        The planned runs, by run key.
    curve : callable
        Returns the training curves of a run key.
    store : Path, optional
        The store that commands have to name; None: the default one.
    """

    records: Mapping[str, dict[str, Any]]
    runs: Mapping[str, Run]
    curve: Callable[[str], dict[str, list[float]]]
    store: Path | None = None

    def show(self, key: str) -> str:
        """Return the command that shows a run."""
        words = ["everynode", "results", "show", key[:KEY_DIGITS]]
        return shlex.join([*words, *(["--store", str(self.store)] if self.store else [])])

    def reproduce(self, outcome: Outcome, cell: Cell | None = None) -> str:
        """Return the command that computes the runs of an experiment, or shows them again.

        With ``cell``: the runs of this cell and of the one it is compared with.
        """
        experiment, each = outcome.experiment, outcome.each
        words = ["everynode", "reproduce", experiment.id, "--preset", outcome.preset]
        if each != experiment.count and experiment.over != "once":
            words += ["--folds" if experiment.over == "folds" else "--seeds", str(each)]
        if cell is not None:
            words += cell_flags(cell, experiment.cells())
        if self.store and self.store == store_path(self.store.parent):
            words += ["--out", str(self.store.parent)]
        return shlex.join(words)

    def versions(self, keys: Sequence[str]) -> list[str]:
        """Return the software versions of some runs.

        Versions of everynode share a line if everything else is the same.
        """
        releases: dict[str, set[str]] = {}
        for record in map(self.records.__getitem__, keys):
            inner = record["versions"]
            others = (
                f"(protocol {inner['protocol']}), torch {inner['torch']}, "
                f"Python {record['python']}, {record['system']}"
            )
            others += f", {record['cpu']}" if "cpu" in record else ""
            releases.setdefault(others, set()).add(record["version"])
        return [
            f"everynode {', '.join(sorted(own, key=_version_order))} {others}"
            for others, own in sorted(releases.items())
        ]


def cell_flags(cell: Cell, cells: Sequence[Cell]) -> list[str]:
    """Return the flags that select a cell and the one it is compared with.

    A flag that would exclude no further cell is left out.
    """
    words: list[str] = []
    row = [cell.row] if cell.against is None else [cell.row, cell.against]
    places = {"--graphs": ("dataset", [cell.dataset]), "--rows": ("row", row)}
    places |= {"--columns": ("column", [cell.column]), "--panels": ("panel", [cell.panel])}
    for flag, (attribute, names) in places.items():
        fewer = [other for other in cells if getattr(other, attribute) in names]
        # The command would split a name at its comma.
        if len(fewer) < len(cells) and not any("," in name for name in names):
            words += [flag, ",".join(names)]
            cells = fewer
    return words


def _version_order(version: str) -> list[tuple[bool, int, str]]:
    """Return a sort key that puts 0.9.0 before 0.10.0."""
    return [
        (part.isdigit(), int(part) if part.isdigit() else 0, part) for part in version.split(".")
    ]
