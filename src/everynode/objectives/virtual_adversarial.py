"""Virtual adversarial training: predictions should withstand the worst small step of features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from everynode.errors import UsageError, require
from everynode.graph.sample import Sample
from everynode.models.feature_network import FeatureNetwork
from everynode.models.model import input_features
from everynode.numerics import at_least_single
from everynode.objectives.term import Step, Term, mean_of
from everynode.settings import Settings, check_settings


class VirtualAdversarial(Term):
    r"""The divergence of each prediction from that under an adversarial step of the features.

    The first of GraphVAT's two terms. Feng et al., "Graph Adversarial Training: Dynamically
    Regularizing Based on Graph Structure", 2019, https://arxiv.org/abs/1902.08226:

    .. math:: \mathcal{L}_{VAT} = \frac{1}{|V|} \sum_{i \in V}
              \mathrm{KL}\big(\hat y_i(x) \,\|\, \hat y_i(x + r)\big), \qquad
              r_i = \epsilon \frac{g_i}{\| g_i \|}, \qquad
              g = \nabla_d \sum_{i \in V} \mathrm{KL}\big(\hat y_i(x) \,\|\, \hat y_i(x + d)\big)

    d has a random direction and the length :math:`\xi` in each row. :math:`\hat y(x)` and r are
    constants: no gradient flows through them. x are the features as the model sees them, that is,
    with rows that sum to 1 where the model divides them. The authors' settings:
    :math:`\epsilon` = 1, weight 0.5, :math:`\xi` = 1e-5 on Cora and 1e-6 on Citeseer; a GCN of 16
    channels without dropout, learning rate 0.01, weight decay 5e-4, 400 epochs, stopped after 10
    without improvement. Features become dense, so wide ones take memory.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.
    epsilon : float
        :math:`\epsilon`, the length of the adversarial step.
    xi : float
        :math:`\xi`, the length of the random step.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> graph = generate(20, 40, 8, 3)
    >>> ENC(graph, mi=0, tv=0, cvg=0, terms=[VirtualAdversarial(0.5)]).weights
    {'ce': 1.0, 'vat': 0.5}
    """

    name = "vat"
    needs = frozenset({"model", "every_node"})

    def __init__(
        self, weight: float | None = None, *, epsilon: float = 1.0, xi: float = Settings.vat_xi
    ):
        super().__init__(weight)
        require(epsilon > 0, "epsilon", type(self).__name__, "> 0", epsilon)
        check_settings(type(self).__name__, vat_xi=xi)
        self.epsilon, self.xi = epsilon, xi

    def evaluate(self, step: Step) -> Tensor:
        """Return the mean of the divergence over the passes."""
        self.check_sample(step.sample)
        network = Perturbed(self.name, step)
        values = []
        for logits in step.passes:
            step_of_features = self.direction(network, logits.detach())
            values.append(divergence(logits.detach(), network(step_of_features)).mean())
        return mean_of(values)

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Refuse logits without their model."""
        return self.evaluate(Step([logits], sample))

    def direction(self, network: Perturbed, logits: Tensor) -> Tensor:
        """Return r."""
        with torch.enable_grad():
            d = self.xi * torch.nn.functional.normalize(torch.randn_like(network.features))
            d.requires_grad_()
            (g,) = torch.autograd.grad(divergence(logits, network(d)).sum(), d)
        return self.epsilon * torch.nn.functional.normalize(g, eps=1e-30)


class Perturbed:
    """A model of features whose input may be moved.

    Parameters
    ----------
    term : str
        The name of the term that asks, for the message.
    step : Step
        The step of training, with the model.

    Attributes
    ----------
    model : FeatureNetwork
        The model.
    features : Tensor
        Its input, dense.
    hops : Any
        What it propagates with.
    """

    def __init__(self, term: str, step: Step):
        model = step.model
        if not isinstance(model, FeatureNetwork):
            raise UsageError(
                f"The term {term!r} moves the features of a model such as plain_gcn. Got "
                f"{type(model).__name__}: choose plain_gcn, or set {term} to 0."
            )
        graph = step.sample.graph
        assert graph is not None
        x: Any = input_features(graph, model.normalize_features)
        self.model, self.hops = model, model.hops_of(graph)
        self.features: Tensor = x if isinstance(x, Tensor) else x.to_dense()

    def __call__(self, move: Tensor) -> Tensor:
        """Return the logits with the features moved."""
        return self.model.compute(self.features + move, self.hops)


def divergence(logits: Tensor, others: Tensor) -> Tensor:
    r"""Return :math:`\mathrm{KL}(\hat y \| \hat y')` of each row.

    >>> divergence(torch.tensor([[9.0, 0.0], [0.0, 0.0]]), torch.zeros(2, 2))
    tensor([0.6919, 0.0000])
    """
    dtype = at_least_single(logits.dtype)
    log_y, log_other = (torch.log_softmax(z, 1, dtype=dtype) for z in (logits, others))
    return (log_y.exp() * (log_y - log_other)).sum(1)
