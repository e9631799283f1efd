"""HTML pages that stand alone: their style, their frame, and the page of a streaming job. Nothing is loaded."""

from __future__ import annotations

from html import escape

from kafka_shim.spark import plots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kafka_shim.spark.triggers import Summary, Trigger

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2128; --faint: #d5dae1; --first: #2f6fb5; --second: #c8702a;
  --bad: #b3261e; --good: #1b7f4b; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #dfe5ec; --faint: #343b45; --first: #6aa9ea;
  --second: #e79a58; --bad: #ff8a80; --good: #6fd3a0; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } figure { margin: 1.5rem 0; }
th:first-child { width: 13rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--faint); vertical-align: top; }
td.number, th.number { text-align: right; width: 6rem; font-variant-numeric: tabular-nums; }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); font-weight: 600; }
svg { width: 100%; height: auto; } code { font-size: .85em; overflow-wrap: anywhere; }
summary { cursor: pointer; }
"""


def document(title: str, body: str, pictures: Sequence[str] = ()) -> str:
    """A whole page: ``body`` is HTML, ``pictures`` are SVG of `kafka_shim.spark.plots` and follow it."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{escape(title)}</title><style>{STYLE}</style></head><body>\n'
        f"<h1>{escape(title)}</h1>{body}\n"
        f"{''.join(f'<figure>{picture}</figure>' for picture in pictures)}\n</body></html>\n"
    )


def of_triggers(triggers: Sequence[Trigger]) -> list[str]:
    """Throughput and lag by trigger; nothing when there was none."""
    return [plots.throughput(triggers), plots.lag(triggers)] if triggers else []


def write_stream(path: Path, title: str, summary: Summary) -> None:
    """The page of a streaming job: its summary, and throughput and lag of each trigger."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document(title, f"<p>{escape(summary.line())}</p>", of_triggers(summary.triggers)))
