"""``everynode suspicious``: the labels of a fit that look wrong."""

from __future__ import annotations

import json
from pathlib import Path

from everynode.cli.options import JsonFlag, PluginFlag, load_plugins
from everynode.errors import UsageError, require


def suspicious(
    model: Path,
    /,
    *,
    count: int = 20,
    out: Path | None = None,
    plugin: PluginFlag = (),
    json_output: JsonFlag = False,
) -> int:
    """Show the labels that look wrong, the worst first.

    Each held-out label of `everynode fit` was predicted by networks that did not learn from it.
    A label looks wrong if its node confidently belongs to another class (confident learning).

    Parameters
    ----------
    model
        The model folder, or the --out of `everynode fit`.
    count
        The number of rows to show.
    out
        A new CSV file for all of them: id, label, suggested, their probabilities, and the margin.
    """
    from everynode.estimator import NodeClassifier
    from everynode.estimator_decisions import kept_labels
    from everynode.evaluation.suspicious_labels import SuspiciousLabel, suspicious_csv
    from everynode.storage.atomic import write_atomically

    require(count >= 0, "count", "suspicious", ">= 0", count)
    if out is not None and out.exists():
        raise UsageError(f"{out} exists: choose another --out.")
    load_plugins(plugin)
    classifier = NodeClassifier.load(model)
    judged = len(kept_labels(classifier).nodes)
    rows = classifier.suspicious_labels()
    if out is not None:
        write_atomically(out, suspicious_csv(rows).encode())
    if json_output:
        names = SuspiciousLabel._fields[1:]
        plain = [dict(zip(names, row[1:], strict=True)) for row in rows]
        print(json.dumps({"judged": judged, "suspicious": plain}, default=str))
        return 0
    print(f"{len(rows)} of {judged} held-out labels look wrong.")
    for row in rows[:count]:
        print(
            f"  {row.id}: {row.label} ({100 * row.probability:.1f} %), looks like {row.suggested} "
            f"({100 * row.suggested_probability:.1f} %)"
        )
    return 0
