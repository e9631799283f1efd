"""Writes `generated_rows.py`, the facts of Kafka's options, from Kafka's released jars.

``python -m kafka_shim.config.transcribe LIBS`` needs a JDK and the Kafka 4.3.1 jars in the folder LIBS. Names, types,
defaults, checks and importance are facts of Kafka; documentation is this project's own (`docs.py`).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DRIVER = Path(__file__).with_name("OptionFacts.java")
TARGET = Path(__file__).with_name("generated_rows.py")
HEAD = '''"""Every option of Kafka 4.3.1, as facts. Written by kafka_shim.config.transcribe: do not edit.

Rows are (name, type, default, check, importance, how it may change at run time). `REQUIRED` stands for no default,
None for a default of null; checks are in Kafka's words. Kafka defines and parses the options of a table in this order.
`CLIENT_NAMES`: the options of producers, consumers and Admin.
"""
# ruff: noqa: E501 one row a line
# fmt: off

from __future__ import annotations

REQUIRED = "\\x01"
'''
TAB = "\t"


def facts(libs: Path) -> str:
    """What the Java driver prints about the jars in `libs`."""
    command = ["java", "-Xmx256m", "-cp", f"{libs}/*", str(DRIVER)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def render(lines: str) -> str:
    """The module for what the driver printed."""
    tables: dict[str, list[str]] = {}
    clients: list[str] = []
    for line in lines.splitlines():
        if line.startswith("CLIENT\t"):
            clients.append(f"    {_text(line.partition(TAB)[2])},")
            continue
        table, name, kind, value, check, importance, update, internal = line.split("\t")
        default = "None" if value == "\0" else "REQUIRED" if value == "\1" else _text(value)
        cells = [_text(name), _text(kind), default, _text(check), _text(importance), _text(update)]
        if internal:
            cells.append(_text(internal))
        tables.setdefault(table, []).append(f"    ({', '.join(cells)}),")
    parts = [HEAD]
    for table, rows in tables.items():
        parts.append(f"{table}: tuple[tuple[str | None, ...], ...] = (\n" + "\n".join(rows) + "\n)\n")
    if clients:
        parts.append("CLIENT_NAMES: tuple[str, ...] = (\n" + "\n".join(clients) + "\n)\n")
    return "\n".join(parts)


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


if __name__ == "__main__":
    TARGET.write_text(render(facts(Path(sys.argv[1]))), encoding="utf-8")
