"""Model loss: the loss that a model itself brings, such as the links of superGAT."""

from __future__ import annotations

from torch import Tensor

from everynode.errors import UsageError
from everynode.graph.sample import Sample
from everynode.objectives.term import Step, Term


class ModelLoss(Term):
    r"""The loss that a model brings as its method ``own_loss()``, as a term.

    .. math:: \mathcal{L}_{model} = \mathrm{own\_loss}(\theta)

    superGAT brings the cross-entropy of its links (https://openreview.net/forum?id=Wi5KUNlqWty),
    EGNN the distance of its weights from the identity (https://arxiv.org/abs/2107.02392). A model
    without one is refused.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[ModelLoss(0.5)])
    >>> objective.weights
    {'ce': 1.0, 'model_loss': 0.5}
    """

    name = "model_loss"
    needs = frozenset({"model", "every_node"})

    def evaluate(self, step: Step) -> Tensor:
        """Return the loss of the step's model, after its last pass."""
        self.check_sample(step.sample)
        own_loss = getattr(step.model, "own_loss", None)
        if own_loss is None:
            raise UsageError(
                f"The term {self.name!r} needs a model that brings a loss, such as supergat or "
                f"egnn. Got {type(step.model).__name__}: choose one of them, or set {self.name} "
                "to 0."
            )
        loss: Tensor = own_loss()
        return loss

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Refuse logits without their model."""
        return self.evaluate(Step([logits], sample))
