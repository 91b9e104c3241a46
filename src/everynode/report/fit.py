"""What came out of a fit: predictions, how good and how sure they are, and what there is to look at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from everynode.estimator import NodeClassifier
from everynode.evaluation.calibration import Bin, reliability
from everynode.evaluation.metrics import expected_calibration_error
from everynode.evaluation.predictions import Predictions, predictions
from everynode.evaluation.quality import Score, quality
from everynode.graph import Graph

#: Bins of the reliability diagram: half as many where there are fewer nodes than this.
BINS, FEW = 10, 200
#: Nodes on the map: of more, so many are drawn.
MAP_NODES = 2000
#: Steps of t-SNE.
MAP_STEPS = 500


@dataclass(frozen=True)
class Judged:
    """Nodes whose labels the model is judged by, and what networks that had not learned from them say of them."""

    #: ``test`` or ``validation``.
    name: str
    nodes: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    log_probabilities: Tensor
    temperature: float

    @cached_property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """n x k, as they are given out."""
        return torch.softmax(self.log_probabilities / self.temperature, dim=1).cpu().numpy()

    @cached_property
    def uncalibrated(self) -> npt.NDArray[np.float64]:
        """Without the temperature."""
        return self.log_probabilities.exp().cpu().numpy()

    @property
    def ece_before(self) -> float:
        """The calibration error without the temperature."""
        return expected_calibration_error(
            torch.from_numpy(self.uncalibrated), torch.from_numpy(self.labels)
        )


@dataclass(frozen=True)
class Fit:
    """A trained classifier on its graph, measured."""

    model: NodeClassifier
    graph: Graph
    #: How the labels were shared out, in sentences.
    said: Sequence[str]
    command: str
    predictions: Predictions
    #: The parts by which the model is judged, the most telling first: test (if there is one), validation.
    parts: dict[str, Judged]
    #: By part: each score.
    quality: dict[str, dict[str, Score]]

    @classmethod
    def of(cls, model: NodeClassifier, graph: Graph, said: Sequence[str], command: str) -> Fit:
        """Predict and measure."""
        found = predictions(model, graph)
        test, val = graph.nodes("test"), model.held_out_
        told = {
            "test": (test, model.log_probabilities(graph, test)),
            "validation": (val.nodes, val.log_probabilities),
        }
        parts = {
            name: Judged(
                name,
                nodes.cpu().numpy(),
                graph.labels[nodes].cpu().numpy(),
                said_of_them,
                model.temperature_,
            )
            for name, (nodes, said_of_them) in told.items()
            if len(nodes)
        }
        scores = {name: quality(part.probabilities, part.labels) for name, part in parts.items()}
        return cls(model, graph, said, command, found, parts, scores)

    @property
    def folds(self) -> int:
        """In how many folds labels were held out: 1 is once."""
        return len({fitted.fold for fitted in (self.model.fitted_, *self.model._more)})

    @property
    def judged(self) -> Judged:
        """The part that tells best how good the model is."""
        return next(iter(self.parts.values()))

    @property
    def caution(self) -> str:
        """What the scores are worth, in a sentence."""
        if "test" in self.parts:
            score = self.quality["test"]["accuracy"]
            between = f"{100 * score.low:.1f} to {100 * score.high:.1f} %"
            return f"No choice has seen the test nodes: of new nodes that are like them, expect {between} to be right (95% interval)."
        if self.folds > 1:
            return (
                f"Settings, epochs{' and temperature' * self.model.calibrate} were chosen on these labels, so the numbers are too good for "
                "new nodes; but each label is judged by networks that learned from a part of the others only, so they may be too bad as "
                "well. There is no test part."
            )
        chosen = [
            "epoch",
            *["temperature"] * self.model.calibrate,
            *["shares of the classes"] * bool(self.model.fitted_.settings.prior),
        ]
        what = f"{' and the '.join(chosen)} {'were' if len(chosen) > 1 else 'was'}"
        return f"The {what} chosen on the validation nodes, so these numbers are too good for new nodes; there is no test part."

    def reliability(self) -> dict[str, list[Bin]]:
        """The bins of the reliability diagram on the judged nodes, without and with the temperature."""
        part = self.judged
        both = (
            {"before": part.uncalibrated, "after": part.probabilities}
            if self.model.calibrate
            else {"": part.uncalibrated}
        )
        bins, labels = BINS if len(part.nodes) >= FEW else BINS // 2, torch.from_numpy(part.labels)
        return {name: reliability(torch.from_numpy(p), labels, bins) for name, p in both.items()}

    def uncertain(self, at_most: int) -> npt.NDArray[np.int64]:
        """The nodes that the model is least sure of; unlabelled ones, if there are any."""
        unlabelled = np.array([name is None for name in self.predictions.given])
        nodes = np.flatnonzero(unlabelled if unlabelled.any() else np.ones_like(unlabelled))
        return nodes[np.argsort(self.predictions.probability[nodes], kind="stable")[:at_most]]

    def disagreements(self) -> npt.NDArray[np.int64]:
        """The nodes whose given label is not the predicted one, the surest predictions first."""
        labels = self.predictions.labels
        nodes = np.flatnonzero((labels >= 0) & (labels != self.predictions.predicted))
        return nodes[np.argsort(-self.predictions.probability[nodes], kind="stable")]

    def map(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Some nodes and their places in the plane: t-SNE of what goes into the closing layer. The same seed, the same map."""
        from sklearn.decomposition import PCA
        from sklearn.manifold import TSNE

        seed = self.model.fitted_.seed
        n = self.graph.num_nodes
        nodes = (
            np.arange(n)
            if n <= MAP_NODES
            else np.sort(np.random.default_rng(seed).choice(n, MAP_NODES, replace=False))
        )
        with torch.no_grad():
            x = (
                self.model.network_.embed(self.graph)[torch.from_numpy(nodes)]
                .double()
                .cpu()
                .numpy()
            )
        if len(nodes) < 5 or not (x != x[0]).any():
            return nodes, np.stack([np.arange(len(nodes)), np.zeros(len(nodes))], 1).astype(
                np.float64
            )
        with threadpool_limits(1):  # several threads would add up in another order
            size = min(30, *x.shape)
            x = PCA(size, svd_solver="full").fit_transform(x)
            places = TSNE(
                2, init=x[:, :2] / (x[:, 0].std() or 1.0) * 1e-4 if size > 1 else "random", perplexity=min(30.0, (len(nodes) - 1) / 3),
                max_iter=MAP_STEPS, random_state=seed % 2**32, n_jobs=1,
            ).fit_transform(x)  # fmt: skip
        return nodes, places.astype(np.float64)

    def summary(self) -> dict[str, Any]:
        """Plain values only, for JSON: NaN becomes None."""
        fitted, model = self.model.fitted_, self.model
        scores: dict[str, Any] = {}
        for name, part in self.parts.items():
            made = {
                metric: [None if math.isnan(x) else x for x in score]
                for metric, score in self.quality[name].items()
            }
            scores[name] = {"nodes": len(part.nodes), **made, "ece_before": part.ece_before}
        return {
            "graph": self.graph.name,
            "backbone": fitted.settings.backbone,
            "objective": model.objective_,
            "race": {name: standing.to_dict() for name, standing in model.standings_.items()},
            "seed": fitted.seed,
            "networks": len(model.networks_),
            "folds": self.folds,
            "epochs": fitted.epochs,
            "best_epoch": fitted.best_epoch,
            "best_epochs": model.best_epochs_,
            "monitor": fitted.settings.monitor,
            "seconds": round(fitted.seconds, 3),
            "interrupted": fitted.interrupted,
            "nodes": {
                "all": self.graph.num_nodes,
                **{part: len(self.graph.nodes(part)) for part in ("train", "val", "test")},
            },
            "parts": list(self.said),
            "quality": scores,
            "caution": self.caution,
            "temperature": model.temperature_,
            "disagreements": len(self.disagreements()),
        }
