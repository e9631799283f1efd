"""Every scenario of the short form passes on the shim and on Apache Kafka, and both transcripts agree."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from kafka_shim.compat import runner
from kafka_shim.compat.report import BEGIN, END, Report
from kafka_shim.compat.scenarios import load

ROOT = Path(__file__).resolve().parent.parent.parent.parent
# Scenarios run without an authorizer: `tests/security/test_acl_sweep.py` compares this row.
WITH_ACLS = {"A11"}


def rows_of_the_list() -> set[str]:
    """The ids of docs/SEMANTICS.md."""
    text = (ROOT / "docs" / "SEMANTICS.md").read_text()
    return set(re.findall(r"^\| ([ABCDFGHI]\d+) \|", text, re.MULTILINE))


def test_every_row_of_the_list_has_a_scenario() -> None:
    shown = {row for scenario in load().values() for row in scenario.rows}
    assert rows_of_the_list() - WITH_ACLS - shown == set()


def test_no_scenario_names_a_row_that_is_not_listed() -> None:
    named = {row for scenario in load().values() for row in scenario.rows}
    assert named - rows_of_the_list() == set()


@pytest.mark.timeout(900)
def test_shim_and_kafka_agree(tmp_path: Path) -> None:
    chosen = [scenario for scenario in load().values() if scenario.is_smoke]
    kinds = ["shim", "kafka-native"]
    began = time.monotonic()
    results = runner.run(chosen, kinds)
    told = Report(chosen, kinds, results, time.monotonic() - began)
    told.write(tmp_path)
    print(told.text())
    assert told.is_good, told.text()
    page = (tmp_path / "report.html").read_text()
    assert "/*DATA*/null" not in page
    assert "http" not in page.split("<script>")[0]  # self-contained


def test_readme_has_a_place_for_the_summary() -> None:
    text = (ROOT / "README.md").read_text()
    assert 0 < text.index(BEGIN) < text.index(END)
