"""Prediction sets, suggestions and suspicious labels, as the pages print them."""

from __future__ import annotations

from typing import Any

from tables.common import result


def sets_table() -> str:
    """Coverage and size of prediction sets, beside TorchCP's formulas."""
    found = result("prediction-sets")

    def cell(one: dict[str, float]) -> str:
        return f"{100 * one['coverage']:.1f} %, {one['size']:.2f}"

    lines = [
        "| graph | held-out labels | accuracy | `predict_set` | 100 splits: here | APS | DAPS |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in found["rows"]:
        ways = [cell(r["ways"][way]) for way in ("fit", "ours", "aps", "daps")]
        lines.append(
            f"| {r['graph']} | {r['labels']} | {100 * r['accuracy']:.1f} % | {' | '.join(ways)} |"
        )
    return "\n".join(lines)


def suspicious_table() -> str:
    """Precision and recall for flipped labels."""
    lines = [
        "| graph | flipped | listed | precision | recall | logistic regression: listed | precision | recall |",
        "|---|---|---|---|---|---|---|---|",
    ]

    def cells(one: dict[str, Any]) -> str:
        return f"{one['listed']} | {100 * one['precision']:.0f} % | {100 * one['recall']:.0f} %"

    for r in result("suspicious-labels")["rows"]:
        flipped = f"{r['flipped']} ({100 * r['share']:.0f} %)"
        lines.append(
            f"| {r['graph']} | {flipped} | {cells(r['everynode'])} | {cells(r['logistic_regression'])} |"
        )
    return "\n".join(lines)


def suggestions_table() -> str:
    """Accuracy by the number of labels and the way to choose them, with the paired gain over random."""
    cells: dict[tuple[str, int], dict[str, Any]] = {}
    for row in result("suggestions")["rows"]:
        if row["judge"] == "sgc":
            cells.setdefault((row["graph"], row["per_class"]), {})[row["strategy"]] = row
    ways = ("random", "everynode", "model", "featprop", "age", "uncertainty", "degree")
    lines = [
        "| graph | labels a class | seeds | random | `suggest` | gain, 95% interval | `suggest` in rounds | FeatProp | AGE | uncertainty | degree |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (graph, per_class), by in cells.items():
        if "everynode" not in by or "low" not in by["everynode"]:
            continue
        shown = [f"{by[way]['accuracy']:.1f}" if way in by else "" for way in ways]
        ours = by["everynode"]
        gain = f"{ours['gain']:+.1f} ({ours['low']:+.1f} to {ours['high']:+.1f})"
        shown.insert(2, gain)
        lines.append(f"| {graph} | {per_class} | {ours['seeds']} | {' | '.join(shown)} |")
    return "\n".join(lines)


def clean_table() -> str:
    """Accuracy with the labels as given, with --clean-labels, and without all suspicious ones."""
    lines = [
        "| graph | flipped | draws | as given | `--clean-labels` | left out in | always left out |",
        "|---|---|---|---|---|---|---|",
    ]
    cells: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for r in result("clean-labels")["rows"]:
        cells.setdefault((r["graph"], r["share"]), []).append(r)
    for (graph, share), rows in cells.items():
        ways = [
            f"{100 * sum(r[way] for r in rows) / len(rows):.1f} %"
            for way in ("as_given", "clean_labels", "always")
        ]
        used = sum(r["dropped"] > 0 for r in rows)
        lines.append(
            f"| {graph} | {100 * share:.0f} % | {len(rows)} | {ways[0]} | {ways[1]} | {used} | {ways[2]} |"
        )
    return "\n".join(lines)
