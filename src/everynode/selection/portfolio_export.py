"""Export of the portfolio's ensemble as a program that runs without everynode."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from everynode.errors import UsageError
from everynode.evaluation.contrast import with_contrast
from everynode.graph.preparation import PREPARATIONS
from everynode.models.export import export_program
from everynode.models.model import Model
from everynode.selection.portfolio_ensemble import Member, PortfolioEnsemble

#: Preparations in plain torch operations on the rows of a matrix.
PORTABLE = ("raw", "row", "tfidf", "log", "standardize")


class PortableMember(nn.Module):
    """Features and edges to the calibrated log-probabilities of a member.

    Parameters
    ----------
    member : Member
        A member of the ensemble. Refused if its model or its preparation cannot be exported.

    Attributes
    ----------
    folds : nn.ModuleList
        The networks of each fold.
    preparation : str
        The preparation of the features, by name.
    temperature : float
        Divides the log-probabilities of the member.
    """

    def __init__(self, member: Member):
        super().__init__()
        name = member.preparation.name
        if name not in PORTABLE:
            raise UsageError(
                f"The ensemble cannot be exported: its member {member.candidate.name} prepares "
                f"features by {name}. Save the ensemble, or name a backbone."
            )
        for result in member.results:
            result.network.check_export()
        self.preparation, self.temperature = name, member.temperature
        for key, value in member.preparation.tensors.items():
            self.register_buffer(f"prepared_{key}", value)
        self._keys = tuple(member.preparation.tensors)
        folds = sorted({result.fold for result in member.results})
        self.folds = nn.ModuleList(
            nn.ModuleList(result.network for result in member.results if result.fold == fold)
            for fold in folds
        )

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Return the n x k log-probabilities."""
        learned = {key: cast(Tensor, getattr(self, f"prepared_{key}")) for key in self._keys}
        prepared = PREPARATIONS[self.preparation].transform(x, learned)
        assert isinstance(prepared, Tensor)
        each = []
        for networks in self.folds:
            logs = [
                torch.log_softmax(cast(Model, one).export(prepared, edge_index, edge_weight), dim=1)
                for one in cast(nn.ModuleList, networks)
            ]
            mean = torch.logsumexp(torch.stack(logs), dim=0) - math.log(len(logs))
            each.append(torch.log_softmax(mean / self.temperature, dim=1))
        return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))


class PortableEnsemble(nn.Module):
    """Features and edges to probabilities, with plain torch operations.

    Parameters
    ----------
    ensemble : PortfolioEnsemble
        The fitted ensemble.
    temperature : float
        Divides the log-probabilities of the ensemble.

    Attributes
    ----------
    members : nn.ModuleList of PortableMember
        The members.
    log_weights : list of float
        The logarithm of each member's weight.
    shift : Tensor
        What the logit of each class gains.
    contrast : float
        The contrast of the mean probabilities.
    num_features : int
        Input columns.
    """

    def __init__(self, ensemble: PortfolioEnsemble, temperature: float = 1.0):
        super().__init__()
        self.members = nn.ModuleList(PortableMember(member) for member in ensemble)
        self.log_weights = [math.log(member.weight) for member in ensemble]
        self.register_buffer("shift", torch.tensor(ensemble.shift or (0.0,)))
        self.num_features = ensemble.num_features
        self.temperature, self.contrast = temperature, ensemble.contrast

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Return the n x k probabilities; see :class:`everynode.models.export.Portable`."""
        each = [
            member(x, edge_index, edge_weight) + weight
            for member, weight in zip(self.members, self.log_weights, strict=True)
        ]
        log_p = with_contrast(torch.logsumexp(torch.stack(each), dim=0), self.contrast)
        return torch.softmax((log_p + cast(Tensor, self.shift)) / self.temperature, dim=1)

    def export(self, file: Path) -> None:
        """Write a program for ``torch.export.load`` that takes graphs of any size."""
        export_program(self, self.num_features, file)
