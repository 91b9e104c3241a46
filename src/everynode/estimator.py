"""NodeClassifier: the estimator with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from everynode.batches import Batches
from everynode.estimator_decisions import (
    explanations,
    find_node,
    held_out_labels,
    kept_labels,
    prediction_sets,
)
from everynode.estimator_files import load_classifier, save_classifier
from everynode.estimator_inputs import (
    array_truth,
    graph_truth,
    prediction_graph,
    training_graph,
    type_weights,
    weigh_types,
)
from everynode.estimator_refit import refit_classifier
from everynode.estimator_settings import check_parameters, draw_seed, memory_plan, portfolio_options
from everynode.estimator_training import (
    Trained,
    num_folds,
    taught_nodes,
    temperatures,
    train_classifier,
)
from everynode.evaluation.suspicious_labels import SuspiciousLabel, suspicious_labels
from everynode.fit_options import EFFORT
from everynode.graph import Graph
from everynode.graph.label_encoding import encode, in_order
from everynode.models.export import Portable
from everynode.models.model import node_indices
from everynode.selection.ensemble import mean_log_probabilities
from everynode.selection.portfolio_export import PortableEnsemble
from everynode.selection.refit import Refit
from everynode.settings import Settings
from everynode.training.memory_plan import MemoryPlan
from everynode.training.mini_batch.inference import embedding
from everynode.training.model_card import refuse_broken_folders

if TYPE_CHECKING:
    from everynode.evaluation.held_out_labels import HeldOutLabels
    from everynode.explanations.explanation import Explanation
    from everynode.objectives.term import Term
    from everynode.training.callbacks import Callback
    from everynode.training.process_pool import Engine


class NodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A node classifier that learns from every node, labeled or not.

    It takes a :class:`Graph`, or a feature matrix and labels together with the edges::

        NodeClassifier().fit(graph).predict(graph)
        NodeClassifier().fit(X, y, edge_index=edges).predict(X, edge_index=edges)

    In ``y``, -1 (or None, NaN, empty text) marks an unlabeled node. If the graph has no validation
    nodes, labels are held out to select the epoch and the candidate; see ``cv``.

    Paper: `Every Node Counts <https://arxiv.org/abs/2211.16631>`_.

    Parameters
    ----------
    backbone : str or class, default="auto"
        The model: ``gcn``, ``gat``, ``gcnii``, any of ``everynode.models.names.MODELS``, a model
        of a plugin, or a class (:class:`everynode.Model`, or any ``torch.nn.Module`` on PyG's
        ``x, edge_index``). ``auto``: with the objective ``auto``, an ensemble of the best models of
        a portfolio (:mod:`everynode.selection.portfolio`); with a named objective, ``gcn``.
    objective : str or list of str and Term, default="auto"
        ``enc`` (every term with a weight), ``ce`` (cross-entropy), a term, or a sum such as
        ``mi+tv``. ``auto`` with a named backbone trains cross-entropy and ENC, each with strong and
        light regularization, and keeps the best on the validation nodes
        (:func:`everynode.selection.successive_halving.successive_halving`). A list adds terms of
        your own with their weights: ``["mi", MyTerm(0.2)]``; ``["auto", MyTerm(0.2)]`` adds the
        term to every candidate with ENC.
    effort : str, default="standard"
        The size of the portfolio: ``quick`` (seconds), ``standard`` (minutes) or ``best`` (more
        candidates, and several networks of each).
    time_limit : float or str, optional
        The time limit of the portfolio, in seconds or as a text such as ``"10m"``. None: 18 s for
        ``quick``, 10 min for ``standard``, none for ``best``.
    settings : Settings, dict, str or path, optional
        Any other setting, such as ``{"epochs": 200, "monitor": "macro_f1", "tv": 2.0}``; see
        :class:`Settings`. In a portfolio it applies to every candidate. A parameter of the
        classifier takes precedence. A text or a path names the preset that the other settings come
        from: ``default``, ``paper``, ``tuned``, ``authors`` (the last three cover certain graphs
        only), or a file of ``everynode tune``. A dict may name it as ``preset``, and may hold
        ``n_estimators``, the number of networks per fold whose probabilities are averaged:
        ``{"preset": "tuned", "n_estimators": 5, "epochs": 200}``.
    class_weight : "balanced" or dict, optional
        The weight of each class. ``balanced``: rare classes weigh as much as common ones.
    cv : int, float or "auto", default="auto"
        How labels are held out, stratified by class, if the graph has no validation nodes. An int
        is the number of folds: each label is held out once, and the networks of the folds are
        averaged. A float between 0 and 1 is the share of labels that is held out once. ``auto``: 3
        folds with fewer than 100 labels, where a single draw is unreliable (docs/found.md), else
        0.2; in a portfolio, 2 to 5 folds by effort and number of labels.
    n_jobs : int, optional
        The number of parallel trainings. None or -1: one per core, or fewer if the memory does not
        hold them. With one torch thread, the result is the same for any number.
    batch_size : int, Batches, "auto" or None, default="auto"
        The seed nodes of a training step on sampled subgraphs, as in ``everynode train
        --batch-size``; :class:`~everynode.batches.Batches` has the other options. Networks that
        cannot be sampled take the full graph, or are left out of the portfolio if the memory does
        not hold it. ``auto``: the full graph if the estimate fits into the free memory, if need be
        with fewer workers, else sampled subgraphs. None: the full graph.
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
        The gain of the graph over the features alone, and of the features over the graph alone.
    network_, networks_ : Model, list of Model
        The first network, and all of them.
    history_ : dict of str to list
        Terms and validation metrics of the first network by epoch.
    best_epoch_, best_epochs_, n_iter_ : int, list of int, int
        The selected epoch of the first network and of all, and the number of epochs.
    held_out_ : HeldOut
        The out-of-fold predictions of the validation nodes.
    held_out_labels_ : HeldOutLabels or None
        The same with the labels and the names of the nodes. It is saved with the model.
    num_labels_ : int
        The number of labels that the networks learned from.
    num_folds_ : int
        The number of folds in which labels were held out; 1: a single split.
    held_out_temperature_ : float
        The temperature of the out-of-fold predictions.
    temperature_ : float
        The temperature of the predictions. It changes no predicted class. If several folds are
        averaged, it allows for the accuracy that averaging gains.
    feature_encoder_ : FeatureEncoder or None
        The encoder of columns, if the graph was read from files.
    edge_types_ : dict of str to float or None
        The weight of each type of link; None for a graph without types.

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
        objective: str | Sequence[str | Term] = "auto",
        *,
        effort: str = EFFORT,
        time_limit: float | str | None = None,
        settings: Settings | Mapping[str, Any] | str | Path | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        cv: int | float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        batch_size: int | Batches | Literal["auto"] | None = "auto",
        device: str | torch.device | None = None,
        random_state: int = 0,
        verbose: bool | None = None,
    ):
        self.backbone = backbone
        self.objective = objective
        self.effort = effort
        self.time_limit = time_limit
        self.settings = settings
        self.class_weight = class_weight
        self.cv = cv
        self.n_jobs = n_jobs
        self.batch_size = batch_size
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
        fold: int = 0,
        for_new_nodes: bool = False,
        checkpoint: Path | str | None = None,
        engine: Engine | None = None,
        callbacks: Sequence[Callback] = (),
        plan: MemoryPlan | None = None,
    ) -> Self:
        """Train on a graph, or on features, labels and edges.

        Parameters
        ----------
        X : Graph or array of shape (n, c)
            The graph, or the features.
        y : array of shape (n,), optional
            The labels, if ``X`` is an array; -1 for unlabeled nodes.
        edge_index : array of shape (2, m), optional
            The edges, if ``X`` is an array.
        edge_weight : array of shape (m,), optional
            The weights of the edges.
        fold : int
            The fold of the graph.
        for_new_nodes : bool
            Leave out models of the portfolio that cannot predict nodes outside the training graph.
        checkpoint : path, optional
            A folder for the training state. The same call continues from there.
        engine : Engine, optional
            The engine that runs the trainings of the portfolio, such as
            :func:`everynode.training.ray_engine.run_on_ray`. None: processes on this machine.
        callbacks : sequence of Callback
            Functions that are called after every epoch; see
            :class:`everynode.training.callbacks.Callback`.
        plan : MemoryPlan, optional
            The use of the memory, from :func:`everynode.estimator_settings.memory_plan`. None: the
            one that ``batch_size`` and ``n_jobs`` give.
        """
        check_parameters(self)
        arrays = not isinstance(X, Graph) and not hasattr(X, "edge_index") and y is not None
        encoded = encode(y) if arrays else None  # here, so its warnings point to the caller
        given = training_graph(self, X, y, edge_index, edge_weight, encoded)
        self._fold = fold if isinstance(X, Graph) else 0
        seed = draw_seed(self.random_state)
        given = weigh_types(given, self._fold, seed)
        self._had_edges = given.num_edges > 0
        plan = plan or memory_plan(self, given, for_new_nodes=for_new_nodes, here=engine is None)
        options = portfolio_options(self, engine, callbacks, for_new_nodes=for_new_nodes, plan=plan)
        states = None if checkpoint is None else Path(checkpoint)
        trained = train_classifier(self, given, options, seed=seed, checkpoint=states)
        if trained.interruption:
            where = trained.interruption
            kept = "the best result so far is kept"
            warnings.warn(f"Training was interrupted {where}: {kept}.", stacklevel=2)
        self.classes_ = in_order(trained.graph.classes)
        self.feature_encoder_ = trained.graph.feature_encoder
        self.directed_ = trained.graph.directed
        self.edge_types_ = type_weights(given)
        self.standings_ = dict(trained.standings)
        self.leaderboard_, self.graph_gain_ = trained.leaderboard, trained.gain
        self._take(trained)
        return self

    def _take(self, trained: Trained | Refit) -> None:
        """Take over the networks, count their labels, and choose the temperatures."""
        self.ensemble_, self.held_out_ = trained.ensemble, trained.held_out
        self.fitted_, *self._more = trained.results
        self._set_attributes()
        self.num_labels_ = len(taught_nodes(trained))
        self.num_folds_ = num_folds(trained)
        self.held_out_temperature_, self.temperature_ = temperatures(trained)
        kept = held_out_labels(trained, self.held_out_temperature_)
        self.held_out_labels_: HeldOutLabels | None = kept
        for network in self.networks_:
            network.clear_cache()  # the cache refers to the graph, which may be large

    def refit(
        self,
        graph: Graph,
        nodes: Tensor | None = None,
        *,
        checkpoint: Path | str | None = None,
        engine: Engine | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Return a classifier with the selected models, trained on all labels.

        This classifier does not change, so its score on test nodes stays out of sample. The refit
        keeps the settings, the members of the ensemble and their weights. Cross-validation over
        the labels selects the epochs and calibrates: ``held_out_`` of the result has the
        out-of-fold predictions of all labels.

        Parameters
        ----------
        graph : Graph
            The graph of the fit. Its splits are ignored.
        nodes : Tensor, optional
            The labeled nodes to learn from. None: all.
        checkpoint : path, optional
            A folder for the training state, which may be the folder of the fit. The same call
            continues from there.
        engine : Engine, optional
            The engine of the trainings; see :meth:`fit`.
        callbacks : sequence of Callback
            Functions that follow the trainings; see :meth:`fit`.

        Examples
        --------
        >>> import everynode as en
        >>> graph = en.load("citeseer")
        >>> model = NodeClassifier("gcn", "ce", settings={"epochs": 3}, verbose=False).fit(graph)
        >>> measured, delivered = model.score(graph), model.refit(graph)
        >>> len(model.held_out_.nodes), len(delivered.held_out_.nodes)
        (500, 3312)
        """
        check_is_fitted(self, "fitted_")
        trained = refit_classifier(self, graph, nodes, checkpoint, engine, callbacks)
        model = copy(self)
        model._fold = 0
        model._take(trained)
        return model

    def _set_attributes(self) -> None:
        fitted = (self.fitted_, *self._more)
        self.networks_ = [one.network for one in fitted]
        self.network_ = self.networks_[0]
        self.history_ = self.fitted_.history
        self.best_epoch_, self.n_iter_ = self.fitted_.best_epoch, self.fitted_.epochs
        self.best_epochs_ = [one.best_epoch for one in fitted]
        won = (name for name, standing in self.standings_.items() if standing.outcome == "won")
        self.objective_ = next(won, str(self.objective))
        if self.ensemble_ is not None:
            self.objective_ = self.ensemble_.members[0].candidate.name

    def log_probabilities(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """Return the log-probabilities before the temperature (n x k, float64)."""
        if self.ensemble_ is not None:
            return self.ensemble_.log_probabilities(graph, nodes)
        return mean_log_probabilities(self.networks_, graph, nodes)

    def embed(self, graph: Graph) -> Tensor:
        """Return the embeddings of the first network, one vector per node.

        On a large graph, these are the logits.
        """
        return (
            embedding(self.network_, graph)
            if self.ensemble_ is None
            else self.ensemble_.embed(graph)
        )

    def predict_proba(
        self,
        X: Any,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
        nodes: Any = None,
    ) -> np.ndarray:
        """Return the class probabilities (n x k), columns as in ``classes_``.

        ``nodes``: the nodes to predict, as indices or a mask; None: all.
        """
        check_is_fitted(self, "fitted_")
        graph = prediction_graph(self, X, edge_index, edge_weight)
        chosen = None if nodes is None else node_indices(torch.as_tensor(nodes), graph)
        logs = self.log_probabilities(graph, chosen)
        return torch.softmax(logs / self.temperature_, dim=1).cpu().numpy()

    def predict(
        self,
        X: Any,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
        nodes: Any = None,
    ) -> np.ndarray:
        """Return the class of every node, or of some ``nodes``; see :meth:`predict_proba`."""
        probabilities = self.predict_proba(
            X, edge_index=edge_index, edge_weight=edge_weight, nodes=nodes
        )
        return self.classes_[probabilities.argmax(1)]

    def predict_set(
        self,
        X: Any,
        *,
        coverage: float = 0.9,
        per_class: bool = False,
        edge_index: Any = None,
        edge_weight: Any = None,
        nodes: Any = None,
        seed: int = 0,
    ) -> np.ndarray:
        """Return a set of classes for every node, which contains the true one as often as promised.

        The held-out labels calibrate the sets (conformal prediction, APS); where it makes them
        smaller, the scores of the neighbors count too (DAPS). The promise holds on average over
        nodes that are like the held-out ones. A set can be empty.

        Parameters
        ----------
        X : Graph or array of shape (n, c)
            The graph, or the features.
        coverage : float
            The share of the sets that contain the true class.
        per_class : bool
            Promise this for the nodes of each class, which needs more labels.
        edge_index, edge_weight : array, optional
            The edges, if ``X`` is an array.
        nodes : array, optional
            The nodes to predict, as indices or a mask; None: all.
        seed : int
            The seed of the random part of the scores.

        Returns
        -------
        array of bool of shape (n, k)
            Whether each class is in the set, columns as in ``classes_``.

        Examples
        --------
        >>> from everynode.datasets import generate
        >>> graph = generate(200, 600, 8, 3, seed=0)
        >>> model = NodeClassifier(objective="ce", settings={"epochs": 3}, verbose=False).fit(graph)
        >>> model.predict_set(graph, coverage=0.9).shape
        (200, 3)
        """
        check_is_fitted(self, "fitted_")
        graph = prediction_graph(self, X, edge_index, edge_weight)
        chosen = None if nodes is None else node_indices(torch.as_tensor(nodes), graph)
        return prediction_sets(self, graph, chosen, coverage, per_class=per_class, seed=seed)

    def explain(
        self,
        X: Any,
        node: Any,
        *,
        label: Any = None,
        edge_index: Any = None,
        edge_weight: Any = None,
    ) -> Explanation:
        """Explain the prediction of a node: what carried it, and what it would be without that.

        Columns and words of the node take a neutral value, one at a time; neighbors and labeled
        nodes nearby lose all their edges. Each time the whole classifier predicts again. Two calls
        give the same answer.

        Parameters
        ----------
        X : Graph or array of shape (n, c)
            The graph, or the features.
        node : Hashable
            The name of the node; its index if the nodes have no names.
        label : Hashable, optional
            The class to explain. None: the predicted one.
        edge_index, edge_weight : array, optional
            The edges, if ``X`` is an array.

        Examples
        --------
        >>> from everynode.datasets import generate
        >>> graph = generate(200, 600, 8, 3, seed=0)
        >>> model = NodeClassifier(objective="ce", settings={"epochs": 20}, verbose=False)
        >>> explanation = model.fit(graph).explain(graph, 7)
        >>> bool(explanation.label == model.predict(graph, nodes=[7])[0])
        True
        """
        check_is_fitted(self, "fitted_")
        graph = prediction_graph(self, X, edge_index, edge_weight)
        return explanations(self, graph, [find_node(graph, node)], label)[0]

    def suspicious_labels(self) -> list[SuspiciousLabel]:
        """Return the labels that look wrong, the worst first (confident learning).

        Only held-out labels are judged, by networks that did not learn from them: all training
        labels if the fit had folds, else the validation labels. See
        :func:`everynode.evaluation.suspicious_labels.label_issues`.
        """
        check_is_fitted(self, "fitted_")
        return suspicious_labels(kept_labels(self), self.classes_.tolist())

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
            nodes, truth = graph_truth(X, y, self._fold if fold is None else fold)
            return float(np.mean(self.predict(X, nodes=nodes) == truth))
        nodes, truth = array_truth(y)
        predicted = self.predict(X, edge_index=edge_index, edge_weight=edge_weight)
        weights = None if sample_weight is None else np.asarray(sample_weight)[nodes]
        return float(np.average(predicted[nodes] == truth, weights=weights))

    def save(self, folder: str | Path) -> None:
        """Write a model folder (safetensors and JSON) for :meth:`load` and ``everynode predict``.

        A model or term of your own is stored by name: load its plugin, or define the class, before
        you load the folder.
        """
        check_is_fitted(self, "fitted_")
        save_classifier(self, Path(folder))

    def export(self, file: str | Path) -> None:
        """Write a program for ``torch.export.load`` that predicts without everynode.

        It maps dense features, ``edge_index`` and edge weights of any graph to probabilities; see
        :class:`everynode.models.export.Portable`.
        """
        check_is_fitted(self, "fitted_")
        if self.ensemble_ is not None:
            PortableEnsemble(self.ensemble_, self.temperature_).export(Path(file))
        else:
            Portable(self.networks_, self.temperature_).export(Path(file))

    @classmethod
    @refuse_broken_folders
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
        return load_classifier(cls, folder, device)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
