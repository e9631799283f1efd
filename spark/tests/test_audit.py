"""The audit against the checker of ``kafka_shim.history``, which it must agree with, and at size on a broker."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_shim.history import checker
from kafka_shim.history.operations import ASSIGN, OUTCOMES, POLL, SEND, Operation
from kafka_shim.spark import plain_clients as kafka
from kafka_shim.spark.audit import __main__ as audit
from kafka_shim.spark.audit import circles, evidence, history, judge, page, workload
from kafka_shim.spark.triggers import Trigger
from kafka_shim.targets import Target

PARTITIONS = 4


def numbered(operations: list[Operation]) -> list[Operation]:
    for index, operation in enumerate(operations):
        operation.index = index
    return operations


def random_history(seed: int) -> list[Operation]:
    """Operations that make no sense: every class comes up."""
    chance = random.Random(seed)
    made: list[Operation] = []
    sent: set[tuple[str, str]] = set()
    for index in range(120):
        ops: list[Any] = []
        for _ in range(chance.randint(1, 4)):
            key = f"k{chance.randrange(4)}"
            kind = chance.choice((SEND, SEND, POLL, POLL, ASSIGN))
            if kind == SEND:
                value = f"v{chance.randrange(200)}"
                if (key, value) not in sent:
                    sent.add((key, value))
                    ops.append([SEND, key, chance.choice((None, chance.randrange(200))), value])
            elif kind == POLL:
                records = [[chance.randrange(200), f"v{chance.randrange(200)}"] for _ in range(chance.randint(1, 4))]
                ops.append([POLL, {key: records}])
            else:
                ops.append([ASSIGN, [key]])
        is_committed, is_subscribed = chance.random() < 0.8, chance.random() < 0.3
        made.append(Operation(index, chance.randrange(5), chance.choice(OUTCOMES), ops, is_committed, is_subscribed))
    return made


def counts(found: dict[str, list[str]]) -> dict[str, int]:
    return {name: len(details) for name, details in found.items()}


@pytest.mark.parametrize("seed", [1])
def test_random_histories_are_judged_as_the_checker_judges_them(session: SparkSession, seed: int) -> None:
    operations = random_history(seed)
    wanted = checker.check(operations)
    found = judge.judge(history.from_operations(session, operations))
    assert found.errors == counts(wanted.errors)
    assert found.tolerated == counts(wanted.tolerated)
    assert len(found.errors) > 8


def test_each_planted_class_is_found(session: SparkSession) -> None:
    operations = numbered(list(workload.planted(2)))
    wanted = checker.check(operations)
    found = judge.judge(history.from_operations(session, operations), with_writes=False)
    assert found.errors == counts(wanted.errors)
    assert found.tolerated == counts(wanted.tolerated)
    assert found.errors.keys() | found.tolerated.keys() == set(judge.CLASSES)
    assert all(each.examples for each in found.found.values())


def test_a_value_that_is_sent_twice_is_refused(session: SparkSession) -> None:
    operations = [Operation(at, at, "ok", [[SEND, "k", at, "same"]]) for at in range(2)]
    with pytest.raises(evidence.HistoryFaultError, match="'same' is sent to k 2 times"):
        judge.judge(history.from_operations(session, operations))


def test_stretches_that_touch_become_one() -> None:
    assert circles.merged([(0, 3), (3, 5), (7, 9), (8, 8)]) == [(0, 5), (7, 9)]


def audit_at_size(session: SparkSession, bootstrap: str, name: str, count: int, split: int | None = None) -> None:
    """A clean history of ``count`` records is clean; with planted operations among it each class is found."""
    log, audited = write_histories(bootstrap, name, count)
    clean, rates = audit.run(session, bootstrap, *audited, split)
    print("clean:", list(clean.lines())[-1])
    assert clean.is_clean, clean.errors
    # What the reader polled, the audit has read again.
    assert clean.polled == 2 * clean.sent == 2 * sum(records for _, records in rates)
    found, tolerated = audit_with_planted(session, bootstrap, log, audited, split)
    assert {name: found.tolerated[name] - clean.tolerated.get(name, 0) for name in found.tolerated} == tolerated


def write_histories(bootstrap: str, name: str, count: int) -> tuple[history.HistoryLog, tuple[str, str]]:
    """Writers and a reader at work; returns the log, which is open for more, and the topics of histories and data."""
    data = kafka.create(bootstrap, f"{name}data", PARTITIONS)
    logged = kafka.create(bootstrap, f"{name}history", 2)
    log = history.HistoryLog(bootstrap, logged)
    committed = workload.write(bootstrap, data, PARTITIONS, count, log)
    assert workload.read(bootstrap, data, committed, log) == committed
    log.close()
    return log, (logged, data)


def audit_with_planted(
    session: SparkSession, bootstrap: str, log: history.HistoryLog, audited: tuple[str, str], split: int | None = None
) -> tuple[judge.Report, dict[str, int]]:
    """Plants every class; the audit's errors must be these and no others. Returns also what of it is tolerated."""
    planted = list(workload.planted(2))
    for operation in planted:
        log.add(operation)
    log.close()
    found, _ = audit.run(session, bootstrap, *audited, split)
    print("planted:", list(found.lines())[-1])
    wanted = checker.check(planted)
    assert found.errors == counts(wanted.errors)
    return found, counts(wanted.tolerated)


def test_20000_records_are_clean_and_planted_anomalies_among_them_are_found(
    session: SparkSession, shim: str, name: str
) -> None:
    audit_at_size(session, shim, name, 20_000)


@pytest.mark.soak
def test_200000_records_are_clean_and_planted_anomalies_among_them_are_found(
    compiled: SparkSession, shim: str, name: str
) -> None:
    audit_at_size(compiled, shim, name, 200_000)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_among_200000_records_on_apache_kafka_the_planted_anomalies_and_no_others_are_found(
    compiled: SparkSession, brokers: Callable[[str], Target], name: str
) -> None:
    bootstrap = brokers("kafka-native").bootstrap
    log, audited = write_histories(bootstrap, name, 200_000)
    found, _ = audit_with_planted(compiled, bootstrap, log, audited)
    assert found.sent > 170_000


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_5000000_records_are_clean_and_planted_anomalies_among_them_are_found(
    compiled: SparkSession, shim: str, name: str
) -> None:
    audit_at_size(compiled, shim, name, 5_000_000, split=16)


def test_the_page_stands_alone_and_shows_what_was_found(tmp_path: Path) -> None:
    found = {each: judge.Found() for each in judge.CLASSES}
    found["lost-write"] = judge.Found(errors=2, examples=["<b> was never read", "c was never read"])
    report = judge.Report(10, 20, 30, found, 1.5, 512.0)
    triggers = [Trigger(number, number * 1000, 100, 500, 50 - number) for number in range(3)]
    text = page.render(report, "Audit & more", [(1, 5), (2, 7)], triggers)
    assert "<h1>Audit &amp; more</h1>" in text
    assert "&lt;b&gt; was never read" in text
    assert "2 errors" in text
    assert text.count("<svg") == 4
    assert "var(--first)" in text
    assert "prefers-color-scheme: dark" in text
    # Nothing comes from elsewhere: addresses are names of XML alone.
    for address in ("src=", "<link", "@import", "url(http"):
        assert address not in text
