from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.datasets import generate, is_present, load, synthetic
from everynode.datasets.entries import find
from everynode.errors import DataError, UsageError


def test_size_classes_homophily_and_split() -> None:
    graph = generate(5000, 20000, 16, 10, homophily=0.8, seed=1)
    assert graph.num_nodes == 5000
    assert 15000 < graph.num_edges <= 20000
    assert set(graph.labels.tolist()) == set(range(10))
    assert graph.edge_homophily == pytest.approx(0.8 + 0.2 / 10, abs=0.05)
    assert [round(len(part) / 5000, 2) for part in graph.splits[0]] == [0.54, 0.18, 0.28]


def test_degrees_follow_the_power_law() -> None:
    for exponent in (2.2, 3.5):
        degree = generate(20000, 200000, 2, 2, exponent=exponent).degree.numpy()
        tail = np.sort(degree)[-200:]
        hill = (
            1 + 1 / np.log(tail / tail[0]).mean()
        )  # Hill's estimate of the exponent, from the largest degrees
        assert hill == pytest.approx(exponent, rel=0.25)


def test_nodes_are_in_no_order_of_their_classes() -> None:
    labels = generate(5000, 5000, 2, 10).labels
    assert (labels[1:] == labels[:-1]).double().mean() < 0.2


@settings(deadline=None, max_examples=30)
@given(
    nodes=st.integers(2, 60), edges=st.integers(0, 300), features=st.integers(1, 5), classes=st.integers(2, 9),
    homophily=st.sampled_from([0.0, 0.5, 1.0]), chunk=st.integers(1, 64), seed=st.integers(0, 99),
)  # fmt: skip
def test_any_size(
    nodes: int, edges: int, features: int, classes: int, homophily: float, chunk: int, seed: int
) -> None:
    classes = min(classes, nodes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "CHUNK", chunk)
        graph = generate(nodes, edges, features, classes, homophily=homophily, seed=seed)
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (nodes, features, classes)
    assert graph.num_edges <= edges
    assert sorted(set(graph.labels.tolist())) == list(range(classes))
    tidied = type(graph).from_arrays(
        graph.features, graph.edges, graph.labels, splits=graph.splits, classes=range(classes)
    )
    assert tidied.digest == graph.digest, "edges are each once, in order, without loops"
    if homophily == 1:
        assert graph.num_edges == 0 or graph.edge_homophily == 1


def test_features_in_a_file_are_the_same_and_stay_there(tmp_path: Path) -> None:
    whole, mapped = (
        generate(500, 1500, 4, 3),
        generate(500, 1500, 4, 3, features_file=tmp_path / "x.npy"),
    )
    assert mapped.digest == whole.digest
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
    assert np.array_equal(np.load(tmp_path / "x.npy"), whole.dense_features.numpy())
    mapped.dense_features[0] = 7.0
    assert np.array_equal(np.load(tmp_path / "x.npy"), whole.dense_features.numpy()), (
        "the file was changed"
    )
    with pytest.raises(
        DataError,
        match=r"Cannot write the features to .*nowhere/x\.npy \(No such file or directory\)",
    ):
        generate(500, 1500, 4, 3, features_file=tmp_path / "nowhere" / "x.npy")


def test_by_name() -> None:
    graph = load("generated-300x900x4x3")
    assert graph.name == "generated-300x900x4x3"
    assert graph.digest == generate(300, 900, 4, 3).digest
    assert is_present("generated-300x900x4x3")
    assert len(load("generated-300x900x4x3", "random", per_class=2).nodes("train")) == 6
    assert find("generated-300x900").size == (300, 900, 128, 40)
    assert find("generated").size == (169_343, 1_166_243, 128, 40)


@pytest.mark.parametrize(
    "name",
    [
        "generated-",
        "generated-3",
        "generated-3x4x5",
        "generated-3x4x5x6x7",
        "generated-x4",
        "generated-3.5x4",
    ],
)
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UsageError, match="Unknown graph"):
        load(name)


def test_what_a_name_cannot_have() -> None:
    with pytest.raises(UsageError, match="generated without directions"):
        load("generated-300x900", directed=True)
    with pytest.raises(UsageError, match=r"has no split 'public'. Choose from: stratified, random"):
        load("generated-300x900", "public")
    with pytest.raises(UsageError, match="does not fit into memory: choose a smaller one"):
        load("generated-999999999999x5")


def test_the_same_seed_the_same_graph() -> None:
    assert generate(500, 1500, 4, 3, seed=7).digest == generate(500, 1500, 4, 3, seed=7).digest
    assert generate(500, 1500, 4, 3, seed=7).digest != generate(500, 1500, 4, 3, seed=8).digest


def test_less_noise_is_easier() -> None:
    def spread(noise: float) -> float:
        graph = generate(2000, 6000, 16, 4, noise=noise)
        x = graph.dense_features
        centres = torch.stack([x[graph.labels == c].mean(0) for c in range(4)])
        return float((torch.cdist(x, centres).argmin(1) == graph.labels).double().mean())

    assert spread(0.5) > 0.95 > spread(4.0)


@pytest.mark.parametrize(
    "options",
    [
        {"classes": 1},
        {"nodes": 3, "classes": 5},
        {"homophily": 1.5},
        {"exponent": 1.0},
        {"edges": -1},
        {"features": 0},
        {"noise": -1.0},
        {"seed": -1},
    ],
)
def test_refusals(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="of generate must be"):
        generate(**{"nodes": 100, "edges": 200, "features": 4, "classes": 3, **options})  # type: ignore[arg-type]
