"""The nodes to look at and the labels that look wrong, each with its reason."""

from __future__ import annotations

import html

from everynode.report import fit_reasons
from everynode.report.fit_reasons import EXPLAINED, suspicious, uncertain_nodes


def test_the_first_nodes_have_the_reasons_of_the_model_that_predicted_them(fit):
    text = uncertain_nodes(fit)
    assert text.count("<tr>") == 1 + 20
    assert "The unlabeled nodes with the lowest confidence" in text
    nodes = fit.uncertain(20).tolist()
    for node in nodes[:EXPLAINED]:
        name = node if fit.graph.node_ids is None else fit.graph.node_ids[node]
        brief = fit.model.explain(fit.graph, name).brief
        assert html.escape(brief, quote=False) in text


def test_large_graphs_have_no_reasons(fit, monkeypatch):
    assert "Reasons: the change" in uncertain_nodes(fit)
    monkeypatch.setattr(fit_reasons, "MOST_NODES", 10)
    assert "Reasons: the change" not in uncertain_nodes(fit)


def test_labels_that_look_wrong_are_those_of_the_model(fit):
    rows = fit.model.suspicious_labels()
    text = suspicious(fit)
    if rows:
        assert text.count("<tr>") == 1 + min(len(rows), 20)
        assert str(rows[0].suggested) in html.unescape(text)
    else:
        assert "looks wrong" in text
