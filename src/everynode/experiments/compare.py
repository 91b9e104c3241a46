"""ENC against plain cross-entropy: the same network, optimiser, seeds and folds; only the objective differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from everynode.experiments.run import Run
from everynode.experiments.statistics import Paired, Summary, compare_paired, summarise
from everynode.experiments.store import Store
from everynode.graph import Graph
from everynode.training.many import run_many

BASELINE = "ce"


@dataclass(frozen=True)
class Comparison:
    """The records of both objectives over the same seeds or folds, and what they say."""

    records: list[dict[str, Any]]
    #: Objective to the summary of its test accuracy.
    test: dict[str, Summary]
    #: Objective to the summary of its validation accuracy.
    val: dict[str, Summary]
    #: Test accuracy of the objective minus that of cross-entropy, paired.
    gain: Paired

    def to_dict(self) -> dict[str, Any]:
        """As ``compare --json`` prints it."""
        return {
            "runs": self.records,
            "summary": {
                "test_accuracy": {name: s.to_dict() for name, s in self.test.items()},
                "val_accuracy": {name: s.to_dict() for name, s in self.val.items()},
                "gain": self.gain.to_dict(),
            },
        }


def do_runs(
    runs: Sequence[Run],
    graph: Graph,
    store: Store,
    *,
    workers: int | None = None,
    on_record: Callable[[dict[str, Any], bool], None] = lambda record, fresh: None,
) -> list[dict[str, Any]]:
    """The records of the runs, in their order: from the store where they are, else carried out and stored one by one.

    ``on_record`` hears of every record, and whether it is fresh.
    """
    found: dict[str, dict[str, Any]] = {}
    missing = []
    for run in runs:
        record = store.get(run.key)
        if record is None:
            missing.append(run)
        else:
            found[run.key] = record
            on_record(record, False)
    for run, record in run_many(_work, missing, graph, workers=workers):
        store.put(run.key, record)
        found[run.key] = record
        on_record(record, True)
    return [found[run.key] for run in runs]


def _work(run: Run, graph: Graph) -> dict[str, Any]:
    fitted = run.execute(graph)
    if fitted.interrupted:  # with one worker Ctrl-C reaches the run itself
        raise KeyboardInterrupt
    return run.record(fitted, graph)


def conclude(records: Sequence[dict[str, Any]], objective: str, *, test_share: float | None = None) -> Comparison:
    """Summaries and the paired gain over the seeds, or over folds when ``test_share`` (test nodes / training nodes) is given."""

    def scores(name: str, metric: str) -> list[float]:
        chosen = sorted((r for r in records if r["objective"] == name), key=lambda r: (r["fold"], r["seed"]))
        return [r[metric] for r in chosen]

    names = (BASELINE, objective)
    return Comparison(
        list(records),
        {name: summarise(scores(name, "test_accuracy"), test_share=test_share) for name in names},
        {name: summarise(scores(name, "val_accuracy"), test_share=test_share) for name in names},
        compare_paired(scores(objective, "test_accuracy"), scores(BASELINE, "test_accuracy"), test_share=test_share),
    )
