"""Graph adversarial training: a node should agree with neighbors even under the worst step."""

from __future__ import annotations

import torch
from torch import Tensor

from everynode.errors import require
from everynode.graph import Graph
from everynode.graph.replace_edges import random_neighbors
from everynode.graph.sample import Sample
from everynode.objectives.term import Step, Term, mean_of
from everynode.objectives.virtual_adversarial import Perturbed, divergence


class GraphAdversarial(Term):
    r"""The divergence of neighbors from a node whose features take an adversarial step.

    The second of GraphVAT's two terms. Feng et al., "Graph Adversarial Training: Dynamically
    Regularizing Based on Graph Structure", 2019, https://arxiv.org/abs/1902.08226:

    .. math:: \mathcal{L}_{GAT} = \frac{1}{|V| m} \sum_{i \in V} \sum_{j \in M_i}
              \mathrm{KL}\big(\hat y_j(x) \,\|\, \hat y_i(x + r)\big), \qquad
              r_i = \epsilon \frac{g_i}{\| g_i \|}, \qquad
              g = \nabla_x \sum_{i \in V} \sum_{j \in M_i}
              \mathrm{KL}\big(\hat y_j(x) \,\|\, \hat y_i(x)\big)

    :math:`M_i` are m neighbors of i, drawn with replacement in each step; a node without neighbors
    is its own. :math:`\hat y_j(x)` and r are constants: no gradient flows through them. The
    authors' settings: m = 2, :math:`\epsilon` = 0.01; weight 1 on Cora and 0.5 on Citeseer, beside
    the term ``vat`` (:class:`~everynode.objectives.virtual_adversarial.VirtualAdversarial`).

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.
    epsilon : float
        :math:`\epsilon`, the length of the adversarial step.
    neighbors : int
        m.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> graph = generate(20, 40, 8, 3)
    >>> ENC(graph, mi=0, tv=0, cvg=0, terms=[GraphAdversarial(0.5)]).weights
    {'ce': 1.0, 'graph_adversarial': 0.5}
    """

    name = "graph_adversarial"
    needs = frozenset({"model", "edges", "every_node"})

    def __init__(self, weight: float | None = None, *, epsilon: float = 0.01, neighbors: int = 2):
        super().__init__(weight)
        require(epsilon > 0, "epsilon", type(self).__name__, "> 0", epsilon)
        require(neighbors >= 1, "neighbors", type(self).__name__, ">= 1", neighbors)
        self.epsilon, self.neighbors = epsilon, neighbors

    def evaluate(self, step: Step) -> Tensor:
        """Return the mean of the divergence over the passes."""
        self.check_sample(step.sample)
        network = Perturbed(self.name, step)
        assert step.sample.graph is not None
        values = []
        for logits in step.passes:
            drawn = self.draw(step.sample.graph)
            moved = network(self.direction(network, logits.detach(), drawn))
            values.append(_from_neighbors(logits.detach(), moved, drawn).mean())
        return mean_of(values)

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Refuse logits without their model."""
        return self.evaluate(Step([logits], sample))

    def draw(self, graph: Graph) -> Tensor:
        """Return random neighbors of every node, m x n."""
        nodes = torch.arange(graph.num_nodes, device=graph.labels.device)
        arcs, n = graph.edge_index, graph.num_nodes
        return torch.stack([random_neighbors(arcs, nodes, n) for _ in range(self.neighbors)])

    def direction(self, network: Perturbed, logits: Tensor, drawn: Tensor) -> Tensor:
        """Return r."""
        with torch.enable_grad():
            move = torch.zeros_like(network.features).requires_grad_()
            away = _from_neighbors(logits, network(move), drawn).sum()
            (g,) = torch.autograd.grad(away, move)
        return self.epsilon * torch.nn.functional.normalize(g, eps=1e-30)


def _from_neighbors(logits: Tensor, others: Tensor, drawn: Tensor) -> Tensor:
    """Return the divergence of each node's drawn neighbors from its row of ``others``, m x n."""
    return torch.stack([divergence(logits[nodes], others) for nodes in drawn])
