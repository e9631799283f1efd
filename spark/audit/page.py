"""The audit as one HTML file: nothing is loaded from anywhere."""

from __future__ import annotations

from html import escape

from kafka_shim.spark import pages, plots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.spark.audit.judge import Report
    from kafka_shim.spark.triggers import Trigger


def render(
    report: Report,
    title: str,
    rates: Sequence[tuple[int, int]] = (),
    triggers: Sequence[Trigger] = (),
    note: str = "",
) -> str:
    """``rates``: (second, records) of the data topics; ``triggers``: of the streaming job, where there was one;
    ``note``: a line of text about what is audited."""
    total = sum(report.errors.values())
    verdict = f'<span class="bad">{total:,} errors</span>' if total else '<span class="good">no errors</span>'
    rows = "".join(_row(name, each.errors, each.tolerated, each.examples) for name, each in report.found.items())
    shown = {name: each for name, each in report.found.items() if each.errors or each.tolerated}
    pictures = []
    if shown:
        errors, tolerated = zip(*((each.errors, each.tolerated) for each in shown.values()), strict=True)
        pictures.append(plots.bars(list(shown), errors, tolerated, ("errors", "tolerated"), "Anomalies by class"))
    if rates:
        seconds, counted = zip(*rates, strict=True)
        pictures.append(plots.rate(seconds, counted, "Records of the data topics"))
    body = (
        (f"<p>{escape(note)}</p>\n" if note else "")
        + f"<p>{report.operations:,} operations, {report.sent:,} records sent, {report.polled:,} polled: {verdict}. "
        f"The audit took {report.seconds:.1f} s and {report.memory_mb:,.0f} MB of the JVM at most.</p>\n"
        f'<table><thead><tr><th>class</th><th class="number">errors</th><th class="number">tolerated</th>'
        f"<th>examples</th></tr></thead><tbody>{rows}</tbody></table>"
    )
    return pages.document(title, body, [*pictures, *pages.of_triggers(triggers)])


def _row(name: str, errors: int, tolerated: int, examples: Sequence[str]) -> str:
    shown = ""
    if examples:
        rest = "".join(f"<br><code>{escape(text)}</code>" for text in examples[1:])
        first = f"<code>{escape(examples[0])}</code>"
        shown = f"<details><summary>{first}</summary>{rest}</details>" if rest else first
    mark = ' class="number bad"' if errors else ' class="number"'
    numbers = f'<td{mark}>{errors:,}</td><td class="number">{tolerated:,}</td>'
    return f"<tr><td>{escape(name)}</td>{numbers}<td>{shown}</td></tr>"
