"""The commands on the page compute the runs of a number, and no others."""

from __future__ import annotations

import html
import json
import re
import shlex

import pytest

from everynode.experiments.experiment import Cell
from everynode.report.page import page
from everynode.report.source import cell_flags


def test_versions_are_named_once_and_in_their_order(plans, two_each):
    records = {key: {**record} for key, record in two_each.records.items()}
    for record, version in zip(records.values(), ("0.10.0", "0.9.0", "0.10.0.dev1"), strict=False):
        record["version"] = version
    said = page(plans, "paper", records, two_each.curve)[0]
    assert "Made with everynode 0.2.0, 0.9.0, 0.10.0, 0.10.0.dev1 (protocol 1), torch " in said


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
def test_the_command_behind_a_number_makes_its_runs_and_no_others(text, plans, call):
    """It was that of a whole graph: 360 runs for a number of ten."""
    for experiment, plan in plans.items():
        if experiment.id == "odd":
            continue
        cells = list(plan)
        by_place = {(cell.panel, cell.row, cell.column): runs for cell, runs in plan.items()}
        for index in sorted({0, len(cells) // 3, len(cells) // 2, len(cells) - 1}):
            if not plan[cell := cells[index]] or cell.dataset in (
                "cornell-legacy",
                "ogbn-arxiv",
            ):  # which are not here
                continue
            panel = text.split(f'id="{experiment.id}-{index}"')[1].split("<div popover")[0]
            command = html.unescape(re.search(r">(everynode reproduce [^<]*)<", panel)[1])
            told = call(*shlex.split(command)[1:], "--dry-run", "--json")
            assert told.returncode == 0, (command, told.stderr)
            expected = {run.key for run in plan[cell]}
            if cell.against is not None:
                expected |= {run.key for run in by_place[cell.panel, cell.against, cell.column]}
            assert {run["key"] for run in json.loads(told.stdout)} == expected, command


def test_a_name_with_a_comma_is_left_to_the_other_flags():
    cells = [
        Cell(row, column, "cora", "public", against=None)
        for row in ("a, b", "c")
        for column in ("1", "2")
    ]
    assert cell_flags(cells[0], cells) == ["--columns", "1"]
    assert cell_flags(cells[3], cells) == ["--rows", "c", "--columns", "2"]
