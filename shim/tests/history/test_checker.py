"""The checker finds each planted anomaly, alone, and none in a clean history."""

from __future__ import annotations

import io
import random
import time

import pytest

from kafka_shim.history import checker, operations
from kafka_shim.history.operations import Operation

A, B = "orders-0", "orders-1"


def history(*lines: tuple) -> list[Operation]:
    """(process, outcome, ops[, options])"""
    return [
        Operation(index, process, outcome, ops, **(rest[0] if rest else {}))
        for index, (process, outcome, ops, *rest) in enumerate(lines)
    ]


def send(key: str, offset: int | None, value: str) -> list:
    return ["send", key, offset, value]


def poll(**keys: list) -> list:
    return ["poll", {name.replace("_", "-"): records for name, records in keys.items()}]


def both(a: list | None = None, b: list | None = None) -> list:
    return ["poll", {name: records for name, records in ((A, a), (B, b)) if records is not None}]


def clean() -> list[tuple]:
    return [
        (1, "ok", [send(A, 0, "a0"), send(B, 0, "b0")]),
        (2, "ok", [send(A, 2, "a1")]),
        (1, "fail", [send(A, 4, "x")]),
        (3, "info", [send(B, None, "b1")]),
        (9, "ok", [both([[0, "a0"], [2, "a1"]], [[0, "b0"]])]),
        (9, "ok", [both(None, [[2, "b1"]])]),
        (8, "ok", [both([[0, "a0"], [2, "a1"], [4, "x"]])], {"committed_reads": False}),
    ]


def test_a_clean_history_is_clean() -> None:
    report = checker.check(history(*clean()))
    assert report.errors == {}
    assert report.tolerated == {}
    assert (report.operations, report.committed, report.sent, report.polled) == (7, 5, 4, 7)


SUBSCRIBED = {"subscribed": True}
PLANTED = {
    "lost-write": [(1, "ok", [send(A, 0, "a")]), (1, "ok", [send(A, 1, "b")]), (9, "ok", [both([[1, "b"]])])],
    "aborted-read": [(1, "fail", [send(A, 0, "a")]), (9, "ok", [both([[0, "a"]])])],
    "precommitted-read": [(1, "ok", [send(A, 0, "a"), both([[0, "a"]])])],
    "inconsistent-offsets": [
        (1, "info", [send(A, None, "a"), send(A, None, "b")]),
        (8, "ok", [both([[0, "a"]])]),
        (9, "ok", [both([[0, "b"]])]),
    ],
    "duplicate": [(1, "ok", [send(A, 0, "a")]), (9, "ok", [both([[0, "a"], [1, "a"]])])],
    "poll-skip": [
        (1, "ok", [send(A, 0, "a"), send(A, 1, "b"), send(A, 2, "c")]),
        (8, "ok", [both([[0, "a"], [1, "b"], [2, "c"]])]),
        (9, "ok", [both([[0, "a"]])]),
        (9, "ok", [both([[2, "c"]])]),
    ],
    "int-poll-skip": [
        (1, "ok", [send(A, 0, "a"), send(A, 1, "b"), send(A, 2, "c")]),
        (8, "ok", [both([[0, "a"], [1, "b"], [2, "c"]])]),
        (9, "ok", [both([[0, "a"]]), both([[2, "c"]])]),
    ],
    "nonmonotonic-poll": [
        (1, "ok", [send(A, 0, "a"), send(A, 1, "b")]),
        (9, "ok", [both([[0, "a"], [1, "b"]])]),
        (9, "ok", [both([[1, "b"]])]),
    ],
    "int-nonmonotonic-poll": [
        (1, "ok", [send(A, 0, "a"), send(A, 1, "b")]),
        (9, "ok", [both([[0, "a"], [1, "b"]]), both([[1, "b"]])]),
    ],
    "nonmonotonic-send": [
        (1, "ok", [send(A, 1, "b")]),
        (1, "ok", [send(A, 0, "a")]),
        (9, "ok", [both([[0, "a"], [1, "b"]])]),
    ],
    "int-nonmonotonic-send": [
        (1, "ok", [send(A, 1, "b"), send(A, 0, "a")]),
        (9, "ok", [both([[0, "a"], [1, "b"]])]),
    ],
    "unseen": [(1, "ok", [send(A, 0, "a"), send(A, 1, "b")]), (9, "ok", [both([[0, "a"]])])],
    "G1c": [
        (1, "ok", [send(A, 0, "a"), both(None, [[0, "b"]])]),
        (2, "ok", [send(B, 0, "b"), both([[0, "a"]])]),
    ],
}


@pytest.mark.parametrize("anomaly", PLANTED)
def test_a_planted_anomaly_is_found_and_nothing_else(anomaly: str) -> None:
    report = checker.check(history(*PLANTED[anomaly]))
    assert set(report.errors) == {anomaly}
    assert len(report.errors[anomaly]) == 1
    assert any(anomaly in line for line in report.lines())
    assert not report.is_clean


def test_writes_over_writes_in_a_circle_are_tolerated() -> None:
    lines = [
        (1, "ok", [send(A, 0, "a1"), send(B, 1, "b1")]),
        (2, "ok", [send(A, 1, "a2"), send(B, 0, "b2")]),
        (9, "ok", [both([[0, "a1"], [1, "a2"]], [[0, "b2"], [1, "b1"]])]),
    ]
    report = checker.check(history(*lines))
    assert (report.errors, set(report.tolerated)) == ({}, {"G0"})


def test_a_send_that_leaves_room_for_others_is_tolerated() -> None:
    lines = [
        (1, "ok", [send(A, 0, "a"), send(A, 2, "c")]),
        (2, "ok", [send(A, 1, "b")]),
        (9, "ok", [both([[0, "a"], [1, "b"], [2, "c"]])]),
    ]
    report = checker.check(history(*lines))
    assert report.errors == {}
    assert "int-send-skip" in report.tolerated


@pytest.mark.parametrize("anomaly", ["poll-skip", "nonmonotonic-poll"])
def test_a_rebalance_may_move_positions(anomaly: str) -> None:
    lines = [(*line, SUBSCRIBED) for line in PLANTED[anomaly]]
    report = checker.check(history(*lines))
    assert (report.errors, set(report.tolerated)) == ({}, {anomaly})


def test_a_new_assignment_may_start_anywhere() -> None:
    lines = PLANTED["nonmonotonic-poll"]
    lines = [*lines[:2], (9, "ok", [["assign", [A]], both([[0, "a"]])])]
    assert checker.check(history(*lines)).is_clean


def test_read_uncommitted_readers_may_see_aborted_and_own_writes() -> None:
    lines = [
        (1, "fail", [send(A, 0, "a")]),
        (9, "ok", [both([[0, "a"]])], {"committed_reads": False}),
    ]
    assert checker.check(history(*lines)).is_clean


def test_a_skipped_aborted_value_is_no_skip_for_read_committed() -> None:
    lines = [
        (1, "ok", [send(A, 0, "a")]),
        (1, "fail", [send(A, 1, "x")]),
        (1, "ok", [send(A, 3, "b")]),
        (8, "ok", [both([[0, "a"], [1, "x"], [3, "b"]])], {"committed_reads": False}),
        (9, "ok", [both([[0, "a"], [3, "b"]])]),
    ]
    assert checker.check(history(*lines)).is_clean


def test_unknown_outcomes_may_be_read_or_not() -> None:
    lines = [
        (1, "info", [send(A, None, "a"), send(A, None, "b")]),
        (9, "ok", [both([[0, "a"]])]),
    ]
    assert checker.check(history(*lines)).is_clean


def test_write_edges_find_longer_circles_and_tolerate_them() -> None:
    lines = [
        (2, "ok", [send(A, 0, "a2"), both(None, [[0, "b1"]])]),
        (1, "ok", [send(A, 1, "a1"), send(B, 0, "b1")]),
        (9, "ok", [both([[0, "a2"], [1, "a1"]])]),
    ]
    assert checker.check(history(*lines)).errors == {}
    assert set(checker.check(history(*lines), write_edges=True).tolerated) == {"G1c"}


def test_a_value_sent_twice_to_a_key_is_a_bad_history() -> None:
    with pytest.raises(ValueError, match="twice"):
        checker.check(history((1, "ok", [send(A, 0, "a")]), (1, "ok", [send(A, 1, "a")])))


def test_a_history_survives_its_file() -> None:
    before = history(*clean())
    file = io.StringIO()
    operations.write(before, file)
    after = list(operations.read(file.getvalue().splitlines()))
    assert [line.to_json() for line in after] == [line.to_json() for line in before]
    assert checker.check(after).is_clean


@pytest.mark.parametrize(
    "line",
    ['{"process":1,"outcome":"maybe","ops":[]}', '{"process":1,"outcome":"ok","ops":[["push","k",1,"v"]]}'],
)
def test_a_bad_line_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 0"):
        list(operations.read([line]))


@pytest.mark.slow
def test_sixty_thousand_operations_are_checked_in_seconds() -> None:
    chance = random.Random(7)
    lines = []
    ends = {f"t-{n}": 0 for n in range(12)}
    keys = list(ends)
    polled: dict[str, int] = dict.fromkeys(keys, 0)
    written: dict[str, list] = {key: [] for key in keys}
    for index in range(60_000):
        key = chance.choice(keys)
        if index % 2:
            records = written[key][polled[key] :]
            polled[key] = len(written[key])
            lines.append((99, "ok", [["poll", {key: records}]]))
        else:
            written[key].append([ends[key], index])
            lines.append((index % 8, "ok", [["send", key, ends[key], index]]))
            ends[key] += 2
    lines.append((99, "ok", [["poll", {key: written[key][polled[key] :] for key in keys}]]))
    started = time.process_time()
    report = checker.check(history(*lines))
    assert report.is_clean
    assert time.process_time() - started < 10
