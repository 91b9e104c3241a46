"""The paper's networks: an opening layer, L layers of GCN, GAT or GCNII, a closing layer."""

from everynode.models.gat import GATLayer
from everynode.models.gcn import GCNLayer
from everynode.models.gcnii import GCNIILayer
from everynode.models.network import BACKBONES, Network

__all__ = ["BACKBONES", "GATLayer", "GCNIILayer", "GCNLayer", "Network"]
