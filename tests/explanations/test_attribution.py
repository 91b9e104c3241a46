"""Integrated gradients: they add up, and they find what an occlusion of everything finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.explanations.attribution import _integrated, part_scores
from everynode.explanations.changes import Surroundings
from everynode.explanations.occlusion import Occlusion
from everynode.explanations.parts import node_parts, own_parts
from everynode.models.boosting import Boosting


def test_attributions_add_up_to_the_change_from_no_features(graph, model):
    occlusion = Occlusion(model, graph)
    checked = 0
    for view in occlusion.views:
        network = view.networks[0]
        if network.reach is None or network.reach > 2 or isinstance(network, Boosting):
            continue
        ball, values = _integrated(occlusion, view, 3, 0)
        zeros = view.graph.with_features(torch.zeros(graph.num_nodes, view.graph.num_features))
        with torch.no_grad():
            ends = [
                torch.log_softmax(network(g)[3] / view.temperature, 0)[0]
                for g in (view.graph, zeros)
            ]
        assert values.sum() == pytest.approx(float(ends[0] - ends[1]), rel=0.15, abs=0.05)
        assert 3 in ball
        checked += 1
    assert checked


def test_the_strongest_parts_of_an_occlusion_have_high_scores(graph, model):
    occlusion, hits = Occlusion(model, graph), []
    surroundings = Surroundings(graph)
    for node in range(0, 40, 4):
        own, others = own_parts(surroundings, node), node_parts(surroundings, node)
        p = occlusion.probabilities(node, [part.change for part in [*own, *others]])
        base = model.predict_proba(graph)[node]
        label = int(base.argmax())
        effect = np.abs(p[:, label] - base[label])
        mine, theirs = part_scores(occlusion, node, label, own, others)
        assert mine.shape == (len(own),)
        assert (mine >= 0).all()
        assert (theirs >= 0).all()
        best = int(effect[: len(own)].argmax())
        hits.append(best in np.argsort(-mine)[:3])
        best = int(effect[len(own) :].argmax())
        hits.append(best in np.argsort(-theirs)[: max(3, len(others) // 3)])
    assert np.mean(hits) >= 0.8
