"""Plots as SVG that stands in a page and takes its colours, light or dark, from the page's style sheet."""

from __future__ import annotations

import io
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kafka_shim.spark.triggers import Trigger

# Colours that matplotlib writes and the page replaces by its own.
INK, FIRST, SECOND = "#010203", "#040506", "#070809"
VARIABLES = {INK: "var(--ink)", FIRST: "var(--first)", SECOND: "var(--second)"}
SIZE_INCHES = (9.6, 2.6)
# Of every plot of this project. Text stays text, and the same figures give the same bytes. (The keys' type is
# matplotlib's list of all of them.)
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kafka-shim",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def figure(title: str, draw: Callable[[Any], None]) -> str:
    """One plot; ``draw`` gets matplotlib's axes and uses the colours FIRST and SECOND."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot, ticker

    # The page names itself.
    style = {
        **STYLE,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    }
    with pyplot.rc_context(style):
        drawn, axes = pyplot.subplots(figsize=SIZE_INCHES, layout="constrained")
        axes.set_title(title, loc="left")
        draw(axes)
        axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        buffer = io.StringIO()
        drawn.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        pyplot.close(drawn)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)


def throughput(triggers: Sequence[Trigger]) -> str:
    """Rows a second of each micro-batch."""

    def draw(axes: Any) -> None:
        axes.bar([t.batch_id for t in triggers], [t.rows_per_s for t in triggers], color=FIRST)
        axes.set_ylabel("rows/s")
        _number_batches(axes)

    return figure("Throughput by trigger", draw)


def lag(triggers: Sequence[Trigger]) -> str:
    """Offsets between the end of each micro-batch and the end of the topics."""

    def draw(axes: Any) -> None:
        axes.plot([t.batch_id for t in triggers], [t.lag for t in triggers], marker=".", color=SECOND)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("offsets behind")
        _number_batches(axes)

    return figure("Lag by trigger", draw)


def _number_batches(axes: Any) -> None:
    axes.set_xlabel("micro-batch")
    axes.xaxis.get_major_locator().set_params(integer=True)


def rate(seconds: Sequence[int], counts: Sequence[int], title: str) -> str:
    """Records of each second, from the first on."""

    def draw(axes: Any) -> None:
        began = min(seconds, default=0)
        axes.bar([second - began for second in seconds], counts, width=1.0, align="edge", color=FIRST)
        # At least some room: one second alone would fill the picture.
        axes.set_xlim(0, max(max(seconds, default=0) - began + 1, 10))
        axes.set_xlabel("s")
        axes.set_ylabel("records/s")

    return figure(title, draw)


def bars(names: Sequence[str], first: Sequence[int], second: Sequence[int], labels: tuple[str, str], title: str) -> str:
    """Two counts for each name."""

    def draw(axes: Any) -> None:
        axes.bar(names, first, color=FIRST, label=labels[0])
        axes.bar(names, second, bottom=first, color=SECOND, label=labels[1])
        axes.tick_params(axis="x", labelrotation=40)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
        axes.legend(frameon=False)

    return figure(title, draw)
