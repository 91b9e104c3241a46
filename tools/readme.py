"""Write the README's tables and picture from ``results/``; with ``--check``, say whether they are up to date."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GRAPHS = ("cora", "citeseer", "pubmed")
BACKBONES = ("gcn", "gat", "gcnii")
NAMES = {"gcn": "GCN", "gat": "GAT", "gcnii": "GCNII"}


def comparisons() -> dict[tuple[str, str], dict[str, Any]]:
    """The committed outputs of ``everynode compare --json`` by graph and backbone."""
    found = {}
    for graph in GRAPHS:
        for backbone in BACKBONES:
            path = ROOT / f"results/compare-{graph}-{backbone}.json"
            if path.exists():
                found[graph, backbone] = json.loads(path.read_text())
    return found


def percent(summary: dict[str, float]) -> str:
    return f"{100 * summary['mean']:.1f} ± {100 * summary['std']:.1f}"


def results_table() -> str:
    lines = ["| graph | network | cross-entropy | ENC | gain, paired 95% interval |", "|---|---|---|---|---|"]
    for (graph, backbone), found in comparisons().items():
        test, gain = found["summary"]["test_accuracy"], found["summary"]["gain"]
        interval = f"{100 * gain['mean']:+.1f} ({100 * gain['low']:+.1f} to {100 * gain['high']:+.1f})"
        lines.append(f"| {graph} | {NAMES[backbone]} | {percent(test['ce'])} | {percent(test['enc'])} | {interval} |")
    return "\n".join(lines)


def demo_table() -> str:
    found = json.loads((ROOT / "results/compare-citeseer-gcn.json").read_text())
    test, gain = found["summary"]["test_accuracy"], found["summary"]["gain"]
    runs: dict[str, list[float]] = {}
    for run in found["runs"]:
        runs.setdefault(run["objective"], []).append(run["seconds"])
    lines = ["| objective | test accuracy, 10 seeds | 95% interval | seconds a run |", "|---|---|---|---|"]
    for name, label in (("ce", "cross-entropy"), ("enc", "**ENC**")):
        s = test[name]
        interval = f"{100 * s['low']:.1f} to {100 * s['high']:.1f}"
        lines.append(f"| {label} | {percent(s)} | {interval} | {sum(runs[name]) / len(runs[name]):.1f} |")
    points = f"{100 * gain['mean']:+.2f} points, 95% interval {100 * gain['low']:+.2f} to {100 * gain['high']:+.2f}"
    lines += ["", f"ENC minus cross-entropy, paired by seed: {points}."]
    return "\n".join(lines)


def speed_table() -> str:
    found = json.loads((ROOT / "results/bench.json").read_text())
    rows = {(r["graph"], r["backbone"], r["objective"]): r for r in found["rows"] if r["threads"] == 1}
    graphs = list(dict.fromkeys(r["graph"] for r in found["rows"]))
    columns = (("gcn-2", "ce"), ("gcn-2", "enc"), ("gat-2", "enc"), ("gcnii-8", "enc"))
    head = ["cross-entropy, GCN-2", "ENC, GCN-2", "ENC, GAT-2", "ENC, GCNII-8"]
    lines = [f"| stock PyG / everynode | {' | '.join(head)} |", "|---|" + "---|" * len(head)]
    for graph in graphs:
        cells = [f"{r['stock_ms']:.0f} / {r['everynode_ms']:.1f} ms = **{r['ratio']:.1f}x**" for r in (rows[graph, *c] for c in columns)]
        lines.append(f"| {graph} | {' | '.join(cells)} |")
    lines += ["", "One training step and one evaluation, 64 channels, one thread, interleaved medians in one process (`make bench`)."]
    return "\n".join(lines)


def picture() -> None:
    """Every seed as a dot: cross-entropy beside ENC, pairs joined."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "everynode"
    from matplotlib import pyplot

    found = comparisons()
    figure, axes = pyplot.subplots(1, len(found), figsize=(1.25 * len(found) + 1, 3.0), sharey=False, layout="constrained")
    for axis, ((graph, backbone), result) in zip(axes, found.items(), strict=True):
        runs: dict[str, dict[int, float]] = {"ce": {}, "enc": {}}
        for run in result["runs"]:
            runs[run["objective"]][run["seed"]] = 100 * run["test_accuracy"]
        for seed, value in runs["ce"].items():
            axis.plot([0, 1], [value, runs["enc"][seed]], color="#9aa4b2", linewidth=0.8, zorder=1)
        for x, (name, colour) in enumerate((("ce", "#b45309"), ("enc", "#0f766e"))):
            values = list(runs[name].values())
            axis.scatter([x] * len(values), values, s=14, color=colour, zorder=2)
            axis.hlines(sum(values) / len(values), x - 0.25, x + 0.25, color=colour, linewidth=2)
        axis.set_xticks([0, 1], ["CE", "ENC"])
        axis.set_xlim(-0.5, 1.5)
        axis.set_title(f"{graph}\n{NAMES[backbone]}", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("test accuracy, %", fontsize=9)
    figure.savefig(ROOT / "docs/every-seed.svg", metadata={"Date": None})


def main() -> int:
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    fresh = text
    for name, table in (("demo", demo_table), ("results", results_table), ("speed", speed_table)):
        fresh = re.sub(
            f"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", lambda m, t=table: f"{m[1]}{t()}\n{m[2]}", fresh, flags=re.DOTALL
        )
    if "--check" in sys.argv:
        if fresh != text:
            print("README.md is not what results/ say: run python tools/readme.py.")
        return int(fresh != text)
    path.write_text(fresh, encoding="utf-8")
    picture()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
