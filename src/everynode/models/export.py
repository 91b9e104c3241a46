"""Export of fitted models as programs for ``torch.export``, which run without everynode."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from everynode.models.model import Model


class Portable(nn.Module):
    """Features and edges to probabilities, with plain torch operations.

    Averages the probabilities of several models and divides by a temperature. The layers bring
    their own export; a model with a layer that has none is refused. Works for graphs of any size,
    but materializes edges x channels.

    Parameters
    ----------
    models : sequence of Model
        The fitted models.
    temperature : float
        Divides the log-probabilities.

    Examples
    --------
    >>> from everynode.models import GCN
    >>> program = Portable([GCN(8, 3)]).eval()
    >>> edge_index = torch.tensor([[0, 1], [1, 0]])
    >>> program(torch.rand(5, 8), edge_index, torch.ones(2)).shape
    torch.Size([5, 3])
    """

    def __init__(self, models: Sequence[Model], temperature: float = 1.0):
        super().__init__()
        for model in models:
            model.check_export()
        self.models, self.temperature = nn.ModuleList(models), temperature

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Return the n x k probabilities.

        Parameters
        ----------
        x : Tensor
            Dense features, n x c.
        edge_index : Tensor
            PyG's ``edge_index`` (2 x m): both directions of an undirected edge, no self-loops.
        edge_weight : Tensor
            Weight of each column of ``edge_index``; ones for an unweighted graph.
        """
        each = [
            torch.log_softmax(cast(Model, model).export(x, edge_index, edge_weight), dim=1)
            for model in self.models
        ]
        return torch.softmax(torch.logsumexp(torch.stack(each), dim=0) / self.temperature, dim=1)

    def export(self, file: Path) -> None:
        """Write a program for ``torch.export.load`` that takes graphs of any size."""
        export_program(self, cast(Model, self.models[0]).num_features, file)


def export_program(module: nn.Module, num_features: int, file: Path) -> None:
    """Write a module on ``(x, edge_index, edge_weight)`` for graphs of any size."""
    tensors = itertools.chain(module.parameters(), module.buffers())
    like = next(tensor for tensor in tensors if tensor.is_floating_point())
    nodes, edges = torch.export.Dim("nodes", min=2), torch.export.Dim("edges", min=1)
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]], device=like.device)
    example = (like.new_ones(5, num_features), edge_index, like.new_ones(4))
    shapes = ({0: nodes}, {1: edges}, {0: edges})
    program = torch.export.export(module.eval(), example, dynamic_shapes=shapes)
    torch.export.save(program, file)
