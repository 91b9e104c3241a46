"""The outcome of a training."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from everynode.batches import Batches, batches_from
from everynode.settings import Settings

if TYPE_CHECKING:
    from everynode.models.model import Model


@dataclass
class TrainingResult:
    """A trained model with the weights of its best validation epoch, and its history.

    Attributes
    ----------
    network : Model
        The trained model, in evaluation mode.
    settings : Settings
        The settings it was trained with.
    classes : tuple
        The class names, in the order of the logits.
    graph_name, graph_digest : str
        The graph it was trained on.
    fold, seed : int
        The fold of the graph's splits, and the seed of all random numbers.
    best_epoch : int
        The epoch (from 0) whose weights these are.
    history : dict of lists
        One value per epoch: each term, ``total``, ``val_loss``, ``val_accuracy``, the monitored
        metric if it is another one, and ``test_accuracy`` if test nodes were given.
    metrics : dict
        The validation values of ``history`` at ``best_epoch``. They do not depend on test nodes.
    seconds : float
        Training time without the time for writing checkpoints.
    interrupted : bool
        Whether Ctrl-C ended the training early.
    batches : Batches or None
        The mini-batches; None: trained on the full graph.

    Examples
    --------
    >>> import everynode as en
    >>> from everynode.datasets import generate
    >>> result = en.train(generate(40, 100, 8, 3), en.Settings(epochs=3, hidden_channels=8))
    >>> result.epochs, len(result.history["val_loss"]), result.interrupted
    (3, 3, False)
    """

    network: Model
    settings: Settings
    classes: tuple[Hashable, ...]
    graph_name: str
    graph_digest: str
    fold: int
    seed: int
    best_epoch: int
    history: dict[str, list[float]] = field(repr=False)
    metrics: dict[str, float]
    seconds: float
    interrupted: bool = False
    batches: Batches | None = None

    @property
    def epochs(self) -> int:
        """Number of completed epochs."""
        return len(self.history["total"])

    @classmethod
    def from_card(cls, network: Model, card: Mapping[str, Any]) -> TrainingResult:
        """Return the result that a model folder holds.

        :func:`~everynode.training.load_model` returns the arguments.
        """
        return cls(
            network=network,
            settings=Settings.from_dict(card["settings"], "model.json"),
            classes=tuple(card["classes"]),
            graph_name=card["graph"]["name"],
            graph_digest=card["graph"]["digest"],
            fold=card["fold"],
            seed=card["seed"],
            best_epoch=card["best_epoch"],
            history=card["history"],
            metrics=card["metrics"],
            seconds=card["seconds"],
            interrupted=card["interrupted"],
            batches=batches_from(card.get("batches")),
        )
