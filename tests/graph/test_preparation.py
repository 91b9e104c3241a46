"""Preparations against scikit-learn's, on dense and sparse features."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from everynode.datasets import generate
from everynode.errors import DataError, UsageError
from everynode.graph import Graph
from everynode.graph.preparation import (
    PREPARATIONS,
    FittedPreparation,
    fit_preparation,
    suggest,
)
from everynode.sparse import SparseMatrix

EDGES = [[0, 1, 2], [1, 2, 3]]


def dense(features: SparseMatrix | torch.Tensor) -> np.ndarray:
    return (features if isinstance(features, torch.Tensor) else features.to_dense()).numpy()


def counts(density: float, n: int = 30, c: int = 80) -> Graph:
    rng = np.random.default_rng(0)
    x = rng.poisson(2.0, (n, c)) * (rng.random((n, c)) < density)
    x[3] = 0
    return Graph.from_arrays(scipy.sparse.csr_array(x.astype(float)), EDGES)


def columns() -> Graph:
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.exponential(size=50), rng.integers(0, 3, 50), np.full(50, 2.0)])
    return Graph.from_arrays(x, EDGES)


@pytest.mark.parametrize("density", [0.1, 0.9])
def test_tfidf_is_that_of_scikit_learn(density: float) -> None:
    graph = counts(density)
    prepared = fit_preparation("tfidf", graph.features).apply(graph)
    assert isinstance(prepared.features, SparseMatrix) == (density < 0.5)
    raw = scipy.sparse.csr_array(dense(graph.features))
    expected = TfidfTransformer(sublinear_tf=True).fit_transform(raw).toarray()
    np.testing.assert_allclose(dense(prepared.features), expected, atol=1e-6)


def test_fractions_have_no_negative_frequency() -> None:
    graph = Graph.from_arrays([[0.1, 0.0], [0.5, 0.2]], [[0], [1]])
    assert dense(fit_preparation("tfidf", graph.features).apply(graph).features).min() == 0


def test_standardize_is_that_of_scikit_learn() -> None:
    graph = columns()
    prepared = fit_preparation("standardize", graph.features).apply(graph)
    expected = StandardScaler().fit_transform(dense(graph.features))
    np.testing.assert_allclose(dense(prepared.features), expected, atol=1e-5)


def test_quantiles_are_those_of_scikit_learn() -> None:
    graph = columns()
    prepared = dense(fit_preparation("quantile", graph.features).apply(graph).features)
    other = QuantileTransformer(n_quantiles=50, output_distribution="normal")
    expected = other.fit_transform(dense(graph.features))
    inner = np.argsort(dense(graph.features)[:, 0])[1:-1]  # the ends are clipped elsewhere
    ours, theirs = prepared[inner, 0], expected[inner, 0]
    assert np.corrcoef(ours, theirs)[0, 1] > 0.9999
    assert not prepared[:, 2].any(), "a constant column"
    np.testing.assert_allclose(prepared[:, :2].std(0), 1, atol=1e-5)


def test_row_and_log() -> None:
    graph = counts(0.2)
    row = dense(fit_preparation("row", graph.features).apply(graph).features).sum(1)
    np.testing.assert_allclose(row, np.where(np.arange(30) == 3, 0, 1), atol=1e-6)
    signed = Graph.from_arrays([[-1.0, 3.0], [2.0, 4.0]], [[0], [1]])
    log = dense(fit_preparation("log", signed.features).apply(signed).features)
    np.testing.assert_allclose(log, [[-np.log(2), np.log(4)], [np.log(3), np.log(5)]], atol=1e-6)


@pytest.mark.parametrize("name", PREPARATIONS)
def test_a_preparation_is_saved_and_shares_the_operators(name: str) -> None:
    graph = generate(40, 90, 6, 3)
    fitted = fit_preparation(name, graph.features)
    values = json.loads(json.dumps(fitted.to_dict()))
    again = FittedPreparation.from_dict(values, fitted.tensors)
    prepared = again.apply(graph)
    assert prepared.gcn_operator is graph.gcn_operator
    assert torch.equal(fitted.apply(graph).dense_features, prepared.dense_features)
    assert prepared.dtype == graph.dtype
    assert np.isfinite(dense(prepared.features)).all()
    assert again.for_new_nodes == (name != "structure")
    if name not in ("structure", "raw"):
        with pytest.raises(DataError, match="fitted to 6 features"):
            again.apply(generate(40, 90, 7, 3))


def test_what_was_learned_serves_other_nodes() -> None:
    graph = columns()
    part = graph.with_features(graph.features)
    fitted = fit_preparation("quantile", graph.features)
    some = Graph.from_arrays(graph.dense_features[:5], [[0], [1]])
    torch.testing.assert_close(
        fitted.apply(some).features, fitted.apply(part).dense_features[:5], rtol=0, atol=0
    )


def test_suggestions() -> None:
    assert suggest(counts(0.1)) == ("row", "tfidf", "log", "raw")
    binary = np.random.default_rng(0).random((20, 70)) < 0.4
    assert suggest(Graph.from_arrays(binary.astype(float), EDGES)) == ("row", "tfidf", "raw")
    wide = np.random.default_rng(0).normal(size=(20, 70))
    assert suggest(Graph.from_arrays(wide, EDGES)) == ("standardize", "raw", "row")
    assert suggest(columns()) == ("standardize", "quantile")
    assert suggest(Graph.from_arrays(np.eye(4)[:, :3], EDGES)) == ("standardize", "raw")
    assert suggest(Graph.from_arrays(None, EDGES, [0, 1, 0, 1])) == ("structure",)
    assert suggest(Graph.from_arrays(np.ones((4, 2)), EDGES)) == ("structure",)


def test_an_unknown_name_lists_the_choices() -> None:
    with pytest.raises(UsageError, match="did you mean 'tfidf'"):
        fit_preparation("tf-idf", torch.ones(2, 2))
