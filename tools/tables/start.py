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
        '| | seconds until the output, 0.20.0 | now | now, times the process `python -c "import torch"` | now, times the import alone |',
        "|---|---|---|---|---|",
        f'| `python -c "import torch"`, to its end | | {unit["end"]:.2f} | 1 | |',
        f'| `python -c "import torch"`, to the end of the import | | {unit["line"]:.2f} | | 1 |',
    ]
    for name, title in ROWS.items():
        before, now = (found["medians"][f"{name}, {when}"]["line"] for when in ("before", "now"))
        cells = [
            f"{before:.2f}",
            f"{now:.2f}",
            *(f"{now / unit[key]:.2f}" for key in ("end", "line")),
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines += [
        "",
        f"Wall time from the shell, medians of {len(found['rounds']['import torch'])} rounds in turn; load "
        f"{found['load'][0]:.1f} on {found['cores']} cores (`benchmarks/start_up.py`).",
    ]
    return "\n".join(lines)
