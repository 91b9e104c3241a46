"""Reader of Excel workbooks: one sheet is one table."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from everynode.errors import DataError
from everynode.extras import install_command
from everynode.io.delimited_layout import is_number
from everynode.io.formats import check_unpacked, unpacked_limit
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table, make_table

#: Usual names of the sheets of nodes and of edges, in lower case.
SHEETS = {False: ("nodes", "vertices", "knoten"), True: ("edges", "links", "kanten")}
#: The values of cells with a failed formula.
ERRORS = ("#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#N/A")
#: A title above the table is looked for in this many rows.
TITLE_ROWS = 10


def read_excel(path: Path, sheet: str, notes: Notes, *, edges: bool = False) -> Table:
    """Read a sheet of a workbook.

    Without the name of a sheet, the workbook must have one sheet with cells, or one with a usual
    name such as "nodes" or "edges". Titles above the table and blank rows are skipped.
    """
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            f"{path} is an Excel workbook, which needs openpyxl: {install_command('excel')}, "
            "or save the sheet as CSV."
        ) from None
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        check_unpacked(path, size, unpacked_limit(path))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheets = {page.title: page for page in book.worksheets}
        if sheet and sheet not in sheets:
            raise DataError(f"{path} has no sheet {sheet!r}. {_list_sheets(path, list(sheets))}")
        filled = {title: _rows(page) for title, page in sheets.items() if sheet in ("", title)}
        book.close()
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} is not an Excel workbook that can be read ({error}): save the sheet as CSV."
        ) from error
    filled = {title: rows for title, rows in filled.items() if rows}
    usual = [title for title in filled if title.lower() in SHEETS[edges]]
    chosen = usual[:1] if len(usual) == 1 else list(filled)
    if len(chosen) != 1:
        raise DataError(
            f"{path} has {counted(len(chosen), 'sheet')} with cells. "
            f"{_list_sheets(path, chosen or list(sheets))}"
        )
    return _make_table(path, chosen[0], filled[chosen[0]], notes, edges=edges)


def _list_sheets(path: Path, titles: list[str]) -> str:
    return f"Name one, as in {path}#{titles[0]}. Its sheets: {', '.join(titles)}."


def _rows(page: Any) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the number and the cells of each row that is not blank."""
    return [
        (number, cells)
        for number, cells in enumerate(page.iter_rows(values_only=True), start=1)
        if any(not _is_blank(cell) for cell in cells)
    ]


def _make_table(
    path: Path,
    title: str,
    rows: list[tuple[int, tuple[Any, ...]]],
    notes: Notes,
    *,
    edges: bool,
) -> Table:
    where = f"{path}#{title}"
    rows = _skip_titles(rows, where, notes)
    width = max(_width(cells) for _, cells in rows)
    heading = [*rows[0][1], *[None] * width][:width]
    if edges and width > 1 and all(is_number(str(cell)) for cell in heading):  # a bare edge list
        heading = [None] * width
    else:
        rows = rows[1:]
    names = [
        f"column {place}" if _is_blank(cell) else str(cell).strip()
        for place, cell in enumerate(heading, start=1)
    ]
    errors = [number for number, cells in rows if any(cell in ERRORS for cell in cells)]
    if errors:
        notes.repair(
            f"{counted(len(errors), 'row')} of {where} with failed formulas, treated as missing "
            f"(row {errors[0]}).",
            len(errors),
        )
    columns = [
        (name, [_value(cells[place]) if place < len(cells) else None for _, cells in rows])
        for place, name in enumerate(names)
    ]
    how = f"{counted(width, 'column')}, Excel"
    return make_table(where, columns, how, "row", [number for number, _ in rows])


def _skip_titles(
    rows: list[tuple[int, tuple[Any, ...]]], where: str, notes: Notes
) -> list[tuple[int, tuple[Any, ...]]]:
    """Skip rows of one cell above a wider table."""
    filled = [sum(not _is_blank(cell) for cell in cells) for _, cells in rows[:TITLE_ROWS]]
    if max(filled) < 2:
        return rows
    start = next(place for place, count in enumerate(filled) if count > 1)
    if start:
        notes.repair(f"{counted(start, 'row')} above the heading of {where} skipped.", start)
    return rows[start:]


def _width(cells: tuple[Any, ...]) -> int:
    return max((place for place, cell in enumerate(cells, 1) if not _is_blank(cell)), default=0)


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _value(cell: Any) -> Any:
    return None if _is_blank(cell) or cell in ERRORS else cell
