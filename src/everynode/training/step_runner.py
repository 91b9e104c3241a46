"""The protocol of what trains within the loop: full batch, mini-batches, or closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import nn

    from everynode.models.model import Model
    from everynode.training.adam import Adam


class StepRunner(Protocol):
    """Runs the steps of an epoch: one on the whole graph, or several on mini-batches.

    Attributes
    ----------
    steps : int
        Steps of an epoch.
    most_epochs : float
        Epochs after which there is nothing left to train.
    layer_bytes : int
        Size of the values of one layer, for :func:`~everynode.training.memory.reused_memory`.
    step : int
        Steps done in the current epoch.
    sums : dict
        Sum of each term, and of ``total``, over these steps.
    """

    steps: int
    layer_bytes: int
    most_epochs: float
    step: int
    sums: dict[str, float]

    @property
    def network(self) -> Model:
        """The model in training."""
        ...

    @property
    def objective(self) -> nn.Module:
        """The loss."""
        ...

    @property
    def optimizer(self) -> Adam:
        """The optimizer."""
        ...

    def advance(self, epoch: int) -> None:
        """Take the next step of this epoch."""
        ...

    def validate(self) -> dict[str, float]:
        """Return ``val_loss``, ``val_accuracy`` and other values for the history."""
        ...
