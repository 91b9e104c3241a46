"""Successive halving between cross-entropy and ENC, and its candidates."""

from __future__ import annotations

import statistics
from typing import Any

from everynode.experiments.statistics import compare_paired
from tables.common import gain_between, result


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
            f"| {name} | {means} | {gain_between(r['gap'])} | {gain_between(r['over_ce'])} | {time} |"
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
            else gain_between(compare_paired(every[chosen], every[design]).to_dict())
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
                f"{val:.1f} / {test:.1f}" + (f"<br>{gain_between(r['gain'])}" if r["base"] else "")
            )
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(lines)
