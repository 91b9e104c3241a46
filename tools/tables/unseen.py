"""The default against what people use otherwise (``benchmarks/unseen.py``)."""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tables.common import ROOT

#: The columns of ``results/unseen.csv``.
COLUMNS = ("graph", "half", "regime", "validation", "split", "system", "kind", "accuracy", "test_nodes", "seconds", "design")  # fmt: skip
REGIMES = {"5": "5 a class", "20": "20 a class", "48%": "48 % of all"}
#: The same in few words, for the table of the README.
HEADS = {"5": "5/class", "20": "20/class", "48%": "48 %"}
HALVES = ("unseen", "design")
#: The mark of a cell that was measured before the last change of the default.
EARLIER = "†"
DEFAULT = "everynode"
RESULTS = ROOT / "results/unseen.csv"
RUNNING = (
    "The benchmark on unseen graphs (`benchmarks/unseen.py`) is running; its table will stand here."
)


class Cell(NamedTuple):
    """A graph with a regime, with or without a validation set: mean accuracies over splits."""

    graph: str
    half: str
    regime: str
    validation: str
    accuracy: dict[str, float]
    splits: int
    test_nodes: int
    #: Whether the cell was measured before a change of the default that concerns it.
    earlier: bool

    @property
    def best(self) -> str:
        """The best outsider, known only afterwards."""
        others = sorted(name for name in self.accuracy if name != DEFAULT)
        return max(others, key=lambda name: self.accuracy[name])

    @property
    def regret(self) -> float:
        """Accuracy of the default minus the best outsider's."""
        return self.accuracy[DEFAULT] - self.accuracy[self.best]

    @property
    def error(self) -> float:
        """The standard error of the regret from the number of test nodes, as if unpaired."""
        both = (self.accuracy[DEFAULT], self.accuracy[self.best])
        return math.sqrt(sum(p * (1 - p) for p in both) / (self.test_nodes * self.splits))


def read_cells(path: Path = RESULTS) -> list[Cell]:
    """Read the cells. A split counts if it has the default and as many systems as any other.

    Splits of the latest design replace those of an earlier one. Designs 1 and 2 differ without a validation set only, 2 and 3 not with 48 %.
    """
    found: dict[tuple[str, ...], dict[str, dict[str, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    sizes: dict[tuple[str, ...], int] = {}
    design: dict[tuple[str, ...], int] = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                if row["regime"] in REGIMES and row["kind"] != "candidate":
                    place = row["graph"], row["half"], row["regime"], row["validation"]
                    measured = int(row["design"])
                    if row["validation"] == "yes":
                        measured = max(measured, 2)
                    if row["regime"] == "48%":
                        measured = min(measured, 2)
                    if measured > design.setdefault(place, measured):
                        found.pop(place, None)
                        design[place] = measured
                    if measured < design[place]:
                        continue
                    found[place][row["split"]][row["system"]] = float(row["accuracy"])
                    sizes[place] = int(row["test_nodes"])
    systems = max(
        (set(one) for of in found.values() for one in of.values()), key=len, default=set()
    )
    cells = []
    for place, of in found.items():
        complete = [one for one in of.values() if set(one) == systems]
        if complete:
            means = {name: statistics.mean(one[name] for one in complete) for name in systems}
            graph, half, regime, validation = place
            size = len(complete), sizes[place]
            latest = max(design.values()) if regime != "48%" else 2
            earlier = design[place] < latest
            cells.append(Cell(graph, half, regime, validation, means, *size, earlier))
    return cells


def unseen_table(path: Path = RESULTS) -> str:
    """Mean accuracy by system, half of the graphs and regime; mean regret below."""
    cells = read_cells(path)
    if not cells:
        return RUNNING
    groups = {
        (half, regime): [cell for cell in cells if (cell.half, cell.regime) == (half, regime)]
        for half in HALVES
        for regime in REGIMES
    }
    groups = {place: of for place, of in groups.items() if of}
    systems = sorted(cells[0].accuracy, key=lambda name: (name != DEFAULT, name))
    lines = [
        f"| | {' | '.join(f'{half}: {HEADS[regime]}' for half, regime in groups)} |",
        "|---" * (1 + len(groups)) + "|",
    ]
    for name in systems:
        label = f"**{name}, default**" if name == DEFAULT else name
        means = [statistics.mean(cell.accuracy[name] for cell in of) for of in groups.values()]
        lines.append(f"| {label} | {' | '.join(f'{100 * mean:.1f}' for mean in means)} |")
    best = [statistics.mean(cell.accuracy[cell.best] for cell in of) for of in groups.values()]
    lines.append(
        f"| *the best of the others, cell by cell* | {' | '.join(f'{100 * x:.1f}' for x in best)} |"
    )
    lines.append(f"| cells | {' | '.join(str(len(of)) for of in groups.values())} |")
    names = {half: sorted({c.graph for c in cells if c.half == half}) for half in HALVES}
    lines += [
        "",
        "Mean test accuracy, %, by training labels, with and without a validation set. "
        f"Unseen: {', '.join(names['unseen'])}; design: {len(names['design'])} graphs that the design looked at.",
    ]
    return "\n".join(lines)


def cells_table(path: Path = RESULTS) -> str:
    """Every cell: the default, the best outsider, and the difference, the worst first."""
    cells = sorted(read_cells(path), key=lambda cell: cell.regret)
    if not cells:
        return RUNNING
    behind = [cell for cell in cells if cell.regret < -1.96 * cell.error]
    ahead = [cell for cell in cells if cell.regret > 1.96 * cell.error]
    mean = 100 * statistics.mean(cell.regret for cell in cells)
    median = 100 * statistics.median(cell.regret for cell in cells)
    spread = statistics.stdev(cell.regret for cell in cells) if len(cells) > 1 else math.nan
    error = 100 * spread / math.sqrt(len(cells))
    by_half = [
        f"{half} {100 * statistics.mean(x.regret for x in cells if x.half == half):+.1f}"
        for half in HALVES
        if any(x.half == half for x in cells)
    ]
    lines = [
        f"{len(cells)} cells. The default is {mean:+.1f} points (standard error {error:.1f}) from the best outsider of each cell, which is known only afterwards; "
        f"clearly ahead in {len(ahead)} cells, clearly behind in {len(behind)} (1.96 standard errors of the test nodes). "
        f"Median {median:+.1f}; mean by half: {', '.join(by_half)}; more than 3 points behind in {sum(x.regret < -0.03 for x in cells)}.",
        "",
        "| graph | half | training labels | validation set | splits | test nodes | default | best outsider | difference |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        mark = "**" if cell in behind else ""
        graph = cell.graph + EARLIER * cell.earlier
        lines.append(
            f"| {graph} | {cell.half} | {REGIMES[cell.regime]} | {cell.validation} | {cell.splits} | {cell.test_nodes:,} "
            f"| {100 * cell.accuracy[DEFAULT]:.1f} | {100 * cell.accuracy[cell.best]:.1f} ({cell.best}) | {mark}{100 * cell.regret:+.1f}{mark} |"
        )
    if any(cell.earlier for cell in cells):
        lines += [
            "",
            f"{EARLIER} Measured with an earlier version, before the class shares were estimated.",
        ]
    return "\n".join(lines).replace("| -", "| −").replace("**-", "**−")


def few_labels_table(path: Path = ROOT / "results/unseen-few-labels.json") -> str:
    """What the members learn from when labels are few, and what each half of the graphs chooses."""
    if not path.exists():
        return RUNNING
    found = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        "| folds | members | log-loss, first half | second half | accuracy, first half | second half |",
        "|---|---|---|---|---|---|",
    ]
    for row in found["means"]:
        (loss, right), (other_loss, other_right) = row["halves"]
        best = ["**" * (row == chosen) for chosen in found["chosen"]]
        lines.append(
            f"| {row['folds']} | {row['design']} | {best[0]}{loss:.3f}{best[0]} | {best[1]}{other_loss:.3f}{best[1]} "
            f"| {100 * right:.1f} | {100 * other_right:.1f} |"
        )
    halves = [
        sorted({row["graph"] for row in found["rows"] if row["graph"] in half})
        for half in found["graphs"]
    ]
    first, second = (
        f"{', '.join(half)} ({count} draws)"
        for half, count in zip(halves, found["cells"], strict=True)
    )
    lines += [
        "",
        f"First half: {first}. Second half: {second}. Bold: what a half chooses. `{found['command']}`.",
    ]
    return "\n".join(lines)


def shares_table(path: Path = ROOT / "results/unseen-class-shares.json") -> str:
    """What each half of the graphs chooses for the estimated class shares, and what both report."""
    if not path.exists():
        return RUNNING
    found = json.loads(path.read_text(encoding="utf-8"))
    places = [
        (half, regime) for regime in REGIMES for half in (0, 1) if regime in found["means"][half]
    ]
    lines = [
        "| weight of the prior | "
        + " | ".join(
            f"{HEADS[regime]}, {('first', 'second')[half]} half" for half, regime in places
        )
        + " |",
        "|---" * (1 + len(places)) + "|",
    ]
    for number, prior in enumerate(found["priors"]):
        by = " and ".join(
            half for half, chosen in zip(("first", "second"), found["chosen"], strict=True) if chosen == prior
        )  # fmt: skip
        label = ("no estimate" if prior is None else f"{prior:g}") + (
            f" (chosen by the {by} half)" if by else ""
        )
        scores = [found["means"][half][regime][number] for half, regime in places]
        lines.append(
            f"| {label} | {' | '.join(f'{loss:.3f}, {gap:+.1f}' for loss, gap in scores)} |"
        )
    halves = " ".join(
        f"{title} half: {', '.join(names)} ({count} draws)."
        for title, names, count in zip(
            ("First", "Second"), found["graphs"], found["cells"], strict=True
        )
    )
    lines += [
        "",
        f"Log-loss on test nodes, and points from the best outsider of each draw; means over graphs. {halves} `{found['command']}`.",
    ]
    return "\n".join(lines).replace(", -", ", −")


def constants_table(path: Path = ROOT / "results/unseen-constants.json") -> str:
    """What each half of the graphs chooses for the ensemble, and what both halves report."""
    if not path.exists():
        return RUNNING
    found = json.loads(path.read_text(encoding="utf-8"))
    names = ", ".join(f"`{name}`" for name in found["shipped"]["constants"])
    lines = [
        f"| {names} | log-loss, design | log-loss, unseen | difference to the best outsider, design | unseen |",
        "|---|---|---|---|---|",
    ]
    for title, row in (
        ("shipped", found["shipped"]),
        ("chosen on the design half", found["chosen"][0]),
        ("chosen on the unseen half", found["chosen"][1]),
    ):
        values = ", ".join(f"{value:g}" for value in row["constants"].values())
        (loss, regret), (other_loss, other_regret) = row["halves"]
        lines.append(
            f"| {values} ({title}) | {loss:.3f} | {other_loss:.3f} | {regret:+.2f} | {other_regret:+.2f} |"
        )
    cells = " and ".join(str(count) for count in found["cells"])
    return (
        "\n".join(lines).replace("| -", "| −")
        + f"\n\n{cells} draws of cells; `{found['command']}`."
    )
