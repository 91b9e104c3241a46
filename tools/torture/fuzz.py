"""Fuzz the readers: every input is read whole, or refused in one sentence, at once."""

from __future__ import annotations

import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.torture.counts import count
from tools.torture.inputs import make_case

#: Limits for one input.
SECONDS, MEGABYTES = 10, 1000


class TooSlow(BaseException):
    """An input took too long. It derives from BaseException, so that no reader catches it."""


@dataclass
class Watch:
    """Processor seconds and grown memory of a block."""

    seconds: float = 0.0
    megabytes: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Watch]:
    """Measure a block."""
    from everynode.training.memory import forget_peak, peak_mb

    watch = Watch()
    forget_peak()
    before, began = peak_mb(), time.process_time()
    yield watch
    watch.seconds, watch.megabytes = time.process_time() - began, peak_mb() - before


def _alarm(*_: Any) -> None:
    raise TooSlow


def fuzz(seeds: Iterable[int], failures: list[dict[str, Any]]) -> Counter[str]:
    """Read the inputs of some seeds; return the outcomes, and append the failures."""
    outcomes: Counter[str] = Counter()
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _alarm)
    with tempfile.TemporaryDirectory() as name:
        for seed in seeds:
            folder = Path(name)
            for path in folder.iterdir():
                path.unlink()
            case = make_case(seed, folder)
            with stopwatch() as watch:
                outcome, detail = _read(case)
            if watch.seconds > SECONDS:
                outcome, detail = "slow", f"{watch.seconds:.1f} s"
            elif watch.megabytes > MEGABYTES:
                outcome, detail = "large", f"{watch.megabytes:.0f} MB"
            outcomes["inputs"] += 1
            outcomes[outcome] += 1
            if outcome not in ("read", "compared", "refused"):
                failures.append(
                    {"part": "fuzz", "seed": seed, "outcome": outcome, "what": case.what,
                     "format": case.format, "detail": detail[-300:]}
                )  # fmt: skip
    return outcomes


def _read(case: Any) -> tuple[str, str]:
    import everynode as en
    from everynode.errors import EverynodeError

    try:
        if hasattr(signal, "SIGALRM"):
            signal.alarm(6 * SECONDS)  # wall clock; the limit itself is of processor time
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = en.read(case.nodes, case.edges)
    except TooSlow:
        return "slow", "stopped"
    except EverynodeError as error:
        text = str(error)
        return ("refused", "") if "\n" not in text.strip() else ("several lines", text)
    except Exception:
        return "traceback", traceback.format_exc()
    finally:
        if hasattr(signal, "SIGALRM"):
            signal.alarm(0)
    return _compare(case, graph)


def _compare(case: Any, graph: Any) -> tuple[str, str]:
    """Compare a graph with the counts of the independent reader."""
    summary = graph.summary
    roles = {column.kind: column.name for column in summary.columns}
    ends = (roles.get("source", "source"), roles.get("target", "target"))
    expected = count(case, roles.get("id", "id"), ends)
    if expected is None:
        return "read", "not compared"
    actual = (graph.num_nodes, summary.edge_rows)
    if actual != tuple(expected):
        return "lost", f"{actual} nodes and edges, an independent reader has {tuple(expected)}"
    return "compared", ""
