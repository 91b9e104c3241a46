"""Graphs that are large: disk, processes, batches, and the cost model."""

from __future__ import annotations

import math

from tables.common import listed, result


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
