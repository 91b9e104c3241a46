"""Each term alone, and its weights."""

from __future__ import annotations

import statistics

from everynode.experiments.experiment import NAMES
from everynode.experiments.statistics import compare_paired
from tables.common import between, result


def weights_table() -> str:
    """The README's three lines where features are few and dense."""
    rows = result("three-lines")["rows"]
    ways = list(rows[0]["test_accuracy"])
    lines = ["| | " + " | ".join(ways) + " |", "|---|" + "---|" * len(ways)]
    for r in rows:
        shown = [
            f"{100 * statistics.mean(r['test_accuracy'][way]):.1f}"
            if way in r["test_accuracy"]
            else ""
            for way in ways
        ]
        lines.append(
            f"| {r['model']}, {r['features']} features, {r['labels']} labels | {' | '.join(shown)} |"
        )
    return "\n".join(lines)


def recipe_table() -> str:
    """Each variant's validation and test accuracy, by graph; marked where the paired interval against ``ce`` is off zero."""
    rows = result("recipe")["rows"]
    graphs = list(dict.fromkeys(r["graph"] for r in rows))
    plain = {r["graph"]: r["test_accuracy"] for r in rows if r["variant"] == "ce"}
    lines = [f"| | {' | '.join(graphs)} |", "|---|" + "---|" * len(graphs)]
    for variant in dict.fromkeys(r["variant"] for r in rows):
        cells = []
        for r in (r for r in rows if r["variant"] == variant):
            share = (
                20 / 48 if r["split"] == "geom-gcn" else None
            )  # test and training nodes of its folds
            gap = compare_paired(r["test_accuracy"], plain[r["graph"]], test_share=share)
            sure = gap.low > 0 or gap.high < 0
            val, test = (
                100 * statistics.mean(r[metric]) for metric in ("val_accuracy", "test_accuracy")
            )
            cells.append(f"{val:.1f} / {test:.1f}" + (" *" if sure and variant != "ce" else ""))
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def class_prior_table() -> str:
    """Consistency and the class prior one at a time and together, and shares put right after training."""
    lines = [
        "| network | | validation | test | against cross-entropy, paired 95% interval |",
        "|---|---|---|---|---|",
    ]
    for row in result("class-prior")["rows"]:
        val, test = (
            100 * statistics.mean(row[metric]) for metric in ("val_accuracy", "test_accuracy")
        )
        mean, low, high = (100 * number for number in row["gain"])
        told = "" if row["way"] == "cross-entropy" else between(mean, low, high)
        lines.append(
            f"| {NAMES[row['backbone']]} | {row['way']} | {val:.1f} | {test:.1f} | {told} |"
        )
    return "\n".join(lines)


def last_point_table() -> str:
    rows = result("last-point")["rows"]
    head = [
        "graph",
        "objective",
        "",
        "validation",
        "test",
        "test, std",
        "over its members, paired 95% interval",
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    alone: list[float] = []
    for r in rows:
        alone = (
            r["test"] if r["way"] == "alone" else alone
        )  # of which the ensembles below are made, one after the other
        size = len(alone) // len(r["test"])
        gain = ""
        if r["way"].startswith("ensembles") and "correct" not in r["way"]:
            members = [
                statistics.mean(alone[i * size : (i + 1) * size]) for i in range(len(r["test"]))
            ]
            found = compare_paired(r["test"], members)
            gain = between(100 * found.mean, 100 * found.low, 100 * found.high, 2)
        val, test = (100 * statistics.mean(r[part]) for part in ("val", "test"))
        spread = f"{100 * statistics.stdev(r['test']):.1f}"
        lines.append(
            f"| {r['graph']} | {r['objective']} | {r['way']} | {val:.1f} | {test:.1f} | {spread} | {gain} |"
        )
    return "\n".join(lines)


def prior_table() -> str:
    lines = ["| graph | | test | against lambda 0.3, paired 95% interval |", "|---|---|---|---|"]
    for r in result("prior")["rows"]:
        gain = between(*(100 * x for x in r["gain"]), digits=2) if r["way"] != "lambda 0.3" else ""
        lines.append(
            f"| {r['graph']} | {r['way']} | {100 * statistics.mean(r['test_accuracy']):.2f} | {gain} |"
        )
    return "\n".join(lines)
