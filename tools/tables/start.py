"""The start of a command, and a fit on all cores."""

from __future__ import annotations

from tables.common import result

#: The rows: the name of a command in the benchmark, and what a reader sees.
ROWS = {"help": "`everynode --help`", "first epoch": "`everynode train citeseer --epochs 1`"}
GRAPHS = {
    "people": "the example with 400 people",
    "pages": "20,000 nodes, 170,000 edges, 4,700 sparse features",
}


def start_table() -> str:
    """Seconds to the first line of output, before and now, beside ``import torch``."""
    found = result("start-up")
    unit = found["medians"]["import torch"]
    lines = [
        "| | seconds until the output, 0.20.0 | now | CPU seconds, 0.20.0 | now |",
        "|---|---|---|---|---|",
        f'| `python -c "import torch"` | {unit["line"]:.2f} | | {unit["cpu"]:.2f} | |',
    ]
    for name, title in ROWS.items():
        cells = [
            f"{found['medians'][row][key]:.2f} ({found['to_import_torch'][row][key]:.2f}x)"
            for key in ("line", "cpu")
            for row in (f"{name}, before", f"{name}, now")
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines += [
        "",
        f"Medians of {len(found['rounds']['import torch'])} rounds in turn, in brackets as many times `import torch`; load "
        f"{found['load'][0]:.1f} on {found['cores']} cores (`benchmarks/start_up.py`).",
    ]
    return "\n".join(lines)


def cores_table() -> str:
    """Seconds of a fit on one core and on two, before and now."""
    rows = result("fit-on-all-cores")["rows"]
    lines = [
        "| `everynode fit --effort quick` | 0.20.0, one core, s | two cores | now, one core | two cores | load |",
        "|---|---|---|---|---|---|",
    ]
    for name, title in GRAPHS.items():
        if name in rows:
            row = rows[name]
            epochs = f", {row['epochs']} epochs" if row["epochs"] else ""
            cells = []
            for version in ("before", "now"):
                one, two = (row[f"{version}, {n}"]["seconds"] for n in (1, 2))
                cells += [f"{one:.1f}", f"{two:.1f} ({row[f'ratio, {version}']:.2f}x)"]
            lines.append(f"| {title}{epochs} | {' | '.join(cells)} | {row['load'][0]:.1f} |")
    return "\n".join([*lines, "", "Whole commands, in turn (`benchmarks/fit_on_all_cores.py`)."])
