"""The names of the models. A new model is one file, and one line here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from everynode import plugins
from everynode.errors import unknown

if TYPE_CHECKING:
    from torch import nn

MODELS = {
    "gcn": "everynode.models.gcn:GCN",
    "gat": "everynode.models.gat:GAT",
    "gcnii": "everynode.models.gcnii:GCNII",
    "gcnii_star": "everynode.models.gcnii_star:GCNIIStar",
    "plain_gcn": "everynode.models.plain_gcn:PlainGCN",
    "jknet": "everynode.models.jknet:JKNet",
    "mlp": "everynode.models.mlp:MLP",
    "sgc": "everynode.models.sgc:SGC",
    "appnp": "everynode.models.appnp:APPNP",
    "gprgnn": "everynode.models.gprgnn:GPRGNN",
    "pta": "everynode.models.pta:PTA",
    "grand": "everynode.models.grand:GRAND",
    "h2gcn": "everynode.models.h2gcn:H2GCN",
    "fagcn": "everynode.models.fagcn:FAGCN",
    "chebnet": "everynode.models.chebnet:ChebNet",
    "pairnorm": "everynode.models.pairnorm:PairNorm",
    "gatv2": "everynode.models.gatv2:GATv2",
    "supergat": "everynode.models.supergat:SuperGAT",
    "ggcn": "everynode.models.ggcn:GGCN",
    "egnn": "everynode.models.egnn:EGNN",
    "graphcon": "everynode.models.graphcon:GraphCON",
    "graphmix": "everynode.models.graphmix:GraphMix",
    "gcn_lpa": "everynode.models.gcn_lpa:GCNLPA",
    "pdegcn": "everynode.models.pdegcn:PDEGCN",
    "grand_diffusion": "everynode.models.grand_diffusion:GRANDDiffusion",
    "magnet": "everynode.models.magnet:MagNet",
    "sage": "everynode.models.sage:SAGE",
    "resgcn": "everynode.models.resgcn:ResGCN",
    "dirsage": "everynode.models.dirsage:DirSAGE",
    "label_propagation": "everynode.models.label_propagation:LabelPropagation",
    "logistic": "everynode.models.logistic:Logistic",
    "logistic_hops": "everynode.models.logistic_hops:LogisticHops",
    "logistic_neighbors": "everynode.models.logistic_neighbors:LogisticNeighbors",
    "boosting": "everynode.models.boosting:Boosting",
    "boosting_hops": "everynode.models.boosting_hops:BoostingHops",
}


def model_names() -> tuple[str, ...]:
    """Return the names that ``backbone`` takes."""
    return (*MODELS, *plugins.models())


def model_class(name: str) -> type[nn.Module]:
    """Return the class of a model.

    >>> model_class("gcnn")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    everynode.errors.UsageError: Unknown backbone 'gcnn' (did you mean 'gcn'?). Choose from: ...
    """
    if name in MODELS:
        module, _, cls = MODELS[name].partition(":")
        model: type[nn.Module] = getattr(import_module(module), cls)
        return model
    from_plugins = plugins.models()
    if name not in from_plugins:
        unknown("backbone", name, model_names())
    return from_plugins[name]
