"""The loss that a model brings is weighed as any other term."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everynode import ENC
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.objectives.model_loss import ModelLoss


class Short(nn.Linear):
    """A linear model that wants small weights."""

    def own_loss(self):
        return self.weight.square().sum()


def test_it_is_the_loss_of_the_model() -> None:
    graph, model = generate(20, 40, 8, 3), Short(8, 3)
    objective = ENC(graph, ce=0.0, mi=0, tv=0, cvg=0, model_loss=0.5)
    objective(model(graph.dense_features), model).backward()
    torch.testing.assert_close(model.weight.grad, model.weight.detach())


def test_a_model_without_a_loss_is_refused() -> None:
    graph, model = generate(20, 40, 8, 3), nn.Linear(8, 3)
    objective = ENC(graph, mi=0, tv=0, cvg=0, terms=[ModelLoss()])
    with pytest.raises(UsageError, match=r"needs a model that brings a loss.* Got Linear"):
        objective(model(graph.dense_features), model)
