"""What do ten lines of scikit-learn or PyG give, with the settings that their documentation shows?

The outsiders of unseen.py. Nothing here uses everynode: arrays in, predicted classes of all nodes out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from torch import Tensor, nn
from torch.nn import functional as F

#: The strengths of regularization that logistic regression chooses from, on validation nodes or by cross-validation.
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
EPOCHS = 200


class Task(NamedTuple):
    """A graph as arrays: every edge once, and the nodes to learn from and to choose by (none: no validation set)."""

    features: sp.csr_matrix | np.ndarray
    edges: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    val: np.ndarray

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1


def two_hop_means(task: Task) -> sp.csr_matrix | np.ndarray:
    """Return the features, and their means over one and two hops, side by side."""
    n = len(task.labels)
    both = np.concatenate([task.edges, task.edges[::-1]], axis=1)
    adjacency = sp.csr_matrix((np.ones(both.shape[1], np.float32), both), shape=(n, n))
    adjacency.data[:] = 1
    mean = sp.diags(1 / np.maximum(adjacency.sum(1).A1, 1)).astype(np.float32) @ adjacency
    one = mean @ task.features
    stack = sp.hstack if sp.issparse(one) else np.hstack
    joined = stack([task.features, one, mean @ one])
    return joined.tocsr() if sp.issparse(joined) else joined


def logistic(
    task: Task, features: sp.csr_matrix | np.ndarray | None = None, seed: int = 0
) -> np.ndarray:
    """Logistic regression; its strength is chosen on the validation nodes, or by cross-validation."""
    x = task.features if features is None else features
    learn = x[task.train], task.labels[task.train]
    if len(task.val):
        tried = [LogisticRegression(C=strength, max_iter=300).fit(*learn) for strength in STRENGTHS]
        best = max(tried, key=lambda model: model.score(x[task.val], task.labels[task.val]))
        return best.predict(x)
    folds = min(3, int(np.bincount(learn[1]).clip(1).min()))
    if folds < 2:
        return LogisticRegression(max_iter=300).fit(*learn).predict(x)
    model = LogisticRegressionCV(
        Cs=list(STRENGTHS),
        cv=folds,
        max_iter=300,
        l1_ratios=(0,),
        use_legacy_attributes=False,
        scoring="accuracy",
    )
    return model.fit(*learn).predict(x)


def logistic_hops(task: Task, seed: int = 0) -> np.ndarray:
    """Logistic regression on the features and their means over one and two hops."""
    return logistic(task, two_hop_means(task))


class GCN(nn.Module):
    """PyG's examples/gcn.py."""

    def __init__(self, inputs: int, classes: int):
        from torch_geometric.nn import GCNConv

        super().__init__()
        self.conv1, self.conv2 = GCNConv(inputs, 16, cached=True), GCNConv(16, classes, cached=True)

    def forward(self, x: Tensor, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, 0.5, self.training)
        x = F.dropout(self.conv1(x, adjacency).relu(), 0.5, self.training)
        return self.conv2(x, adjacency)

    def groups(self) -> list[dict[str, object]]:
        return [
            {"params": self.conv1.parameters(), "weight_decay": 5e-4},
            {"params": self.conv2.parameters(), "weight_decay": 0.0},
        ]


class GAT(nn.Module):
    """PyG's examples/gat.py."""

    def __init__(self, inputs: int, classes: int):
        from torch_geometric.nn import GATConv

        super().__init__()
        self.conv1 = GATConv(inputs, 8, heads=8, dropout=0.6)
        self.conv2 = GATConv(64, classes, heads=1, concat=False, dropout=0.6)

    def forward(self, x: Tensor, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, 0.6, self.training)
        x = F.dropout(F.elu(self.conv1(x, edge_index)), 0.6, self.training)
        return self.conv2(x, edge_index)


class SAGE(nn.Module):
    """PyG's GraphSAGE as in examples/reddit.py, with 64 channels, trained full batch."""

    def __init__(self, inputs: int, classes: int):
        from torch_geometric.nn import SAGEConv

        super().__init__()
        self.conv1, self.conv2 = SAGEConv(inputs, 64), SAGEConv(64, classes)

    def forward(self, x: Tensor, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(self.conv1(x, adjacency).relu(), 0.5, self.training)
        return self.conv2(x, adjacency)


class APPNPNet(nn.Module):
    """PyG's benchmark/citation/appnp.py."""

    def __init__(self, inputs: int, classes: int):
        from torch_geometric.nn import APPNP

        super().__init__()
        self.lin1, self.lin2 = nn.Linear(inputs, 64), nn.Linear(64, classes)
        self.propagate = APPNP(K=10, alpha=0.1, cached=True)

    def forward(self, x: Tensor, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, 0.5, self.training)
        x = F.dropout(self.lin1(x).relu(), 0.5, self.training)
        return self.propagate(self.lin2(x), adjacency)


class MLP(nn.Module):
    """Two layers of 64 channels that never look at an edge."""

    def __init__(self, inputs: int, classes: int):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(inputs, 64), nn.Linear(64, classes)

    def forward(self, x: Tensor, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, 0.5, self.training)
        return self.lin2(F.dropout(self.lin1(x).relu(), 0.5, self.training))


def network(
    build: Callable[[int, int], nn.Module],
    lr: float,
    weight_decay: float = 5e-4,
    normalize: bool = True,
) -> Callable[..., np.ndarray]:
    """Return a function that trains a network for 200 epochs and predicts every node.

    With a validation set, the epoch of the best validation accuracy predicts; without one, the last.
    """

    def run(task: Task, seed: int = 0) -> np.ndarray:
        from torch_geometric.data import Data
        from torch_geometric.transforms import NormalizeFeatures, ToUndirected

        torch.manual_seed(seed)
        dense = task.features.toarray() if sp.issparse(task.features) else task.features
        data = Data(
            x=torch.from_numpy(np.ascontiguousarray(dense, np.float32)),
            edge_index=torch.from_numpy(task.edges),
        )
        data = ToUndirected()(NormalizeFeatures()(data) if normalize else data)
        n, edge_index = len(task.labels), data.edge_index
        adjacency = (
            torch.sparse_coo_tensor(edge_index, torch.ones(edge_index.shape[1]), (n, n))
            .coalesce()
            .to_sparse_csr()
        )
        labels, train, val = (
            torch.from_numpy(array) for array in (task.labels, task.train, task.val)
        )
        model = build(data.num_features, task.classes)
        groups = model.groups() if hasattr(model, "groups") else model.parameters()
        optimizer = torch.optim.Adam(groups, lr=lr, weight_decay=weight_decay)
        best, state = -1.0, None
        for _ in range(EPOCHS):
            model.train()
            optimizer.zero_grad()
            F.cross_entropy(model(data.x, adjacency, edge_index)[train], labels[train]).backward()
            optimizer.step()
            if len(val):
                model.eval()
                with torch.no_grad():
                    right = model(data.x, adjacency, edge_index)[val].argmax(1) == labels[val]
                if float(right.double().mean()) > best:
                    best, state = float(right.double().mean()), copy.deepcopy(model.state_dict())
        if state is not None:
            model.load_state_dict(state)
        model.eval()
        with torch.no_grad():
            return model(data.x, adjacency, edge_index).argmax(1).numpy()

    return run


OUTSIDERS: dict[str, Callable[..., np.ndarray]] = {
    "scikit-learn logistic regression": logistic,
    "scikit-learn logistic regression, two-hop means": logistic_hops,
    "PyG GCN": network(GCN, 0.01),
    "PyG GraphSAGE": network(SAGE, 0.01, weight_decay=0.0, normalize=False),
    "PyG GAT": network(GAT, 0.005),
    "PyG APPNP": network(APPNPNet, 0.01),
}
#: The outsider of the ten folds only.
MLP_OUTSIDER = {"MLP": network(MLP, 0.01)}


def main() -> None:
    """Print the outsiders; unseen.py runs them."""
    print("\n".join(OUTSIDERS))


if __name__ == "__main__":
    main()
