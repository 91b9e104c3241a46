"""The reason for a prediction, computed when somebody asks for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from everynode.app.project import Source, read_options
from everynode.app.round import Round

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.explanations.explanation import Explanation
    from everynode.graph import Graph


class Reasons:
    """Explanations of the predictions of the latest round.

    The model and its graph are loaded at the first question and kept until the next round.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Round, NodeClassifier, Graph] | None = None

    def explain(self, source: Source, latest: Round, node: int) -> Explanation:
        """Explain the prediction of a node in a separate thread.

        Parameters
        ----------
        source : Source
            The files of the project.
        latest : Round
            The round whose model predicted.
        node : int
            The number of the node.
        """
        from everynode.estimator import NodeClassifier
        from everynode.estimator_decisions import explanations
        from everynode.io import read

        with self._lock:
            if self._loaded is None or self._loaded[0] is not latest:
                model = NodeClassifier.load(latest.folder / "model")
                options = read_options(source, feature_encoder=model.feature_encoder_)
                labels = latest.folder / "labels.csv"
                if labels.exists():
                    options["labels"] = str(labels)
                self._loaded = latest, model, read(**options)
            _round, model, graph = self._loaded
            return explanations(model, graph, [node], None)[0]
