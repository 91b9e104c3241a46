"""everynode: node classifiers trained on every node, labeled or not.

The public names load on first use, so that ``everynode --help`` does not wait for PyTorch.
"""

from everynode._lazy import lazy

TYPE_CHECKING = False  # typing takes 10 ms, in which Ctrl-C would show a traceback
if TYPE_CHECKING:
    from everynode.datasets import load
    from everynode.errors import DataError, EverynodeError, UsageError
    from everynode.estimator import NodeClassifier
    from everynode.evaluation.suggestions import suggest
    from everynode.graph import Graph, Split
    from everynode.io import read
    from everynode.models import Model
    from everynode.objectives import ENC, Term
    from everynode.settings import Settings
    from everynode.training import train
    from everynode.training.mini_batch.loader import NeighborLoader

__version__ = "0.22.0"

_HOME = {
    "ENC": "objectives",
    "DataError": "errors",
    "EverynodeError": "errors",
    "Graph": "graph",
    "Model": "models",
    "NeighborLoader": "training.mini_batch.loader",
    "NodeClassifier": "estimator",
    "Settings": "settings",
    "Split": "graph",
    "Term": "objectives",
    "UsageError": "errors",
    "load": "datasets",
    "read": "io",
    "suggest": "evaluation.suggestions",
    "train": "training",
}

__all__ = [
    "ENC",
    "DataError",
    "EverynodeError",
    "Graph",
    "Model",
    "NeighborLoader",
    "NodeClassifier",
    "Settings",
    "Split",
    "Term",
    "UsageError",
    "load",
    "read",
    "suggest",
    "train",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
