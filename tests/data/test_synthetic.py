import pytest
import torch

from everynode.data import generate
from everynode.errors import UsageError


def test_size_classes_homophily_and_split() -> None:
    graph = generate(5000, 20000, 16, 10, homophily=0.8, seed=1)
    assert graph.num_nodes == 5000
    assert 15000 < graph.num_edges <= 20000
    assert set(graph.labels.tolist()) == set(range(10))
    assert graph.edge_homophily == pytest.approx(0.8 + 0.2 / 10, abs=0.05)
    assert [round(len(part) / 5000, 2) for part in graph.splits[0]] == [0.54, 0.18, 0.28]


def test_degrees_have_a_heavy_tail() -> None:
    degree = generate(5000, 20000, 4, 5).degree
    assert degree.max() > 10 * degree.median()


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


@pytest.mark.parametrize("options", [{"classes": 1}, {"nodes": 3, "classes": 5}, {"homophily": 1.5}, {"exponent": 1.0}])
def test_refusals(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="of generate must be"):
        generate(**{"nodes": 100, "edges": 200, "features": 4, "classes": 3, **options})  # type: ignore[arg-type]
