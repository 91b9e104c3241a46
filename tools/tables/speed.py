"""Milliseconds, memory and ratios against stock PyG."""

from __future__ import annotations

from tables.common import between, result


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


def folds_table() -> str:
    found = result("bench-folds")
    lines = [
        "| | everynode `train` | PyG as most write it | an expert's PyG |",
        "|---|---|---|---|",
    ]
    for r in found["rows"]:
        cells = [f"{r['everynode_ms']:.0f} ms"]
        for side, ratio in (("stock_ms", "ratio"), ("expert_ms", "ratio_expert")):
            cells.append(f"{r[side]:.0f} ms = **{r[ratio]:.1f}x**")
        lines.append(f"| {r['graph']}, {r['backbone']} | {' | '.join(cells)} |")
    loads = [r["load"] for r in found["rows"]]
    lines += [
        "",
        f"`{found['command'].partition(' --out')[0]}`, medians in turn in one process; load of the machine "
        f"{min(loads):.1f} to {max(loads):.1f} on 2 cores.",
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
