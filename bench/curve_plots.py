"""Draws the curves of `bench.curves`: ``python -m bench.curve_plots [JSON [SVG]]``.

One small plot for each curve, both axes logarithmic: broker CPU of one operation as a line, its median latency dashed;
a bar spans the rounds. The picture holds the digest of what it shows, which ``scripts/bench_tables.py check`` compares.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
from pathlib import Path

from bench.client_process import ROOT
from bench.curves import KAFKA, SHIM, medians
from kafka_shim.spark.plots import STYLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

FIGURES = ROOT / "docs" / "curves.json"
PICTURE = ROOT / "docs" / "images" / "curves.svg"
COLUMNS = 2
# Of two brokers that people tell apart also without colours: the shim's marks are round, Kafka's square.
LOOKS = {SHIM: ("shim", "#0b6e99", "o"), KAFKA: ("Apache Kafka 4.3.1", "#b4530a", "s")}


def digest(curves: Mapping[str, Any]) -> str:
    """Of the figures that a picture shows."""
    return hashlib.sha256(json.dumps(curves, sort_keys=True).encode()).hexdigest()


def draw(curves: Mapping[str, Any]) -> str:
    """The picture as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    lines = -(-len(curves) // COLUMNS)
    with pyplot.rc_context(STYLE):
        drawn, places = pyplot.subplots(lines, COLUMNS, figsize=(9.6, 2.5 * lines), layout="constrained", squeeze=False)
        for axes, curve in zip(places.flat, curves.values(), strict=False):
            _draw_one(axes, curve)
        for axes in places.flat[len(curves) :]:
            axes.set_visible(False)
        handles, labels = places.flat[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper left", ncols=len(labels), frameon=False)
        buffer = io.StringIO()
        about = {"Date": None, "Creator": None, "Description": digest(curves)}
        drawn.savefig(buffer, format="svg", facecolor="white", metadata=about)
        pyplot.close(drawn)
    return re.sub(r" +$", "", buffer.getvalue(), flags=re.MULTILINE)


def _draw_one(axes: Any, curve: Mapping[str, Any]) -> None:
    from matplotlib import ticker

    sizes = [point["size"] for point in curve["points"]]
    for kind, (label, colour, mark) in LOOKS.items():
        latency_us, cost_us = zip(*(medians(point, kind) for point in curve["points"]), strict=True)
        spans = _spans(curve["points"], kind, cost_us)
        axes.errorbar(sizes, cost_us, spans, color=colour, marker=mark, markersize=4, label=f"{label}: broker CPU")
        axes.plot(sizes, latency_us, color=colour, linestyle="--", linewidth=1, label=f"{label}: p50")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.set_title(curve["title"], loc="left", fontsize=9)
    axes.set_xlabel(curve["axis"])
    axes.set_ylabel("us")
    axes.grid(visible=True, which="major", linewidth=0.3)


def _spans(points: Sequence[Mapping[str, Any]], kind: str, middle: Sequence[float]) -> list[list[float]]:
    """How far the least and the greatest round are from the median."""
    costs = [[cost for _, cost in point["samples"][kind]] for point in points]
    below = [value - min(rounds) for value, rounds in zip(middle, costs, strict=True)]
    above = [max(rounds) - value for value, rounds in zip(middle, costs, strict=True)]
    return [below, above]


def main(arguments: list[str]) -> None:
    source, target = (Path(name) for name in (*arguments, *(str(FIGURES), str(PICTURE))[len(arguments) :]))
    target.write_text(draw(json.loads(source.read_text())["curves"]))


if __name__ == "__main__":
    main(sys.argv[1:])
