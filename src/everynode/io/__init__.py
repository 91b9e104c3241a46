"""People's own files: readers, type inference, feature encoding, and a summary of the result."""

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
