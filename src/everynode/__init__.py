"""everynode: node classifiers trained on every node, labelled or not.

The public names load on first use: importing PyTorch and PyTorch Geometric takes seconds, and ``everynode --help`` should not.
"""

from typing import TYPE_CHECKING

from everynode._lazy import lazy

if TYPE_CHECKING:
    from everynode.datasets import load
    from everynode.errors import DataError, EverynodeError, UsageError
    from everynode.estimator import NodeClassifier
    from everynode.graph import Graph, Split
    from everynode.io import read, read_csv
    from everynode.models import Network
    from everynode.objectives import (
        ENC,
        CrossValidatingGradients,
        MutualInformation,
        PReg,
        Term,
        TotalVariation,
    )
    from everynode.settings import Settings
    from everynode.training import train
    from everynode.training.mini_batch.loader import NeighborLoader

__version__ = "0.18.0"

_HOME = {
    "ENC": "objectives",
    "CrossValidatingGradients": "objectives",
    "DataError": "errors",
    "EverynodeError": "errors",
    "Graph": "graph",
    "MutualInformation": "objectives",
    "NeighborLoader": "training.mini_batch.loader",
    "Network": "models",
    "NodeClassifier": "estimator",
    "PReg": "objectives",
    "Settings": "settings",
    "Split": "graph",
    "Term": "objectives",
    "TotalVariation": "objectives",
    "UsageError": "errors",
    "train": "training",
    "load": "datasets",
    "read": "io",
    "read_csv": "io",
}

__all__ = [
    "ENC",
    "CrossValidatingGradients",
    "DataError",
    "EverynodeError",
    "Graph",
    "MutualInformation",
    "NeighborLoader",
    "Network",
    "NodeClassifier",
    "PReg",
    "Settings",
    "Split",
    "Term",
    "TotalVariation",
    "UsageError",
    "load",
    "read",
    "read_csv",
    "train",
]


__getattr__, __dir__ = lazy(__name__, _HOME)
