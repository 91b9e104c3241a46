"""``everynode data``."""

from __future__ import annotations

import json
from pathlib import Path

from everynode.cli.options import JsonFlag


def data_list(*, data_dir: Path | None = None, json_output: JsonFlag = False) -> int:
    """List the graphs that can be named, and whether their files are here.

    Parameters
    ----------
    data_dir
        Where the public graphs are.
    """
    from everynode.data import CATALOGUE, is_present

    entries = [(entry, is_present(entry.name, data_dir=data_dir)) for entry in CATALOGUE.values()]
    if json_output:
        print(
            json.dumps(
                [{"name": e.name, "present": here, "splits": e.splits, "about": e.about, "caution": e.caution} for e, here in entries]
            )
        )
        return 0
    for entry, here in entries:
        print(f"{entry.name:15} {'here' if here else 'not here':9} {' | '.join(entry.splits):28} {entry.about} {entry.caution}".rstrip())
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
    from everynode.data import check_named
    from everynode.data.entries import STAND_IN, is_generated

    report = check_named(name, split, data_dir=data_dir)
    if json_output:
        print(json.dumps(report.to_dict() | ({"stand_in": STAND_IN} if is_generated(name) else {})))
        return 0
    for fact, value in report.facts.items():
        print(f"{fact.replace('_', ' '):28} {value:.4g}" if isinstance(value, float) else f"{fact.replace('_', ' '):28} {value}")
    print()
    for finding in report.findings:
        print(f"{'!' if finding.level == 'warning' else '-'} {finding.text}")
    if is_generated(name):
        print(f"! {STAND_IN}")
    return 0
