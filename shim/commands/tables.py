"""Tables on the terminal."""

from __future__ import annotations

import click

from kafka_shim.commands.options import show_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints columns as wide as their widest cell, separated by one space and a dash for None, or with `--json`
    objects."""
    show_rows(columns, rows, lambda: _print_table(columns, rows))


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    texts = [list(columns), *(["-" if cell is None else str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in texts) for index in range(len(texts[0]))]
    for row in texts:
        click.echo(" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
