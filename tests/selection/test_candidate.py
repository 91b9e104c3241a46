"""The portfolio as data."""

import numpy as np
import pytest

from everynode import Graph
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.models.names import model_names
from everynode.presets import read_preset
from everynode.selection.candidate import Effort, efforts, portfolio


def words(*, directed: bool = False) -> Graph:
    rng = np.random.default_rng(0)
    x = (rng.random((60, 100)) < 0.1).astype(np.float32)
    return Graph.from_arrays(x, rng.integers(0, 60, (2, 200)), np.arange(60) % 3, directed=directed)


def without_features() -> Graph:
    graph = words()
    return Graph.from_arrays(None, graph.edges, graph.labels)


@pytest.mark.parametrize("name", efforts())
def test_every_entry_names_a_candidate_and_its_settings_are_valid(name):
    effort, table = Effort.named(name), read_preset("portfolio")["candidates"]
    assert {entry.partition(":")[0] for entry in effort.candidates} <= set(table)
    assert len(set(effort.candidates)) == len(effort.candidates)
    for graph in (words(), words(directed=True), without_features(), generate(60, 120, 8, 3)):
        candidates = portfolio(effort, graph)
        assert len({c.name for c in candidates}) == len(candidates) >= 3
        assert {c.settings.backbone for c in candidates} <= set(model_names())
        assert all(c.settings.monitor == "calibrated_loss" for c in candidates)


def test_larger_efforts_try_more():
    sizes = [len(portfolio(Effort.named(name), words())) for name in efforts()]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_the_features_choose_the_preparations():
    effort = Effort.named("best")
    assert {c.preparation for c in portfolio(effort, words())} == {"row", "tfidf", "raw"}
    assert {c.preparation for c in portfolio(effort, without_features())} == {"structure"}
    assert {c.uses for c in portfolio(effort, without_features())} == {"graph"}
    assert {c.preparation for c in portfolio(effort, generate(60, 120, 8, 3))} == {
        "standardize",
        "quantile",
    }


def test_models_without_their_input_are_left_out():
    graph = words()
    lonely = Graph.from_arrays(graph.features.to_dense(), np.zeros((2, 0), int), graph.labels)
    assert {c.uses for c in portfolio(Effort.named("best"), lonely)} == {"features"}
    names = {c.name.partition("-")[0] for c in portfolio(Effort.named("best"), words())}
    assert "dirsage" not in names
    directed = portfolio(Effort.named("best"), words(directed=True))
    assert "dirsage" in {c.settings.backbone for c in directed}


def test_new_nodes_leave_out_what_cannot_predict_them():
    assert all(
        c.for_new_nodes for c in portfolio(Effort.named("best"), words(), for_new_nodes=True)
    )


def test_changes_hold_for_every_candidate():
    for candidate in portfolio(
        Effort.named("best"), words(), changes={"epochs": 7, "dropout": 0.1}
    ):
        assert (candidate.settings.epochs, candidate.settings.dropout) == (7, 0.1)


def test_without_dropout_there_is_no_consistency_and_no_candidate_twice():
    off = {"dropout": 0.0, "layer_dropout": 0.0}
    candidates = portfolio(Effort.named("best"), words(), changes=off)
    assert all(c.settings.consistency == 0 for c in candidates)
    assert len({(str(c.settings.identity()), c.preparation) for c in candidates}) == len(candidates)


def test_consistency_needs_labels():
    few = words().with_splits([(range(30), range(30, 45), range(45, 60))])
    for graph, pays in ((words(), True), (few, False)):
        candidates = portfolio(Effort.named("standard"), graph)
        assert any(c.settings.consistency for c in candidates) == pays
        assert any(c.settings.backbone == "appnp" for c in candidates)


def test_the_objective_has_only_its_terms():
    by_name = {c.name: c.settings.active_terms() for c in portfolio(Effort.named("best"), words())}
    assert by_name["gcn-consistency-row"] == {"consistency": 1.0}
    assert by_name["mlp-row"] == {}
    assert "tv" in by_name["enc-row"]


def test_an_unknown_effort_is_refused():
    with pytest.raises(UsageError, match=r"Unknown effort 'fast'. Choose from: quick"):
        Effort.named("fast")
