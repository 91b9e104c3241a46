"""Neighbor consistency: neighbors should agree with their sharpened mean (NASA)."""

from __future__ import annotations

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.graph.sample import Sample
from everynode.numerics import at_least_single
from everynode.objectives.term import Step, Term, mean_of
from everynode.settings import Settings, check_settings


def neighbor_consistency(
    logits: Tensor, graph: Graph, *, temperature: float = Settings.neighbor_temperature
) -> Tensor:
    r"""Return the divergence of the predictions of neighbors from their sharpened mean.

    Bo et al., "Regularizing Graph Neural Networks via Consistency-Diversity Graph Augmentations",
    2022, https://ojs.aaai.org/index.php/AAAI/article/view/20307 (NASA):

    .. math:: \mathcal{L}_{CR} = \frac{1}{|V|} \sum_{i \in V} \frac{1}{|\tilde N_i|}
              \sum_{j \in \tilde N_i} \mathrm{KL}(t_i \,\|\, \hat y_j), \qquad
              t_{i,s} = \frac{\bar y_{i,s}^{1/T}}{\sum_r \bar y_{i,r}^{1/T}}, \qquad
              \bar y_i = \frac{1}{|\tilde N_i|} \sum_{j \in \tilde N_i} \hat y_j

    :math:`\tilde N_i` are the neighbors of i and i itself, in the graph that the pass saw; weights
    of edges weigh the means. The targets :math:`t` are constants: no gradient flows through them.
    The authors' settings: a GCN of 32 channels, learning rate 0.01, weight decay 1e-3, 500 epochs,
    half of the neighbors replaced (``replace_edges=0.5``); on Cora weight 1, T = 0.5, dropout 0.7;
    on Citeseer 1, 0.5 and 0.1; on Pubmed 0.5, 0.2 and 0.5.

    Parameters
    ----------
    logits : Tensor
        n x k, of *every* node.
    graph : Graph
        The graph.
    temperature : float
        :math:`T`; a lower one asks for more confidence.

    Examples
    --------
    >>> import torch
    >>> graph = Graph.from_arrays(torch.eye(2), [[0], [1]], [0, 1])
    >>> neighbor_consistency(torch.tensor([[9.0, 0.0], [9.0, 0.0]]), graph)
    tensor(0.0001)
    >>> neighbor_consistency(torch.tensor([[9.0, 0.0], [0.0, 9.0]]), graph)
    tensor(3.8070)
    """
    check_settings("NeighborConsistency", neighbor_temperature=temperature)
    log_y = torch.log_softmax(logits, 1, dtype=at_least_single(logits.dtype))
    mean = graph.mean_operator
    if mean.dtype != log_y.dtype or mean.values.device != log_y.device:
        mean = mean.to(log_y.dtype).to(log_y.device)
    with torch.no_grad():
        y_bar = (mean @ log_y.exp()).clamp_min(torch.finfo(log_y.dtype).tiny)
        log_t = torch.log_softmax(y_bar.log() / temperature, 1)
        target = log_t.exp()
        entropy = -(target * log_t).sum(1)
    return (-(target * (mean @ log_y)).sum(1) - entropy).mean()


class NeighborConsistency(Term):
    """:func:`neighbor_consistency` as a term. It needs every node at once.

    With ``replace_edges`` (:func:`~everynode.graph.replace_edges.replace_edges`), the neighbors are
    those of the graph that the pass saw.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.
    temperature : float
        See :func:`neighbor_consistency`.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[NeighborConsistency()])
    >>> objective.weights
    {'ce': 1.0, 'neighbor_consistency': 1.0}
    """

    name = "neighbor_consistency"
    needs = frozenset({"edges", "every_node"})

    def __init__(
        self, weight: float | None = None, *, temperature: float = Settings.neighbor_temperature
    ):
        super().__init__(weight)
        check_settings("NeighborConsistency", neighbor_temperature=temperature)
        self.temperature = temperature

    def evaluate(self, step: Step) -> Tensor:
        """Return the mean over the passes, each on the graph that it saw."""
        self.check_sample(step.sample)
        assert step.sample.graph is not None
        graphs = step.graphs or [step.sample.graph] * len(step.passes)
        pairs = zip(step.passes, graphs, strict=True)
        return mean_of([neighbor_consistency(z, g, temperature=self.temperature) for z, g in pairs])

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Return the term for the n x k logits of one pass on the whole graph."""
        return self.evaluate(Step([logits], sample))
