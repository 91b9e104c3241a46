"""Models, one file each. :mod:`everynode.models.names` resolves their names."""

from typing import TYPE_CHECKING

from everynode._lazy import lazy

if TYPE_CHECKING:
    from everynode.models.build import build_model
    from everynode.models.gat import GAT, GATLayer
    from everynode.models.gcn import GCN, GCNLayer
    from everynode.models.gcnii import GCNII, GCNIILayer
    from everynode.models.layer import Layer
    from everynode.models.model import Model
    from everynode.models.network import Network
    from everynode.models.pyg_model import PyGModel

_HOME = {
    "GAT": "gat",
    "GATLayer": "gat",
    "GCN": "gcn",
    "GCNII": "gcnii",
    "GCNIILayer": "gcnii",
    "GCNLayer": "gcn",
    "Layer": "layer",
    "Model": "model",
    "Network": "network",
    "PyGModel": "pyg_model",
    "build_model": "build",
}

__all__ = [
    "GAT",
    "GCN",
    "GCNII",
    "GATLayer",
    "GCNIILayer",
    "GCNLayer",
    "Layer",
    "Model",
    "Network",
    "PyGModel",
    "build_model",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
