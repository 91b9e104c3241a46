"""Callbacks: functions that follow a training epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol


class Callback(Protocol):
    """A function that is called after every epoch.

    A plain function will do. Trainings that run side by side are in other processes: their epochs
    are reported together, in order, when the training has ended.

    Examples
    --------
    >>> from everynode import NodeClassifier
    >>> from everynode.datasets import generate
    >>> seen = []
    >>> def note(training, epoch, values):
    ...     seen.append((training, epoch, "val_loss" in values))
    >>> model = NodeClassifier("gcn", "ce", settings={"epochs": 2}, verbose=False)
    >>> model = model.fit(generate(60, 120, 8, 3), callbacks=[note])
    >>> seen
    [('ce', 0, True), ('ce', 1, True)]
    """

    def __call__(self, training: str, epoch: int, values: Mapping[str, float], /) -> None:
        """Follow an epoch.

        Parameters
        ----------
        training : str
            The name of the training: the candidate, and its fold and seed if there are several.
        epoch : int
            The epoch, from 0.
        values : mapping of str to float
            Each term, ``total``, ``val_loss``, ``val_accuracy`` and the monitored metric.
        """
        ...


def replay(
    callbacks: Iterable[Callback], training: str, history: Mapping[str, Sequence[float]]
) -> None:
    """Report every epoch of a training that has ended.

    >>> replay([print], "gcn", {"total": [0.5, 0.25]})
    gcn 0 {'total': 0.5}
    gcn 1 {'total': 0.25}
    """
    for callback in callbacks:
        replay_epochs(partial(callback, training), history)


def replay_epochs(
    report: Callable[[int, dict[str, float]], None],
    history: Mapping[str, Sequence[float]],
    start: int = 0,
) -> None:
    """Report the epochs of a history from ``start`` on.

    >>> replay_epochs(print, {"total": [0.5, 0.25]}, start=1)
    1 {'total': 0.25}
    """
    for epoch in range(start, len(next(iter(history.values()), ()))):
        report(epoch, {name: values[epoch] for name, values in history.items()})
