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
    "jknet": "everynode.models.jknet:JKNet",
}


def model_names() -> tuple[str, ...]:
    """Return the names that ``backbone`` takes."""
    return (*MODELS, *plugins.models())


def model_class(name: str) -> type[nn.Module]:
    """Return the class of a model.

    >>> model_class("gnc")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    everynode.errors.UsageError: Unknown backbone 'gnc' (did you mean 'gcn'?). Choose from: gcn, ...
    """
    if name in MODELS:
        module, _, cls = MODELS[name].partition(":")
        model: type[nn.Module] = getattr(import_module(module), cls)
        return model
    from_plugins = plugins.models()
    if name not in from_plugins:
        unknown("backbone", name, model_names())
    return from_plugins[name]
