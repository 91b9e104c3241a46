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
#: What keeps the estimate at equal shares as long as the network cannot tell the classes apart.
RIDGE = 0.01
#: The least share of a class, as a part of an equal one.
LEAST = 0.1


def class_prior(logits: Tensor, prior: Tensor) -> Tensor:
    r"""The mean prediction of all nodes should be the prior. Not of the paper, whose MI asks for equal classes.

    .. math:: \mathcal{L}_{PRIOR} = \sum_{s=1}^{k} \tilde y_s \log \frac{\tilde y_s}{p_s},
              \qquad \tilde y_s = \frac{1}{|V|} \sum_{i \in V} \hat y_{i,s}

    ``logits``: n x k, of *every* node. ``prior``: :math:`p`, the share of each class, above 0; with equal shares this is, but for a
    constant, the part of :func:`mutual_information` that has the :math:`\lambda`.

    >>> import torch
    >>> class_prior(torch.zeros(3, 2), torch.tensor([0.5, 0.5]))
    tensor(0.)
    >>> class_prior(torch.zeros(3, 2), torch.tensor([0.8, 0.2]))
    tensor(0.2231)
    """
    mean, log_mean = mean_prediction(log_softmax_by_class(logits).exp())
    return torch.dot(mean, log_mean - prior.to(mean).log())


def estimated_prior(confusion: Tensor, mean: Tensor) -> Tensor:
    r"""The shares that explain what a network predicts of all nodes, given how it confuses the classes (Lipton et al. 2018).

    .. math:: p = \arg\min_p \| C p - \tilde y \|^2 + \epsilon \| p - \tfrac{1}{k} \|^2

    ``confusion``: :math:`C_{rs}`, the mean probability of class r over the nodes of class s. No share is less than a tenth of an equal one.

    >>> import torch
    >>> estimated_prior(torch.tensor([[0.9, 0.3], [0.1, 0.7]]), torch.tensor([0.48, 0.52]))  # 0.3 of the first: 0.9 * 0.3 + 0.3 * 0.7
    tensor([0.3055, 0.6945])
    """
    k = len(mean)
    equal = torch.full_like(mean, 1.0 / k)
    normal = confusion.T @ confusion + RIDGE * torch.eye(k, dtype=mean.dtype, device=mean.device)
    found = equal + torch.linalg.solve(normal, confusion.T @ (mean - confusion @ equal))
    found = found.clamp_min(LEAST / k)
    return found / found.sum()


class ClassPrior(nn.Module):
    """:func:`class_prior` for one fold of a graph, with the shares given, or estimated while the network learns.

    Labels are often drawn with equally many of each class, so how many there are says nothing of the graph. What does is how the network
    confuses the classes on the *validation* nodes, and what it predicts of all nodes: :func:`estimated_prior` of running means of both.
    Nodes of one class must be alike in and out of validation; how many of a class are there does not matter. A class that is not
    there at all counts as never confused. This is the only use that training makes of validation labels: k numbers.
    """

    prior: Tensor | None
    nodes: Tensor
    truth: Tensor
    confusion: Tensor
    mean: Tensor
    steps: Tensor

    def __init__(self, graph: Graph, *, fold: int = 0, prior: Sequence[float] | Tensor | None = None):
        super().__init__()
        k = graph.num_classes
        shares = None if prior is None else torch.as_tensor(prior, dtype=torch.float64)
        if shares is not None and not (shares.shape == (k,) and (shares > 0).all() and torch.isfinite(shares).all()):
            raise UsageError(f"The class prior is a share above 0 for each of the {k} classes. Got {shares.tolist()}.")
        self.register_buffer("prior", shares if shares is None else shares / shares.sum())
        nodes = graph.nodes("val", fold)
        if prior is None and not len(nodes):
            raise UsageError(
                f"The class prior is estimated from validation nodes, and fold {fold} of graph {graph.name!r} has none with a label: "
                "set some apart, give the classes' shares as class_prior, or leave out prior."
            )
        truth = nn.functional.one_hot(graph.labels[nodes], k).to(torch.float64)
        self.register_buffer("nodes", nodes, persistent=False)
        self.register_buffer("truth", truth, persistent=False)
        self.register_buffer("confusion", torch.eye(k, dtype=torch.float64))
        self.register_buffer("mean", torch.full((k,), 1.0 / k, dtype=torch.float64))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, views: Sequence[Tensor]) -> Tensor:
        """The term for the n x k logits of each pass: the mean over them. In training, the estimate then moves by one step first."""
        prior = self.prior
        if prior is None:
            if self.training:
                with torch.no_grad():
                    self._carry_on(torch.stack([torch.softmax(logits, dim=1) for logits in views]).mean(0).to(torch.float64))
            prior = estimated_prior(self.confusion, self.mean)
        return torch.stack([class_prior(logits, prior) for logits in views]).mean()

    def _carry_on(self, y: Tensor) -> None:
        """Move the running means: at first they are the means of all steps so far."""
        counts = self.truth.sum(0)
        confusion = torch.where(counts > 0, (y[self.nodes].T @ self.truth) / counts.clamp_min(1.0), torch.eye(len(counts)).to(y))
        rate = max(RATE, 1.0 / (int(self.steps) + 1))
        self.confusion.lerp_(confusion, rate)
        self.mean.lerp_(y.mean(0), rate)
        self.steps += 1
