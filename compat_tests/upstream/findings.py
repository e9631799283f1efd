"""The table of counts in a suite's FINDINGS.md, between two marks; the rest of the page is written by hand."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kafka_shim.compat.upstream.runner import Result

BEGIN = "<!-- upstream: begin -->"
END = "<!-- upstream: end -->"


def table(results: Sequence[Result]) -> str:
    """One row for each target of the long form."""
    rows = ["| Target | Version of the client | Listed | Passed | At the second try | Failed | Excluded |"]
    rows.append("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for result in results:
        passed = len(result.outcomes) - len(result.failed)
        counts = [len(result.outcomes), passed, len(result.again), len(result.failed), len(result.excluded)]
        rows.append(f"| {result.target} | {result.version} | {' | '.join(map(str, counts))} |")
    return "\n".join(rows)


def write(path: Path, results: Sequence[Result]) -> None:
    """Raises ValueError when the page has no marks."""
    text = path.read_text()
    before, after = text.index(BEGIN), text.index(END)
    path.write_text(f"{text[: before + len(BEGIN)]}\n{table(results)}\n{text[after:]}")
