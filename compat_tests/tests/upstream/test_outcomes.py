"""What came out of a child's run is read from its report, for pytest and for Go."""

from __future__ import annotations

from kafka_shim.compat.upstream.base import FAILED, PASSED, SKIPPED, Outcome
from kafka_shim.compat.upstream.findings import table
from kafka_shim.compat.upstream.go_suite import outcomes as go_outcomes
from kafka_shim.compat.upstream.kafka_go import with_the_address_asked_for
from kafka_shim.compat.upstream.pytest_suite import outcomes as pytest_outcomes
from kafka_shim.compat.upstream.runner import NOT_RUN, Result

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.test_a.TestX" name="test_one[a.b::c]" time="0.5"/>
<testcase classname="test_b" name="test_two" time="1"><failure message="no">assert 1 == 2</failure></testcase>
<testcase classname="test_b" name="test_two" time="1"><error message="teardown">cannot close</error></testcase>
<testcase classname="test_b" name="test_three" time="0"><skipped message="not here"/></testcase>
<testcase classname="test_b" name="test_not_asked_for" time="0"/>
</testsuite></testsuites>"""

GO = """\
\x16=== RUN   TestA
\x16=== RUN   TestA/sub
some output
half a line\x16--- PASS: TestA/sub (0.01s)
\x16--- PASS: TestA (0.02s)
\x16=== RUN   TestB
\x16=== RUN   TestB/sub
    b_test.go:1: it is wrong
--- PASS: TestC (0.00s)
\x16--- FAIL: TestB/sub (1.50s)
\x16--- FAIL: TestB (1.50s)
\x16=== RUN   TestD
\x16--- SKIP: TestD (0.00s)
\x16=== RUN   TestE
panic: it ends here
"""


def test_a_junit_report_gives_the_outcome_of_each_node_id() -> None:
    asked = ["tests/test_a.py::TestX::test_one[a.b::c]", "test_b.py::test_two", "test_b.py::test_three"]
    found = pytest_outcomes(JUNIT, asked)
    assert {test: outcome.status for test, outcome in found.items()} == dict(
        zip(asked, (PASSED, FAILED, SKIPPED), strict=True)
    )
    assert "assert 1 == 2" in found["test_b.py::test_two"].text
    assert found["test_b.py::test_three"].text == "not here"


def test_the_output_of_a_go_run_gives_each_test_that_ended() -> None:
    found = go_outcomes(GO)
    assert {test: outcome.status for test, outcome in found.items()} == {
        "TestA": PASSED,
        "TestA/sub": PASSED,
        "TestB": FAILED,
        "TestB/sub": FAILED,
        "TestD": SKIPPED,
    }  # TestE did not end, and what only looks like the end of TestC is a test's own output
    assert "it is wrong" in found["TestB"].text
    assert found["TestB"].seconds == 1.5


def test_a_result_counts_what_did_not_run_or_was_skipped_as_not_passed() -> None:
    result = Result("s", "shim", "1.0", {"a": Outcome(PASSED), "b": NOT_RUN, "c": Outcome(SKIPPED)})
    assert set(result.failed) == {"b", "c"}
    assert not result.is_good
    assert not Result("s", "shim", "1.0", {}, disagreements=["not listed: d"]).is_good
    assert "1 of 3 passed" in result.text()
    assert table([result]).endswith("| shim | 1.0 | 3 | 1 | 0 | 2 | 0 |")


def test_the_fixed_address_of_kafka_go_is_asked_for_instead() -> None:
    source = (
        'const broker = "localhost:9092"\nd.Dial("tcp", "localhost:9092")\n{Host: "localhost", Port: 9092, ID: 1}\n'
    )
    assert with_the_address_asked_for(source) == (
        'var broker = upstreamBroker\nd.Dial("tcp", upstreamBroker)\n{Host: "localhost", Port: upstreamPort, ID: 1}\n'
    )
