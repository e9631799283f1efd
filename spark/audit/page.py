"""The audit as one HTML file: nothing is loaded from anywhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from spark import plots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark.audit.judge import Report
    from spark.triggers import Trigger

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2128; --faint: #d5dae1; --first: #2f6fb5; --second: #c8702a;
  --bad: #b3261e; --good: #1b7f4b; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #dfe5ec; --faint: #343b45; --first: #6aa9ea;
  --second: #e79a58; --bad: #ff8a80; --good: #6fd3a0; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--faint); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); font-weight: 600; }
svg { max-width: 100%; height: auto; } code { font-size: .85em; overflow-wrap: anywhere; }
summary { cursor: pointer; }
"""


def render(
    report: Report,
    title: str,
    rates: Sequence[tuple[int, int]] = (),
    triggers: Sequence[Trigger] = (),
) -> str:
    """``rates``: (second, records) of the data topics; ``triggers``: of the streaming job, where there was one."""
    total = sum(report.errors.values())
    verdict = f'<span class="bad">{total:,} errors</span>' if total else '<span class="good">no errors</span>'
    rows = "".join(_row(name, each.errors, each.tolerated, each.examples) for name, each in report.found.items())
    shown = {name: each for name, each in report.found.items() if each.errors or each.tolerated}
    pictures = []
    if shown:
        counts = [[each.errors for each in shown.values()], [each.tolerated for each in shown.values()]]
        pictures.append(plots.bars(list(shown), *counts, ("errors", "tolerated"), "Anomalies by class"))
    if rates:
        seconds, counted = zip(*rates, strict=True)
        pictures.append(plots.rate(seconds, counted, "Records of the data topics"))
    if triggers:
        pictures += [plots.throughput(triggers), plots.lag(triggers)]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{escape(title)}</title><style>{STYLE}</style></head><body>\n'
        f"<h1>{escape(title)}</h1><p>{report.operations:,} operations, {report.sent:,} records sent, "
        f"{report.polled:,} polled: {verdict}. The audit took {report.seconds:.1f} s and "
        f"{report.memory_mb:,.0f} MB of the JVM at most.</p>\n"
        f'<table><thead><tr><th>class</th><th class="number">errors</th><th class="number">tolerated</th>'
        f"<th>examples</th></tr></thead><tbody>{rows}</tbody></table>\n"
        f"{''.join(f'<figure>{picture}</figure>' for picture in pictures)}\n</body></html>\n"
    )


def _row(name: str, errors: int, tolerated: int, examples: Sequence[str]) -> str:
    shown = ""
    if examples:
        rest = "".join(f"<br><code>{escape(text)}</code>" for text in examples[1:])
        first = f"<code>{escape(examples[0])}</code>"
        shown = f"<details><summary>{first}</summary>{rest}</details>" if rest else first
    mark = ' class="number bad"' if errors else ' class="number"'
    numbers = f'<td{mark}>{errors:,}</td><td class="number">{tolerated:,}</td>'
    return f"<tr><td>{escape(name)}</td>{numbers}<td>{shown}</td></tr>"
