"""The class prior: all nodes together should use the classes in the shares that these have in the graph."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.numerics import log_softmax_by_class, mean_prediction

#: How far one step moves the running means that the shares are estimated from.
RATE = 0.1
#: The least share of a class, as a part of an equal one.
LEAST = 0.1


def class_prior(logits: Tensor, shares: Tensor) -> Tensor:
    r"""The mean prediction of all nodes should be the classes' shares. Not of the paper, whose MI asks for equal classes.

    .. math:: \mathcal{L}_{PRIOR} = \sum_{s=1}^{k} \tilde y_s \log \frac{\tilde y_s}{p_s},
              \qquad \tilde y_s = \frac{1}{|V|} \sum_{i \in V} \hat y_{i,s}

    ``logits``: n x k, of *every* node. ``shares``: :math:`p`, each above 0, together 1; where they are equal this is, but for a constant,
    the part of :func:`mutual_information` that has the :math:`\lambda`.

    >>> import torch
    >>> class_prior(torch.zeros(3, 2), torch.tensor([0.5, 0.5]))
    tensor(0.)
    >>> class_prior(torch.zeros(3, 2), torch.tensor([0.8, 0.2]))
    tensor(0.2231)
    """
    return _divergence(log_softmax_by_class(logits).exp(), shares)


def _divergence(y: Tensor, shares: Tensor) -> Tensor:
    """The term for k x n probabilities."""
    mean, log_mean = mean_prediction(y)
    return torch.dot(mean, log_mean - shares.to(mean).log())


def estimated_shares(confusion: Tensor, mean: Tensor, counts: Tensor) -> Tensor:
    r"""The shares that explain what a network predicts of nodes, given how it confuses the classes (Lipton et al. 2018).

    .. math:: p = \arg\min_p \| C p - \tilde y \|^2 + \frac{1}{c} \| p - \tilde y \|^2

    ``confusion``: :math:`C_{rs}`, the mean probability of class r over the nodes of class s; ``counts``: how many these are, :math:`c` the
    fewest. So where little is known the shares are what is predicted. They are for a class of which no node is known. Then they are
    scaled to 1, with none below a tenth of an equal share or so.

    >>> import torch
    >>> many = torch.tensor([500, 500])
    >>> estimated_shares(torch.tensor([[0.9, 0.3], [0.1, 0.7]]), torch.tensor([0.48, 0.52]), many)  # 0.48 = 0.9 * 0.3 + 0.3 * 0.7
    tensor([0.3010, 0.6990])
    >>> estimated_shares(torch.tensor([[0.9, 0.3], [0.1, 0.7]]), torch.tensor([0.48, 0.52]), torch.tensor([1, 1]))  # nearly as predicted
    tensor([0.4320, 0.5680])
    """
    known = counts > 0
    if not known.any():
        return mean
    of_known = torch.where(known, confusion, torch.eye(len(mean)).to(confusion))
    normal = of_known.T @ of_known + torch.eye(len(mean)).to(confusion) / counts[known].min()
    found = mean + torch.linalg.solve(normal, of_known.T @ (mean - of_known @ mean))
    found = found.clamp_min(0.0) * known
    found = torch.where(known, found / found.sum().clamp_min(1e-12) * mean[known].sum(), mean)
    found = found.clamp_min(LEAST / len(mean))
    return found / found.sum()


class ClassPrior(nn.Module):
    """:func:`class_prior` for one fold of a graph, with the shares given, or estimated while the network learns.

    Labels are often drawn with equally many of each class, so how many there are says nothing of the graph. What does is how the network
    confuses the classes on the *validation* nodes, and what it predicts of all that it does not learn from: :func:`estimated_shares` of
    running means of both, and the training nodes' own classes. Nodes of one class must be alike in and out of validation; how
    many of each are there does not matter, but there should be a dozen. So with this term the labels of the validation nodes have a part in
    training, if only through the shares: what is then measured on these nodes is a little too good.
    """

    shares: Tensor | None
    nodes: Tensor
    labelled: Tensor
    confusion: Tensor
    mean: Tensor
    steps: Tensor

    def __init__(
        self, graph: Graph, *, fold: int = 0, shares: Sequence[float] | Tensor | None = None
    ):
        super().__init__()
        k = graph.num_classes
        given = None if shares is None else torch.as_tensor(shares, dtype=torch.float64)
        if given is not None and not (
            given.shape == (k,) and (given > 0).all() and torch.isfinite(given).all()
        ):
            raise UsageError(
                f"The class prior is a share above 0 for each of the {k} classes. Got {given.tolist()}."
            )
        self.register_buffer("shares", given if given is None else given / given.sum())
        nodes, train = graph.nodes("val", fold), graph.nodes("train", fold)
        if given is None and not len(nodes):
            raise UsageError(
                f"The class prior is estimated from validation nodes, and fold {fold} of graph {graph.name!r} has none with a label: "
                "set some apart, give the classes' shares as class_prior, or leave out prior."
            )
        #: What does not change: each validation node's class, how many they are by class, and those of the training nodes.
        self.truth = nn.functional.one_hot(graph.labels[nodes], k).cpu().double()
        self.counts = self.truth.sum(0)
        self.learned = torch.bincount(graph.labels[train], minlength=k).cpu().double()
        self.register_buffer("nodes", nodes, persistent=False)
        self.register_buffer("labelled", train, persistent=False)
        self.others = graph.num_nodes - len(train)
        self.register_buffer("confusion", torch.eye(k, dtype=torch.float64))
        self.register_buffer("mean", torch.full((k,), 1.0 / k, dtype=torch.float64))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, views: Sequence[Tensor]) -> Tensor:
        """The term for the n x k logits of each pass: the mean over them. In training mode the estimate first moves by one step."""
        ys = [log_softmax_by_class(logits).exp() for logits in views]  # k x n each
        if self.shares is None and self.training:
            self._carry_on([y.detach() for y in ys])
        shares = self.estimate() if self.shares is None else self.shares
        return torch.stack([_divergence(y, shares) for y in ys]).mean()

    def estimate(self) -> Tensor:
        """The shares as they are estimated now."""
        of_others = estimated_shares(
            self.confusion.cpu().double(), self.mean.cpu().double(), self.counts
        )
        return (of_others * self.others + self.learned) / (self.others + len(self.labelled))

    def _carry_on(self, ys: Sequence[Tensor]) -> None:
        """Move the running means, at first the means of all steps so far; numbers of k x k, in float64 on the CPU."""
        seen = torch.stack([y[:, self.nodes] for y in ys]).mean(0).cpu().double()
        total = (
            torch.stack([y.sum(1) - y[:, self.labelled].sum(1) for y in ys]).mean(0).cpu().double()
        )
        mean = total / max(self.others, 1)
        if not torch.isfinite(mean).all():  # a step that its own loop will leave out
            return
        rate = max(RATE, 1.0 / (int(self.steps) + 1))
        self.confusion.copy_(
            torch.lerp(
                self.confusion.cpu().double(), seen @ self.truth / self.counts.clamp_min(1.0), rate
            )
        )
        self.mean.copy_(torch.lerp(self.mean.cpu().double(), mean, rate))
        self.steps += 1
