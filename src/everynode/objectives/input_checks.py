"""Checks of what a training loop passes to an objective: logits, and the model that gave them."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from everynode.errors import UsageError

#: Rows sum to 1 within this tolerance if they are probabilities.
TOLERANCE = 1e-4


def warn_of_probabilities(logits: Tensor) -> None:
    """Warn if the rows are probabilities: a softmax is part of the objective."""
    values = logits.detach()
    if values.shape[1] < 2 or not len(values) or not bool((values >= 0).all()):
        return
    if bool(((values.sum(1) - 1).abs() < TOLERANCE).all()):
        warnings.warn(
            "The logits look like probabilities: every row is positive and sums to 1. ENC applies "
            "the softmax itself, so pass the output of the last layer without one.",
            stacklevel=5,
        )


def refuse_unrelated_model(logits: Tensor, model: Any) -> None:
    """Refuse a model whose parameters did not contribute to the logits."""
    if not isinstance(model, nn.Module) or logits.grad_fn is None:
        return
    trained = {id(parameter) for parameter in model.parameters() if parameter.requires_grad}
    leaves = _leaves(logits)
    if trained and leaves and not trained & leaves:
        raise UsageError(
            f"The model of ENC ({type(model).__name__}) did not give these logits: they depend on "
            "none of its parameters. Pass the model that computed them."
        )


def _leaves(logits: Tensor) -> set[int]:
    """Return the ids of the parameters that the logits were computed from."""
    found, seen, todo = set(), set(), [logits.grad_fn]
    while todo:
        node: Any = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(getattr(node, "variable", None), torch.Tensor):
            found.add(id(node.variable))
        todo += [following for following, _ in node.next_functions]
    return found
