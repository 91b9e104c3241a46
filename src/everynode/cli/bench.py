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
from everynode.settings import Settings

#: The times of a row.
SIDES = ("everynode_ms", "stock_ms", "expert_ms")


def bench(
    *,
    graphs: str = "cora,citeseer,pubmed,chameleon,squirrel,actor",
    backbones: str = "gcn,gat,gcnii",
    objectives: str = "ce,mi+tv,enc",
    threads: str = "1,2",
    seconds: float = 3.0,
    splits: str = "default,geom-gcn",
    cvg_nodes: int = Settings.cvg_nodes,
    memory: bool = False,
    out: Path | None = None,
    data_dir: Path | None = None,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Time an epoch of `everynode train` against PyG, on the available graphs.

    Two opponents take the same steps in PyG: one as most people write it, with dense features; and
    an expert's, with sparse features and (in all but GAT) a sparse adjacency.

    Parameters
    ----------
    graphs
        The graphs.
    backbones
        The backbones (gcn with 2 layers, gat with 2, gcnii with 8).
    objectives
        The objectives.
    threads
        Numbers of torch threads.
    seconds
        Seconds per combination.
    splits
        The splits; "default" is the one that papers use, for Cora with few labels (20 a class);
        geom-gcn has labels on half of the nodes.
    cvg_nodes
        The setting of this name, for everynode's side only; 0: all labeled nodes.
    memory
        Also measure peak memory, in separate processes (one thread).
    out
        Keep the rows in this file, in the format of --json. Rows of the file are not repeated.
    data_dir
        Folder of the public graphs.
    """
    from everynode.benchmarks.measure import bench as measure
    from everynode.benchmarks.measure import machine
    from everynode.benchmarks.memory import peak
    from everynode.datasets import is_present
    from everynode.storage.atomic import write_atomically

    _check(backbones.split(","), objectives.split(","))
    names = graphs.split(",")
    here = [name for name in names if is_present(name, data_dir=data_dir)]
    for name in names:
        if name not in here:
            say(f"Left out {name}: `everynode data check {name}` gets its files.", quiet)
    counts = _numbers(threads)
    result, measured = _earlier(out)
    limits = [machine(count) for count in counts]
    result |= {"command": shlex.join(["everynode", *sys.argv[1:]]), "machine": limits}
    for row in measure(
        here, backbones.split(","), objectives.split(","), limits, seconds, data_dir, measured,
        splits.split(","), {"cvg_nodes": cvg_nodes} if cvg_nodes else None,
    ):  # fmt: skip
        if memory and row["threads"] == counts[0]:
            where = row["graph"], row["backbone"].partition("-")[0], row["objective"]
            row["memory"] = {side: peak(side, *where, data_dir) for side in ("everynode", "stock")}
        result["rows"].append(row)
        if out:
            write_atomically(out, json.dumps(result, indent=1).encode())
        _show(row, json_output, quiet)
    if json_output:
        print(json.dumps(result))
    return 0


def _show(row: dict[str, Any], json_output: bool, quiet: bool) -> None:
    if json_output:
        say(_text(row), quiet)
    else:
        share = 100 * row["roofline_ms"] / row["everynode_ms"]
        print(f"{_text(row)}   {share:3.0f}% of the machine's limit", flush=True)


def _check(backbones: list[str], objectives: list[str]) -> None:
    """Refuse unknown names before anything is measured."""
    from everynode.benchmarks.sides import DEPTH, OF_STOCK, settings_for
    from everynode.objective_names import named_terms

    for backbone in backbones:
        if backbone not in DEPTH:
            unknown("backbone", backbone, DEPTH)
        for objective in objectives:
            for term in named_terms(objective):
                if term not in OF_STOCK:
                    raise UsageError(
                        f"The stock side of the benchmark has no {term}: choose --objectives from "
                        "ce, enc, mi, tv, cvg and their sums."
                    )
            settings_for(backbone, objective)


def _numbers(threads: str) -> list[int]:
    try:
        counts = [int(count) for count in threads.split(",")]
    except ValueError:
        raise UsageError(f"--threads takes numbers such as 1,2. Got {threads!r}.") from None
    for count in counts:
        require(count >= 1, "threads", "bench", ">= 1", count)
    return counts


def _text(row: dict[str, Any]) -> str:
    """Return a row of the benchmark as a line."""
    what = (
        f"{row['graph']:10} {row['split']:8} {row['backbone']:8} {row['objective']:6} "
        f"{row['threads']} thread(s)"
    )
    own, stock, expert = (f"{row[side]:8.2f} ms" for side in SIDES)
    text = (
        f"{what}   everynode {own}   PyG {stock} {row['ratio']:5.1f}x   "
        f"an expert's {expert} {row['ratio_expert']:5.1f}x"
    )
    if "memory" not in row:
        return text
    peaks = (f"{row['memory'][side]['peak_mb']:.0f} MB" for side in ("everynode", "stock"))
    return f"{text}   peak {' / '.join(peaks)}"


def _earlier(out: Path | None) -> tuple[dict[str, Any], list[tuple[str, str, str, str, int]]]:
    """Return the content of an earlier, perhaps interrupted, benchmark and its combinations."""
    if out is None or not out.exists():
        return {"rows": []}, []
    try:
        result: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return result, [
            (
                r["split"],
                r["graph"],
                r["backbone"].partition("-")[0],
                r["objective"],
                r["threads"],
            )
            for r in result["rows"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{out} is not a result of `everynode bench` ({error}): name another --out."
        ) from error
