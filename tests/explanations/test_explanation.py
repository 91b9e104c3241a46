"""Explanations: exact, repeatable, in the user's names, and right where the reason is known."""

from __future__ import annotations

import json

import numpy as np
import pytest

import everynode as en
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.explanations import explanation as module
from everynode.explanations.changes import Change
from everynode.explanations.explanation import explain, log_odds, only, without_all
from everynode.explanations.occlusion import Occlusion


def test_reasons_are_the_probabilities_without_each_part(graph, model):
    found = model.explain(graph, "p6")
    occlusion = Occlusion(model, graph)
    code = model.classes_.tolist().index(found.label)
    assert found.probability == pytest.approx(model.predict_proba(graph)[6, code], abs=1e-6)
    assert found.reasons
    for reason in found.reasons:
        p = occlusion.probabilities(6, [reason.part.change])[0, code]
        assert reason.without == pytest.approx(p, abs=1e-9)
        assert reason.change == pytest.approx(p - found.probability, abs=1e-6)
    lonely = occlusion.probabilities(6, [Change(removed=(6,))])[0]
    assert found.without_neighbors[1] == pytest.approx(lonely.max())
    assert found.without_neighbors[0] == model.classes_[lonely.argmax()]


def test_two_calls_give_the_same_answer(graph, model):
    assert model.explain(graph, "p11") == model.explain(graph, "p11")


def test_the_strongest_reasons_are_words_and_friends_and_not_the_height(graph, model):
    names = []
    for node in range(0, 60, 5):
        names += [reason.part.name for reason in model.explain(graph, f"p{node}").supporting[:1]]
    told = [n for n in names if n.split(": ")[-1] in ("fire", "rose", "sea", "sky") or "(p" in n]
    assert len(told) >= 0.75 * len(names) >= 6
    assert names.count("height") <= 1


def test_the_text_names_the_class_and_the_changes(graph, model):
    found = model.explain(graph, "Name 6")
    lines = list(found.lines(3))
    assert lines[0].startswith(f"Name 6 (p6) is predicted {found.label} (")
    assert "Without its neighbors, it would" in lines[0]
    assert found.reasons[0].part.text in lines[2]
    assert lines[-1].startswith("  Without ")
    plain = json.loads(json.dumps(found.to_dict(2)))
    assert len(plain["reasons"]) == 2
    assert plain["reasons"][0]["change"] == found.reasons[0].change
    assert found.reasons[0].part.text in found.brief


def test_another_class_can_be_explained_and_a_wrong_one_is_refused(graph, model):
    red, blue = (model.explain(graph, "p6", label=name) for name in ("red", "blue"))
    assert red.probability + blue.probability == pytest.approx(1.0)
    signs = {r.part: np.sign(r.change) for r in red.reasons}
    assert all(signs[r.part] == -np.sign(r.change) for r in blue.reasons)
    with pytest.raises(UsageError, match="green"):
        model.explain(graph, "p6", label="green")
    with pytest.raises(UsageError, match="no node 'p999'"):
        model.explain(graph, "p999")


def test_many_parts_are_chosen_by_gradients(graph, model, monkeypatch):
    everything = model.explain(graph, "p6")
    found = explain(Occlusion(model, graph), 6, model.classes_.tolist(), most_parts=6)
    assert found.found == everything.found > found.tried
    assert found.reasons[0] == everything.reasons[0]
    assert any("were tried one by one" in line for line in found.lines())
    monkeypatch.setattr(module, "MOST_WORK", 1)  # large surroundings leave room for few
    few = explain(Occlusion(model, graph), 6, model.classes_.tolist())
    assert few.tried <= 2 * module.LEAST_PARTS


def test_arrays_and_isolated_nodes_are_explained():
    graph = generate(100, 120, 5, 2, seed=0)
    x, y = graph.dense_features.numpy(), graph.labels.numpy()
    model = en.NodeClassifier(objective="ce", settings={"epochs": 20}, verbose=False)
    model.fit(x, y, edge_index=graph.edges.numpy())
    lonely = int((graph.degree == 0).nonzero()[0, 0])
    found = model.explain(x, lonely, edge_index=graph.edges.numpy())
    assert {reason.part.kind for reason in found.reasons} == {"column"}
    assert found.without_neighbors[1] == pytest.approx(found.probability)


def test_log_odds_hold_where_a_class_is_nearly_certain():
    p = np.array([[1 - 1e-12, 1e-12], [0.75, 0.25]])
    np.testing.assert_allclose(log_odds(p, 0), [27.6310211, np.log(3)], rtol=1e-4)
    np.testing.assert_allclose(log_odds(p, 1), [-27.6310211, -np.log(3)], rtol=1e-4)


def test_together_and_alone_are_complements():
    from everynode.explanations.parts import Part

    parts = [Part("column", "a", features=(2, 3)), Part("neighbor", "b", nodes=(7,))]
    assert without_all(parts) == Change((2, 3), (7,))
    assert only(parts, (1, 2, 3, 5)) == Change((1, 5), (), (7,))
