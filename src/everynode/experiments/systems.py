"""The systems that the paper compares with: their settings, and the cells that run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from everynode.errors import unknown
from everynode.experiments.experiment import NAMES, Cell, method, paper_name, published
from everynode.presets import read_preset

#: How a published number was made, if it is not comparable with ours.
PROTOCOLS = {
    "": "",
    "test": "published: chosen on test nodes",
    "split": "published: another split",
    "last": "published: tested at the last epoch",
}
#: The reason for graphs without published settings.
NO_SETTINGS = "no published settings for this graph"


@dataclass(frozen=True)
class System:
    """A system, as ``presets/systems.toml`` has it.

    Parameters
    ----------
    name : str
        Its name in the paper's tables.
    backbone, objective : str
        The model and the objective that run it; no backbone if there is a reason.
    entries : dict
        The other entries of the file: ``paper``, ``source``, ``protocol``, ``note``, ``reason``,
        ``graphs``, ``elsewhere``, and the settings.
    """

    name: str
    backbone: str
    objective: str
    entries: dict[str, Any]

    def reason(self, split: str, graph: str) -> str:
        """Return the reason why it is not run on a graph; empty if it is."""
        if "reason" in self.entries:
            return str(self.entries["reason"])
        graphs = self.entries.get("graphs")
        if graphs is None or f"{split}.{graph}" in graphs:
            return ""
        return str(self.entries.get("elsewhere", NO_SETTINGS))

    def settings(self, split: str, graph: str) -> dict[str, Any]:
        """Return every setting of its runs on a graph, without the terms of another objective."""
        own = self.entries.get(split, {}).get(graph, {})
        values = read_preset("systems")["base"] | self.entries.get("settings", {}) | own
        values = {"lr_gnn": values["lr"], "weight_decay_gnn": values["weight_decay"]} | values
        return {"mi": 0.0, "tv": 0.0, "cvg": 0.0} | values

    def cell(self, row: str, column: str, graph: str, split: str, **place: Any) -> Cell:
        """Return a cell of this system; ``place``: further fields of the cell."""
        reason = self.reason(split, graph)
        changes = place.pop("changes", ())
        settings = {} if reason else self.settings(split, graph) | dict(changes)
        return Cell(
            row, column, graph, split, self.backbone, self.objective,
            changes=tuple(settings.items()), preset="default", reason=reason,
            mark=PROTOCOLS[self.entries.get("protocol", "")], **place,
        )  # fmt: skip


@cache
def systems() -> dict[str, System]:
    """Return every system by name.

    >>> systems()["GCN (Drop)"].backbone
    'plain_gcn'
    """
    table = read_preset("systems")["systems"]
    return {name: _system(name, _entries(table, name)) for name in table}


def find_system(name: str) -> System:
    """Return a system by its name."""
    if name not in systems():
        unknown("system", name, systems())
    return systems()[name]


def _entries(table: dict[str, Any], name: str) -> dict[str, Any]:
    own = dict(table[name])
    other = own.pop("same_as", None)
    return own if other is None else _entries(table, other) | own


def _system(name: str, entries: dict[str, Any]) -> System:
    entries = dict(entries)
    backbone = entries.pop("backbone", "gcn" if "reason" in entries else "")
    return System(name, backbone, entries.pop("objective", "ce"), entries)


def rows_beside_enc(
    table: str, graphs: Sequence[str], split: str, further: Sequence[str] = ()
) -> list[Cell]:
    """Return the cells of a table: the paper's networks, its other rows, and ``further`` systems.

    The networks have the paper's settings, with and without ENC; GCNII itself has its authors' on
    the public splits.
    """
    ours = {method(b, o): (b, o) for b in NAMES for o in ("ce", "enc")}
    presets = {"GCNII": "authors"} if split == "public" else {}
    cells = []
    for row in (*further, *read_preset("published")[table]):
        for graph in graphs:
            place: dict[str, Any] = {
                "panel": table,
                "published": published(table, row, paper_name(graph)),
            }
            if row in ours:
                place["preset"] = presets.get(row, "paper")
                cells.append(Cell(row, graph, graph, split, *ours[row], **place))
            else:
                cells.append(find_system(row).cell(row, graph, graph, split, **place))
    return cells


def rows_with_enc(
    rows: Sequence[str], graph: str, split: str, weights: dict[str, Any]
) -> list[Cell]:
    """Return each system alone and with the terms of ENC, for the paired comparison."""
    cells = []
    for row in rows:
        system = find_system(row)
        named = "enc" if system.objective == "ce" else f"enc+{system.objective}"
        alone = system.cell(row, graph, graph, split, panel="with ENC")
        both = System(row, system.backbone, named, system.entries)
        cells += [
            alone,
            both.cell(
                f"{row} + ENC", graph, graph, split, panel="with ENC", against=row,
                changes=tuple(weights.items()),
            ),
        ]  # fmt: skip
    return cells
