"""The fitted ensemble of the portfolio: weighted, calibrated members, each with its preparation."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from everynode.errors import DataError
from everynode.evaluation.calibration import LEAST_TO_COMPARE, HeldOut, nodes_without
from everynode.evaluation.contrast import contrast, with_contrast
from everynode.evaluation.intervals import wilson
from everynode.graph import Graph
from everynode.graph.preparation import FittedPreparation
from everynode.selection.candidate import Candidate
from everynode.selection.class_shares import class_shift, drawn_by_class
from everynode.selection.closed_form_refit import solve_on_all
from everynode.selection.ensemble import log_means_by_fold, log_probabilities_by_fold
from everynode.selection.graph_gain import GraphGain
from everynode.selection.greedy_ensemble import calibrated, combine, ensemble_weights
from everynode.selection.leaderboard import NO_TIME, Leaderboard, LeaderboardRow
from everynode.selection.race import Race
from everynode.settings import Settings
from everynode.storage.atomic import write_atomically
from everynode.storage.json_text import parse_json
from everynode.training import load_model, save_model
from everynode.training.closed_form import is_closed_form
from everynode.training.mini_batch.inference import embedding
from everynode.training.model_card import card_digest, check_finite, check_member
from everynode.training.result import TrainingResult


@dataclass(frozen=True)
class Member:
    """A candidate in the ensemble.

    Parameters
    ----------
    candidate : Candidate
        The candidate.
    preparation : FittedPreparation
        The scaling of its features.
    results : tuple of TrainingResult
        Its networks: one or more per fold, or a single one that learned from all labels.
    temperature : float
        The divisor of its logits.
    weight : float
        Its weight.
    judges : tuple of TrainingResult
        The networks of the folds. They chose the temperature, and are not saved.
    """

    candidate: Candidate
    preparation: FittedPreparation
    results: tuple[TrainingResult, ...]
    temperature: float
    weight: float
    judges: tuple[TrainingResult, ...] = ()

    @torch.no_grad()
    def log_probabilities(self, graph: Graph, nodes: Tensor | None) -> Tensor:
        """Return the log of the mean calibrated probabilities of a prepared graph.

        The temperature was chosen for the mean of the networks of a fold, so it divides that.
        """
        return self._mean(self._calibrated(self.results, graph, nodes))

    def from_logits(self, logits: Sequence[Tensor]) -> Tensor:
        """Return the same from the logits of :attr:`results`, in their order."""
        by_fold = log_means_by_fold([result.fold for result in self.results], logits)
        return self._mean([torch.log_softmax(one / self.temperature, dim=1) for one in by_fold])

    @staticmethod
    def _mean(each: Sequence[Tensor]) -> Tensor:
        """Return the logarithm of the mean probabilities of the folds."""
        return torch.logsumexp(torch.stack(list(each)), dim=0) - math.log(len(each))

    def by_fold(self, graph: Graph, nodes: Tensor | None) -> list[Tensor]:
        """Return the calibrated log-probabilities of each fold of a prepared graph."""
        return self._calibrated(self.judges or self.results, graph, nodes)

    def _calibrated(
        self, results: Sequence[TrainingResult], graph: Graph, nodes: Tensor | None
    ) -> list[Tensor]:
        """Return the calibrated log-probabilities of networks, fold by fold."""
        each = log_probabilities_by_fold(results, graph, nodes)
        for result in results:
            result.network.clear_cache()
        return [torch.log_softmax(together / self.temperature, dim=1) for together in each]

    def save(self, folder: Path) -> None:
        """Write the networks, the preparation and the description of the member."""
        candidate = self.candidate
        card: dict[str, Any] = {
            "candidate": candidate.name, "uses": candidate.uses, "weight": self.weight,
            "temperature": self.temperature, "networks": len(self.results),
            "preparation": self.preparation.to_dict(), "for_new_nodes": candidate.for_new_nodes,
        }  # fmt: skip
        tensors = {k: v.contiguous() for k, v in self.preparation.tensors.items()}
        learned = save(tensors)
        write_atomically(folder / "preparation.safetensors", learned)
        for number, result in enumerate(self.results, start=1):
            save_model(folder / str(number), result)
        card["weights_sha256"] = hashlib.sha256(learned).hexdigest()
        card["digest"] = card_digest(card)
        write_atomically(folder / "member.json", json.dumps(card, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> Member:
        """Read a member that :meth:`save` wrote."""
        try:
            card = parse_json((folder / "member.json").read_text(encoding="utf-8"))
            learned = (folder / "preparation.safetensors").read_bytes()
            tensors = load(learned)
            check_member(card, learned, folder / "member.json")
            check_finite(tensors, folder / "preparation.safetensors")
        except (OSError, ValueError, SafetensorError) as error:
            raise DataError(
                f"{folder} is not a member of an ensemble ({error}): restore the folder."
            ) from error
        results = tuple(
            TrainingResult.from_card(*load_model(folder / str(number)))
            for number in range(1, card["networks"] + 1)
        )
        preparation = FittedPreparation.from_dict(card["preparation"], tensors)
        settings: Settings = results[0].settings
        candidate = Candidate(
            card["candidate"], settings, preparation.name, card["uses"], card["for_new_nodes"]
        )
        return cls(
            candidate, preparation, results, float(card["temperature"]), float(card["weight"])
        )


@dataclass(frozen=True)
class PortfolioEnsemble:
    """The weighted ensemble of the best candidates.

    Parameters
    ----------
    members : tuple of Member
        The members, the largest weight first.
    num_nodes, num_features : int
        The number of nodes and of features of the training graph.
    shift : tuple of float
        What the logit of each class gains, because its share among the unlabeled nodes is larger
        than among the labels; see :mod:`.class_shares`. Empty: nothing.
    contrast : float
        The contrast of the mean probabilities
        (:func:`~everynode.evaluation.contrast.with_contrast`).
    """

    members: tuple[Member, ...]
    num_nodes: int
    num_features: int
    shift: tuple[float, ...] = ()
    contrast: float = 0.0

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)

    @property
    def results(self) -> list[TrainingResult]:
        """All networks, those of the first member first."""
        return [result for member in self.members for result in member.results]

    def usable(self, graph: Graph) -> tuple[Member, ...]:
        """Return the members that can predict a graph; warn if some cannot."""
        if graph.num_nodes == self.num_nodes:
            return self.members
        usable = tuple(member for member in self.members if member.candidate.for_new_nodes)
        left_out = [m.candidate.name for m in self.members if m not in usable]
        if not usable:
            raise DataError(
                f"{', '.join(left_out)} cannot predict nodes outside the training graph: fit again "
                "with for_new_nodes=True (--for-new-nodes)."
            )
        if left_out:
            warnings.warn(
                f"{', '.join(left_out)} cannot predict nodes outside the training graph, and the "
                "other members predict without it. Fit with for_new_nodes=True to avoid this.",
                stacklevel=6,
            )
        return usable

    def log_probabilities(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """Return the log of the weighted mean probabilities, shifted (n x k, float64)."""
        return self.shifted(self.unshifted(graph, nodes))

    def shifted(self, log_p: Tensor) -> Tensor:
        """Return log-probabilities after the shift of the classes."""
        if not self.shift:
            return log_p
        return torch.log_softmax(log_p + torch.tensor(self.shift).to(log_p), dim=1)

    def unshifted(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """Return the log of the weighted mean probabilities, with contrast.

        They are for nodes whose class shares are those of the labels.
        """
        members = self.usable(graph)
        prepared: dict[str, Graph] = {}
        each = []
        for member in members:
            name = member.preparation.name
            if name not in prepared:
                prepared[name] = member.preparation.apply(graph)
            each.append(member.log_probabilities(prepared[name], nodes))
        return self.together(members, each)

    def together(self, members: Sequence[Member], each: Sequence[Tensor]) -> Tensor:
        """Return the log of the weighted mean probabilities of some members, with contrast."""
        weights = np.array([member.weight for member in members])
        mean = combine(torch.stack(list(each)), weights / weights.sum())
        return with_contrast(mean, self.contrast)

    def by_fold(self, graph: Graph, nodes: Tensor | None) -> list[Tensor]:
        """Return the unshifted log-probabilities of each fold that all members have.

        A member that was solved on all labels is replaced by its networks of the folds. A loaded
        one has none, and serves every fold.
        """
        members = [m.by_fold(m.preparation.apply(graph), nodes) for m in self.members]
        folds = min((len(each) for each in members if len(each) > 1), default=1)
        weights = np.array([member.weight for member in self.members])
        means = (
            combine(torch.stack([each[min(fold, len(each) - 1)] for each in members]), weights)
            for fold in range(folds)
        )
        return [with_contrast(mean, self.contrast) for mean in means]

    def embed(self, graph: Graph) -> Tensor:
        """Return one vector per node, of the first network of the first member."""
        first = self.members[0]
        return embedding(first.results[0].network, first.preparation.apply(graph))

    def save(self, folder: Path) -> None:
        """Write each member into its own folder."""
        for number, member in enumerate(self.members, start=1):
            member.save(folder / "members" / str(number))

    @classmethod
    def load(
        cls,
        folder: Path,
        count: int,
        num_nodes: int,
        num_features: int,
        shift: Sequence[float] = (),
        contrast: float = 0.0,
    ) -> PortfolioEnsemble:
        """Read ``count`` members."""
        members = (Member.load(folder / "members" / str(i)) for i in range(1, count + 1))
        moved = tuple(map(float, shift))
        return cls(tuple(members), num_nodes, num_features, moved, contrast)


@dataclass(frozen=True)
class Selection:
    """The outcome of the portfolio.

    Parameters
    ----------
    ensemble : PortfolioEnsemble
        The ensemble.
    leaderboard : Leaderboard
        Every candidate.
    gain : GraphGain
        The gain from the graph.
    held_out : HeldOut
        The out-of-fold predictions of the ensemble.
    """

    ensemble: PortfolioEnsemble
    leaderboard: Leaderboard
    gain: GraphGain
    held_out: HeldOut


def select(race: Race, *, seed: int = 0) -> Selection:
    """Build the ensemble of a race, its leaderboard, and the gain from the graph."""
    names, folds = race.common_folds()
    labels = race.labels(folds)
    log_p = torch.stack([calibrated(race.logits(name, folds), labels)[0] for name in names])
    weights = ensemble_weights(
        log_p, labels, node_weight=race.node_weight(folds), handicap=race.handicap(names, folds),
        seed=seed,
    )  # fmt: skip
    by_name = dict(zip(names, weights.tolist(), strict=True))
    ensemble, held_out = assemble(race, by_name, folds)
    return Selection(ensemble, leaderboard(race, by_name), graph_gain(race), held_out)


def assemble(
    race: Race, weights: dict[str, float], folds: Sequence[int]
) -> tuple[PortfolioEnsemble, HeldOut]:
    """Build the ensemble with these weights, calibrated on its out-of-fold predictions.

    Parameters
    ----------
    race : Race
        The trained candidates.
    weights : dict of str to float
        The weight of each candidate; a weight of 0 leaves it out.
    folds : sequence of int
        The folds that judge.
    """
    labels, nodes, graph = race.labels(folds), race.nodes(folds), race.graph
    members, predicted = [], []
    order = {name: place for place, name in enumerate(weights)}
    for name in sorted(filter(weights.get, weights), key=lambda n: (-weights[n], order[n])):
        candidate = race.candidates[name]
        log_p, divisor = calibrated(race.logits(name, folds), labels)
        preparation = race.preparations[candidate.preparation]
        judges = tuple(
            result.result(graph.classes, graph.name, graph.digest) for result in race.results[name]
        )
        solved = race.all_labels is not None and is_closed_form(candidate.settings)
        results = (solve_on_all(race, name),) if solved else judges
        members.append(Member(candidate, preparation, results, divisor, weights[name], judges))
        predicted.append(log_p)
    together = combine(torch.stack(predicted), np.array([member.weight for member in members]))
    chosen = contrast(together, labels)
    together = with_contrast(together, chosen)
    ensemble = PortfolioEnsemble(
        tuple(members), graph.num_nodes, graph.num_features, contrast=chosen
    )
    taught = torch.cat([part for split in graph.splits for part in split[:2]]).unique()
    others = nodes_without(taught, graph.num_nodes)
    if len(others) >= LEAST_TO_COMPARE and drawn_by_class(graph.labels[taught]):
        shift = class_shift(together, labels, ensemble.unshifted(graph, others).cpu())
        ensemble = dataclasses.replace(ensemble, shift=tuple(shift.tolist()))
    return ensemble, HeldOut(nodes.to(graph.labels.device), together)


def leaderboard(race: Race, weights: dict[str, float]) -> Leaderboard:
    """Return every candidate with its score on the folds that it finished."""
    rows = []
    for name, candidate in race.candidates.items():
        results, folds = race.results.get(name, []), sorted(race.folds(name))
        weight = weights.get(name, 0.0)
        outcome = race.outcomes.get(name, "finalist" if results else NO_TIME)
        accuracy, loss = (
            wilson(0, 1)._replace(value=math.nan, low=math.nan, high=math.nan),
            math.nan,
        )
        if results:
            labels = race.labels(folds)
            right = (race.logits(name, folds).argmax(1) == labels).sum()
            accuracy = wilson(int(right), len(labels))
            loss = float(race.losses([name], folds).mean())
        rows.append(
            LeaderboardRow(
                name,
                candidate.uses,
                accuracy,
                loss,
                sum(r.seconds for r in results),
                len(folds),
                len(results),
                weight,
                "in the ensemble" if weight else outcome,
            )
        )
    order = sorted(rows, key=lambda row: (-row.folds, math.isnan(row.log_loss), row.log_loss))
    return Leaderboard(tuple(order))


def graph_gain(race: Race) -> GraphGain:
    """Compare the best candidates of each kind on the folds that all of them finished."""
    best: dict[str, str] = {}
    for kind in ("features", "graph", "both"):
        names = [n for n, c in race.candidates.items() if c.uses == kind and race.folds(n)]
        most = max((len(race.folds(n)) for n in names), default=0)
        names = [n for n in names if len(race.folds(n)) == most]
        if names:
            best[kind] = min(names, key=lambda n: race.losses([n], sorted(race.folds(n))).mean())
    if "both" not in best:
        return GraphGain.of({}, {}, np.empty(0, np.int64))
    folds = sorted(set.intersection(*(race.folds(name) for name in best.values())))
    labels = race.labels(folds)
    right = {
        kind: (race.logits(name, folds).argmax(1) == labels).numpy() for kind, name in best.items()
    }
    return GraphGain.of(right, best, labels.numpy())
