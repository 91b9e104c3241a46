"""``everynode bench``."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from everynode.cli.options import JsonFlag, QuietFlag
from everynode.console import say
from everynode.errors import DataError, UsageError, require, unknown


def bench(
    *,
    graphs: str = "cora,citeseer,pubmed,chameleon,squirrel,actor",
    backbones: str = "gcn,gat,gcnii",
    objectives: str = "ce,mi+tv,enc",
    threads: str = "1,2",
    seconds: float = 3.0,
    memory: bool = False,
    out: Path | None = None,
    data_dir: Path | None = None,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Time one training step and one evaluation against stock PyG, side by side; graphs whose files are not here are left out.

    Parameters
    ----------
    graphs
        Which graphs.
    backbones
        Which backbones (gcn with 2 layers, gat with 2, gcnii with 8).
    objectives
        Which objectives.
    threads
        With how many torch threads.
    seconds
        How long to measure each combination.
    memory
        Measure peak memory too, in processes of their own (one thread).
    out
        Keep the rows in this file, as --json prints them; what is in it already is not measured again.
    data_dir
        Where the public graphs are.
    """
    from everynode.benchmarks.measure import bench as measure
    from everynode.benchmarks.measure import machine
    from everynode.benchmarks.memory import peak
    from everynode.benchmarks.sides import DEPTH, OF_STOCK, settings_for
    from everynode.datasets import is_present
    from everynode.objective_names import named_terms
    from everynode.storage.atomic import write_atomically

    for backbone in backbones.split(","):
        if backbone not in DEPTH:
            unknown("backbone", backbone, DEPTH)
        for objective in objectives.split(","):
            for term in named_terms(objective):
                if term not in OF_STOCK:
                    raise UsageError(
                        f"The other side of the benchmark has no {term}: give --objectives of ce, enc, mi, tv, cvg and their sums."
                    )
            settings_for(
                backbone, objective
            )  # an objective that is not one is refused before anything is measured
    named = graphs.split(",")
    here = [name for name in named if is_present(name, data_dir=data_dir)]
    for name in named:
        if name not in here:
            say(
                f"{name} is left out: its files are not here. `everynode data check {name}` gets them.",
                quiet,
            )
    try:
        counts = [int(count) for count in threads.split(",")]
    except ValueError:
        raise UsageError(f"--threads takes numbers such as 1,2. Got {threads!r}.") from None
    for count in counts:
        require(count >= 1, "threads", "bench", ">= 1", count)
    result, known = _earlier(out)
    limits = [machine(count) for count in counts]
    result |= {"command": shlex.join(["everynode", *sys.argv[1:]]), "machine": limits}
    for row in measure(
        here, backbones.split(","), objectives.split(","), limits, seconds, data_dir, known
    ):
        if memory and row["threads"] == counts[0]:
            where = row["graph"], row["backbone"].partition("-")[0], row["objective"]
            row["memory"] = {side: peak(side, *where, data_dir) for side in ("everynode", "stock")}
        result["rows"].append(row)
        if out:
            write_atomically(out, json.dumps(result, indent=1).encode())
        text = (
            f"{row['graph']:10} {row['backbone']:8} {row['objective']:6} {row['threads']} thread(s)"
        )
        timing = f"everynode {row['everynode_ms']:8.2f} ms   stock PyG {row['stock_ms']:8.2f} ms   {row['ratio']:5.1f}x"
        if "memory" in row:
            timing += "   peak " + " / ".join(
                f"{row['memory'][side]['peak_mb']:.0f} MB" for side in ("everynode", "stock")
            )
        if not json_output:
            print(
                f"{text}   {timing}   {100 * row['roofline_ms'] / row['everynode_ms']:3.0f}% of the machine's limit",
                flush=True,
            )
        else:
            say(f"{text}   {timing}", quiet)
    if json_output:
        print(json.dumps(result))
    return 0


def _earlier(out: Path | None) -> tuple[dict[str, Any], list[tuple[str, str, str, int]]]:
    """What the file of an earlier, perhaps interrupted, measurement holds, and which combinations these are."""
    if out is None or not out.exists():
        return {"rows": []}, []
    try:
        result: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return result, [
            (r["graph"], r["backbone"].partition("-")[0], r["objective"], r["threads"])
            for r in result["rows"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{out} is not a result of `everynode bench` ({error}): name another --out."
        ) from error
