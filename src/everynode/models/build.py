"""Models from settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from everynode.errors import UsageError
from everynode.models.model import GNN_SETTINGS, Model
from everynode.models.names import model_class
from everynode.models.pyg_model import PyGModel
from everynode.settings import Settings


def build_model(num_features: int, num_classes: int, settings: Settings, *, seed: int = 0) -> Model:
    """Build the model that ``settings.backbone`` names.

    The arguments of its constructor are matched by name: ``num_features`` or ``in_channels``,
    ``num_classes`` or ``out_channels``, ``seed``, and the settings of group "Model". A plain
    ``torch.nn.Module`` is wrapped in :class:`~everynode.models.pyg_model.PyGModel`.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    settings : Settings
        The name of the model and its settings.
    seed : int
        Seed of the initial weights. The global random generator is not disturbed.

    Returns
    -------
    Model
        On the CPU, in float32.

    Examples
    --------
    >>> from everynode.settings import Settings
    >>> len(build_model(8, 3, Settings(backbone="gcnii", num_layers=4)).layers)
    4
    """
    cls = model_class(settings.backbone)
    available = {
        "num_features": num_features,
        "in_channels": num_features,
        "num_classes": num_classes,
        "out_channels": num_classes,
        "seed": seed,
        **settings.group("Model"),
    }
    with _seeded(seed):
        module = cls(**_matching(cls, settings.backbone, available))
        if isinstance(module, Model):
            model = module
        else:
            model = PyGModel(module, normalize_features=settings.normalize_features)
    model.num_features, model.num_classes = num_features, num_classes
    _check_parameters(model, settings.backbone)
    return model


def unused_settings(name: str) -> set[str]:
    """Return the settings of networks and their parameter groups that a model does not use.

    >>> sorted(unused_settings("mlp") - unused_settings("gcn"))
    ['lr_gnn', 'weight_decay_gnn']
    """
    cls = model_class(name)
    settings = {*Settings().group("Model"), *GNN_SETTINGS} - {"backbone"}
    used = {parameter.name for parameter in _constructor(cls)}
    if not issubclass(cls, Model):
        used |= {"normalize_features"}
    elif cls.parameter_groups is not Model.parameter_groups:
        used |= {*GNN_SETTINGS}
    return settings - used


def _matching(cls: type[nn.Module], name: str, available: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the constructor that are available by name."""
    arguments: dict[str, Any] = {}
    missing = []
    for parameter in _constructor(cls):
        if parameter.name in available:
            arguments[parameter.name] = available[parameter.name]
        elif parameter.default is parameter.empty:
            missing.append(parameter.name)
    if missing:
        raise UsageError(
            f"Model {name!r} requires {', '.join(missing)}, which no setting provides. Give a "
            f"default value, or use one of: {', '.join(available)}."
        )
    return arguments


def _constructor(cls: type[nn.Module]) -> Iterator[inspect.Parameter]:
    """Yield the named arguments of a class; ``**options`` stands for those of its base class."""
    seen = set()
    for base in cls.__mro__:
        if base is nn.Module or "__init__" not in vars(base):
            continue
        init: Callable[..., None] = vars(base)["__init__"]
        parameters = list(inspect.signature(init).parameters.values())[1:]  # without self
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if parameter.name not in seen:
                seen.add(parameter.name)
                yield parameter
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            return


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed torch's CPU generator, and restore its state in the end."""
    state = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)


def _check_parameters(model: Model, name: str) -> None:
    """Refuse a model with lazy parameters, or with groups that miss or repeat a parameter."""
    parameters = list(model.parameters())
    if any(nn.parameter.is_lazy(parameter) for parameter in parameters):
        raise UsageError(
            f"Model {name!r} has parameters without a shape. Build its layers with num_features "
            "or in_channels instead of -1."
        )
    grouped = [id(p) for group in model.parameter_groups().values() for p in group]
    if sorted(grouped) != sorted(map(id, parameters)):
        raise UsageError(
            f"The parameter groups of model {name!r} must contain each of its {len(parameters)} "
            f"parameters once. They contain {len(set(grouped))} of them in {len(grouped)} entries."
        )
