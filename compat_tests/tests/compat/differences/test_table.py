"""The document is the table of differences, and each has its test."""

from __future__ import annotations

from pathlib import Path

from kafka_shim.compat.differences import BOTH, DIFFERENCES, NOT_COMPARED, page
from kafka_shim.compat.groups import script
from kafka_shim.compat.scenarios import load, scenario_client
from kafka_shim.wiretap import compare

ROOT = Path(__file__).resolve().parents[4]


def test_the_document_is_the_table_and_the_readme_counts_it() -> None:
    assert (ROOT / "docs" / "differences.md").read_text() == page()
    assert f"{len(DIFFERENCES)} known differences" in (ROOT / "README.md").read_text()


def test_each_difference_has_a_test_that_exists() -> None:
    on_both = "".join(path.read_text() for path in (ROOT / BOTH).glob("test_*.py"))
    for row in DIFFERENCES:
        path, _, function = row.test.partition("::")
        if function:
            assert f"def {function}(" in (ROOT / path).read_text(), row.name
        else:
            assert f"def {row.test}(" in on_both or row.test in load(), row.name
    assert len({row.name for row in DIFFERENCES}) == len(DIFFERENCES)


def test_every_field_that_is_not_compared_is_on_the_page() -> None:
    listed = {name for names in NOT_COMPARED.values() for name in names.split()}
    assert listed == compare.IGNORED | scenario_client.IGNORED | script._IGNORED
