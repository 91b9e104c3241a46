"""NodeClassifier: everything behind the interface of scikit-learn."""

from __future__ import annotations

import dataclasses
import numbers
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from everynode import plugins
from everynode.datasets.splits import FEW
from everynode.errors import DataError, UsageError, require, unknown
from everynode.evaluation.calibration import temperature
from everynode.graph import UNLABELLED, Graph, Split
from everynode.graph.label_encoding import as_row, encode, in_order, unlabelled
from everynode.machine import usable_device
from everynode.models.export import Portable
from everynode.objective_names import parse_objective
from everynode.presets import candidates
from everynode.progress import Bar, describe
from everynode.selection.cross_validation import check_monitor, with_validation
from everynode.selection.ensemble import held_out, mean_log_probabilities, train_more
from everynode.selection.graph_gain import GraphGain
from everynode.selection.leaderboard import Leaderboard
from everynode.selection.portfolio_ensemble import PortfolioEnsemble
from everynode.selection.portfolio_export import PortableEnsemble
from everynode.selection.portfolio_fit import PortfolioOptions, fit_portfolio
from everynode.selection.successive_halving import Standing, successive_halving
from everynode.settings import Settings, declarations
from everynode.training import load_model, save_model
from everynode.training.checkpoint import model_folder
from everynode.training.result import TrainingResult

if TYPE_CHECKING:
    from everynode.objectives.term import Term
    from everynode.training.process_pool import Engine


class NodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A node classifier that learns from every node, labelled or not.

    It takes a :class:`Graph`, or a feature matrix and labels with the edges beside them::

        NodeClassifier().fit(graph).predict(graph)
        NodeClassifier().fit(X, y, edge_index=edges).predict(X, edge_index=edges)

    In ``y``, -1 (or None, NaN, empty text) marks a node without a label. If the graph has no
    validation nodes, labels are held out to select the epoch and the candidate; see ``cv``.

    Paper: `Every Node Counts <https://arxiv.org/abs/2211.16631>`_.

    Parameters
    ----------
    backbone : str or class, default="auto"
        The model: ``gcn``, ``gat``, ``gcnii``, any of ``everynode.models.names.MODELS``, a model
        of a plugin, or a class (:class:`everynode.Model`, or any ``torch.nn.Module`` on PyG's
        ``x, edge_index``). ``auto``: with the objective ``auto``, an ensemble of the best models of
        a portfolio (:mod:`everynode.selection.portfolio`); with a named objective, ``gcn``.
    objective : str, default="auto"
        ``enc`` (every term with a weight), ``ce`` (cross-entropy), a term, or a sum such as
        ``mi+tv``. ``auto`` with a named backbone trains cross-entropy and ENC, each with strong and
        light regularization, and keeps the best on the validation nodes
        (:func:`everynode.selection.successive_halving.successive_halving`).
    effort : str, default="standard"
        The size of the portfolio: ``quick`` (seconds), ``standard`` (minutes) or ``best`` (more
        candidates, and several networks of each).
    time_limit : float or str, optional
        The time limit of the portfolio, in seconds or as a text such as ``"10m"``. None: 18 s for
        ``quick``, 10 min for ``standard``, none for ``best``.
    preset : str, default="default"
        The source of the settings: ``default``, ``paper``, ``tuned``, ``authors`` (the last three
        have certain graphs only), or a file of ``everynode tune``.
    settings : Settings or dict, optional
        Any other setting, such as ``{"epochs": 200, "hidden_channels": 128, "tv": 2.0}``; see
        :class:`Settings`. In a portfolio it applies to every candidate. A parameter of the
        classifier takes precedence.
    monitor : str, optional
        The validation metric that selects the epoch and the candidate: ``accuracy``,
        ``balanced_accuracy``, ``macro_f1``, ``auc`` or ``loss``.
    class_weight : "balanced" or dict, optional
        The weight of each class. ``balanced``: rare classes weigh as much as common ones.
    terms : sequence of Term, optional
        Your own terms with their weights, added to the objective: to every candidate with ENC, or
        to the objective that is named.
    cv : int, float or "auto", default="auto"
        How labels are held out if the graph has no validation nodes, stratified by class. An int
        is the number of folds: each label is held out once, and the networks of the folds are
        averaged. A float between 0 and 1 holds out that share of the labels once. ``auto``: 3
        folds with fewer than 100 labels, where a single draw is unreliable (docs/accuracy.md), else
        0.2; in a portfolio, 2 to 5 folds by effort and number of labels.
    n_estimators : int, default=1
        The number of networks per fold, with consecutive seeds; their probabilities are averaged.
        Five gained 0.5 to 1.5 points on Cora and Citeseer (docs/accuracy.md).
    for_new_nodes : bool, default=False
        Leave out models of the portfolio that cannot predict nodes outside the training graph.
    n_jobs : int, optional
        Trainings of the portfolio at once. None: one per core.
    device : str or torch.device, optional
        The device of training and prediction. None: the device of the graph.
    random_state : int, RandomState or None, default=0
        The seed of weights, dropout, halves and held-out labels.
    verbose : bool, optional
        Whether to show progress. None: only in a terminal.

    Attributes
    ----------
    classes_ : array
        The classes.
    n_features_in_ : int
        The number of features.
    objective_ : str
        The winning candidate; in a portfolio, the one with the largest weight.
    standings_ : dict of str to Standing
        The result of each candidate of successive halving; empty for a portfolio.
    leaderboard_ : Leaderboard or None
        Every candidate of the portfolio: score with interval, time, folds, weight.
    ensemble_ : PortfolioEnsemble or None
        The members of the portfolio's ensemble.
    graph_gain_ : GraphGain or None
        What the graph adds to the features, and the features to the graph; ``print`` it.
    network_, networks_ : Model, list of Model
        The first network, and all of them.
    history_ : dict of str to list
        Terms and validation metrics of the first network by epoch.
    best_epoch_, best_epochs_, n_iter_ : int, list of int, int
        The selected epoch of the first network and of all, and the number of epochs.
    held_out_ : HeldOut
        The out-of-fold predictions of the validation nodes.
    temperature_ : float
        The temperature of the probabilities, chosen on the validation nodes so that probabilities
        match frequencies. It changes no predicted class.
    feature_encoder_ : FeatureEncoder or None
        The encoder of columns, if the graph was read from files.

    Examples
    --------
    >>> import everynode as en
    >>> graph = en.load("citeseer")
    >>> model = NodeClassifier(objective="tv", settings={"tv": 2.0, "epochs": 20}).fit(graph)
    >>> model.predict_proba(graph).shape
    (3327, 6)
    """

    def __init__(
        self,
        backbone: str | type[nn.Module] = "auto",
        objective: str = "auto",
        *,
        effort: str = "standard",
        time_limit: float | str | None = None,
        preset: str = "default",
        settings: Settings | Mapping[str, Any] | None = None,
        monitor: str | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        terms: Sequence[Term] | None = None,
        cv: int | float | Literal["auto"] = "auto",
        n_estimators: int = 1,
        for_new_nodes: bool = False,
        n_jobs: int | None = None,
        device: str | torch.device | None = None,
        random_state: int = 0,
        verbose: bool | None = None,
    ):
        self.backbone = backbone
        self.objective = objective
        self.effort = effort
        self.time_limit = time_limit
        self.preset = preset
        self.settings = settings
        self.monitor = monitor
        self.class_weight = class_weight
        self.terms = terms
        self.cv = cv
        self.n_estimators = n_estimators
        self.for_new_nodes = for_new_nodes
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ settings

    def _changes(self) -> dict[str, Any]:
        """Return the settings that differ from the preset: ``settings``, then the parameters."""
        changes = asdict(self.settings) if isinstance(self.settings, Settings) else {}
        if isinstance(self.settings, Mapping):
            for name in self.settings:
                if name not in declarations():
                    unknown("setting", name, declarations())
            changes = dict(self.settings)
        elif not isinstance(self.settings, Settings | None):
            expected = "None, a Settings or a dict"
            require(False, "settings", "NodeClassifier", expected, self.settings)
        own = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name in declarations() and value is not None
        }
        if self.backbone == "auto":
            del own["backbone"]  # the default does not override a backbone in `settings`
        elif isinstance(self.backbone, type):
            own["backbone"] = plugins.register(self.backbone)
        weights: dict[str, float] = {}
        if not isinstance(self.terms, Sequence | None):
            require(False, "terms", "NodeClassifier", "a list of terms", self.terms)
        for term in self.terms or ():
            name = plugins.register_term(term)
            if name in weights:
                raise UsageError(f"NodeClassifier has two terms named {name!r}: rename one.")
            weights[name] = float(term.weight)
        if weights:
            own["weights"] = dict(changes.get("weights") or ()) | weights
        return changes | own

    def _uses_portfolio(self) -> bool:
        """Whether neither a model nor an objective, preset or term is chosen."""
        chosen = self.terms or "backbone" in self._changes() or self.preset != "default"
        return self.objective == "auto" and self.backbone == "auto" and not chosen

    def _candidates(self, graph: Graph) -> dict[str, Settings]:
        """Return the settings to train with by objective: one, or those of ``auto``."""
        changes = self._changes()
        # Presets distinguish splits by name; a graph knows only its number of folds.
        several = len(graph.splits) > 1
        official = graph.name == "ogbn-arxiv"
        split = "geom-gcn" if several else "official" if official else "public"
        changes |= {"graph": graph.name, "split": split}
        if self.objective == "auto":
            return candidates(self.preset, **changes)
        objective = self.objective
        named = objective.lower().split("+")
        if self.terms and "enc" not in named:
            own = [term for term in changes["weights"] if term not in named]
            objective = "+".join([objective, *own])
        parse_objective(objective)
        chosen = Settings.preset(self.preset, objective=self.objective, **changes)
        return {objective: chosen.for_objective(objective)}

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
        fold: int = 0,
        checkpoint: Path | str | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Train on a graph, or on features, labels and edges.

        Parameters
        ----------
        X : Graph or array of shape (n, c)
            The graph, or the features.
        y : array of shape (n,), optional
            The labels, if ``X`` is an array; -1 for unlabelled nodes.
        edge_index : array of shape (2, m), optional
            The edges, if ``X`` is an array.
        edge_weight : array of shape (m,), optional
            The weights of the edges.
        fold : int
            The fold of the graph.
        checkpoint : path, optional
            A folder for the state of the training. The same call continues from there.
        engine : Engine, optional
            The engine that runs the trainings of the portfolio, such as
            :func:`everynode.training.ray_engine.run_on_ray`. None: processes on this machine.
        """
        arrays = not isinstance(X, Graph) and not hasattr(X, "edge_index") and y is not None
        encoded = encode(y) if arrays else None  # here, so that its warnings name the caller
        given = self._training_graph(X, y, edge_index, edge_weight, encoded)
        self._fold = fold if isinstance(X, Graph) else 0
        self._had_edges = given.num_edges > 0
        self._check_parameters()
        states = None if checkpoint is None else Path(checkpoint)
        train_on = self._fit_portfolio if self._uses_portfolio() else self._fit_one
        graph = train_on(given, self._seed(), states, engine)
        self.classes_ = in_order(graph.classes)
        self.feature_encoder_, self.directed_ = graph.feature_encoder, graph.directed
        labels = graph.labels[self.held_out_.nodes]
        self.temperature_ = temperature(self.held_out_.log_probabilities, labels)
        for network in self.networks_:
            network.clear_cache()  # it refers to the graph, which may be large
        return self

    def _fit_portfolio(
        self, given: Graph, seed: int, states: Path | None, engine: Engine | None
    ) -> Graph:
        """Race the portfolio, keep its ensemble, and return the graph with its folds."""
        options = PortfolioOptions(
            self.effort, self.time_limit, self.for_new_nodes,
            None if self.cv == "auto" else self.cv, self.n_estimators, self.n_jobs, engine,
        )  # fmt: skip
        fitted = fit_portfolio(
            given, options, fold=self._fold, changes=self._changes(), seed=seed, checkpoint=states,
            verbose=self.verbose,
        )  # fmt: skip
        chosen = fitted.selection
        self.ensemble_: PortfolioEnsemble | None = chosen.ensemble
        self.leaderboard_: Leaderboard | None = chosen.leaderboard
        self.graph_gain_: GraphGain | None = chosen.gain
        self.held_out_ = chosen.held_out
        self.standings_: dict[str, Standing] = {}
        self.fitted_: TrainingResult
        self.fitted_, *self._more = fitted.results
        self._set_attributes()
        if fitted.race.interrupted:
            warnings.warn(
                f"Training was interrupted after {len(fitted.results)} networks: the best result "
                "so far is kept.",
                stacklevel=3,
            )
        return fitted.graph

    def _fit_one(
        self, given: Graph, seed: int, states: Path | None, engine: Engine | None
    ) -> Graph:
        """Train the named model or objective, and return the graph with its folds."""
        self.ensemble_ = self.leaderboard_ = self.graph_gain_ = None
        graph, folds = with_validation(
            given, fold=self._fold, cv=None if self.cv == "auto" else self.cv, seed=seed
        )
        chosen = self._candidates(given)
        check_monitor(graph, folds, next(iter(chosen.values())).monitor)
        title = next(iter(chosen.values())).backbone
        epochs = max(settings.epochs for settings in chosen.values())
        total = self.n_estimators * len(folds)
        with Bar(title, epochs, unit="epochs", show=self.verbose, early=True) as bar:
            trained, self.standings_ = successive_halving(
                graph,
                chosen,
                folds=folds,
                share=self._shares(graph, folds),
                seed=seed,
                report=lambda name, epoch, row: bar.advance(
                    f"{name} {describe(row)}", to=epoch + 1
                ),
                checkpoint=states,
            )
            self.fitted_, *self._more = train_more(
                trained,
                graph,
                folds,
                total,
                checkpoint=states,
                report=lambda number, epoch, row: bar.advance(
                    f"network {number} of {total} {describe(row)}", to=epoch + 1
                ),
            )
        if self.fitted_.interrupted:
            later = len(self._more) >= len(folds)
            where = (
                f"in network {len(self._more) + 1} of {total}"
                if later
                else f"after {self.fitted_.epochs} epochs"
            )
            warnings.warn(
                f"Training was interrupted {where}: the best result so far is kept.", stacklevel=3
            )
        self._set_attributes()
        self.held_out_ = held_out((self.fitted_, *self._more), graph)
        return graph

    def _training_graph(
        self,
        X: Any,
        y: Any,
        edge_index: Any,
        edge_weight: Any,
        encoded: tuple[Any, list[Any]] | None,
    ) -> Graph:
        """Return the graph to train on, on the chosen device."""
        if isinstance(X, Graph):
            if y is not None or edge_index is not None or edge_weight is not None:
                raise UsageError(
                    "A Graph has its own labels and edges: call fit(graph) without y, edge_index "
                    "and edge_weight."
                )
            graph = X
            self.n_features_in_ = X.num_features
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit on a table
        elif hasattr(X, "edge_index"):
            raise UsageError(
                f"NodeClassifier takes an everynode Graph, not a {type(X).__name__}: call "
                "fit(Graph.from_pyg(data))."
            )
        elif encoded is None:
            raise UsageError(
                "NodeClassifier requires y to be passed, but the target y is None: give labels, "
                "with -1 for unlabelled nodes."
            )
        else:
            X = validate_data(self, X, accept_sparse="csr", reset=True, dtype=np.float32)
            codes, classes = encoded
            if len(codes) != X.shape[0]:
                raise DataError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"{X.shape[0]} rows of X, {len(codes)} labels."
                )
            edges = np.zeros((2, 0), dtype=np.int64) if edge_index is None else edge_index
            graph = Graph.from_arrays(X, edges, codes, classes=classes, edge_weight=edge_weight)
        return graph if self.device is None else _moved(graph, usable_device(self.device))

    def _check_parameters(self) -> None:
        whole = isinstance(self.n_estimators, numbers.Integral) and self.n_estimators >= 1
        require(whole, "n_estimators", "NodeClassifier", "a whole number >= 1", self.n_estimators)
        whole = isinstance(self.cv, numbers.Integral) and int(self.cv) >= 2
        share = isinstance(self.cv, numbers.Real) and 0 < self.cv < 1
        expected = (
            "'auto', a number of folds >= 2, or a share of the labels between 0 and 1 such as 0.2"
        )
        require(self.cv == "auto" or whole or share, "cv", "NodeClassifier", expected, self.cv)

    def _shares(self, graph: Graph, folds: Sequence[int]) -> bool:
        """Whether the folds share one round and the patience (docs/accuracy.md, "Few labels").

        They do with few labels and the default candidates, unless the patience is given: a chosen
        objective may need many epochs.
        """
        patience = "patience" in self._changes()
        if self.objective != "auto" or self.preset != "default" or patience or len(folds) < 2:
            return False
        return sum(len(graph.nodes("val", fold)) for fold in folds) < FEW

    def _set_attributes(self) -> None:
        fitted = (self.fitted_, *self._more)
        self.networks_ = [one.network for one in fitted]
        self.network_ = self.networks_[0]
        self.history_ = self.fitted_.history
        self.best_epoch_, self.n_iter_ = self.fitted_.best_epoch, self.fitted_.epochs
        self.best_epochs_ = [one.best_epoch for one in fitted]
        won = (name for name, standing in self.standings_.items() if standing.outcome == "won")
        self.objective_ = next(won, self.objective)
        if self.ensemble_ is not None:
            self.objective_ = self.ensemble_.members[0].candidate.name

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, np.random.RandomState):
            return int((self.random_state or np.random.mtrand._rand).randint(2**31))
        return int(self.random_state)

    # ------------------------------------------------------------------ prediction

    def _prediction_graph(self, X: Any, edge_index: Any, edge_weight: Any) -> Graph:
        """Return the graph to predict, with the type and on the device of the networks."""
        parameter = next(self.network_.parameters(), torch.empty(0))
        if isinstance(X, Graph):
            return _moved(X, parameter.device)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=np.float32)
        if edge_index is None and self._had_edges:
            warnings.warn(
                "The model was fitted with edges, but edge_index is missing. Predictions without "
                "edges are less accurate.",
                stacklevel=4,
            )
        edges = np.zeros((2, 0), dtype=np.int64) if edge_index is None else edge_index
        graph = Graph.from_arrays(
            X,
            edges,
            np.full(X.shape[0], UNLABELLED),
            classes=self.classes_.tolist(),
            edge_weight=edge_weight,
            directed=self.directed_,
        )
        return _moved(graph.to(parameter.dtype), parameter.device)

    def log_probabilities(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """Return the log-probabilities before the temperature (n x k, float64)."""
        if self.ensemble_ is not None:
            return self.ensemble_.log_probabilities(graph, nodes)
        return mean_log_probabilities(self.networks_, graph, nodes)

    def embed(self, graph: Graph) -> Tensor:
        """Return one vector per node, of the first network."""
        source = self.network_ if self.ensemble_ is None else self.ensemble_
        with torch.no_grad():
            return source.embed(graph)

    def predict_proba(
        self, X: Any, *, edge_index: Any = None, edge_weight: Any = None
    ) -> np.ndarray:
        """Return the class probabilities of every node (n x k), columns as in ``classes_``."""
        check_is_fitted(self, "fitted_")
        graph = self._prediction_graph(X, edge_index, edge_weight)
        return torch.softmax(self.log_probabilities(graph) / self.temperature_, dim=1).cpu().numpy()

    def predict(self, X: Any, *, edge_index: Any = None, edge_weight: Any = None) -> np.ndarray:
        """Return the class of every node."""
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
        """Return the accuracy.

        ``score(graph, "test")`` (or ``"val"``, ``"train"``) scores a part of a graph;
        ``score(X, y, edge_index=...)`` scores the nodes with a label in ``y``.
        """
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
            # By name: another graph may number its classes differently.
            truth = in_order(X.classes)[X.labels.cpu().numpy()[nodes]]
            return float(np.mean(self.predict(X)[nodes] == truth))
        if y is None:
            raise UsageError("score(X, y, edge_index=...) needs the labels y.")
        y = as_row(y)
        labelled = ~unlabelled(y)
        if not labelled.any():
            raise DataError("No node has a label in y to score on.")
        predicted = self.predict(X, edge_index=edge_index, edge_weight=edge_weight)
        weights = None if sample_weight is None else np.asarray(sample_weight)[labelled]
        return float(np.average(predicted[labelled] == y[labelled], weights=weights))

    # ------------------------------------------------------------------ files

    def save(self, folder: str | Path) -> None:
        """Write a model folder (safetensors and JSON) for :meth:`load` and ``everynode predict``.

        A model or term of your own is stored by name: load its plugin, or define the class, before
        you load the folder.
        """
        check_is_fitted(self, "fitted_")
        parameters = self.get_params(deep=False)
        if isinstance(self.backbone, type):
            parameters["backbone"] = self.fitted_.settings.backbone
        if isinstance(self.settings, Settings):
            parameters["settings"] = asdict(self.settings)
        if self.device is not None:
            parameters["device"] = str(self.device)
        if self.terms:  # by name: another fit needs their plugin
            settings = dict(parameters["settings"] or {})
            parameters["settings"] = settings | {"weights": self._changes()["weights"]}
            parameters["objective"] = (
                "auto" if self.objective == "auto" else next(iter(self.standings_), self.objective)
            )
        if isinstance(self.class_weight, Mapping):
            pairs = self.class_weight.items()
            parameters["class_weight"] = [
                [getattr(key, "item", lambda key=key: key)(), float(value)] for key, value in pairs
            ]
        parameters |= {"terms": None, "random_state": self.fitted_.seed}
        extra: dict[str, Any] = {
            "estimator": parameters,
            "candidates": {name: one.to_dict() for name, one in self.standings_.items()},
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
        # The first network comes last: its card counts the others.
        if self.ensemble_ is not None:
            self.ensemble_.save(Path(folder))
            extra |= self._portfolio_card()
        else:
            for number, other in enumerate(self._more, start=2):
                save_model(Path(folder) / str(number), other)
        save_model(folder, self.fitted_, extra)

    def _portfolio_card(self) -> dict[str, Any]:
        """Return what :meth:`load` needs of a portfolio."""
        assert self.ensemble_ is not None
        assert self.leaderboard_ is not None
        assert self.graph_gain_ is not None
        return {
            "networks": 1,
            "members": len(self.ensemble_.members),
            "num_nodes": self.ensemble_.num_nodes,
            "inputs": self.ensemble_.num_features,
            "leaderboard": self.leaderboard_.to_list(),
            "graph_gain": self.graph_gain_.to_dict(),
        }

    def export(self, file: str | Path) -> None:
        """Write a program for ``torch.export.load``, which predicts without everynode.

        It maps dense features, ``edge_index`` and edge weights of any graph to probabilities; see
        :class:`everynode.models.export.Portable`.
        """
        check_is_fitted(self, "fitted_")
        if self.ensemble_ is not None:
            PortableEnsemble(self.ensemble_, self.temperature_).export(Path(file))
        else:
            Portable(self.networks_, self.temperature_).export(Path(file))

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str | torch.device | None = None
    ) -> NodeClassifier:
        """Load the classifier of :meth:`save`, ``everynode fit`` or ``everynode train``.

        Parameters
        ----------
        folder : path
            The model folder, or the ``--out`` of ``everynode fit``.
        device : str or torch.device, optional
            The device of predictions. None: the CPU.
        """
        from everynode.io.feature_encoder import FeatureEncoder  # imports pyarrow

        folder = model_folder(folder)
        network, card = load_model(folder)
        if "estimator" in card:
            parameters = card["estimator"]
            if isinstance(parameters.get("class_weight"), list):
                parameters["class_weight"] = dict(map(tuple, parameters["class_weight"]))
            model = cls(**parameters)
        else:  # of `everynode train`
            run = card.get("run", {})
            choice = {name: run[name] for name in ("objective", "preset") if name in run}
            model = cls(card["settings"]["backbone"], **choice, settings=card["settings"])
        model.set_params(device=device)
        model.fitted_ = TrainingResult.from_card(network, card)
        model._more = [
            TrainingResult.from_card(*load_model(folder / str(number)))
            for number in range(2, card.get("networks", 1) + 1)
        ]
        model.ensemble_ = model.leaderboard_ = model.graph_gain_ = None
        if "members" in card:
            model.ensemble_ = PortfolioEnsemble.load(
                folder, card["members"], card["num_nodes"], card["inputs"]
            )
            model.leaderboard_ = Leaderboard.from_list(card["leaderboard"])
            model.graph_gain_ = GraphGain.from_dict(card["graph_gain"])
            model.fitted_ = dataclasses.replace(
                model.fitted_, network=model.ensemble_.results[0].network
            )
            model._more = model.ensemble_.results[1:]
        model.classes_ = in_order(card["classes"])
        model.n_features_in_ = card["num_features"]
        model._fold = card.get("fold_of_graph", card["fold"])
        model.temperature_ = float(card.get("temperature", 1.0))
        encoder = card.get("feature_encoder")
        model.feature_encoder_ = None if encoder is None else FeatureEncoder.from_dict(encoder)
        model.directed_ = bool(card.get("directed", card.get("run", {}).get("directed", False)))
        model._had_edges = bool(card.get("had_edges", False))
        if "feature_names" in card:
            model.feature_names_in_ = np.asarray(card["feature_names"], dtype=object)
        model.standings_ = {
            name: Standing.from_dict(standing)
            for name, standing in card.get("candidates", {}).items()
        }
        model._set_attributes()
        if device is not None:
            for one in model.networks_:
                one.to(usable_device(device))
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _moved(graph: Graph, device: torch.device) -> Graph:
    """Return the graph on a device; a graph that is there already keeps its cache."""
    return graph if graph.labels.device == device else graph.to(device)
