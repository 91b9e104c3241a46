"""The paper's tables with our numbers beside them."""

from __future__ import annotations

from typing import Any

from everynode.report.text import DASH, as_printed, decimals, number
from tables.common import between, result, signed, significant


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
        text += f"<br>gain {signed(gain['mean'])}{' *' if significant(gain) else ''}"
        text += f" on {gain['count']} pairs" if gain["count"] < len(cell["runs"]) else ""
    text += f" ({cell['remark']})" if cell["remark"] else ""
    notes = (
        [f"{len(cell['runs'])} of {cell['planned']} runs"]
        if len(cell["runs"]) < cell["planned"]
        else []
    )
    notes += [f"{cell['diverged']} diverged"] if cell["diverged"] else []
    return text + (f"<br>{', '.join(notes)}" if notes else "")


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
