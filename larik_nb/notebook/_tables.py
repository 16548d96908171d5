"""Data frames and series in words: columns with their types and gaps, and a few rows.

Known by the names of their types, so that no library is imported to ask; what is lazy stays lazy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from larik_nb.notebook import _bounded, redact

FORMS = ("schema", "head", "stats", "csv")
"""schema: the columns without a value; head: 20 rows; stats: the library's own summary; csv: all rows, as far as fits."""

_EAGER = {"pandas": ("DataFrame", "Series"), "polars": ("DataFrame", "Series"), "pyarrow": ("Table",)}
_LAZY_ROOTS = ("dask", "pyspark", "ibis", "duckdb", "vaex", "modin")
_LAZY_NAMES = ("LazyFrame", "DataFrame", "Series", "Table", "DuckDBPyRelation")

_ROWS, _HEAD_ROWS = 5, 20
_COLUMNS = 60
_CELL = 200
_MOST_CELLS = 20_000_000
"""Cells in which missing ones are counted; beyond, counting would be felt."""


def is_table(value: Any) -> bool:
    """Return whether it is a frame or series of a known library, lazy ones included."""
    return _is_eager(value) or is_lazy(value)


def forms(value: Any) -> tuple[str, ...]:
    """Return the forms that this table has: not every library sums its tables up."""
    return FORMS if hasattr(type(value), "describe") else tuple(form for form in FORMS if form != "stats")


def _is_eager(value: Any) -> bool:
    return any(name in _EAGER.get(root, ()) for root, name in _bounded.lineage(value))


def is_lazy(value: Any) -> bool:
    """Return whether asking for its values would begin to compute."""
    return any(
        (root in _LAZY_ROOTS or (root == "polars" and name == "LazyFrame")) and name in _LAZY_NAMES
        for root, name in _bounded.lineage(value)
    )


def brief(value: Any) -> str:
    """Return a table's size and columns in one line, without a value."""
    if is_lazy(value):
        return f"<lazy {type(value).__name__}>"
    frame = _framed(value)
    rows, _ = frame.shape
    return f"<{type(value).__name__} of {rows:,} rows: {', '.join(map(str, list(frame.columns)[:20]))}>"


def words(value: Any, form: str = "") -> str:
    """Return a table in words.

    Args:
        value: A frame or series.
        form: One of `FORMS`; empty: the columns and five rows.
    """
    if is_lazy(value):
        return _lazy(value)
    frame = _framed(value)
    shown: dict[str, Callable[[], str]] = {
        "schema": lambda: _schema(frame, type(value).__name__),
        "head": lambda: _rows(frame, _HEAD_ROWS),
        "stats": lambda: str(value.describe()),
        "csv": lambda: _csv(frame),
    }
    if form:
        return shown[form]()
    return f"{_schema(frame, type(value).__name__)}\n\n{_rows(frame, _ROWS)}"


def _lazy(value: Any) -> str:
    """Say what it is; the columns where they are there without computing."""
    name = f"{type(value).__module__.partition('.')[0]} {type(value).__name__}"
    columns = ""
    if type(value).__module__.startswith("dask") and hasattr(value, "dtypes"):
        kinds = value.dtypes
        columns = ", ".join(f"{key} {kind}" for key, kind in kinds.items()) if hasattr(kinds, "items") else str(kinds)
    elif hasattr(value, "collect_schema"):
        columns = ", ".join(f"{key} {kind}" for key, kind in value.collect_schema().items())
    return f"{name}, lazy and not computed" + (f"; columns: {columns}" if columns else "")


def _framed(value: Any) -> Any:
    """Return a frame with columns, shape, dtypes and head, whatever the library calls them."""
    if hasattr(value, "to_frame"):
        return value.to_frame()
    return _Arrow(value) if type(value).__module__.partition(".")[0] == "pyarrow" else value


class _Arrow:
    """A table of pyarrow with a frame's manners."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.shape = table.shape
        self.columns = table.column_names
        self.dtypes = table.schema.types

    def head(self, count: int) -> _Arrow:
        """Return the first rows."""
        return _Arrow(self._table.slice(0, count))

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the values by rows."""
        return list(zip(*(column.to_pylist() for column in self._table.columns), strict=True))

    def gaps(self) -> list[int]:
        """Return the missing values by column."""
        return [column.null_count for column in self._table.columns]


def _schema(frame: Any, kind: str) -> str:
    rows, width = frame.shape
    names = [_cell(name) for name in list(frame.columns)[:_COLUMNS]]
    kinds = [str(kind) for kind in list(frame.dtypes)[:_COLUMNS]]
    gaps = _gaps(frame)
    lines = [_row(["column", "type", "missing"]), _row(["---"] * 3)]
    lines += [_row([*cells]) for cells in zip(names, kinds, map(_count, gaps), strict=True)]
    if width > _COLUMNS:
        lines.append(f"\nand {width - _COLUMNS:,} more columns")
    size = f"{rows:,} row{'s' * (rows != 1)}, {width:,} column{'s' * (width != 1)}"
    return f"{kind} of {size}\n\n" + "\n".join(lines)


def _count(gaps: int | None) -> str:
    return "not counted" if gaps is None else f"{gaps:,}"


def _gaps(frame: Any) -> list[int | None]:
    """Return the missing values of each column shown; None where there is too much to count."""
    rows, width = frame.shape
    if rows * width > _MOST_CELLS:
        return [None] * min(width, _COLUMNS)
    if isinstance(frame, _Arrow):
        return list(frame.gaps()[:_COLUMNS])
    if hasattr(frame, "null_count"):
        return list(frame.null_count().row(0)[:_COLUMNS]) if width else []
    return [int(count) for count in frame.isna().sum().tolist()[:_COLUMNS]] if width else []


def _rows(frame: Any, count: int) -> str:
    rows, width = frame.shape
    head = frame.head(count)
    names = [_cell(name) for name in list(head.columns)[:_COLUMNS]]
    # By position: names may be there twice.
    cells = list(head.rows()) if hasattr(head, "rows") else list(head.itertuples(index=False, name=None))
    index = [_cell(label) for label in head.index] if hasattr(head, "index") else [str(n) for n in range(len(cells))]
    cells = cells or [()] * len(index)
    lines = [
        _row(["", *names]),
        _row(["---"] * (len(names) + 1)),
        *(_row([label, *map(_cell, row[:_COLUMNS])]) for label, row in zip(index, cells, strict=True)),
    ]
    more = f", {width - _COLUMNS:,} columns left out" if width > _COLUMNS else ""
    shown = f"first {len(cells)} of {rows:,} rows" if rows > len(cells) else f"all {rows} rows"
    return f"{shown}{more}\n\n" + "\n".join(lines)


_CSV_ROWS = 2_000


def _csv(frame: Any) -> str:
    """Return the rows as CSV, as many as may fit."""
    import csv
    import io

    head = frame.head(_CSV_ROWS)
    cells = head.rows() if hasattr(head, "rows") else head.itertuples(index=False, name=None)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([str(name) for name in head.columns])
    writer.writerows(cells)
    return out.getvalue().rstrip("\n")


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: Any) -> str:
    text = str(value)
    short = redact.cut(text, _CELL) + "…" if len(text) > _CELL else text
    return short.replace("|", "\\|").replace("\r", " ").replace("\n", " ")
