"""The default against what people use otherwise, on graphs that had no part in its design."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from pathlib import Path

from everynode.experiments.statistics import compare_paired
from tables.common import ROOT, gain_between

#: The graphs that the design of the portfolio looked at (``benchmarks/unseen.py``).
DESIGN_HALF = (
    "acm", "blogcatalog", "dblp", "minesweeper", "twitch-engb", "twitch-es", "texas", "cora",
)  # fmt: skip
REGIMES = {"5": "5 a class", "20": "20 a class", "48%": "48% of all"}
#: The columns of ``results/unseen.csv``.
COLUMNS = ("graph", "regime", "validation", "split", "system", "kind", "accuracy", "test_nodes", "seconds")  # fmt: skip
RUNNING = (
    "The benchmark on unseen graphs (`benchmarks/unseen.py`) is running; its table will stand here."
)

Accuracies = dict[str, dict[str, float]]


def accuracies(path: Path) -> tuple[dict[str, Accuracies], dict[str, str]]:
    """Mean accuracy by regime, graph and system over splits, and every system's kind.

    Runs with a validation set, on graphs outside the design half; a split counts if every system
    of its regime finished it.
    """
    splits: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    kinds: dict[str, str] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if (
                row["validation"] == "yes"
                and row["regime"] in REGIMES
                and row["graph"] not in DESIGN_HALF
                and row["kind"] != "candidate"
            ):
                kinds[row["system"]] = row["kind"]
                place = row["regime"], row["graph"], row["split"]
                splits[place][row["system"]] = float(row["accuracy"])
    means: dict[str, Accuracies] = {}
    for regime in REGIMES:
        of_regime = {place: found for place, found in splits.items() if place[0] == regime}
        systems = set().union(*of_regime.values()) if of_regime else set()
        by_graph: dict[str, list[dict[str, float]]] = defaultdict(list)
        for (_, graph, _), found in of_regime.items():
            if set(found) == systems:
                by_graph[graph].append(found)
        means[regime] = {
            graph: {name: statistics.mean(one[name] for one in found) for name in systems}
            for graph, found in by_graph.items()
        }
    return {regime: found for regime, found in means.items() if found}, kinds


def unseen_table(path: Path = ROOT / "results/unseen.csv") -> str:
    """Mean accuracy over graphs by system and regime, and the paired gain over the best other."""
    if not path.exists():
        return RUNNING
    found, kinds = accuracies(path)
    if not found:
        return RUNNING
    systems = sorted(kinds, key=lambda name: (kinds[name] != "default", name))
    lines = [
        f"| labels for training | {' | '.join(REGIMES[regime] for regime in found)} |",
        "|---" * (1 + len(found)) + "|",
    ]
    averages: dict[str, dict[str, float]] = {}
    for name in systems:
        averages[name] = {
            regime: statistics.mean(of[name] for of in graphs.values())
            for regime, graphs in found.items()
            if all(name in of for of in graphs.values())
        }
        cells = [
            f"{100 * averages[name][regime]:.1f}" if regime in averages[name] else ""
            for regime in found
        ]
        label = f"**{name}, default**" if kinds[name] == "default" else name
        lines.append(f"| {label} | {' | '.join(cells)} |")
    (default,) = (name for name in systems if kinds[name] == "default")
    others = [name for name in systems if name != default]
    gains = []
    for regime, graphs in found.items():
        best = max(others, key=lambda name: averages[name].get(regime, 0.0))
        gain = compare_paired(
            [of[default] for of in graphs.values()], [of[best] for of in graphs.values()]
        )
        shown = gain_between(gain.to_dict()) if len(graphs) > 1 else ""
        gains.append(f"{best} {shown}".strip())
    lines.append(f"| *minus the best other, over graphs, 95%* | {' | '.join(gains)} |")
    graphs_used = sorted(set().union(*found.values()))
    lines += [
        "",
        f"Mean test accuracy in percent over {len(graphs_used)} graphs that the design never saw "
        f"({', '.join(graphs_used)}); `results/unseen.csv`.",
    ]
    return "\n".join(lines)
