"""Label loss: edge weights should propagate the labels of the training nodes (GCN-LPA)."""

from __future__ import annotations

import torch
from torch import Tensor

from everynode.errors import UsageError
from everynode.graph.sample import Sample
from everynode.objectives.term import Step, Term
from everynode.settings import Settings, check_settings
from everynode.sparse import spmm


class LabelLoss(Term):
    r"""The cross-entropy of labels that the model's edge weights propagate; for ``gcn_lpa``.

    Wang and Leskovec, "Unifying Graph Convolutional Neural Networks and Label Propagation", 2020,
    https://arxiv.org/abs/2002.06755:

    .. math:: \mathcal{L}_{LPA} = -\frac{1}{|V_l|} \sum_{i \in V_l} \log y^{(K)}_{i, c_i},
              \qquad y^{(t+1)} = A^* y^{(t)}

    :math:`y^{(0)}` holds the one-hot labels :math:`c_i` of the training nodes :math:`V_l`, and 1/k
    for every other node. The authors' code (``src/model.py``) takes the loss over the labels of
    *all* nodes, test nodes included, and applies a softmax to y; here it has the training nodes
    and y itself, as in the paper.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.
    steps : int
        Number K of steps.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[LabelLoss(5.0)])
    >>> objective.weights
    {'ce': 1.0, 'lpa': 5.0}
    """

    name = "lpa"
    needs = frozenset({"model", "edges", "every_node"})

    def __init__(self, weight: float | None = None, *, steps: int = Settings.lpa_steps):
        super().__init__(weight)
        check_settings("LabelLoss", lpa_steps=steps)
        self.steps = steps

    def evaluate(self, step: Step) -> Tensor:
        """Return the loss of the propagated labels."""
        sample = step.sample
        self.check_sample(sample)
        edge_weights = getattr(step.model, "edge_weights", None)
        if edge_weights is None:
            raise UsageError(
                f"The term {self.name!r} needs a model with a weight for each edge. Got "
                f"{type(step.model).__name__}: choose the model gcn_lpa, or set {self.name} to 0."
            )
        assert sample.graph is not None
        values, k = edge_weights(sample.graph), step.passes[0].shape[1]
        y = values.new_full((sample.num_nodes, k), 1 / k)
        y[sample.labeled] = torch.nn.functional.one_hot(sample.labels, k).to(y)
        for _ in range(self.steps):
            y = spmm(sample.graph.looped_adjacency.pattern, values, y)
        return -y[sample.labeled, sample.labels].clamp_min(1e-30).log().mean()

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Refuse logits without their model."""
        return self.evaluate(Step([logits], sample))
