"""Write the tables of README and docs, and the pictures, from ``results/``; with ``--check``, say whether they are up to date."""

from __future__ import annotations

import csv
import json
import math
import re
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from everynode.experiments.analysis import SIGNIFICANT
from everynode.experiments.experiment import BACKBONES, NAMES
from everynode.experiments.statistics import compare_paired
from everynode.objective_names import NOT_OF_THE_PAPER
from everynode.report.text import DASH, as_printed, decimals, number

ROOT = Path(__file__).parents[1]
GRAPHS = ("cora", "citeseer", "pubmed")


def comparisons() -> dict[tuple[str, str], dict[str, Any]]:
    """The committed outputs of ``everynode compare --json`` by graph and backbone."""
    found = {}
    for graph in GRAPHS:
        for backbone in BACKBONES:
            path = ROOT / f"results/compare-{graph}-{backbone}.json"
            if path.exists():
                found[graph, backbone] = json.loads(path.read_text())
    return found


def signed(value: float, digits: int = 1) -> str:
    """A difference, written as the page writes it."""
    return number(value, digits, sign=True)


def between(mean: float, low: float, high: float, digits: int = 1) -> str:
    """A difference and its interval."""
    return f"{signed(mean, digits)} ({signed(low, digits)} to {signed(high, digits)})"


def percent(summary: dict[str, float]) -> str:
    return f"{100 * summary['mean']:.1f} ± {100 * summary['std']:.1f}"


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
        interval = _between(gain)
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


def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / f"results/{name}.json").read_text())
    return found


def speed_table() -> str:
    found = result("bench")
    rows = {
        (r["graph"], r["backbone"], r["objective"]): r for r in found["rows"] if r["threads"] == 1
    }
    columns = (("gcn-2", "ce"), ("gcn-2", "enc"), ("gat-2", "enc"), ("gcnii-8", "enc"))
    head = ["cross-entropy, GCN-2", "ENC, GCN-2", "ENC, GAT-2", "ENC, GCNII-8"]
    lines = [f"| stock PyG / everynode | {' | '.join(head)} |", "|---|" + "---|" * len(head)]
    for graph in dict.fromkeys(r["graph"] for r in found["rows"]):
        cells = [
            f"{r['stock_ms']:.0f} / {r['everynode_ms']:.1f} ms = **{r['ratio']:.1f}x**"
            for r in (rows[graph, *c] for c in columns)
        ]
        lines.append(f"| {graph} | {' | '.join(cells)} |")
    lines += [
        "",
        "One training step and one evaluation, 64 channels, one thread, interleaved medians in one process (`make bench`).",
    ]
    return "\n".join(lines)


def full_speed_table() -> str:
    lines = [
        "| graph | network | objective | threads | everynode, ms | stock PyG, ms | ratio | estimate of the limit, ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in result("bench")["rows"]:
        spread = "{:.1f} to {:.1f}".format(*r["everynode_quartiles_ms"])
        cells = [
            r["graph"],
            r["backbone"],
            r["objective"],
            r["threads"],
            f"{r['everynode_ms']:.1f} ({spread})",
            f"{r['stock_ms']:.0f}",
        ]
        lines.append(
            "| "
            + " | ".join(map(str, [*cells, f"{r['ratio']:.1f}x", f"{r['roofline_ms']:.1f}"]))
            + " |"
        )
    return "\n".join(lines)


def machine_table() -> str:
    lines = [
        "| threads | matrix product, GFlop/s | copying, GB/s | load when measured |",
        "|---|---|---|---|",
    ]
    for m in result("bench")["machine"]:
        lines.append(
            f"| {m['threads']} | {m['gflops']:.0f} | {m['gbytes_per_s']:.1f} | {m['load']:.1f} |"
        )
    return "\n".join(lines)


def memory_table() -> str:
    lines = [
        "| graph | network | everynode, MB | stock PyG, MB | with graph and libraries loaded, MB |",
        "|---|---|---|---|---|",
    ]
    for r in result("bench-memory")["rows"]:
        m = r["memory"]
        cells = (m["everynode"]["peak_mb"], m["stock"]["peak_mb"], m["everynode"]["before_mb"])
        lines.append(
            f"| {r['graph']} | {r['backbone']} | "
            + " | ".join(f"{value:.0f}" for value in cells)
            + " |"
        )
    return "\n".join(lines)


def price_table() -> str:
    found = result("price")
    names = list(found["rows"][0]["price"])[1:]
    lines = [
        f"| split | network | cross-entropy, ms | {' | '.join(names)} |",
        "|---|---|---|" + "---|" * len(names),
    ]
    for r in found["rows"]:
        prices = " | ".join(f"{r['price'][name]:.2f}x" for name in names)
        lines.append(f"| {r['split']} | {r['network']} | {r['ms']['ce']:.1f} | {prices} |")
    return "\n".join(lines)


def arxiv_table() -> str:
    lines = ["| | seconds a step | peak memory, GB |", "|---|---|---|"]
    for name, r in result("arxiv-size")["rows"].items():
        lines.append(
            f"| {name} | {r['seconds']:.1f} | {r['peak_gb']:.1f} |"
            if "seconds" in r
            else f"| {name} | did not fit: {r['failed']} | |"
        )
    return "\n".join(lines)


def reading_table() -> str:
    lines = [
        "| | files, MB | seconds of one core | by the clock | peak memory, GB |",
        "|---|---|---|---|---|",
    ]
    found = result("read-million")
    for kind, r in found["rows"].items():
        for step, what in (
            ("read", "read and sum up"),
            ("check", "`everynode.datasets.check`"),
            ("structure", "features from the structure"),
        ):
            if f"{step}_seconds" not in r:
                continue
            size = f"{r['file_mb']:.0f}" if step == "read" else ""
            times = f"{r[f'{step}_cpu_seconds']:.0f} | {r[f'{step}_seconds']:.0f}"
            lines.append(f"| {kind}: {what} | {size} | {times} | {r[f'{step}_peak_gb']:.1f} |")
    load = f"the machine had {found['cores']} cores and a load of {found['load'][0]:.0f}, so the clock counts waiting too"
    lines += ["", f"One thread; {load} (`{found['command']}`)."]
    return "\n".join(lines)


def own_table() -> str:
    """Cora as CSV through fit, beside Cora by its name."""
    found = result("own-cora")
    mean, low, high = (100 * found["fit_minus_train"][key] for key in ("mean", "low", "high"))
    heads = (
        f"test accuracy, {found['seeds']} seeds",
        "`everynode train cora`",
        "two CSV files, `everynode fit`",
        "difference, paired 95%",
    )
    cells = (
        "ENC-GCN",
        percent(found["summary"]["train"]),
        percent(found["summary"]["fit"]),
        between(mean, low, high, 2),
    )
    return "\n".join((f"| {' | '.join(heads)} |", "|---|---|---|---|", f"| {' | '.join(cells)} |"))


def cost_table() -> str:
    found = result("cost-model")
    lines = ["| | cross-entropy | ENC |", "|---|---|---|"]
    for unit, factor, kind in (("ns", 1e9, "seconds"), ("bytes", 1024**2, "peak_mb")):
        models = [found["models"][objective][kind] for objective in ("ce", "enc")]
        for term in models[0]["coefficients"]:
            scale, name = (1.0, "MB") if term == "process" else (factor, unit)
            cells = [f"{scale * model['coefficients'][term]:.3g} {name}" for model in models]
            lines.append(
                f"| {'the process itself' if term == 'process' else f'per {term}'} | "
                + " | ".join(cells)
                + " |"
            )
        errors = [model["relative_errors"] for model in models]
        cells = [f"{100 * error['median']:.0f} %, {100 * error['worst']:.0f} %" for error in errors]
        what = "time" if kind == "seconds" else "memory"
        lines.append(
            f"| *median and largest error of the {what}, {models[0]['points']} and {models[1]['points']} points* | {' | '.join(cells)} |"
        )
        if "over_measured_on_smaller" in models[0]:
            cells = [f"{model['over_measured_on_smaller']:.1f} times" for model in models]
            lines.append(
                f"| *what the model says of smaller graphs, against what they take* | {' | '.join(cells)} |"
            )
    ranges = {
        name: [row[name] for row in found["rows"]] for name in ("nodes", "edges", "hidden_channels")
    }
    spans = ", ".join(
        f"{min(values):,} to {max(values):,} {name.replace('_', ' ')}"
        for name, values in ranges.items()
    )
    lines += [
        "",
        f"{len(found['rows'])} points, {spans}; load of the machine {found['load'][2]:.1f} on {found['cores']} cores.",
    ]
    return "\n".join(lines)


def plan_table() -> str:
    heads = (
        "edges",
        "hidden channels",
        "objective",
        "all at once: memory",
        "300 steps",
        "batches: 1 node in 100",
        "machines",
        "all nodes",
        "machines",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for r in result("cost-model")["predictions"]:
        steps, few = 300 * r["step_seconds"] / 3600, 50 * r["epoch_of_batches_seconds"] / 3600
        every = few * r["nodes"] / r["seeds"]
        cells = [
            f"10^{round(math.log10(r['edges']))}",
            str(r["hidden_channels"]),
            "ENC" if r["objective"] == "enc" else "cross-entropy",
        ]
        cells += [f"{r['peak_gb']:,.0f} GB", in_hours(steps)]
        for hours in (few, every):
            cells += [in_hours(hours), f"{math.ceil(hours / 24 / 8)}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def in_hours(hours: float) -> str:
    """With two digits that count."""
    return (
        f"{60 * hours:.0f} min"
        if hours < 1
        else f"{hours:,.1f} h"
        if hours < 10
        else f"{hours:,.0f} h"
    )


def same_table() -> str:
    lines = [
        "| graph | network | objective | before | after | difference, paired 95% interval | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in result("same-accuracy")["rows"]:
        gap = between(100 * r["mean"], 100 * r["low"], 100 * r["high"], 2)
        cells = [
            r["graph"],
            r["backbone"],
            r["objective"],
            f"{100 * r['before']:.2f}",
            f"{100 * r['after']:.2f}",
            gap,
            f"{r['p_value']:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def same_gat_table() -> str:
    lines = [
        "| seeds | before | after | difference, paired 95% interval | p |",
        "|---|---|---|---|---|",
    ]
    for r in result("same-accuracy-gat")["rows"]:
        gap = between(100 * r["mean"], 100 * r["low"], 100 * r["high"], 2)
        lines.append(
            f"| {r['seeds']} | {100 * r['before']:.2f} | {100 * r['after']:.2f} | {gap} | {r['p_value']:.3f} |"
        )
    return "\n".join(lines)


def same_training_table() -> str:
    rows = result("same-training")["rows"]
    steps = list(rows[0]["largest_relative_difference"])
    lines = [
        f"| network | objective | {' | '.join(f'{n} step' + 's' * (n != '1') for n in steps)} |",
        "|---|---|" + "---|" * len(steps),
    ]
    for r in rows:
        cells = [", ".join(f"{x:.0e}" for x in r["largest_relative_difference"][n]) for n in steps]
        lines.append(f"| {r['backbone']} | {r['objective']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cheaper_table() -> str:
    lines = [
        "| graph | weight | CVG at every step | every 4th | difference, paired 95% interval | p |",
        "|---|---|---|---|---|---|",
    ]
    for r in result("cheaper-cvg")["rows"]:
        gap = between(100 * r["mean"], 100 * r["low"], 100 * r["high"], 2)
        cells = [
            r["graph"],
            r["weight"],
            f"{100 * r['every']:.2f}",
            f"{100 * r['fourth']:.2f}",
            gap,
            f"{r['p_value']:.2f}",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def numbers() -> str:
    scaling, through = result("scaling"), result("throughput")
    first, last = scaling["rows"][0], scaling["rows"][-1]
    anew = last["without_recycling"]
    return (
        f"From {first['edges']:,} to {last['edges']:,} edges a step goes from {1000 * first['seconds']:.0f} ms to {last['seconds']:.1f} s; "
        f"from 10^5 edges on the slope in the double logarithmic plot is {scaling['slope_from_1e5']:.2f} (1 is linear), and that of one "
        f"propagation alone {scaling['propagation_slope_from_1e5']:.2f}: it reads its rows at {first['propagation_gbytes_per_s']:.0f} GB/s "
        f"on the smallest graph and {last['propagation_gbytes_per_s']:.1f} on the largest (copying an array: "
        f"{scaling['machine']['gbytes_per_s']:.1f}). Without recycling, the largest step takes {anew['seconds']:.1f} s, of which "
        f"{anew['kernel_seconds']:.1f} in the kernel, and {anew['peak_gb']:.1f} GB instead of {last['peak_gb']:.1f}. "
        f"Two worker processes on two cores do {through['ratio']:.2f} times the runs of one."
    )


def paper_table(experiment: str, preset: str = "paper") -> str:
    """An experiment of ``everynode reproduce`` with the paper's numbers, one table a panel."""
    found = next((table for table in result(f"tables-{preset}") if table["id"] == experiment), None)
    if found is None:
        return "Not run yet."
    metrics = {cell["metric"] for cell in found["cells"]}
    printed = {
        metric: decimals(cell["published"] for cell in found["cells"] if cell["metric"] == metric)
        for metric in metrics
    }
    blocks = []
    for panel in dict.fromkeys(cell["panel"] for cell in found["cells"]):
        cells = [cell for cell in found["cells"] if cell["panel"] == panel]
        cells = [cell for cell in cells if cell["planned"]]  # where the preset has settings
        columns = list(dict.fromkeys(cell["column"] for cell in cells))
        lines = [f"| {panel} | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
        for row in dict.fromkeys(cell["row"] for cell in cells):
            by_column = {
                cell["column"]: paper_cell(cell, printed[cell["metric"]])
                for cell in cells
                if cell["row"] == row
            }
            lines.append(
                f"| {row} | " + " | ".join(by_column.get(column, DASH) for column in columns) + " |"
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def described_table(experiment: str) -> str:
    """The same, with what to know of it."""
    about = next(
        (table["about"] for table in result("tables-paper") if table["id"] == experiment), ""
    )
    return f"{about}\n\n{paper_table(experiment)}"


def paper_cell(cell: dict[str, Any], printed: int) -> str:
    """A number beside the paper's, which has so many decimals there."""
    found = cell["summary"]
    if found is None:
        return f"all {cell['diverged']} runs diverged" if cell["diverged"] else "not run"
    few = 0 if float(found["mean"]).is_integer() else 2
    digits = (
        few
        if cell["metric"].startswith("statistics")
        else 2
        if cell["metric"].endswith("_ms")
        else 1
    )
    text = number(found["mean"], digits) + (
        f" ± {number(found['std'], digits)}" if found["std"] is not None else ""
    )
    if cell["published"] is not None:
        verdict = f", {cell['verdict'].replace('-', '−')}" if cell["verdict"] else ""
        text += f" (paper {as_printed(cell['published'], max(digits, printed))}{verdict})"
    gain = cell["gain"]
    if gain and gain["count"] > 1:
        text += f"<br>gain {signed(gain['mean'])}{' *' if _significant(gain) else ''}"
        text += f" on {gain['count']} pairs" if gain["count"] < len(cell["runs"]) else ""
    text += f" ({cell['remark']})" if cell["remark"] else ""
    notes = (
        [f"{len(cell['runs'])} of {cell['planned']} runs"]
        if len(cell["runs"]) < cell["planned"]
        else []
    )
    notes += [f"{cell['diverged']} diverged"] if cell["diverged"] else []
    return text + (f"<br>{', '.join(notes)}" if notes else "")


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
        sure = [gain["mean"] for gain in gains if _significant(gain)]
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


def calibration_table() -> str:
    """Temperatures and calibration errors of three ways."""
    lines = [
        "| example | validation nodes | temperature, 0.7.0 | now | calibration error on test, as trained | 0.7.0 | now |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in result("calibration")["rows"]:
        mean = {name: statistics.mean(values) for name, values in r["temperature"].items()}
        ece = {name: statistics.mean(values) for name, values in r["ece"].items()}
        numbers = f"{mean['platt']:.2f} | {mean['now']:.2f} | {ece['none']:.3f} | {ece['platt']:.3f} | {ece['now']:.3f}"
        lines.append(f"| {r['example']} | {r['validation_nodes']} | {numbers} |")
    return "\n".join(lines)


def held_out_table() -> str:
    """What cross-validation gives where labels are few, beside holding out once, and beside how it was done up to 0.11.0."""
    rows, before = (
        result("held-out")["rows"],
        {r["case"]: r["ways"] for r in result("held-out-before")["rows"]},
    )
    ways = [*rows[0]["ways"], "cv=3 up to 0.11.0"]
    lines = [
        "| | " + " | ".join(ways) + " | cv=3 over cv=1, paired 95% interval |",
        "|---|" + "---|" * (len(ways) + 1),
    ]
    for r in rows:
        shown = [
            f"{100 * statistics.mean(values['test_accuracy']):.1f}"
            for values in (*r["ways"].values(), before[r["case"]]["cv=3"])
        ]
        lines.append(
            f"| {r['case']} | {' | '.join(shown)} | {_between(r['gain_of_cv_3']['over cv=1'])} |"
        )

    def price(of: list[dict[str, Any]], way: str) -> str:
        each = sorted(
            sum(one[way]["seconds"]) / sum(one["cross-entropy, cv=1"]["seconds"]) for one in of
        )
        return f"{statistics.median(each):.1f} ({each[0]:.1f} to {each[-1]:.1f})"

    now = [r["ways"] for r in rows]
    then = [before[r["case"]] for r in rows]
    accuracies = [
        [value for one in of for value in one["cv=3"]["test_accuracy"]] for of in (now, then)
    ]
    ece = {
        way: statistics.mean(value for one in now for value in one[way]["ece"])
        for way in ("cv=1", "cv=3")
    }
    lines += [
        "",
        f"Time, one cross-entropy run with cv=1 as 1, median and range over the rows: {price(now, 'cv=3')} with cv=3, "
        f"{price(then, 'cv=3')} up to 0.11.0; {price(now, 'cv=1')} with cv=1. "
        f"Accuracy against 0.11.0 over all {len(accuracies[0])} draws, paired: "
        f"{_between(compare_paired(*accuracies).to_dict())}. Calibration error on test nodes, mean of all: {ece['cv=1']:.3f} with cv=1, "
        f"{ece['cv=3']:.3f} with cv=3.",
    ]
    return "\n".join(lines)


def _between(gain: dict[str, float]) -> str:
    return between(100 * gain["mean"], 100 * gain["low"], 100 * gain["high"])


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


def _significant(gain: dict[str, Any]) -> bool:
    return gain["p_holm"] is not None and gain["p_holm"] < SIGNIFICANT


def verdicts() -> str:
    """How many of the paper's numbers were reproduced."""
    tables = [table for table in result("tables-paper") if table["in_paper"]]
    cells = [
        cell
        for table in tables
        for cell in table["cells"]
        if cell["metric"] == "test_accuracy" and cell["verdict"]
    ]
    judged = {(*cell["runs"], cell["published"]): cell for cell in cells}.values()
    lines = [
        "| | cells | reproduced | better | short | of these even at the best test epoch |",
        "|---|---|---|---|---|---|",
    ]
    for label, chosen in (
        ("cross-entropy", [cell for cell in judged if cell["objective"] == "ce"]),
        ("ENC", [cell for cell in judged if cell["objective"] == "enc"]),
        (
            "TV alone, or MI and TV",
            [cell for cell in judged if cell["objective"] in ("tv", "mi+tv")],
        ),
    ):
        counts = [
            sum(cell["verdict"].startswith(word) for cell in chosen)
            for word in ("reproduced", "better", "short")
        ]
        never = sum(cell["short_at_any_epoch"] for cell in chosen)
        lines.append(f"| {label} | " + " | ".join(map(str, (len(chosen), *counts, never))) + " |")
    return "\n".join(lines)


def redo_table() -> str:
    """What the committed runs get when they are done again on another machine."""
    found = result("redo")
    again = f"again, on {found['cpu']}"
    lines = [
        f"| | committed | {again}, less that (95% interval) | runs that differ | by at most |",
        "|---|---|---|---|---|",
    ]
    for r in found["rows"]:
        gap = r["gap"]
        less = between(gap["mean"], gap["low"], gap["high"], 2)
        differ = f"{r['differ']} of {r['runs']} | {r['largest']:.1f}"
        lines.append(
            f"| {r['experiment']}, {r['graph']}, {r['row']} | {r['before']:.1f} | {less} | {differ} |"
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
            gain = _between(compare_paired(r["test_accuracy"], without["test_accuracy"]).to_dict())
            cells.append(
                (f"{val:.1f} / " if with_validation else "")
                + f"{test:.1f}"
                + (f"<br>{gain}" if way != plain else "")
            )
        lines.append(f"| {graph}, {features} features | {' | '.join(cells)} |")
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


def safe_table() -> str:
    lines = [
        "| graph | cross-entropy | ENC | default (race) | minus the better of the two, 95% interval | minus cross-entropy | time, CE = 1 |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = result("safe-defaults")["rows"]
    for r in rows:
        means = " | ".join(
            f"{100 * statistics.mean(r['test_accuracy'][way]):.1f}" for way in ("ce", "enc", "auto")
        )
        name = f"**{r['graph']}**" if r["fresh"] else r["graph"]
        time = f"{statistics.median(r['times_ce']):.1f}x"
        lines.append(
            f"| {name} | {means} | {_between(r['gap'])} | {_between(r['over_ce'])} | {time} |"
        )
    longest = max(max(r["times_ce"]) for r in rows)
    to_enc = [statistics.median(r["times_enc"]) for r in rows]
    told = f"Against one run of ENC, which takes CVG at every step, it is {min(to_enc):.1f} to {max(to_enc):.1f} times as long (medians)."
    return "\n".join(
        [
            *lines,
            "",
            f"A single race took up to {longest:.1f} times as long as a single run of cross-entropy. {told}",
        ]
    )


def race_table() -> str:
    """What each way to run a race would have got on validation nodes, and its price; the one that the rule chooses in bold."""
    rows, chosen = (result("race-designs")[name] for name in ("rows", "chosen"))
    beds = list(dict.fromkeys(r["bed"] for r in rows))
    lines = [
        f"| | {' | '.join(beds)} | mean | chosen minus this | time, CE = 1 |",
        "|---|" + "---|" * (len(beds) + 3),
    ]
    found = {
        design: [r for r in rows if r["design"] == design]
        for design in dict.fromkeys(r["design"] for r in rows)
    }
    every = {
        design: [value for r in of for value in r["val_accuracy"]] for design, of in found.items()
    }
    for design, of in found.items():
        means = [100 * statistics.mean(r["val_accuracy"]) for r in of]
        gap = (
            ""
            if design == chosen
            else _between(compare_paired(every[chosen], every[design]).to_dict())
        )
        shown = [
            *(f"{mean:.1f}" for mean in means),
            f"{statistics.mean(means):.2f}",
            gap,
            _times(of),
        ]
        lines.append(f"| {f'**{design}**' if design == chosen else design} | {' | '.join(shown)} |")
    before = [r for r in result("race-designs-before")["rows"] if r["design"] == "60: 2"]
    return "\n".join(
        [
            *lines,
            "",
            f"The race up to 0.12.0, `60: 2` with CVG at every step: {_times(before)} times (`results/race-designs-before.json`).",
        ]
    )


def _times(rows: list[dict[str, Any]]) -> str:
    """The least and the greatest median of some beds."""
    medians = [statistics.median(r["times_ce"]) for r in rows]
    return f"{min(medians):.1f} to {max(medians):.1f}"


def candidates_table() -> str:
    """Validation and test accuracy by graph, and the gain over the row it is compared with."""
    rows = result("candidates")["rows"]
    graphs = list(dict.fromkeys(r["graph"] for r in rows))
    lines = [f"| | {' | '.join(graphs)} |", "|---|" + "---|" * len(graphs)]
    found = {(r["variant"], r["graph"]): r for r in rows}
    for variant in dict.fromkeys(r["variant"] for r in rows):
        cells = []
        for r in (found.get((variant, graph)) for graph in graphs):
            if r is None:
                cells.append("")
                continue
            val, test = (
                100 * statistics.mean(r[metric]) for metric in ("val_accuracy", "test_accuracy")
            )
            cells.append(
                f"{val:.1f} / {test:.1f}" + (f"<br>{_between(r['gain'])}" if r["base"] else "")
            )
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(lines)


#: The experiments that docs/reproduction.md shows.
REPRODUCED = (
    "datasets", "semi-supervised", "depth", "homophilic", "heterophilic", "tv-vs-preg", "labels-per-class", "mi-vs-tv", "halves", "weights",
    "run-times", "readings",
)  # fmt: skip


def disk_table() -> str:
    r = result("disk")
    lines = ["| | seconds | CPU seconds | peak of resident memory, GB |", "|---|---|---|---|"]
    rows = (
        (f"an epoch: {r['steps']} steps, {r['seeds']:,} seeds", "epoch", "peak_gb_training"),
        (f"{r['val']:,} validation nodes, all their neighbors", "validation", "peak_gb"),
    )
    for name, what, peak in rows:
        lines.append(
            f"| {name} | {r[f'{what}_seconds']:.0f} | {r[f'{what}_cpu_seconds']:.0f} | {r[peak]:.1f} |"
        )
    shape = f"{r['nodes']:,} nodes, {r['edges']:,} edges, {r['features']} features, GCN {r['num_layers']} x {r['hidden_channels']}"
    lines += [
        "",
        f"{shape}, fan-out {listed(r['fan_out'])}; load of the machine {r['load'][0]:.1f} on {r['cores']} cores.",
    ]
    return "\n".join(lines)


def two_hosts_table() -> str:
    r = result("two-hosts")
    lost, again = r["host_lost"], r["again"]
    told = "with the sentence" if lost["said"] else "without a sentence"
    went_on = "went on" if again["went_on"] else "started over"
    ended = f"ended after {again['epochs']} epochs, exit codes {listed(again['exit_codes'])}, in the folder {listed(again['files'])}"
    return f"The first host ended {told}, exit code {lost['exit_codes'][0]}. The same command {went_on} and {ended}."


def processes_table() -> str:
    r = result("processes")
    lines = [
        "| | seeds a second, each time | best, against one | CPU seconds of a process's step |",
        "|---|---|---|---|",
    ]
    names = {
        "alone": "one process",
        "together": "two that share every step",
        "apart": "two that know nothing of each other",
    }
    for side, name in names.items():
        rates = r["seeds_per_second"][side]
        ratio = "" if side == "alone" else f"{r[f'{side}_to_alone']:.2f}x"
        cpu = min(r["cpu_seconds_per_step"][side])
        lines.append(
            f"| {name} | {', '.join(f'{rate:.0f}' for rate in rates)} | {ratio} | {cpu:.2f} |"
        )
    lines += [
        "",
        f"{r['size']} seeds a process, fan-out {listed(r['fan_out'])}; load of the machine {r['load'][0]:.1f} on {r['cores']} cores.",
    ]
    return "\n".join(lines)


def minibatch_table() -> str:
    r = result("minibatch")
    lines = [
        "| | steps | seconds a step | best validation accuracy | seconds to half a point below the whole graph's best | peak, GB |",
        "|---|---|---|---|---|---|",
    ]
    for side, name in (
        ("whole", "the whole graph"),
        ("batches", f"batches of {r['setting']['size']}"),
    ):
        found, reached = r["sides"][side], r["seconds_to_goal"][side]
        best = f"{100 * r['best_val_accuracy'][side]:.2f}"
        when = "not reached" if reached is None else f"{reached:.0f}"
        lines.append(
            f"| {name} | {found['curve'][-1]['steps']} | {found['seconds_per_step']:.2f} | {best} | {when} | {found['peak_gb']:.1f} |"
        )
    stock = result("arxiv-size")["rows"]
    for objective in ("ce", "enc"):
        row = stock[f"stock {objective}"]
        told = (
            ("", "not within 20 GB")
            if "failed" in row
            else (f"{row['seconds']:.2f}", f"{row['peak_gb']:.1f}")
        )
        lines.append(f"| stock PyG, the whole graph, {objective} | | {told[0]} | | | {told[1]} |")
    setting = f"Fan-out {listed(r['setting']['fan_out'])}; load of the machine {r['load'][0]:.1f} on {r['cores']} cores."
    lines += ["", f"{setting} Stock PyG's steps are those of `results/arxiv-size.json`."]
    return "\n".join(lines)


def listed(values: list[Any]) -> str:
    return ", ".join(map(str, values))


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {
        "demo": demo_table,
        "stock-loop": stock_loop_table,
        "results": results_table,
        "tuned": tuned_table,
        "speed": speed_table,
        "verdicts": verdicts,
    },
    "docs/reproduction.md": {
        "verdicts": verdicts,
        "redo": redo_table,
        **{name: partial(described_table, name) for name in REPRODUCED},
    },
    "docs/accuracy.md": {
        "recipe": recipe_table,
        "stock-loop": partial(stock_loop_table, with_validation=True),
        "class-prior": class_prior_table,
        "last-point": last_point_table,
        "safe": safe_table,
        "race": race_table,
        "candidates": candidates_table,
        "prior": prior_table,
        "tuned": partial(paper_table, "semi-supervised", "tuned"),
        "paper-terms": partial(paper_table, "semi-supervised", "paper-terms"),
        "choices": choices_table,
        "authors": partial(paper_table, "semi-supervised", "authors"),
        "authors-heterophilic": partial(paper_table, "heterophilic", "authors"),
        "tuned-homophilic": partial(paper_table, "homophilic", "tuned"),
        "tuned-heterophilic": partial(paper_table, "heterophilic", "tuned"),
        "tuned-counts": tuned_counts,
        "standard-error": standard_error_table,
        "weights": weights_table,
        "held-out": held_out_table,
    },
    "docs/own-graphs.md": {
        "reading": reading_table,
        "own": own_table,
        "calibration": calibration_table,
    },
    "docs/speed.md": {
        "machine": machine_table,
        "full": full_speed_table,
        "memory": memory_table,
        "price": price_table,
        "cheaper": cheaper_table,
        "arxiv": arxiv_table,
        "same": same_table,
        "same-gat": same_gat_table,
        "same-training": same_training_table,
        "numbers": numbers,
    },
    "docs/scale.md": {
        "reading": reading_table,
        "disk": disk_table,
        "two-hosts": two_hosts_table,
        "processes": processes_table,
        "minibatch": minibatch_table,
    },
    "docs/scale-plan.md": {"cost": cost_table, "plan": plan_table},
}


def picture() -> None:
    """Every seed as a dot: cross-entropy beside ENC, pairs joined."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "everynode"
    from matplotlib import pyplot

    found = comparisons()
    figure, axes = pyplot.subplots(
        1, len(found), figsize=(1.25 * len(found) + 1, 3.0), sharey=False, layout="constrained"
    )
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


def maps() -> None:
    """Cora's nodes in the plane, from the records of ``everynode reproduce tsne``."""
    from matplotlib import pyplot

    kinds = {(record["task"], record["objective"]): record for record in result("tsne-paper")}
    found = [kinds[kind] for kind in (("tsne-input", "ce"), ("tsne", "ce"), ("tsne", "enc"))]
    figure, axes = pyplot.subplots(
        1, len(found), figsize=(3.4 * len(found), 3.5), layout="constrained"
    )
    for axis, record in zip(axes, found, strict=True):
        x, y = zip(*record["positions"], strict=True)
        axis.scatter(x, y, c=record["labels"], cmap="Dark2", s=3, linewidths=0)
        if record["task"] == "tsne-input":
            said = "input features"
        else:
            name = {"ce": "GCN, cross-entropy", "enc": "ENC-GCN"}[record["objective"]]
            said = f"predictions of {name}: {100 * record['test_accuracy']:.1f} %"
        axis.set_title(said, fontsize=9)
        axis.set_axis_off()
    figure.savefig(ROOT / "docs/tsne.png", dpi=110, metadata={"Software": None})


def main() -> int:
    stale = []
    for name, tables in TABLES.items():
        path = ROOT / name
        text = fresh = path.read_text(encoding="utf-8")
        for mark, table in tables.items():
            pattern = f"(<!-- {mark}:begin -->\n).*?(<!-- {mark}:end -->)"
            made = table()
            fresh, places = re.subn(
                pattern, lambda m, made=made: f"{m[1]}{made}\n{m[2]}", fresh, flags=re.DOTALL
            )
            if places != 1:
                raise SystemExit(
                    f"{name} has {places} places for {mark}, marked <!-- {mark}:begin --> and <!-- {mark}:end -->, not one."
                )
        if fresh != text:
            stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(fresh, encoding="utf-8")
    if "--check" in sys.argv:
        if stale:
            print(f"{', '.join(stale)}: not what results/ say; run python tools/readme.py.")
        return int(bool(stale))
    picture()
    maps()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
