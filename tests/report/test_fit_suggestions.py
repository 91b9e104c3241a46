"""What to label next, on the page of a fit."""

from __future__ import annotations

import dataclasses

import torch

from everynode.report.fit_suggestions import SUGGESTED, label_next


def test_the_table_has_a_reason_for_each_node(fit):
    text = label_next(fit, "runs/out/model")
    assert text.count("<tr>") == 1 + SUGGESTED
    rows = fit.suggestions(SUGGESTED)
    for row in rows:
        assert fit.graph.labels[row.node] < 0
        assert row.reason in text
    assert "everynode suggest runs/out/model" in text
    assert text == label_next(fit, "runs/out/model")


def test_without_unlabeled_nodes_there_is_no_section(fit):
    labels = torch.where(fit.graph.labels < 0, 0, fit.graph.labels)
    full = dataclasses.replace(fit, graph=fit.graph.with_labels(labels))
    assert label_next(full, "model") is None
