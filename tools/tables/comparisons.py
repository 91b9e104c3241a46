"""ENC against cross-entropy: ``everynode compare``, and a loop of PyG."""

from __future__ import annotations

import json
import statistics
from typing import Any

from everynode.experiments.experiment import BACKBONES, NAMES
from everynode.experiments.statistics import compare_paired
from tables.common import GRAPHS, ROOT, gain_between, percent, result, signed


def comparisons() -> dict[tuple[str, str], dict[str, Any]]:
    """The committed outputs of ``everynode compare --json`` by graph and backbone."""
    found = {}
    for graph in GRAPHS:
        for backbone in BACKBONES:
            path = ROOT / f"results/compare-{graph}-{backbone}.json"
            if path.exists():
                found[graph, backbone] = json.loads(path.read_text())
    return found


def results_table() -> str:
    lines = [
        "| graph | network | cross-entropy | ENC | gain, paired 95% interval |",
        "|---|---|---|---|---|",
    ]
    graphs: dict[str, dict[str, None]] = {}
    for (graph, backbone), found in comparisons().items():
        for run in found["runs"]:
            graphs.setdefault(run["version"], {})[graph] = None
        test, gain = found["summary"]["test_accuracy"], found["summary"]["gain"]
        interval = gain_between(gain)
        lines.append(
            f"| {graph} | {NAMES[backbone]} | {percent(test['ce'])} | {percent(test['enc'])} | {interval} |"
        )
    made = "; ".join(
        f"{', '.join(found)}: everynode {version}" for version, found in graphs.items()
    )
    return "\n".join([*lines, "", f"Runs ({made}) and commands: `results/compare-*.json`."])


def demo_table() -> str:
    found = result("compare-citeseer-gcn")
    test, gain = found["summary"]["test_accuracy"], found["summary"]["gain"]
    runs: dict[str, list[float]] = {}
    for run in found["runs"]:
        runs.setdefault(run["objective"], []).append(run["seconds"])
    lines = [
        "| objective | test accuracy, 10 seeds | 95% interval | seconds a run |",
        "|---|---|---|---|",
    ]
    for name, label in (("ce", "cross-entropy"), ("enc", "**ENC**")):
        s = test[name]
        interval = f"{100 * s['low']:.1f} to {100 * s['high']:.1f}"
        lines.append(
            f"| {label} | {percent(s)} | {interval} | {sum(runs[name]) / len(runs[name]):.1f} |"
        )
    points = f"{signed(100 * gain['mean'], 2)} points, 95% interval {signed(100 * gain['low'], 2)} to {signed(100 * gain['high'], 2)}"
    lines += ["", f"ENC minus cross-entropy, paired by seed: {points}."]
    return "\n".join(lines)


def stock_loop_table(*, with_validation: bool = False) -> str:
    """What ENC's terms gain in somebody's own loop: test accuracy, and the paired gain over cross-entropy."""
    rows = {(r["graph"], r["features"], r["way"]): r for r in result("stock-loop")["rows"]}
    plain, *ways = [
        way
        for way in dict.fromkeys(way for *_, way in rows)
        if with_validation or not way.startswith("consistency")
    ]
    lines = [f"| | {' | '.join((plain, *ways))} |", "|---|" + "---|" * (1 + len(ways))]
    for graph, features in dict.fromkeys((graph, features) for graph, features, _ in rows):
        cells = []
        for way in (plain, *ways):
            r, without = rows[graph, features, way], rows[graph, features, plain]
            val, test = (
                100 * statistics.mean(r[metric]) for metric in ("val_accuracy", "test_accuracy")
            )
            gain = gain_between(
                compare_paired(r["test_accuracy"], without["test_accuracy"]).to_dict()
            )
            cells.append(
                (f"{val:.1f} / " if with_validation else "")
                + f"{test:.1f}"
                + (f"<br>{gain}" if way != plain else "")
            )
        lines.append(f"| {graph}, {features} features | {' | '.join(cells)} |")
    return "\n".join(lines)
