"""``everynode data``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cyclopts import App

from everynode.cli.options import JsonFlag


def data_list(*, data_dir: Path | None = None, json_output: JsonFlag = False) -> int:
    """List the graphs with a name, and whether their files are here.

    Parameters
    ----------
    data_dir
        Folder of the public graphs.
    """
    from everynode.datasets import CATALOG, is_present

    entries = [(entry, is_present(entry.name, data_dir=data_dir)) for entry in CATALOG.values()]
    if json_output:
        names = ("name", "splits", "about", "caution")
        rows = [{n: getattr(e, n) for n in names} | {"present": here} for e, here in entries]
        print(json.dumps(rows))
        return 0
    for entry, here in entries:
        place = f"{'here' if here else 'not here':9} {' | '.join(entry.splits):28}"
        print(f"{entry.name:15} {place} {entry.about} {entry.caution}".rstrip())
    return 0


def data_check(
    name: str,
    /,
    *,
    split: str | None = None,
    data_dir: Path | None = None,
    json_output: JsonFlag = False,
) -> int:
    """Measure a graph and print warnings about it.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
    split
        public, geom-gcn, official, stratified or random; default: the graph's own.
    data_dir
        Folder of the public graphs.
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
    """Format a fact: the range of numbers over folds, nothing for an empty value.

    >>> _short([0.47368421, 0.53508771]), _short([0, 0]), _short({"train": 90941.0}), _short({})
    ('0.4737 to 0.5351', '0', 'train: 90941', '')
    >>> _short({"cora": ["edges", "labels"]})
    'cora: edges and labels'
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


data_app = App(name="data", help="Public graphs by name.")
data_app.command(data_list, name="list")
data_app.command(data_check, name="check")
