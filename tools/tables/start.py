"""The start of a command."""

from __future__ import annotations

from tables.common import result

#: The rows: the name of a command in the benchmark, and what a reader sees.
ROWS = {"help": "`everynode --help`", "first epoch": "`everynode train citeseer --epochs 1`"}


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
