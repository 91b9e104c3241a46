"""Readers of user files: tables, edge lists and graph files become a checked graph."""

from typing import TYPE_CHECKING

from everynode._lazy import lazy

if TYPE_CHECKING:
    from everynode.io.feature_encoder import FeatureEncoder
    from everynode.io.reader import read
    from everynode.io.summary import GraphSummary

_HOME = {
    "FeatureEncoder": "feature_encoder",
    "GraphSummary": "summary",
    "read": "reader",
}

__all__ = ["FeatureEncoder", "GraphSummary", "read"]

__getattr__, __dir__ = lazy(__name__, _HOME)
