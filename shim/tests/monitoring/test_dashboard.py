"""The dashboard for Grafana asks for metrics that exist, and is what its script writes."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_dashboard_is_what_the_script_writes():
    """Else: .venv/bin/python scripts/dashboard.py"""
    script = runpy.run_path(str(ROOT / "scripts" / "dashboard.py"))
    assert script["TARGET"].read_text() == script["text"]()


def test_every_query_names_metrics_of_the_page():
    """docs/metrics.md lists what is exported; a test beside this one holds it to that."""
    board = json.loads((ROOT / "docs" / "grafana" / "kafka-shim.json").read_text())
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = set(re.findall(r"^\| `((?:kafka|process)_\w+)`", page, re.MULTILINE))
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    asked = {re.sub(r"_(bucket|count|sum)$", "", name) for one in queries for name in re.findall(r"(\w+)\{", one)}
    assert len(asked) > 30
    assert asked - rows == set()
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    # No two panels overlap.
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in board["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
