"""Graph data as a reader of public files returns it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from everynode.graph import Split


class Raw(NamedTuple):
    """Arrays of a public graph, before :meth:`everynode.Graph.from_arrays` checks them."""

    #: n x c, a SciPy CSR array or a dense array.
    features: Any
    #: 2 x m, source and target as in the file, with self-loops and repetitions.
    arcs: npt.NDArray[np.int64]
    #: Class indices, -1 for an unlabelled node.
    labels: npt.NDArray[np.int64]
    num_classes: int
    #: The split that comes with the files, if any.
    split: Split | None = None
