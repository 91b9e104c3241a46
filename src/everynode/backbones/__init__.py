"""The paper's networks: an opening layer, L layers of GCN, GAT or GCNII, a closing layer."""

from everynode.backbones.gat import GATLayer
from everynode.backbones.gcn import GCNLayer
from everynode.backbones.gcnii import GCNIILayer
from everynode.backbones.network import BACKBONES, Network

__all__ = ["BACKBONES", "GATLayer", "GCNIILayer", "GCNLayer", "Network"]
