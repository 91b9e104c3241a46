"""What tuning chose, and what the choices got."""

from __future__ import annotations

import csv
import json
import statistics

from everynode.experiments.experiment import BACKBONES, NAMES
from everynode.objective_names import NOT_OF_THE_PAPER
from everynode.report.text import as_printed
from tables.common import GRAPHS, ROOT, between, result, signed, significant


def tuned_table() -> str:
    """The public split, both objectives tuned: one line a cell, with the terms that tuning kept."""
    cells = next(table for table in result("tables-tuned") if table["id"] == "semi-supervised")[
        "cells"
    ]
    by_place = {(cell["dataset"], cell["backbone"], cell["objective"]): cell for cell in cells}
    lines = [
        "| graph | network | cross-entropy | ENC | its terms | gain, paired 95% interval | paper's ENC |",
        "|---|---|---|---|---|---|---|",
    ]
    for graph in GRAPHS:
        for backbone in BACKBONES:
            ce, enc = (by_place[graph, backbone, objective] for objective in ("ce", "enc"))
            means = [
                f"{cell['summary']['mean']:.1f} ± {cell['summary']['std']:.1f}"
                for cell in (ce, enc)
            ]
            without, _, more = f", {enc['remark']}".partition(", with ")
            kept = (
                []
                if enc["remark"] == "no term"
                else [term for term in ("MI", "TV", "CVG") if term not in without]
            )
            gain = enc["gain"]
            told = between(gain["mean"], gain["low"], gain["high"]) if gain else "the same runs"
            terms = ", ".join([*kept, *([more] if more else [])]) or "none"
            lines.append(
                f"| {graph} | {NAMES[backbone]} | {' | '.join(means)} | {terms} | {told} | {as_printed(enc['published'], 1)} |"
            )
    return "\n".join(lines)


def tuned_counts() -> str:
    """How often tuned ENC is ahead of tuned cross-entropy, level with it, or behind."""
    tables = {table["id"]: table["cells"] for table in result("tables-tuned")}
    head = [
        "ENC and cross-entropy",
        "cells",
        "no term",
        "with terms not of the paper",
        "these alone",
        "ahead",
        "behind",
        "interval above zero",
    ]
    head += ["significantly ahead", "significantly behind"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, ids in {
        "public split": ["semi-supervised"],
        "ten folds": ["homophilic", "heterophilic"],
    }.items():
        cells = [
            c
            for table in ids
            for c in tables[table]
            if c["objective"] == "enc" and c["planned"] and len(c["runs"]) == c["planned"]
        ]
        gains = [
            cell["gain"] for cell in cells if cell["gain"]
        ]  # none where its runs are cross-entropy's own
        sure = [gain["mean"] for gain in gains if significant(gain)]
        with_more = [
            cell["remark"]
            for cell in cells
            if any(name in cell["remark"] for name in NOT_OF_THE_PAPER.values())
        ]
        alone = sum(remark.startswith("without MI, TV, CVG") for remark in with_more)
        counts = [
            len(cells),
            sum(cell["remark"] == "no term" for cell in cells),
            len(with_more),
            alone,
        ]
        counts += [sum(g["mean"] > 0 for g in gains), sum(g["mean"] < 0 for g in gains)]
        counts += [
            sum(g["low"] > 0 for g in gains),
            sum(mean > 0 for mean in sure),
            sum(mean < 0 for mean in sure),
        ]
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def choices_table() -> str:
    """The tuned choices of different studies for one cell of the public split, all on the same ten seeds."""
    found: dict[tuple[str, str], dict[str, dict[str, list[float]]]] = {}
    with (ROOT / "results/runs-tuned.csv").open() as file:
        for r in csv.DictReader(file):
            if r["split"] == "public" and r["preset"] == "tuned":
                settings = json.dumps({n: v for n, v in r.items() if n.startswith("settings.")})
                by_choice = found.setdefault((r["dataset"], r["backbone"]), {}).setdefault(
                    r["objective"], {}
                )
                by_choice.setdefault(settings, []).append(100 * float(r["test_accuracy"]))
    lines = ["| graph | network | cross-entropy's choices | ENC's choices |", "|---|---|---|---|"]
    for (graph, backbone), objectives in sorted(
        found.items(), key=lambda item: (GRAPHS.index(item[0][0]), BACKBONES.index(item[0][1]))
    ):
        means = [
            sorted(statistics.mean(v) for v in objectives.get(o, {}).values() if len(v) == 10)
            for o in ("ce", "enc")
        ]
        lines.append(
            f"| {graph} | {NAMES[backbone]} | "
            + " | ".join(", ".join(f"{mean:.1f}" for mean in some) for some in means)
            + " |"
        )
    return "\n".join(lines)


def standard_error_table() -> str:
    """Where ENC's highest mean on validation has a term: what the rule of one standard error made of it, and what both gave."""
    lines = [
        "| graph | network | ahead on validation | standard error | chosen instead | highest: folds | fresh | chosen: folds | fresh |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    fresh = {(r["graph"], r["backbone"]): r for r in result("fresh-splits")["rows"]}
    tuned = {
        (cell["dataset"], cell["backbone"]): cell["gain"] for t in result("tables-tuned") for cell in t["cells"]
        if t["id"] in ("homophilic", "heterophilic") and cell["objective"] == "enc"
    }  # fmt: skip
    for r in result("one-standard-error")["rows"]:
        if any(r["highest"].values()):
            kept = [term.upper() for term, weight in r["chosen"].items() if weight]
            chosen = "the same" if r["highest"] == r["chosen"] else " and ".join(kept) or "no term"
            shown = (
                ["", ""]
                if chosen == "the same"
                else [f"{100 * r[name]:.2f}" for name in ("lead_on_validation", "standard_error")]
            )
            place = r["graph"], r["backbone"]
            gains = [
                100 * r["test_gain_of_the_highest"],
                100 * fresh[place]["gain_of_highest"]["mean"],
            ]
            gains += [
                tuned[place]["mean"] if tuned[place] else 0.0,
                100 * fresh[place]["gain_of_chosen"]["mean"],
            ]
            told = " | ".join(signed(gain, 2) for gain in gains)
            lines.append(
                f"| {r['graph']} | {NAMES[r['backbone']]} | {' | '.join(shown)} | {chosen} | {told} |"
            )
    return "\n".join(lines)
