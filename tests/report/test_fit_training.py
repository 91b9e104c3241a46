"""The training on the page of a fit: the candidates, and the terms with their weights."""

from __future__ import annotations

import re

from everynode.report.fit_training import training


def test_candidates_are_shown_by_the_metric_that_decided(raced):
    drawn = training(raced).split("Several candidates trained")[1].split("</table>")[0]
    assert re.search(r"<th[^>]*>validation macro_f1\b", drawn)
    assert "accuracy" not in drawn
    for standing in raced.model.standings_.values():
        assert f"<td>{100 * standing.val_score:.1f}%<" in drawn


def test_a_single_objective_has_no_candidates_and_every_term_has_its_weight(fit):
    drawn = training(fit)
    assert "Several candidates" not in drawn
    weights = fit.model.fitted_.settings.active_terms()
    rows = dict(re.findall(r'<th scope="row">(\w+)<td>([^<]+)', drawn))
    assert rows == {"CE": "1", "MI": f"{weights['mi']:g}", "TV": f"{weights['tv']:g}"}
