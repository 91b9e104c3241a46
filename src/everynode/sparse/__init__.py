"""Sparse matrices and their products, differentiable twice."""

from everynode.sparse.matrix import (
    Pattern,
    SparseMatrix,
    draw_noise,
    drop,
    rows_of,
    sddmm,
    spmm,
    where_positive,
)

__all__ = [
    "Pattern",
    "SparseMatrix",
    "draw_noise",
    "drop",
    "rows_of",
    "sddmm",
    "spmm",
    "where_positive",
]
