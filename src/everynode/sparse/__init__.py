"""Sparse matrices and their products, differentiable twice."""

from everynode.sparse.dropout import draw_noise, drop, where_positive
from everynode.sparse.matrix import Pattern, SparseMatrix, rows_of
from everynode.sparse.products import sddmm, spmm

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
