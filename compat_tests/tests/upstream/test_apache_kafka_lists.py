"""What Kafka's own tests are counted from: class files, outcomes, and the committed lists."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from kafka_shim.compat.upstream.apache_kafka import inside_a_jvm, jvm_run, outcome_list, suites
from kafka_shim.compat.upstream.apache_kafka.class_file import parse
from kafka_shim.compat.upstream.apache_kafka.jvm_run import Outcome
from kafka_shim.compat.upstream.apache_kafka.outcome_list import ListError, Row
from kafka_shim.compat.upstream.apache_kafka.report import Figures, Result, not_asked, portions
from kafka_shim.compat.upstream.apache_kafka.scan import scan

SOURCES = {
    "org/junit/jupiter/api/Test.java": "package org.junit.jupiter.api; public @interface Test {}",
    "kafka/server/QuorumTestHarness.java": "package kafka.server; public abstract class QuorumTestHarness {}",
    "kafka/Middle.java": "package kafka; public abstract class Middle extends kafka.server.QuorumTestHarness {}",
    "kafka/OnABrokerTest.java": "package kafka; class OnABrokerTest extends Middle "
    "{ long wide = 5_000_000_000L; double real = 0.1; @org.junit.jupiter.api.Test void one() {} }",
    "org/apache/kafka/streams/integration/utils/EmbeddedKafkaCluster.java": "package "
    "org.apache.kafka.streams.integration.utils; public class EmbeddedKafkaCluster {}",
    "kafka/StreamsTest.java": "package kafka; class StreamsTest { @org.junit.jupiter.api.Test void one() "
    "{ new org.apache.kafka.streams.integration.utils.EmbeddedKafkaCluster(); } }",
    "kafka/UnitTest.java": "package kafka; class UnitTest { @org.junit.jupiter.api.Test void one() {} }",
    "kafka/Helper.java": "package kafka; class Helper extends Middle {}",
}

LISTED = {suite.name: suite for suite in suites.SUITES if suite.list_path.exists()}


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("javac") is None:
        pytest.skip("no javac")
    folder = tmp_path_factory.mktemp("scan")
    for name, text in SOURCES.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sources = [str(folder / "source" / name) for name in SOURCES]
    subprocess.run(["javac", "-d", str(folder / "classes"), *sources], check=True)
    with zipfile.ZipFile(folder / "some-test.jar", "w") as archive:
        for path in (folder / "classes").rglob("*.class"):
            archive.write(path, path.relative_to(folder / "classes"))
    return folder / "some-test.jar"


def test_a_class_counts_when_it_has_tests_and_inherits_from_a_harness_or_starts_a_cluster(jar: Path) -> None:
    found = scan({"some": jar})["some"]
    assert found.counted == ["kafka.OnABrokerTest", "kafka.StreamsTest"]
    assert found.left_out == ["kafka.UnitTest"]


def test_a_class_file_names_its_parent_over_constants_of_two_slots(jar: Path) -> None:
    with zipfile.ZipFile(jar) as archive:
        one = parse(archive.read("kafka/OnABrokerTest.class"))
    assert (one.name, one.parent, one.is_abstract) == ("kafka.OnABrokerTest", "kafka.Middle", False)
    with pytest.raises(ValueError, match="not a class file"):
        parse(b"PK\x03\x04")


def test_a_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = [
        Row("a.B.c[10]", "passed", "passed"),
        Row("a.B.c[9]", "not applicable", "passed", "not applicable: X.y"),
        Row("a.B.d", "failed", "not run", "it differs"),
        Row("a.B.e"),
    ]
    outcome_list.write(tmp_path / "one.list", "one", rows)
    text = (tmp_path / "one.list").read_text()
    assert "4 tests known, 3 run on the shim, 2 on Kafka with one broker; 0 classes not run." in text
    assert text.splitlines()[2].startswith("not-applicable passed a.B.c[9] # ")
    assert outcome_list.read(tmp_path / "one.list") == {row.test: row for row in rows}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("passed a.B.c", "not SHIM KAFKA TEST"),
        ("passed well a.B.c", "no such outcome"),
        ("failed passed a.B.c", "no cause"),
        ("passed passed a.B.c\npassed passed a.B.c", "listed twice"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(line: str, why: str) -> None:
    with pytest.raises(ListError, match=why):
        outcome_list.parse(line)


def test_a_run_changes_outcomes_and_leaves_the_cause_of_one_that_did_not_change() -> None:
    rows = {"a.B.c": Row("a.B.c", "failed", "passed", "by hand"), "a.B.d": Row("a.B.d", "failed", "passed", "old")}
    outcomes = {
        "a.B.c": Outcome("failed", 1.0, "another text"),
        "a.B.d": Outcome("passed"),
        "a.B.e": Outcome("not applicable", 1.0, "x", ("BrokerServer.quotaManagers",)),
        "a.SaslTest.f": Outcome("failed", 1.0, "x"),
        "a.QuotaTest.f": Outcome("failed", 1.0, "y is not implemented yet"),
        "a.ShareFetchTest.f": Outcome("failed", 1.0, "z"),
        "a.TieredTest.f": Outcome("failed", 1.0, "z"),
        "a.TieredTest.g": Outcome("not applicable", 1.0, "z", ("RemoteLogManager.copy",)),
    }
    outcome_list.merge(rows, "shim", outcomes)
    assert (rows["a.B.c"].cause, rows["a.B.d"].cause) == ("by hand", "")
    assert rows["a.B.e"].cause == "not applicable: BrokerServer.quotaManagers"
    # What the shim has is no cause: the message says what came of it.
    assert rows["a.SaslTest.f"].cause == "x"
    assert rows["a.QuotaTest.f"].cause == "y is not implemented yet"
    assert rows["a.ShareFetchTest.f"].cause == "z"
    assert rows["a.TieredTest.f"].cause == "tiered storage"
    assert rows["a.TieredTest.g"].cause == "not applicable: RemoteLogManager.copy"
    outcome_list.merge(rows, "kafka", {"a.B.c": Outcome("failed")})
    assert (rows["a.B.c"].kafka, rows["a.B.c"].shim) == ("failed", "failed")


def test_a_test_that_looks_into_kafkas_jvm_is_not_applicable_unless_it_passes() -> None:
    threads = "kafka.server.DynamicBrokerReconfigurationTest.testLogCleanerConfig"
    by_number = "org.apache.kafka.tools.ClusterToolTest.testUnregisterWithBootstrapController"
    rows: dict[str, Row] = {}
    tests = (f"{threads}[1]", f"{by_number}[1]", f"{by_number}[2]")
    outcome_list.merge(rows, "shim", dict.fromkeys(tests, Outcome("failed", 1.0, "x")))
    assert [rows[test].shim for test in tests] == ["not applicable", "not applicable", "failed"]
    assert rows[tests[0]].cause == "not applicable: threads, counted by name"
    outcome_list.merge(rows, "shim", dict.fromkeys(tests, Outcome("passed")))
    assert [(rows[test].shim, rows[test].cause) for test in tests] == [("passed", "")] * 3


@pytest.mark.parametrize("test", [test for tests in inside_a_jvm.SUBJECTS.values() for test in tests])
def test_what_looks_into_kafkas_jvm_is_a_known_test_that_kafka_passes(test: str) -> None:
    rows = [row for suite in LISTED.values() for row in outcome_list.read(suite.list_path).values()]
    meant = [row for row in rows if test in (row.test, row.test.partition("[")[0])]
    assert meant
    assert {row.kafka for row in meant} <= {"passed", "not run"}
    assert "passed" not in {row.shim for row in meant}


def test_the_worse_of_two_results_of_a_test_counts(tmp_path: Path) -> None:
    lines = [{"test": "a", "outcome": outcome, "seconds": 1} for outcome in ("passed", "failed", "passed")]
    (tmp_path / "results").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert jvm_run.read(tmp_path / "results")["a"].status == "failed"


def test_a_method_has_a_row_until_one_of_its_invocations_is_known() -> None:
    rows = {"a.BTest.c[1]": Row("a.BTest.c[1]", "passed"), "a.BTest.d": Row("a.BTest.d", cause="not run yet")}
    outcome_list.add_methods(rows, ["a.BTest.c", "a.BTest.d", "a.TieredTest.e", "a.OtherTest.f"])
    causes = {row.test: row.cause for row in rows.values()}
    not_run = {
        "a.BTest.d": "not run yet",
        "a.TieredTest.e": "tiered storage: not run yet",
        "a.OtherTest.f": "not run yet",
    }
    assert causes == {"a.BTest.c[1]": "", **not_run}
    assert outcome_list.classes_not_run(rows.values()) == 2
    outcome_list.merge(rows, "kafka", {"a.BTest.d[1]": Outcome("passed"), "a.OtherTest.f": Outcome("passed")})
    assert sorted(rows) == ["a.BTest.c[1]", "a.BTest.d[1]", "a.OtherTest.f", "a.TieredTest.e"]
    assert outcome_list.classes_not_run(rows.values()) == 1


def test_a_method_that_kafka_never_passes_is_left_out() -> None:
    outcomes = {"a.B.c[1]": "failed", "a.B.c[2]": "aborted", "a.B.d[1]": "failed", "a.B.d[2]": "passed"}
    rows = [Row(test, "failed", outcome, "x") for test, outcome in outcomes.items()]
    rows += [Row("a.B.e[1]", "failed", "skipped", "x"), Row("a.B.e[2]"), Row("a.CTest.f")]
    assert outcome_list.without_hope(rows) == ["a.B.c"]


def test_what_one_target_passes_and_the_other_was_not_asked_can_be_asked_alone() -> None:
    rows = [
        Row("a.B.c[1]", "passed"),
        Row("a.B.c[2]", "passed", "failed"),
        Row("a.B.d", "failed", cause="x"),
        Row("a.C.e", "not run", "passed"),
        Row("a.C.f", "passed"),
        Row("a.C.g"),
        Row("a.RemoteC.g"),
    ]
    assert not_asked(rows, "kafka") == ["a.B.c[1]", "a.C.f"]
    assert not_asked(rows, "kafka", at_other="failed") == ["a.B.d"]
    assert not_asked(rows, "kafka", at_other="not run") == not_asked(rows, "shim", at_other="not run") == ["a.C.g"]
    assert not_asked(rows, "kafka", "C.f") == ["a.C.f"]
    assert not_asked(rows, "shim") == ["a.C.e"]


def test_the_invocations_of_a_method_are_run_by_one_jvm() -> None:
    tests = ["a.B.d[1]", "a.B.c", "a.B.d[2]", "a.B.d[10]", "a.B.e"]
    assert portions(tests, 2) == [["a.B.c", "a.B.d[10]", "a.B.d[1]", "a.B.d[2]"], ["a.B.e"]]
    assert portions([], 2) == []


def test_every_suite_has_a_list() -> None:
    assert {suite.name for suite in suites.SUITES} == set(LISTED)
    assert {path.stem for path in suites.LISTS.glob("*.list")} == set(LISTED)


@pytest.mark.parametrize("suite", LISTED.values(), ids=LISTED)
def test_a_committed_list_can_be_read(suite: suites.Suite) -> None:
    rows = outcome_list.read(suite.list_path)
    assert rows
    for row in rows.values():
        assert row.test.startswith(suite.within)
        assert row.was_run or row.cause
        assert row.cause != "no message"


@pytest.mark.parametrize("suite", LISTED.values(), ids=LISTED)
def test_the_head_of_a_committed_list_counts_its_rows(suite: suites.Suite, tmp_path: Path) -> None:
    text = suite.list_path.read_text()
    title = text.removeprefix("# ").partition(":")[0]
    outcome_list.write(tmp_path / "again.list", title, outcome_list.read(suite.list_path).values())
    assert (tmp_path / "again.list").read_text() == text


def test_the_page_has_the_figures_of_the_lists() -> None:
    rows = [row for suite in LISTED.values() for row in outcome_list.read(suite.list_path).values()]
    page = " ".join((suites.LISTS.parents[2] / "README.md").read_text().split())
    assert Figures.of(rows).text() in page


def test_the_figures_count_each_test_once() -> None:
    rows = [
        Row("a.B.c", "passed", "passed"),
        Row("a.B.d", "failed", "passed", "it differs"),
        Row("a.B.e", "aborted", "passed", "it waits"),
        Row("a.B.f", "not applicable", "passed", "not applicable: X.y"),
        Row("a.B.g", "not run", "passed"),
        Row("a.B.h", "passed", "failed"),
        Row("a.B.i", "passed", "not run"),
        Row("a.B.k", "failed", "not run", "several brokers"),
        Row("a.B.l", "skipped", "not run", "it is long"),
        Row("a.B.m", "not applicable", "not run", "not applicable: X.y"),
        Row("a.CTest.j", cause="not run yet"),
    ]
    assert Figures.of(rows) == Figures(
        counted=11,
        asked=6,
        on_kafka=5,
        on_shim=1,
        failing=2,
        not_had=0,
        not_applicable=1,
        not_run=6,
        classes_not_run=1,
        only_passed=1,
        only_failed=2,
        only_not_applicable=1,
        on_neither=1,
    )
    assert Figures.of(rows).text().endswith("1 were run on neither. Of 1 classes no test was run.")
    assert Figures.of(rows[:6]).text().endswith("of tiered storage.")
    result = Result(suites.SUITES[0], {row.test: row for row in rows})
    assert result.text() == "| consumer | 11 | 5 | 1 | 2 | 1 | 6 | 0 |  |"
    assert result.causes() == ["  1 x failed: it differs", "  1 x aborted: it waits", "  1 x not applicable: X.y"]


def test_the_sample_is_in_the_lists_and_passes_on_both() -> None:
    listed = {test: row for suite in suites.SUITES for test, row in outcome_list.read(suite.list_path).items()}
    outcomes = {test: (listed[test].shim, listed[test].kafka) for test in suites.sample()}
    assert outcomes == dict.fromkeys(suites.sample(), ("passed", "passed"))
