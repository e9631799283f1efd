"""What a list of tests says, and what it refuses to say."""

from __future__ import annotations

import pytest

from kafka_shim.compat.upstream import SUITES, load
from kafka_shim.compat.upstream.allow_list import AllowList, AllowListError

TEXT = """
# a comment
out TestA/slow # takes an hour
out TestB* # wants share groups
quick TestA
long test_x.py::test_y[a # b]
"""


def test_the_first_line_that_fits_judges_a_test() -> None:
    listed = AllowList.parse("out TestA # broken\nquick Test*\n")
    assert listed.chosen(["TestA", "TestB"], long=False) == ["TestB"]
    assert listed.excluded(["TestA", "TestB"]) == {"TestA": "broken"}


def test_the_long_form_runs_the_short_one_too() -> None:
    listed = AllowList.parse("quick TestA\nlong TestB\n")
    assert listed.chosen(["TestA", "TestB"], long=False) == ["TestA"]
    assert listed.chosen(["TestA", "TestB"], long=True) == ["TestA", "TestB"]


def test_only_a_star_is_a_pattern() -> None:
    listed = AllowList.parse("quick t.py::test_a[None]\nlong t.py::test_b[*]\n")
    assert listed.line_of("t.py::test_aN") is None
    assert listed.chosen(["t.py::test_a[None]", "t.py::test_b[1]"], long=True) == [
        "t.py::test_a[None]",
        "t.py::test_b[1]",
    ]


def test_tests_that_no_line_fits_and_lines_that_fit_no_test_are_told() -> None:
    listed = AllowList.parse("out TestA/slow # takes an hour\nquick TestA\nquick TestGone\n")
    assert listed.disagreements(["TestA", "TestNew"]) == [
        "not listed: TestNew",
        "listed, but not in the package: TestGone",
    ]
    assert AllowList.parse("out TestGone/slow # takes an hour\n").disagreements([]) == [
        "listed, but not in the package: TestGone/slow"
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("maybe TestA", "neither"),
        ("quick", "neither"),
        ("out TestA", "without a reason"),
        ("quick TestA\nlong TestA", "twice"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(text: str, why: str) -> None:
    with pytest.raises(AllowListError, match=why):
        AllowList.parse(text)


@pytest.mark.parametrize("name", SUITES)
def test_the_list_of_each_suite_can_be_read_and_its_findings_have_counts(name: str) -> None:
    suite = load(name)
    assert suite.name == name
    kinds = {line.kind for line in suite.allow_list.lines}
    assert {"quick", "out"} <= kinds
    told = (suite.folder / "FINDINGS.md").read_text()
    assert "| shim |" in told
    assert "| kafka-native |" in told
