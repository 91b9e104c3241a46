"""Models by name."""

from __future__ import annotations

from everynode.models.network import Network
from everynode.settings import Settings


def build_model(
    num_features: int, num_classes: int, settings: Settings, *, seed: int = 0
) -> Network:
    """Build the model that the settings name."""
    return Network(num_features, num_classes, seed=seed, **settings.group("Model"))
