"""Graph data as a reader of public files returns it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from everynode.graph import Split


class Raw(NamedTuple):
    """Arrays of a public graph, before :meth:`everynode.Graph.from_arrays` checks them.

    Attributes
    ----------
    features : scipy.sparse.csr_array or array of shape (n, c)
        Node features.
    arcs : array of shape (2, m)
        Source and target as in the file, with self-loops and repetitions.
    labels : array of shape (n,)
        Class indices, -1 for an unlabeled node.
    num_classes : int
        The number of classes.
    split : Split or None
        The split that comes with the files.
    """

    features: Any
    arcs: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    num_classes: int
    split: Split | None = None
