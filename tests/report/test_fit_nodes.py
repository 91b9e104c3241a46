"""The nodes on the page of a fit: tables of nodes to review, and the map."""

from __future__ import annotations

from everynode.report.fit_nodes import DISAGREEMENTS, disagreements, node_map


def test_the_tables_list_the_nodes_of_the_summary(fit):
    wrong = fit.disagreements()
    assert disagreements(fit).count("<tr>") == 1 + min(DISAGREEMENTS, len(wrong))


def test_the_map_is_drawn_by_prediction_and_by_label(fit, monkeypatch):
    assert node_map(fit).count("plot map") == 2
    assert "a sample of" not in node_map(fit)
    monkeypatch.setattr("everynode.evaluation.node_map.MAP_NODES", 50)
    assert "a sample of 50 of the 200 nodes" in node_map(fit)
