"""Kernels for all nodes' predictions, compiled by numba: the terms and their gradient.

They take a few passes over the nodes and one over the edges. Importing this module imports numba:
:mod:`everynode.objectives.kernel_code` does so once per machine, to compile them.

Two things make them fast. Rows are padded to whole vector registers, since the rest of a row would
be computed one number at a time. And probabilities under tiny / eps (1e-31 in float32) count as 0:
products with them would be subnormal numbers, which take a CPU a hundred times as long, and an
objective that rewards confidence makes many.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba.extending import register_jitable

#: Sums run in any order. NaN and infinity keep their meaning, and the difference of two
#: equal products is 0.
FASTMATH = {"nsz", "arcp", "reassoc"}
#: The options of the compiler. Nothing is allocated, so no array needs its references counted.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": FASTMATH, "_nrt": False}
#: Marks a part of a kernel.
part = register_jitable(**OPTIONS)


def shift(logits, out, largest):  # type: ignore[no-untyped-def]
    r"""Subtract its ``largest`` entry from each row, :math:`x_{i,s} - \max_r x_{i,r}`.

    The padding of ``out`` becomes 0. Entries under log(tiny / eps) become log(tiny / eps): below,
    torch's exponential takes a hundred times as long.
    """
    n, k = logits.shape
    floor = logits.dtype.type(math.log(np.finfo(logits.dtype).tiny / np.finfo(logits.dtype).eps))
    for i in range(n):
        top = logits[i, 0]
        for s in range(1, k):
            top = logits[i, s] if logits[i, s] > top else top
        largest[i] = top
        for s in range(k):
            x = logits[i, s] - top
            out[i, s] = floor if x < floor else x  # in this order NaN stays NaN
        for s in range(k, out.shape[1]):
            out[i, s] = 0.0


@part
def softmax_and_entropy(x, y, k, log_sum, is_class, mass, share):  # type: ignore[no-untyped-def]
    r"""Normalize each row of ``y``, and return the mean entropy of the rows.

    Adds the rows to ``mass``, keeps the logarithm of their sums, and overwrites ``x`` by
    :math:`-share \log \hat y_{i,s}`.
    """
    n, width = x.shape
    real = x.dtype.type
    # Above the exponential of the entries that shift cut off.
    least = real(2.0 * np.finfo(x.dtype).tiny / np.finfo(x.dtype).eps)
    u = x  # each entry is read for the last time before it is written: one array less to fetch
    for s in range(width):
        is_class[s] = 1.0 if s < k else 0.0  # 0 in the padding
        mass[s] = 0.0
    entropy = 0.0
    for i in range(n):
        total = real(0.0)
        for s in range(width):
            total += y[i, s] * is_class[s]
        scale, log_total = real(1.0) / total, np.log(total)
        log_sum[i] = log_total
        negative_entropy = real(0.0)
        for s in range(width):
            log_p = x[i, s] - log_total
            p = y[i, s] * scale * is_class[s]
            p = real(0.0) if p < least else p
            y[i, s] = p
            negative_entropy += p * log_p
            u[i, s] = -share * log_p
        # A separate loop, because float64 inside the loop above slows its float32 down.
        for s in range(width):
            mass[s] += y[i, s]
        entropy -= negative_entropy
    return entropy / n


@part
def class_shares(x, k, mass, of_class, share, lam):  # type: ignore[no-untyped-def]
    """Return the negative entropy of the class shares times ``lam``, and its part of u."""
    for s in range(len(of_class)):
        of_class[s] = 0.0
    negative_entropy = 0.0
    for s in range(k):
        mean = mass[s] / len(x)
        log_mean = np.log(max(mean, np.finfo(x.dtype).tiny))  # see mean_prediction
        negative_entropy += lam * mean * log_mean
        of_class[s] = share * (lam * (log_mean + 1.0) - 1.0)
    return negative_entropy


@part
def variation(y, u, ends, factors, weight):  # type: ignore[no-untyped-def]
    """Return the total variation of ``y``, and add its part to ``u``."""
    real = y.dtype.type
    tv = 0.0
    for e in range(len(ends) // 2):
        # Unsigned, so that numba need not ask at every access whether an index counts from the end.
        one, other = np.uint64(ends[2 * e]), np.uint64(ends[2 * e + 1])
        a_one, a_other = factors[2 * e], factors[2 * e + 1]
        of_edge = real(0.0)
        for s in range(y.shape[1]):
            jump = a_one * y[one, s] + a_other * y[other, s]
            of_edge += abs(jump)
            # Without a branch, which would be mispredicted half of the time.
            sign = weight * (real(jump > 0) - real(jump < 0))
            u[one, s] += a_one * sign
            u[other, s] += a_other * sign
        tv += of_edge
    return tv


@part
def through_softmax(y, u, of_class, gradient):  # type: ignore[no-untyped-def]
    """Write the gradient with respect to the logits: the derivative of the softmax times u."""
    n, width = y.shape
    real = y.dtype.type
    for i in range(n):
        mean_u = real(0.0)
        for s in range(width):
            u[i, s] += of_class[s]
            mean_u += y[i, s] * u[i, s]
        for s in range(gradient.shape[1]):
            gradient[i, s] = y[i, s] * (u[i, s] - mean_u)


@part
def cross_entropy(  # type: ignore[no-untyped-def]
    logits, largest, log_sum, y, nodes, weights, labels, gradient
):  # fmt: skip
    """Return the cross-entropy of the labeled nodes, and add its gradient."""
    real = y.dtype.type
    ce = 0.0
    for j in range(len(nodes)):
        i, label, share = nodes[j], labels[j], real(weights[j] / len(nodes))
        # In float64: for large logits in float32, "largest + log_sum" would lose all of log_sum.
        ce -= weights[j] * (
            np.float64(logits[i, label]) - np.float64(largest[i]) - np.float64(log_sum[i])
        )
        for s in range(logits.shape[1]):
            gradient[i, s] += share * y[i, s]
        gradient[i, label] -= share
    return ce / len(nodes)


def terms_and_gradient(  # type: ignore[no-untyped-def]
    logits, largest, x, y, ends, factors, nodes, weights, labels, alpha, lam, beta, work, mass,
    gradient,
):  # fmt: skip
    r"""Return CE, MI, TV and their weighted sum, and write the gradient of the sum.

    .. math:: \frac{\partial (\mathcal{L}_{CE} + \alpha \mathcal{L}_{MI}
              + \beta \mathcal{L}_{TV})}{\partial x_{i,s}}
              = \hat y_{i,s} \Big( u_{i,s} - \sum_{r=1}^{k} \hat y_{i,r} u_{i,r} \Big)
              + \frac{[i \in V^{lab}] \, w_i}{|V^{lab}|} (\hat y_{i,s} - y_{i,s}),

    .. math:: u_{i,s} = \frac{\alpha}{|V|}
              \big( \lambda (\log \tilde y_s + 1) - 1 - \log \hat y_{i,s} \big)
              + \beta \sum_{e \ni i} a_{e,i} \,
              \mathrm{sign}\Big( \sum_{j \in e} a_{e,j} \hat y_{j,s} \Big)

    Sums over nodes and edges are taken in float64.

    Parameters
    ----------
    logits : array
        n x k.
    largest, x : array
        The results of :func:`shift`; ``x`` becomes :math:`u`.
    y : array
        The exponential of ``x``; it becomes :math:`\hat y`.
    ends : array
        The two nodes of the first edge, of the second, and so on.
    factors : array
        Their :math:`a`: the entries of the operator of total variation.
    nodes : array
        :math:`V^{lab}`.
    weights : array
        The weight of each of these, 1 on average.
    labels : array
        The class index of each of these.
    alpha, lam, beta : float
        The weight of MI, its :math:`\lambda`, and the weight of TV.
    work : array
        Space for n + 2 width numbers.
    mass : array
        Space for the mass of each class.
    gradient : array
        n x k, for the result.
    """
    (n, width), k, real = x.shape, logits.shape[1], x.dtype.type
    log_sum, is_class, of_class = work[:n], work[n : n + width], work[n + width :]
    share = real(alpha / n)
    mi = softmax_and_entropy(x, y, k, log_sum, is_class, mass, share)
    mi += class_shares(x, k, mass, of_class, share, lam)
    tv = variation(y, x, ends, factors, real(beta))
    through_softmax(y, x, of_class, gradient)
    ce = cross_entropy(logits, largest, log_sum, y, nodes, weights, labels, gradient)
    total = real(ce + alpha * mi + beta * tv)  # infinite if too large for the type
    return real(ce), real(mi), real(tv), total


def to_llvm(dtype: str) -> dict[str, tuple[str, str]]:
    """Compile both kernels for 'float32' or 'float64' to functions of pointers and sizes.

    Returns the LLVM assembly of each kernel, and the name of its function there.
    """
    options = {**OPTIONS, "_nrt": True}  # for carray
    inner_shift = numba.njit(**OPTIONS)(shift)
    inner_terms = numba.njit(**OPTIONS)(terms_and_gradient)
    real, size, number = numba.from_dtype(np.dtype(dtype)), numba.int64, numba.float64
    reals, numbers = numba.types.CPointer(real), numba.types.CPointer(number)
    indices, columns = numba.types.CPointer(size), numba.types.CPointer(numba.int32)

    def of_pointers(logits, n, k, out, width, largest):  # type: ignore[no-untyped-def]
        inner_shift(
            numba.carray(logits, (n, k)), numba.carray(out, (n, width)), numba.carray(largest, (n,))
        )

    def terms_of_pointers(  # type: ignore[no-untyped-def]
        logits, n, k, largest, x, y, width, ends, factors, num_ends, nodes, weights, labels,
        num_labels, alpha, lam, beta, work, mass, gradient, values,
    ):  # fmt: skip
        values[0], values[1], values[2], values[3] = inner_terms(
            numba.carray(logits, (n, k)), numba.carray(largest, (n,)),
            numba.carray(x, (n, width)), numba.carray(y, (n, width)),
            numba.carray(ends, (num_ends,)), numba.carray(factors, (num_ends,)),
            numba.carray(nodes, (num_labels,)), numba.carray(weights, (num_labels,)),
            numba.carray(labels, (num_labels,)), alpha, lam, beta,
            numba.carray(work, (n + 2 * width,)), numba.carray(mass, (width,)),
            numba.carray(gradient, (n, k)),
        )  # fmt: skip

    void = numba.void
    compiled = {
        "shift": numba.cfunc(void(reals, size, size, reals, size, reals), **options)(of_pointers),
        "terms_and_gradient": numba.cfunc(
            void(
                reals, size, size, reals, reals, reals, size, columns, reals, size, indices,
                numbers, indices, size, number, number, number, reals, numbers, reals, reals,
            ),
            **options,
        )(terms_of_pointers),
    }  # fmt: skip
    # numba calls the function itself from a wrapper with the prefix, which needs numba to run.
    return {
        name: (function.inspect_llvm(), function.native_name.removeprefix("cfunc."))
        for name, function in compiled.items()
    }
