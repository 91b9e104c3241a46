"""Occlusion of models that propagate linearly: exact for the whole graph, without a pass for each.

The logits of node v are a row of a polynomial of the operator times the start of the propagation:

.. math:: z_v = \\sum_t \\gamma_t\\, e_v^\\top \\tilde P^t H

Removed nodes change the operator, so the row is propagated once for each change, and for all
networks together. A change of the features changes one row of H.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from everynode.explanations.changes import Change, Surroundings
from everynode.models.feature_network import Propagation

#: More steps of propagation are not looked for.
MOST_STEPS = 512
#: Numbers of the propagated rows that are kept at once.
ENTRIES_AT_ONCE = 4_000_000

Floats = npt.NDArray[np.float64]


@runtime_checkable
class Propagating(Protocol):
    """A model whose :meth:`spread` is linear and propagates with the GCN operator."""

    def spread(self, z: Tensor, propagate: Propagation) -> Tensor:
        """Return the propagated values."""
        ...


def coefficients(model: Propagating) -> Floats:
    r"""Return the weight :math:`\gamma_t` of each power of the operator.

    >>> from everynode.models.appnp import APPNP
    >>> coefficients(APPNP(4, 2, appnp_steps=2, appnp_alpha=0.5)).tolist()
    [0.5, 0.25, 0.25]
    """
    start = torch.zeros(MOST_STEPS, 1)
    start[0] = 1.0

    def shift(z: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(z[:1]), z[:-1]])

    with torch.no_grad():
        weights = model.spread(start, shift)[:, 0].double().numpy()
    return np.trim_zeros(weights, "b")


def propagated_rows(
    surroundings: Surroundings, node: int, changes: Sequence[Change], steps: int
) -> Iterator[Floats]:
    r"""Yield :math:`(\tilde P_j^\top)^t e_v` for t = 0, ..., ``steps``: one column for each change.

    Parameters
    ----------
    surroundings : Surroundings
        The edges of the graph.
    node : int
        The node v.
    changes : sequence of Change
        The changes. Only their effect on edges counts.
    steps : int
        The number of steps.
    """
    n = surroundings.graph.num_nodes
    everyone = np.arange(n)
    mask = np.stack([change.stays(node, everyone) for change in changes], axis=1).astype(float)
    scale = 1 / np.sqrt(mask * (surroundings.incoming @ mask) + 1.0)
    inner = mask * scale
    rows = np.zeros((n, len(changes)))
    rows[node] = 1.0
    yield rows
    for _ in range(steps):
        rows = inner * (surroundings.outgoing @ (inner * rows)) + scale**2 * rows
        yield rows


def propagated_logits(
    surroundings: Surroundings,
    node: int,
    changes: Sequence[Change],
    weights: Sequence[Floats],
    starts: Sequence[Floats],
    changed: Sequence[Floats],
) -> list[Floats]:
    """Return the scores of a node under each change, for several networks.

    Parameters
    ----------
    surroundings, node, changes
        See :func:`propagated_rows`.
    weights : sequence of array
        The :func:`coefficients` of each network.
    starts : sequence of array
        The start H of each network (n x k).
    changed : sequence of array
        The row of the node in H under each change (changes x k), for each network.
    """
    places = {edges: i for i, edges in enumerate(dict.fromkeys(c.edges for c in changes))}
    unique = [Change(removed=removed, kept=kept) for removed, kept in places]
    width = max(1, ENTRIES_AT_ONCE // max(surroundings.graph.num_nodes, 1))
    totals = [np.zeros((len(unique), start.shape[1])) for start in starts]
    own = [np.zeros(len(unique)) for _ in starts]
    for first in range(0, len(unique), width):
        part = slice(first, first + width)
        steps = max(map(len, weights)) - 1
        for t, rows in enumerate(propagated_rows(surroundings, node, unique[part], steps)):
            for weight, start, total, share in zip(weights, starts, totals, own, strict=True):
                if t < len(weight):
                    total[part] += weight[t] * (rows.T @ start)
                    share[part] += weight[t] * rows[node]
    at = [places[change.edges] for change in changes]
    return [
        total[at] + share[at, None] * (rows - start[node])
        for total, share, rows, start in zip(totals, own, changed, starts, strict=True)
    ]
