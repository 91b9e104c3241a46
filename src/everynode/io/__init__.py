"""People's own files: readers, type inference, feature encoding, and a summary of the result."""

from typing import TYPE_CHECKING

from everynode._lazy import lazy

if TYPE_CHECKING:
    from everynode.io.feature_encoder import Recipe
    from everynode.io.reader import read, read_csv
    from everynode.io.summary import Understood

_HOME = {
    "Recipe": "feature_encoder",
    "Understood": "summary",
    "read": "reader",
    "read_csv": "reader",
}

__all__ = ["Recipe", "Understood", "read", "read_csv"]

__getattr__, __dir__ = lazy(__name__, _HOME)
