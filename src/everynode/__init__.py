"""everynode: node classifiers trained on every node, labelled or not.

The public names load on first use: importing PyTorch and PyTorch Geometric takes seconds, and ``everynode --help`` should not.
"""

from typing import TYPE_CHECKING

from everynode._lazy import lazy

if TYPE_CHECKING:
    from everynode.backbones import Network
    from everynode.data import load, read, read_csv
    from everynode.errors import DataError, EverynodeError, UsageError
    from everynode.estimator import NodeClassifier
    from everynode.graph import Graph, Split
    from everynode.objectives import ENC, CrossValidatingGradients, MutualInformation, PReg, TotalVariation
    from everynode.settings import Settings
    from everynode.training import fit
    from everynode.training.batches.loader import NeighborLoader
    from everynode.training.batches.objective import BatchENC

__version__ = "0.18.0"

_HOME = {
    "BatchENC": "training.batches.objective",
    "ENC": "objectives",
    "CrossValidatingGradients": "objectives",
    "DataError": "errors",
    "EverynodeError": "errors",
    "Graph": "graph",
    "MutualInformation": "objectives",
    "NeighborLoader": "training.batches.loader",
    "Network": "backbones",
    "NodeClassifier": "estimator",
    "PReg": "objectives",
    "Settings": "settings",
    "Split": "graph",
    "TotalVariation": "objectives",
    "UsageError": "errors",
    "fit": "training",
    "load": "data",
    "read": "data",
    "read_csv": "data",
}

__all__ = [
    "ENC",
    "BatchENC",
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
    "TotalVariation",
    "UsageError",
    "fit",
    "load",
    "read",
    "read_csv",
]


__getattr__, __dir__ = lazy(__name__, _HOME)
