"""Models: one file each. The names resolve in :mod:`everynode.models.names`."""

from typing import TYPE_CHECKING

from everynode._lazy import lazy

if TYPE_CHECKING:
    from everynode.models.gat import GATLayer
    from everynode.models.gcn import GCNLayer
    from everynode.models.gcnii import GCNIILayer
    from everynode.models.network import BACKBONES, Network

_HOME = {
    "BACKBONES": "network",
    "GATLayer": "gat",
    "GCNIILayer": "gcnii",
    "GCNLayer": "gcn",
    "Network": "network",
}

__all__ = ["BACKBONES", "GATLayer", "GCNIILayer", "GCNLayer", "Network"]

__getattr__, __dir__ = lazy(__name__, _HOME)
