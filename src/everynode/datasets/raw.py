"""What the readers of public files return."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from everynode.graph import Split


class Raw(NamedTuple):
    """What a reader found in its files, before :meth:`everynode.Graph.from_arrays` checks and tidies it."""

    #: n x c, a SciPy CSR array or a dense array.
    features: Any
    #: 2 x m, source and target, as in the file: with its loops and repeats.
    arcs: npt.NDArray[np.int64]
    #: Class indices, -1 for none.
    labels: npt.NDArray[np.int64]
    num_classes: int
    #: The split that comes with the files, if one does.
    split: Split | None = None
