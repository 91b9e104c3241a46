"""The features of a node table: the encoder fitted to its columns, and the encoded blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everynode.errors import DataError
from everynode.graph.structural_features import structural_features
from everynode.io.cells import Cells
from everynode.io.column_encoder import ColumnEncoder
from everynode.io.column_fitting import fit_column
from everynode.io.column_names import ALL, DateOrder
from everynode.io.edge_table import EdgeTable
from everynode.io.feature_encoder import FeatureEncoder, encode_block, join_blocks
from everynode.io.graph_files import GraphTables
from everynode.io.label_leakage import warn_of_label_leakage
from everynode.io.labels import Labels
from everynode.io.plain_numbers import fit_plain_columns
from everynode.io.roles import RequestedFeatures, find_features, layout_columns
from everynode.io.summary import Notes
from everynode.io.tables import Table
from everynode.io.type_inference import AMBIGUOUS_DATES, Kind

if TYPE_CHECKING:
    from everynode.io.reader import Request


def _without_layout(wanted: RequestedFeatures, features: Any, notes: Notes) -> RequestedFeatures:
    """Leave out the layout and colors of Gephi, unless the features are named."""
    drawn = layout_columns(list(wanted.columns)) if features == ALL else []
    if not drawn:
        return wanted
    notes.repair(
        f"Columns {', '.join(drawn)} left out: they look like Gephi's layout and colors. Name the "
        "features to use them (features='...', or --features).",
        len(drawn),
    )
    columns = {name: kind for name, kind in wanted.columns.items() if name not in drawn}
    return wanted._replace(columns=columns)


def fit_encoder(
    request: Request,
    tables: GraphTables,
    node_table: Table,
    edge_table: EdgeTable,
    roles: Mapping[str, str],
    labels: Labels,
    notes: Notes,
) -> tuple[FeatureEncoder, list[Any]]:
    """Fit the encoder of the requested features, and return it with the encoded blocks."""
    features, na = request.features, request.na
    wanted = _without_layout(find_features(features, node_table, roles), features, notes)
    columns, blocks = _fit_transform(
        wanted.columns, node_table, labels, notes, na=na, date_order=request.date_order
    )
    encoder = _make_encoder(
        columns, wanted, tables, edge_table, roles, labels, na=na, unknown=request.unknown
    )
    return encoder, blocks


def _fit_transform(
    kinds: Mapping[str, Kind | None],
    table: Table,
    labels: Labels,
    notes: Notes,
    *,
    na: Sequence[str],
    date_order: DateOrder | None,
) -> tuple[tuple[ColumnEncoder, ...], list[Any]]:
    """Fit and apply the encoder of each column in one pass, and check it for label leakage."""
    columns, blocks = [], []
    plain = fit_plain_columns(table, kinds, labels, na)
    for name, kind in kinds.items():
        if encoder := plain.encoders.get(name):
            columns.append(encoder)
            if name in plain.to_check:
                cells = Cells(table, name, na, date_order)
                warn_of_label_leakage(cells, encoder, labels, notes, num_columns=len(kinds))
            if name in plain.blocks:
                blocks.append(plain.blocks[name].take(encoder, table, notes))
            continue
        cells = Cells(table, name, na, date_order)
        column = fit_column(cells, kind)
        columns.append(column)
        if column.reason.startswith(AMBIGUOUS_DATES):
            notes.warn(
                f"{cells.where} left out: {column.reason}. Give the order (date_order='dmy' or "
                "'mdy', or --date-order)."
            )
        if column.kind != "ignored":
            warn_of_label_leakage(cells, column, labels, notes, num_columns=len(kinds))
            blocks.append(encode_block(column, cells, notes))
    return tuple(columns), blocks


def _make_encoder(
    columns: tuple[ColumnEncoder, ...],
    wanted: RequestedFeatures,
    tables: GraphTables,
    edges: EdgeTable,
    roles: Mapping[str, str],
    labels: Labels,
    *,
    na: tuple[str, ...],
    unknown: str,
) -> FeatureEncoder:
    """Return the encoder that gives later files the same features and classes."""
    has_matrix = wanted.matrix and tables.features is not None
    has_columns = any(column.feature_names for column in columns)
    return FeatureEncoder(
        columns,
        roles=roles,
        classes=labels.classes,
        structural=wanted.structure or not (has_matrix or has_columns),
        matrix=int(tables.features.shape[1]) if has_matrix else 0,
        weight_unit=edges.mean_weight,
        weight_comma=edges.comma,
        na=na,
        unknown=unknown,
    )


def join_features(
    blocks: list[Any],
    encoder: FeatureEncoder,
    tables: GraphTables,
    node_table: Table,
    edges: EdgeTable,
) -> Any:
    """Join the features: the matrix of the file, then the columns, then the structure."""
    n, matrix = node_table.num_rows, tables.features
    if encoder.matrix:
        if matrix is None or matrix.shape[1] != encoder.matrix:
            raise DataError(
                f"{node_table.where} must hold a matrix of {encoder.matrix:,} features. It has "
                f"{'none' if matrix is None else matrix.shape[1]}."
            )
        blocks = [matrix, *blocks]
    if encoder.structural:
        blocks = [*blocks, structural_features(edges.pairs, n)]
    return join_blocks(blocks, n)
