"""The table of the parts in docs/compatibility.md, between two marks: rows of parts that did not run stay."""

from __future__ import annotations

from kafka_shim.targets.kafka_jars import ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.compat.ecosystem.base import Result

PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- ecosystem: begin -->", "<!-- ecosystem: end -->"
HEAD = ("| What | Version | The application | Shim and Apache Kafka |", "| --- | --- | --- | --- |")


def row(result: Result) -> str:
    part = result.part
    verdict = "the same" if result.is_same else "different"
    count = len(next(iter(result.found.values())))
    return f"| {part.title} | {part.version} | {part.what} | {verdict}, {count} findings |"


def write(rows: Mapping[str, str]) -> None:
    """Replaces the rows of those that ran. Raises ValueError when the page has no marks."""
    text = PAGE.read_text()
    before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
    lines = [line for line in text[before:after].splitlines() if line.startswith("| ") and line not in HEAD]
    kept = {line.split(" | ")[0]: line for line in lines}
    kept |= {line.split(" | ")[0]: line for line in rows.values()}
    PAGE.write_text(text[:before] + "\n" + "\n".join([*HEAD, *kept.values()]) + "\n" + text[after:])
