"""benchmarks/unseen.py: the outsiders are PyG's layers, and the stored logits repeat the default."""

import functools
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from everynode.selection import portfolio_fit

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def scripts() -> dict[str, ModuleType]:
    sys.path.insert(0, str(FOLDER))
    try:
        import unseen
        import unseen_few_labels
        import unseen_outsiders
        import unseen_replay
    finally:
        sys.path.remove(str(FOLDER))
    return {
        "unseen": unseen, "outsiders": unseen_outsiders, "replay": unseen_replay,
        "few_labels": unseen_few_labels,
    }  # fmt: skip


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """Two communities with telling words."""
    random = np.random.default_rng(0)
    labels = np.arange(60) % 2
    edges = random.integers(60, size=(200, 2))
    edges = edges[(labels[edges[:, 0]] == labels[edges[:, 1]]) & (edges[:, 0] < edges[:, 1])]
    features = (random.random((60, 70)) < 0.1 + 0.2 * labels[:, None]).astype(np.float32)
    x = sp.csr_matrix(features)
    folder = tmp_path_factory.mktemp("graphs")
    np.savez(
        folder / "tiny.npz", edges=np.unique(edges, axis=0), labels=labels, num_nodes=60,
        feature_indptr=x.indptr, feature_indices=x.indices, feature_shape=x.shape,
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("name", ["GCN", "SAGE", "GAT"])
def test_outsiders_are_the_layers_of_pyg(scripts, archive, monkeypatch, name):
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv

    outsiders = scripts["outsiders"]
    monkeypatch.setenv("EVERYNODE_GRAPHS", str(archive))
    arrays = scripts["unseen"].read("tiny")
    task = outsiders.Task(*arrays, np.arange(4), np.arange(4, 8))
    inputs = outsiders.Inputs.of(task, normalize=True)
    dense = torch.from_numpy(inputs.x.matrix.toarray())
    torch.manual_seed(0)
    model = getattr(outsiders, name)(70, 2).eval()
    torch.manual_seed(0)
    conv = {
        "GCN": lambda: GCNConv(70, 16), "SAGE": lambda: SAGEConv(70, 64),
        "GAT": lambda: GATConv(70, 8, heads=8),
    }[name]()  # fmt: skip
    if name == "SAGE":
        ours = model.conv1.propagate(
            inputs.adjacency, x=(model.neighbors.product(inputs.x),) * 2, size=None
        )
        ours = ours + model.neighbors.bias + model.own(inputs.x)
    else:
        ours = model.conv1(model.lin(inputs.x), inputs.edge_index)
    torch.testing.assert_close(ours, conv.eval()(dense, inputs.edge_index))
    torch.testing.assert_close(model(*inputs), model(*inputs._replace(x=dense)))


def test_gradients_of_sparse_products(scripts):
    outsiders = scripts["outsiders"]
    matrix = sp.random(5, 4, 0.5, format="csr", random_state=0)
    weight = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: outsiders._Product.apply(matrix, w), weight)


def test_parts_do_not_overlap_and_pairs_share_their_test_nodes(scripts):
    unseen = scripts["unseen"]
    labels = np.repeat([0, 1, 2, -1], [100, 50, 4, 10])
    for regime in ("5", "20", "48%"):
        train, val, test = unseen.draw(unseen.Cell("g", regime, 1, True), labels)
        assert not set(train) & set(val)
        assert not (set(train) | set(val)) & set(test)
        assert (labels[np.concatenate([train, val, test])] >= 0).all()
        other = unseen.draw(unseen.Cell("g", regime, 1, False), labels)
        assert np.array_equal(test, other[2])
    assert (
        np.bincount(labels[unseen.draw(unseen.Cell("g", "20", 0, True), labels)[0]]) == [20, 16, 1]
    ).all()


@pytest.fixture
def quick(monkeypatch):
    """The portfolio trains the fewest candidates."""
    options = functools.partial(portfolio_fit.PortfolioOptions, effort="quick")
    monkeypatch.setattr(portfolio_fit, "PortfolioOptions", options)


@pytest.mark.usefixtures("quick")
def test_a_cell_runs_is_kept_and_replays_to_the_same_accuracy(
    scripts, archive, tmp_path, monkeypatch, capsys
):
    unseen, replay = scripts["unseen"], scripts["replay"]
    monkeypatch.setenv("EVERYNODE_GRAPHS", str(archive))
    monkeypatch.setattr(unseen, "ROOT", tmp_path)
    monkeypatch.setattr(unseen, "GRAPHS", ("tiny",))
    monkeypatch.setattr(scripts["outsiders"], "EPOCHS", 3)
    (tmp_path / "results").mkdir()
    store = tmp_path / "store"
    flags = ["--graphs", "tiny", "--regimes", "5", "--splits", "1"]
    monkeypatch.setattr(sys, "argv", ["unseen.py", "run", str(store), *flags])
    unseen.main()
    assert capsys.readouterr().out.count("everynode") == 2
    unseen.main()
    assert "everynode" not in capsys.readouterr().out  # both cells are there

    row = json.loads((store / "tiny-5-0-noval.json").read_text())
    assert (row["train"], row["val"], row["test"]) == (10, 0, 40)
    again = replay.Replay.read(store / "tiny-5-0-noval.json")
    default = row["systems"]["everynode"]
    regret = 100 * (default["accuracy"] - unseen.best_outsider(row["systems"]))
    assert again.scores()[1] == pytest.approx(regret)
    # The shift is estimated from 40 of the 50 unlabeled nodes.
    assert again.scores()[0] == pytest.approx(default["log_loss"], abs=0.01)
    assert len(default["shift"]) == 2
    assert again.scores(shift=False)[0] != again.scores()[0]

    monkeypatch.setattr(sys, "argv", ["unseen.py", "write", str(store)])
    unseen.main()
    lines = (tmp_path / "results/unseen.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * len(row["systems"])
    assert lines[0].startswith("graph,half,regime,validation,split,system")
    (store / "tiny-5-0-val.json").unlink()
    unseen.main()  # the rows of a cell that the store lacks stay
    assert (tmp_path / "results/unseen.csv").read_text().splitlines() == lines


def test_each_half_chooses_the_design_with_the_lowest_loss(scripts):
    rows = [
        {"graph": graph, "regime": "5", "split": split, "folds": folds, "design": design,
         "accuracy": 0.5, "log_loss": loss + split}
        for graph, losses in (("texas", (1.0, 0.8, 0.9)), ("cornell", (0.5, 0.7, 0.4)))
        for split in (0, 2)
        for (folds, design), loss in zip(((3, "a"), (5, "a"), (5, "b")), losses, strict=True)
    ]  # fmt: skip
    unpaired = {**rows[0], "split": 9, "log_loss": -99.0}  # its cell lacks the other designs
    found = scripts["few_labels"].summary([*rows, unpaired])
    assert found["cells"] == [2, 2]
    assert [(one["folds"], one["design"]) for one in found["chosen"]] == [(5, "a"), (5, "b")]
    assert found["chosen"][0]["halves"] == [[1.8, 0.5], [1.7, 0.5]]


@pytest.mark.long
@pytest.mark.usefixtures("quick")
def test_few_labels_three_designs_with_the_same_weights(scripts, archive, tmp_path, monkeypatch):
    unseen, few = scripts["unseen"], scripts["few_labels"]
    monkeypatch.setenv("EVERYNODE_GRAPHS", str(archive))
    cell = unseen.Cell("tiny", "5", 0, validation=False)
    rows = few.run(cell, unseen.read("tiny"), 2, tmp_path)
    assert [row["design"].split()[0] for row in rows] == ["fold", "closed", "all"]
    assert all(row["log_loss"] > 0 and 0 < row["accuracy"] <= 1 for row in rows)
    assert len({row["log_loss"] for row in rows}) > 1
