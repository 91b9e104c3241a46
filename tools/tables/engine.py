"""The engine against the version before it: the same accuracies, the same training."""

from __future__ import annotations

from tables.common import between, result


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
