"""What do ten lines of scikit-learn or PyG give, with the settings that their documentation shows?

The outsiders of unseen.py. Nothing here uses everynode: arrays in, predicted classes of all nodes out, once with and
once without a validation set. Sparse features are multiplied as sparse matrices; nothing else differs from PyG's layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from torch import Tensor, nn
from torch.nn import functional as F

#: The strengths of regularization that logistic regression chooses from, on validation nodes or by cross-validation.
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
EPOCHS = 200


class Predictions(NamedTuple):
    """The classes of all nodes, predicted with a validation set and without one."""

    with_validation: np.ndarray
    without: np.ndarray


class Task(NamedTuple):
    """A graph as arrays: every edge once, and the nodes to learn from and to choose by."""

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
    task: Task, seed: int = 0, features: sp.csr_matrix | np.ndarray | None = None
) -> Predictions:
    """Logistic regression; its strength is chosen on the validation nodes, or by cross-validation."""
    x = task.features if features is None else features
    learn = x[task.train], task.labels[task.train]
    tried = [LogisticRegression(C=strength, max_iter=300).fit(*learn) for strength in STRENGTHS]
    best = max(tried, key=lambda model: model.score(x[task.val], task.labels[task.val]))
    folds = min(3, int(np.bincount(learn[1]).clip(1).min()))
    if folds < 2:
        alone = LogisticRegression(max_iter=300).fit(*learn)
    else:
        alone = LogisticRegressionCV(
            Cs=list(STRENGTHS), cv=folds, max_iter=300, l1_ratios=(0,), use_legacy_attributes=False, scoring="accuracy"
        ).fit(*learn)  # fmt: skip
    return Predictions(best.predict(x), alone.predict(x))


def logistic_hops(task: Task, seed: int = 0) -> Predictions:
    """Logistic regression on the features and their means over one and two hops."""
    return logistic(task, seed, two_hop_means(task))


class _Product(torch.autograd.Function):
    """A SciPy matrix times a dense tensor."""

    @staticmethod
    def forward(ctx: Any, matrix: sp.csr_matrix, weight: Tensor) -> Tensor:
        ctx.matrix = matrix
        return torch.from_numpy(matrix @ weight.detach().numpy())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, torch.from_numpy(ctx.matrix.T @ gradient.numpy())


class Rows(NamedTuple):
    """Sparse features of the nodes."""

    matrix: sp.csr_matrix


class InputLinear(nn.Linear):
    """nn.Linear on dense or on sparse features."""

    def product(self, x: Tensor | Rows) -> Tensor:
        """Return the features times the weights, without the bias."""
        return x @ self.weight.T if isinstance(x, Tensor) else _Product.apply(x[0], self.weight.T)

    def forward(self, x: Tensor | Rows) -> Tensor:
        product = self.product(x)
        return product if self.bias is None else product + self.bias


def take_linear(conv: nn.Module, name: str) -> InputLinear:
    """Take the product out of a layer of PyG, with its weights: it is done before the layer."""
    linear = getattr(conv, name)
    layer = InputLinear(linear.weight.shape[1], linear.weight.shape[0], linear.bias is not None)
    layer.load_state_dict(linear.state_dict())
    setattr(conv, name, nn.Identity())
    return layer


def drop(x: Tensor | Rows, share: float, training: bool) -> Tensor | Rows:
    """F.dropout on dense or on sparse features; dropping a zero changes nothing."""
    if isinstance(x, Tensor):
        return F.dropout(x, share, training)
    if not training:
        return x
    values = F.dropout(torch.from_numpy(x.matrix.data), share).numpy()
    return Rows(sp.csr_matrix((values, x.matrix.indices, x.matrix.indptr), x.matrix.shape))


class GCN(nn.Module):
    """PyG's examples/gcn.py."""

    def __init__(self, inputs: int, classes: int):
        from torch_geometric.nn import GCNConv

        super().__init__()
        self.conv1, self.conv2 = GCNConv(inputs, 16, cached=True), GCNConv(16, classes, cached=True)
        self.lin = take_linear(self.conv1, "lin")

    def forward(self, x: Tensor | Rows, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        x = drop(x, 0.5, self.training)
        x = F.dropout(self.conv1(self.lin(x), adjacency).relu(), 0.5, self.training)
        return self.conv2(x, adjacency)

    def groups(self) -> list[dict[str, object]]:
        return [
            {"params": [*self.lin.parameters(), *self.conv1.parameters()], "weight_decay": 5e-4},
            {"params": self.conv2.parameters(), "weight_decay": 0.0},
        ]


class GAT(nn.Module):
    """PyG's examples/gat.py."""

    def __init__(self, inputs: int, classes: int):
        from torch_geometric.nn import GATConv

        super().__init__()
        self.conv1 = GATConv(inputs, 8, heads=8, dropout=0.6)
        self.lin = take_linear(self.conv1, "lin")
        self.conv2 = GATConv(64, classes, heads=1, concat=False, dropout=0.6)

    def forward(self, x: Tensor | Rows, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        x = drop(x, 0.6, self.training)
        x = F.dropout(F.elu(self.conv1(self.lin(x), edge_index)), 0.6, self.training)
        return self.conv2(x, edge_index)


class SAGE(nn.Module):
    """PyG's GraphSAGE as in examples/reddit.py, with 64 channels, trained full batch.

    The first layer multiplies before it averages, which is the same and takes sparse features.
    """

    def __init__(self, inputs: int, classes: int):
        from torch_geometric.nn import SAGEConv

        super().__init__()
        self.conv1, self.conv2 = SAGEConv(inputs, 64), SAGEConv(64, classes)
        self.neighbors, self.own = (take_linear(self.conv1, name) for name in ("lin_l", "lin_r"))

    def forward(self, x: Tensor | Rows, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        mean = self.conv1.propagate(adjacency, x=(self.neighbors.product(x),) * 2, size=None)
        x = mean + self.neighbors.bias + self.own(x)
        return self.conv2(F.dropout(x.relu(), 0.5, self.training), adjacency)


class APPNPNet(nn.Module):
    """PyG's benchmark/citation/appnp.py."""

    def __init__(self, inputs: int, classes: int):
        from torch_geometric.nn import APPNP

        super().__init__()
        self.lin1, self.lin2 = InputLinear(inputs, 64), nn.Linear(64, classes)
        self.propagate = APPNP(K=10, alpha=0.1, cached=True)

    def forward(self, x: Tensor | Rows, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        x = drop(x, 0.5, self.training)
        x = F.dropout(self.lin1(x).relu(), 0.5, self.training)
        return self.propagate(self.lin2(x), adjacency)


class MLP(nn.Module):
    """Two layers of 64 channels that never look at an edge."""

    def __init__(self, inputs: int, classes: int):
        super().__init__()
        self.lin1, self.lin2 = InputLinear(inputs, 64), nn.Linear(64, classes)

    def forward(self, x: Tensor | Rows, adjacency: Tensor, edge_index: Tensor) -> Tensor:
        x = drop(x, 0.5, self.training)
        return self.lin2(F.dropout(self.lin1(x).relu(), 0.5, self.training))


def network(
    build: Callable[[int, int], nn.Module],
    lr: float,
    weight_decay: float = 5e-4,
    normalize: bool = True,
) -> Callable[..., Predictions]:
    """Return a function that trains a network for 200 epochs and predicts every node.

    With a validation set, the epoch of the best validation accuracy predicts; without one, the last.
    """

    def run(task: Task, seed: int = 0) -> Predictions:
        torch.manual_seed(seed)
        data = Inputs.of(task, normalize)
        labels, train, val = (
            torch.from_numpy(array) for array in (task.labels, task.train, task.val)
        )
        model = build(task.features.shape[1], task.classes)
        groups = model.groups() if hasattr(model, "groups") else model.parameters()
        optimizer = torch.optim.Adam(groups, lr=lr, weight_decay=weight_decay)
        best, classes, chosen = -1.0, None, None
        for _ in range(EPOCHS):
            model.train()
            optimizer.zero_grad()
            F.cross_entropy(model(*data)[train], labels[train]).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                classes = model(*data).argmax(1)
            right = float((classes[val] == labels[val]).double().mean())
            if right > best:
                best, chosen = right, classes
        return Predictions(chosen.numpy(), classes.numpy())

    return run


class Inputs(NamedTuple):
    """What a network reads: features, and the edges both ways as a sparse matrix and as a list."""

    x: Tensor | Rows
    adjacency: Tensor
    edge_index: Tensor

    @classmethod
    def of(cls, task: Task, normalize: bool) -> Inputs:
        """Prepare a task; ``normalize``: divide the rows of the features by their sums."""
        from torch_geometric.utils import coalesce, to_undirected

        x, n = task.features.astype(np.float32), len(task.labels)
        if normalize:  # as PyG's NormalizeFeatures does
            x = x if sp.issparse(x) else x - x.min()
            sums = np.maximum(np.asarray(x.sum(1)).ravel(), 1)
            x = (
                sp.csr_matrix(sp.diags(1 / sums).astype(np.float32) @ x)
                if sp.issparse(x)
                else x / sums[:, None]
            )
        edge_index = coalesce(to_undirected(torch.from_numpy(task.edges)))
        ones = torch.ones(edge_index.shape[1])
        adjacency = torch.sparse_coo_tensor(edge_index, ones, (n, n)).coalesce().to_sparse_csr()
        return cls(
            Rows(sp.csr_matrix(x)) if sp.issparse(x) else torch.from_numpy(x), adjacency, edge_index
        )


OUTSIDERS: dict[str, Callable[..., Predictions]] = {
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
