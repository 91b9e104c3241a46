"""The other systems of the paper's tables: every row with a number of ours or a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everynode.report.text import DASH, number
from tables.common import GRAPHS, ROOT, result, signed, significant

#: The signs of the protocols of published numbers.
MARKS = {
    "published: chosen on test nodes": "ᵗ",
    "published: another split": "ˢ",
    "published: tested at the last epoch": "ˡ",
}
PANEL = "semi-supervised"
#: The small graphs of the ten folds, as the paper has them.
WEBKB = ("cornell-legacy", "texas", "wisconsin")


def cells(panel: str, experiment: str = "systems") -> list[dict[str, Any]]:
    """The cells of a panel, in the order of the declaration."""
    folds = experiment == "systems-folds"
    tables = result("tables-systems-folds" if folds else "tables-systems")
    found = next(table for table in tables if table["id"] == experiment)  # type: ignore[call-overload]
    return [cell for cell in found["cells"] if cell["panel"] == panel]


def systems_table(panel: str = PANEL) -> str:
    """Published and measured, a row for each system."""
    shown = cells(panel)
    return _depth_table(shown) if panel == "depth" else _table(shown, GRAPHS)


def systems_folds_table() -> str:
    """The same on the ten folds of the small graphs whose neighbors differ."""
    return _table(cells("heterophilic", "systems-folds"), WEBKB)


def _table(shown: list[dict[str, Any]], graphs: Sequence[str]) -> str:
    """A row for each system: published and measured, and why not."""
    heads = (graph.removesuffix("-legacy").capitalize() for graph in graphs)
    lines = [
        "| system | " + " | ".join(heads) + " | not run because |",
        "|---|" + "---|" * len(graphs) + "---|",
    ]
    for row in dict.fromkeys(cell["row"] for cell in shown):
        cells_of_row = [cell for cell in shown if cell["row"] == row]
        own = {cell["column"]: cell for cell in cells_of_row if cell["column"] in graphs}
        texts = [_entry(own[graph]) if graph in own else DASH for graph in graphs]
        mark = next((MARKS[cell["mark"]] for cell in own.values() if cell.get("mark")), "")
        lines.append(f"| {row}{mark} | {' | '.join(texts)} | {_reasons(own)} |")
    return "\n".join(lines)


def _reasons(own: dict[str, dict[str, Any]]) -> str:
    """Why cells of a row have no number: a reason of the declaration, or the CPU time."""
    reasons: dict[str, list[str]] = {}
    for graph, cell in own.items():
        if not cell["summary"] and not cell["diverged"]:
            name = graph.removesuffix("-legacy").capitalize()
            reasons.setdefault(cell.get("reason") or "no CPU time left", []).append(name)
    everywhere = len(reasons) == 1 and len(next(iter(reasons.values()))) == len(own)
    texts = []
    for reason, graphs in reasons.items():
        named = everywhere or reason.startswith(tuple(graphs))
        texts.append(reason if named else f"{', '.join(graphs)}: {reason}")
    return "; ".join(texts)


def _depth_table(shown: list[dict[str, Any]]) -> str:
    """The cells over depth that were run."""
    lines = ["| system | graph and layers | |", "|---|---|---|"]
    for cell in shown:
        if cell["summary"]:
            lines.append(f"| {cell['row']} | {cell['column']} | {_entry(cell)} |")
    left = sum(not cell["summary"] and not cell.get("reason") for cell in shown)
    return "\n".join([*lines, "", f"{left} further cells over depth: no CPU time left."])


def _entry(cell: dict[str, Any]) -> str:
    """The published number, ours, and the verdict."""
    paper = DASH if cell["published"] is None else number(cell["published"], 1)
    found = cell["summary"]
    if found is None:
        ours = f"all {cell['diverged']} diverged" if cell["diverged"] else "not run"
        return paper if cell.get("reason") or paper == DASH else f"{paper} → {ours}"
    count = len(cell["runs"])
    few = "" if count == cell["planned"] else f", {count} run{'s' if count > 1 else ''}"
    verdict = cell["verdict"].replace("-", "−")
    tail = ", ".join(part for part in (verdict,) if part)
    spread = "" if found["std"] is None else f" ± {number(found['std'], 1)}"
    ours = f"**{number(found['mean'], 1)}**{spread}"
    return f"{paper} → {ours}{few}" + (f" ({tail})" if tail else "")


def enc_table() -> str:
    """Each system alone and with ENC's terms."""
    shown = {cell["row"]: cell for cell in cells("with ENC")}
    lines = ["| system | alone | with ENC | gain | pairs |", "|---|---|---|---|---|"]
    for cell in shown.values():
        gain = cell["gain"]
        if gain is None:
            continue
        alone, both = shown[gain["against"]]["summary"], cell["summary"]
        star = " *" if significant(gain) else ""
        between = ""
        if gain.get("low") is not None:
            between = f" ({signed(gain['low'])} to {signed(gain['high'])})"
        lines.append(
            f"| {gain['against']} | {number(alone['mean'], 1)} | {number(both['mean'], 1)} "
            f"| {signed(gain['mean'])}{between}{star} | {gain['count']} |"
        )
    return "\n".join(lines)


def judged() -> list[dict[str, Any]]:
    """The cells of the other systems with a verdict."""
    networks = {"GCN", "GAT", "GCNII"}
    return [
        cell
        for panel in (PANEL, "depth")
        for cell in cells(panel)
        if cell["verdict"] and cell["row"].removeprefix("ENC-") not in networks
    ]


def systems_counts() -> str:
    """How many published numbers were reproduced, in a sentence."""
    verdicts = [cell["verdict"].partition(" ")[0] for cell in judged()]
    counts = {word: verdicts.count(word) for word in ("reproduced", "better", "short")}
    listed = ", ".join(f"{count} {word}" for word, count in counts.items())
    return f"Of {len(verdicts)} published numbers with a verdict: {listed}."


def systems_picture() -> None:
    """Published against measured, a dot for each system and graph."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9.0, 5.0), layout="constrained")
    for axis, graph in zip(axes, GRAPHS[:2], strict=True):
        some = [
            cell
            for cell in cells(PANEL)
            if cell["column"] == graph and cell["summary"] and cell["published"]
        ]
        some.sort(key=lambda cell: (cell["published"], cell["row"]))
        heights = [cell["summary"]["mean"] for cell in some]
        gap = 0.03 * (max(heights, default=1) - min(heights, default=0))
        labels: list[tuple[float, float]] = []
        for cell in sorted(some, key=lambda cell: cell["summary"]["mean"]):
            color = "#b45309" if cell["row"].startswith("ENC-") else "#0f766e"
            x, y = cell["published"], cell["summary"]["mean"]
            axis.errorbar(
                x, y, yerr=cell["summary"]["std"] or 0, fmt="o", markersize=4, color=color
            )
            height = y
            while any(abs(height - v) < gap and abs(x - u) < 1.7 for u, v in labels):
                height += gap / 4  # a label stands above those of close dots
            labels.append((x, height))
            axis.annotate(
                cell["row"], (x, y), fontsize=6.5, xytext=(x + 0.1, height), va="center",
                arrowprops={"arrowstyle": "-", "color": "#9aa4b2", "linewidth": 0.5},
            )  # fmt: skip
        if some:
            first, last = some[0]["published"] - 1, some[-1]["published"] + 1
            axis.plot([first, last], [first, last], color="#9aa4b2", linewidth=1, zorder=0)
            axis.set_xlim(first - 0.5, last + 1.0)
        axis.set_title(graph.capitalize(), fontsize=9)
        axis.set_xlabel("published, %", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("measured, %", fontsize=9)
    figure.savefig(ROOT / "docs/paper/systems.svg", metadata={"Date": None})
    pyplot.close(figure)
