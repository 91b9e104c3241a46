"""NodeClassifier: the whole of it in the manner of scikit-learn."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from everynode.datasets.splits import FEW, validation_parts
from everynode.errors import DataError, UsageError, require
from everynode.evaluation.calibration import temperature
from everynode.graph import UNLABELLED, Graph, Split
from everynode.graph.label_encoding import as_row, encode, in_order, unlabelled
from everynode.models.export import Portable
from everynode.presets import entrants
from everynode.progress import Bar, describe
from everynode.selection.ensemble import held_out, mean_log_probabilities, train_more
from everynode.selection.successive_halving import Standing, race
from everynode.settings import Settings
from everynode.training import load_model, save_model
from everynode.training.checkpoint import model_folder
from everynode.training.result import TrainingResult


class NodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A node classifier that learns from every node, labelled or not.

    It takes a :class:`Graph`, or, as scikit-learn does, a feature matrix and labels with the edges beside them::

        NodeClassifier().fit(graph).predict(graph)
        NodeClassifier().fit(X, y, edge_index=edges).predict(X, edge_index=edges)

    In ``y``, -1 (or None, NaN, or empty text) means that a node has no label. Where no validation nodes are given, some labelled ones are
    held out to choose the epoch by. ``cv=1``: a stratified ``validation_fraction`` of them, once. ``cv=3``: a third, three times, so that
    every label teaches two networks and judges the third; what is best over all labels is chosen, and its three networks are averaged.
    ``auto``: 3 with fewer than 100 labels, where a single choice is a lottery (docs/accuracy.md), else 1. With so few labels the folds of a
    race share the epochs of one round, and the patience, unless one is given.

    ``backbone``: gcn, gat or gcnii. ``objective``: ``enc`` (every term that has a weight in the preset), ``ce``, or a sum such as
    ``mi+tv``; ``auto`` starts plain cross-entropy and ENC, each with strong and with light regularisation, side by side and keeps what
    is best on the validation nodes (:func:`everynode.selection.successive_halving.race`), so that on a graph whose neighbours are unlike each other ENC
    does no harm. ``preset``: ``default``, ``paper``, ``tuned``, ``authors`` (which know some graphs only), or a file of ``everynode
    tune``; for it and the parameters that are None by default see :class:`Settings`. ``verbose``: a progress bar; None shows one in a
    terminal only.
    ``random_state``: the seed of weights, dropout, halves and hold-out. ``n_estimators``: how many networks are trained (of each fold),
    with seeds one after the other, and their probabilities averaged; five gained half a point to a point and a half on Cora and Citeseer
    (docs/accuracy.md), at five times the price.

    ``monitor``: what the epoch is chosen by on the validation nodes (``accuracy``, ``macro_f1``, ``balanced_accuracy``, ``auc`` or
    ``loss``). ``class_weight="balanced"``: rare classes weigh as much as common ones. ``calibrate``: divide the logits by a temperature
    chosen on the validation nodes, so that probabilities mean what they say (see :func:`everynode.evaluation.calibration.temperature`); which
    class is predicted does not change.

    After ``fit``: ``classes_``, ``n_features_in_``; of the first network ``network_``, ``history_`` (per epoch), ``best_epoch_`` and
    ``n_iter_``, of all ``networks_`` and ``best_epochs_``; ``objective_`` (the one that won), ``standings_`` (how each came off),
    ``held_out_`` (what networks that had not learned their classes say of the validation nodes), ``temperature_`` (1 without
    ``calibrate``) and ``feature_encoder_`` (how columns became features, if the graph was read from files).

    >>> import everynode as en
    >>> graph = en.load("citeseer")
    >>> model = NodeClassifier(objective="tv", epochs=20).fit(graph)
    >>> model.predict_proba(graph).shape
    (3327, 6)
    """

    def __init__(
        self,
        backbone: str = "gcn",
        objective: str = "auto",
        *,
        preset: str = "default",
        num_layers: int | None = None,
        hidden_channels: int | None = None,
        dropout: float | None = None,
        layer_dropout: float | None = None,
        normalize_features: bool | None = None,
        gcnii_alpha: float | None = None,
        gcnii_lambda: float | None = None,
        mi: float | None = None,
        mi_lambda: float | None = None,
        tv: float | None = None,
        tv_sigma: float | None = None,
        tv_gate: str | None = None,
        cvg: float | None = None,
        halves: str | None = None,
        cvg_every: int | None = None,
        consistency: float | None = None,
        consistency_temperature: float | None = None,
        prior: float | None = None,
        preg: float | None = None,
        lr_gnn: float | None = None,
        lr: float | None = None,
        weight_decay_gnn: float | None = None,
        weight_decay: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        class_weight: str | None = None,
        monitor: str | None = None,
        calibrate: bool = False,
        validation_fraction: float = 0.2,
        cv: int | Literal["auto"] = "auto",
        n_estimators: int = 1,
        random_state: int = 0,
        verbose: bool | None = None,
    ):
        self.backbone = backbone
        self.objective = objective
        self.preset = preset
        self.num_layers = num_layers
        self.hidden_channels = hidden_channels
        self.dropout = dropout
        self.layer_dropout = layer_dropout
        self.normalize_features = normalize_features
        self.gcnii_alpha = gcnii_alpha
        self.gcnii_lambda = gcnii_lambda
        self.mi = mi
        self.mi_lambda = mi_lambda
        self.tv = tv
        self.tv_sigma = tv_sigma
        self.tv_gate = tv_gate
        self.cvg = cvg
        self.halves = halves
        self.cvg_every = cvg_every
        self.consistency = consistency
        self.consistency_temperature = consistency_temperature
        self.prior = prior
        self.preg = preg
        self.lr_gnn = lr_gnn
        self.lr = lr
        self.weight_decay_gnn = weight_decay_gnn
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.class_weight = class_weight
        self.monitor = monitor
        self.calibrate = calibrate
        self.validation_fraction = validation_fraction
        self.cv = cv
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.verbose = verbose

    def _entrants(self, graph: Graph) -> dict[str, Settings]:
        """The settings to train with, by the name of the objective: one, or with "auto" those that race."""
        own = (
            "objective",
            "preset",
            "calibrate",
            "validation_fraction",
            "cv",
            "n_estimators",
            "random_state",
            "verbose",
        )
        choice = {name: value for name, value in self.get_params().items() if name not in own}
        # The paper's settings go by the split's name, of which a graph knows only how many folds it has.
        split = (
            "geom-gcn"
            if len(graph.splits) > 1
            else "official"
            if graph.name == "ogbn-arxiv"
            else "public"
        )
        choice |= {"graph": graph.name, "split": split}
        if self.objective == "auto":
            return entrants(self.preset, **choice)
        chosen = Settings.preset(self.preset, objective=self.objective, **choice)
        return {self.objective: chosen.for_objective(self.objective)}

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
        fold: int = 0,
        checkpoint: Path | str | None = None,
    ) -> Self:
        """Train on a graph, or on a feature matrix ``X`` (n x c), labels ``y`` and a 2 x m ``edge_index`` (none: no edges).

        ``checkpoint``: a folder that keeps the state of the training, which goes on from it if it is there.
        """
        if isinstance(X, Graph):
            if y is not None or edge_index is not None or edge_weight is not None:
                raise UsageError(
                    "A Graph brings its own labels and edges: call fit(graph), without y, edge_index and edge_weight."
                )
            given, self._fold = X, fold
            self.n_features_in_ = X.num_features
            self.__dict__.pop("feature_names_in_", None)  # of a table that it was fitted on before
        else:
            if hasattr(X, "edge_index"):
                raise UsageError(
                    f"NodeClassifier takes an everynode Graph, not a {type(X).__name__}: fit(Graph.from_pyg(data))."
                )
            if y is None:
                raise UsageError(
                    "NodeClassifier requires y to be passed, but the target y is None: give labels, -1 for unlabelled nodes."
                )
            given, self._fold = (
                self._graph(X, edge_index, edge_weight, reset=True, labels=encode(y)),
                0,
            )
        self._had_edges = given.num_edges > 0
        whole = isinstance(self.n_estimators, numbers.Integral) and self.n_estimators >= 1
        require(whole, "n_estimators", "NodeClassifier", "a whole number >= 1", self.n_estimators)
        graph, folds = self._with_validation(given, self._fold)
        entrants = self._entrants(given)
        epochs = max(settings.epochs for settings in entrants.values())
        with Bar(self.backbone, epochs, unit="epochs", show=self.verbose, early=True) as bar:
            trained, self.standings_ = race(
                graph,
                entrants,
                folds=folds,
                share=self._shares(graph, folds),
                seed=self._seed(),
                report=lambda name, epoch, row: bar.advance(
                    f"{name} {describe(row)}", to=epoch + 1
                ),
                checkpoint=None if checkpoint is None else Path(checkpoint),
            )
            networks = self.n_estimators * len(folds)
            self.fitted_: TrainingResult
            self.fitted_, *self._more = train_more(
                trained,
                graph,
                folds,
                networks,
                checkpoint=None if checkpoint is None else Path(checkpoint),
                report=lambda number, epoch, row: bar.advance(
                    f"network {number} of {networks} {describe(row)}", to=epoch + 1
                ),
            )
        if self.fitted_.interrupted:
            later = len(self._more) >= len(folds)  # those of the race come first
            done = (
                f"in network {len(self._more) + 1} of {networks}"
                if later
                else f"after {self.fitted_.epochs} epochs"
            )
            warnings.warn(
                f"Training was interrupted {done}: the best so far is kept.", stacklevel=2
            )
        self.classes_ = in_order(graph.classes)
        self.feature_encoder_, self.directed_ = graph.feature_encoder, graph.directed
        self._read_off()
        self.held_out_ = held_out((self.fitted_, *self._more), graph)
        self.temperature_ = (
            temperature(self.held_out_.log_probabilities, graph.labels[self.held_out_.nodes])
            if self.calibrate
            else 1.0
        )
        for network in self.networks_:
            network.clear_cache()  # of the graph, which may be large
        return self

    def _shares(self, graph: Graph, folds: Sequence[int]) -> bool:
        """Whether the folds share one round and the patience: where labels are few, where it was measured, and nobody said how long.

        An objective that was chosen trains for as long as ever: what wins early in a race is seldom what needs long.
        """
        of_its_own = self.objective == "auto" and self.preset == "default" and self.patience is None
        return (
            of_its_own
            and len(folds) > 1
            and sum(len(graph.nodes("val", fold)) for fold in folds) < FEW
        )

    def log_probabilities(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """Before the temperature: the logarithm of each class's probability (n x k, float64), for all nodes or some."""
        return mean_log_probabilities(self.networks_, graph, nodes)

    def _read_off(self) -> None:
        self.network_ = self.fitted_.network
        self.networks_ = [self.network_, *(other.network for other in self._more)]
        self.history_ = self.fitted_.history
        self.best_epoch_, self.n_iter_ = self.fitted_.best_epoch, self.fitted_.epochs
        self.best_epochs_ = [fitted.best_epoch for fitted in (self.fitted_, *self._more)]
        self.objective_ = next(
            (name for name, standing in self.standings_.items() if standing.outcome == "won"),
            self.objective,
        )

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, np.random.RandomState):
            return int((self.random_state or np.random.mtrand._rand).randint(2**31))
        return int(self.random_state)

    def _graph(
        self,
        X: Any,
        edge_index: Any,
        edge_weight: Any,
        *,
        reset: bool,
        labels: tuple[Any, list[Any]] | None = None,
    ) -> Graph:
        if isinstance(X, Graph):
            return X
        X = validate_data(self, X, accept_sparse="csr", reset=reset, dtype=np.float32)
        if not reset and edge_index is None and self._had_edges:
            warnings.warn(
                "The model was fitted with edges, and these nodes have none: give edge_index, or fewer are right.",
                stacklevel=4,
            )
        edges = np.zeros((2, 0), dtype=np.int64) if edge_index is None else edge_index
        if labels is None:
            weight, nobody = self.network_.opening.weight, np.full(X.shape[0], UNLABELLED)
            graph = Graph.from_arrays(
                X, edges, nobody, classes=self.classes_.tolist(), edge_weight=edge_weight, directed=self.directed_
            )  # fmt: skip
            return graph.to(weight.dtype).to(weight.device)
        codes, classes = labels
        if len(codes) != X.shape[0]:
            raise DataError(
                f"Found input variables with inconsistent numbers of samples: {X.shape[0]} rows of X, {len(codes)} labels."
            )
        return Graph.from_arrays(X, edges, codes, classes=classes, edge_weight=edge_weight)

    def _with_validation(self, graph: Graph, fold: int) -> tuple[Graph, Sequence[int]]:
        """The graph with validation nodes, and in which folds they are: its own, or held out of the training nodes."""
        whole = self.cv == "auto" or (
            isinstance(self.cv, numbers.Integral) and not isinstance(self.cv, bool) and self.cv >= 1
        )
        require(whole, "cv", "NodeClassifier", "'auto' or a whole number >= 1", self.cv)
        if graph.splits and len(graph.nodes("val", fold)):
            return graph, (fold,)
        device = graph.labels.device
        train = graph.nodes("train", fold) if graph.splits else (graph.labels >= 0).nonzero()[:, 0]
        test = graph.splits[fold].test if graph.splits else train[:0]
        if graph.num_classes < 2:
            raise DataError(
                f"NodeClassifier can't train with {graph.num_classes} class: label nodes of at least two classes."
            )
        require(
            0 < self.validation_fraction < 1,
            "validation_fraction",
            "NodeClassifier",
            "between 0 and 1",
            self.validation_fraction,
        )
        cv = None if self.cv == "auto" else int(self.cv)
        parts = validation_parts(
            train, graph.labels, cv=cv, fraction=self.validation_fraction, seed=self._seed()
        )
        if (
            self.monitor == "auc"
            and len(parts) > 1
            and any(len(graph.labels[val].unique()) < 2 for _, val in parts)
        ):
            raise DataError(
                f"In {len(parts)} folds the held-out labels of one are of a single class, of which there is no AUC: give cv=1 (--cv 1), or "
                "select by another metric."
            )
        return graph.with_splits(
            [Split(train.to(device), val.to(device), test) for train, val in parts]
        ), range(len(parts))

    def predict_proba(
        self, X: Any, *, edge_index: Any = None, edge_weight: Any = None
    ) -> np.ndarray:
        """The n x k class probabilities of every node, columns as in ``classes_``."""
        check_is_fitted(self, "fitted_")
        graph = self._graph(X, edge_index, edge_weight, reset=False)
        return torch.softmax(self.log_probabilities(graph) / self.temperature_, dim=1).cpu().numpy()

    def predict(self, X: Any, *, edge_index: Any = None, edge_weight: Any = None) -> np.ndarray:
        """The class of every node."""
        probabilities = self.predict_proba(X, edge_index=edge_index, edge_weight=edge_weight)
        return self.classes_[probabilities.argmax(1)]

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
        fold: int | None = None,
    ) -> float:
        """The accuracy: on ``score(graph, "test")`` (or "val", "train"), or on ``score(X, y, edge_index=...)`` where y is labelled."""
        check_is_fitted(self, "fitted_")
        if isinstance(X, Graph):
            part = "test" if y is None else y
            if part not in Split._fields:
                raise UsageError(
                    f"score(graph, part) takes 'train', 'val' or 'test'. Got {part!r}."
                )
            nodes = X.nodes(part, self._fold if fold is None else fold).cpu().numpy()
            if not len(nodes):
                raise DataError(f"Graph {X.name!r} has no labelled {part} node to score on.")
            truth = in_order(X.classes)[
                X.labels.cpu().numpy()[nodes]
            ]  # by name: another graph may number its classes otherwise
            return float(np.mean(self.predict(X)[nodes] == truth))
        if y is None:
            raise UsageError("score(X, y, edge_index=...) needs the labels y to compare with.")
        y = as_row(y)
        known = ~unlabelled(y)
        if not known.any():
            raise DataError("No node has a label in y to score on.")
        right = self.predict(X, edge_index=edge_index, edge_weight=edge_weight)[known] == y[known]
        return float(
            np.average(
                right, weights=None if sample_weight is None else np.asarray(sample_weight)[known]
            )
        )

    def save(self, folder: str | Path) -> None:
        """Write the model folder (safetensors and JSON, no pickles) that :meth:`load` and ``everynode predict`` read."""
        check_is_fitted(self, "fitted_")
        extra: dict[str, Any] = {
            "estimator": {**self.get_params(), "random_state": self.fitted_.seed},
            "race": {name: standing.to_dict() for name, standing in self.standings_.items()},
            "temperature": self.temperature_,
            "networks": len(self.networks_),
            "fold_of_graph": self._fold,
            "had_edges": self._had_edges,
            "directed": self.directed_,
        }
        if hasattr(self, "feature_names_in_"):
            extra["feature_names"] = self.feature_names_in_.tolist()
        if self.feature_encoder_ is not None:
            extra["feature_encoder"] = self.feature_encoder_.to_dict()
        for number, other in enumerate(
            self._more, start=2
        ):  # the first, whose card says how many there are, comes last
            save_model(Path(folder) / str(number), other)
        save_model(folder, self.fitted_, extra)

    def export(self, file: str | Path) -> None:
        """Write the network for ``torch.export.load``, to predict where everynode is not installed.

        The program takes dense features, arcs and their weights, and gives the probabilities: see
        :class:`everynode.models.export.Portable`. It is for graphs of any size.
        """
        check_is_fitted(self, "fitted_")
        Portable(self.networks_, self.temperature_).export(Path(file))

    @classmethod
    def load(cls, folder: str | Path) -> NodeClassifier:
        """The classifier of a model folder, written by :meth:`save` or by ``everynode train``, or of the --out of ``everynode fit``."""
        from everynode.io.feature_encoder import (
            FeatureEncoder,  # and with it pyarrow, which nothing else here needs
        )

        folder = model_folder(folder)
        network, card = load_model(folder)
        own = cls._get_param_names()
        flags = {name: value for name, value in card["settings"].items() if name in own}
        model = cls(
            **card.get(
                "estimator",
                flags
                | {name: card["run"][name] for name in ("objective", "preset") if "run" in card},
            )
        )
        model.fitted_ = TrainingResult.from_card(network, card)
        model._more = [
            TrainingResult.from_card(*load_model(Path(folder) / str(number)))
            for number in range(2, card.get("networks", 1) + 1)
        ]
        model.classes_ = in_order(card["classes"])
        model.n_features_in_, model._fold = (
            card["num_features"],
            card.get("fold_of_graph", card["fold"]),
        )
        model.temperature_ = float(card.get("temperature", 1.0))
        model.feature_encoder_ = (
            FeatureEncoder.from_dict(card["feature_encoder"]) if "feature_encoder" in card else None
        )
        model.directed_ = bool(card.get("directed", card.get("run", {}).get("directed", False)))
        model._had_edges = bool(card.get("had_edges", False))
        if "feature_names" in card:
            model.feature_names_in_ = np.asarray(card["feature_names"], dtype=object)
        model.standings_ = {
            name: Standing.from_dict(standing) for name, standing in card.get("race", {}).items()
        }
        model._read_off()
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
