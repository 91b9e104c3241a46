"""``everynode data``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from everynode.cli.options import JsonFlag


def data_list(*, data_dir: Path | None = None, json_output: JsonFlag = False) -> int:
    """List the graphs that can be named, and whether their files are here.

    Parameters
    ----------
    data_dir
        Where the public graphs are.
    """
    from everynode.datasets import CATALOGUE, is_present

    entries = [(entry, is_present(entry.name, data_dir=data_dir)) for entry in CATALOGUE.values()]
    if json_output:
        print(
            json.dumps(
                [
                    {
                        "name": e.name,
                        "present": here,
                        "splits": e.splits,
                        "about": e.about,
                        "caution": e.caution,
                    }
                    for e, here in entries
                ]
            )
        )
        return 0
    for entry, here in entries:
        print(
            f"{entry.name:15} {'here' if here else 'not here':9} {' | '.join(entry.splits):28} {entry.about} {entry.caution}".rstrip()
        )
    return 0


def data_check(
    name: str,
    /,
    *,
    split: str | None = None,
    data_dir: Path | None = None,
    json_output: JsonFlag = False,
) -> int:
    """Measure a graph and say what is odd about it.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
    split
        public, geom-gcn, official, stratified or random; default: the graph's own.
    data_dir
        Where the public graphs are.
    """
    from everynode.datasets import check_named
    from everynode.datasets.entries import STAND_IN, is_generated

    report = check_named(name, split, data_dir=data_dir)
    if json_output:
        print(json.dumps(report.to_dict() | ({"stand_in": STAND_IN} if is_generated(name) else {})))
        return 0
    if is_generated(name):
        print(f"! {STAND_IN}")
    for finding in sorted(report.findings, key=lambda finding: finding.level != "warning"):
        print(f"{'!' if finding.level == 'warning' else '-'} {finding.text}")
    print()
    shown = {fact.replace("_", " "): _short(value) for fact, value in report.facts.items()}
    width = max(map(len, shown))
    for fact, text in shown.items():
        if text:
            print(f"{fact:{width}}  {text}")
    return 0


def _short(value: Any) -> str:
    """A fact in a few words: of the numbers of all folds the least and the greatest, of what is empty nothing.

    >>> _short([0.47368421, 0.53508771]), _short([0, 0]), _short({"train": 90941.0}), _short({}), _short({"cora": ["edges", "labels"]})
    ('0.4737 to 0.5351', '0', 'train: 90941', '', 'cora: edges and labels')
    """
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_short(part)}" for name, part in value.items())
    if isinstance(value, list):
        words = isinstance(next(iter(value), ""), str)
        return (
            " and ".join(value)
            if words
            else " to ".join(dict.fromkeys(map(_short, (min(value), max(value)))))
        )
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return "" if value is None else str(value)
