"""Tables for the terminal: the numbers of an experiment, and the gain of a comparison."""

from __future__ import annotations

import dataclasses
import math

from rich.console import Console

from everynode.experiments.analysis import analyze
from everynode.experiments.experiment import experiments
from everynode.experiments.statistics import compare_paired
from everynode.report.terminal import experiment_tables, gain_sentence


def test_every_panel_is_a_table_with_the_numbers_of_its_cells(plans, make_up):
    semi = experiments()["semi-supervised"]
    runs = make_up(run for own in plans[semi].values() for run in own)
    result = analyze(semi, "paper", plans[semi], runs.records)
    console = Console(width=300, record=True, quiet=False, file=None)
    with console.capture() as capture:
        for table in experiment_tables(result):
            console.print(table)
    text = capture.get()
    assert semi.title in text
    for cell in result.cells:
        assert f"{cell.summary.mean:.1f} ± {cell.summary.std:.1f}" in text


@dataclasses.dataclass
class Compared:
    gain: object
    unit: str = "seed"


def test_the_gain_is_a_sentence_with_its_interval():
    several = Compared(compare_paired([0.8, 0.82, 0.85], [0.7, 0.75, 0.74]))
    text = gain_sentence(several, "enc")
    assert text.startswith("enc minus cross-entropy, paired: +9.33 points, 95% interval ")
    one = compare_paired([0.8], [0.7])
    assert math.isnan(one.low)
    assert "gives no interval" in gain_sentence(Compared(one), "enc")
