"""The checker of share histories finds each planted anomaly, alone, and none in a clean history."""

from __future__ import annotations

import io

import pytest

from kafka_shim.history import share_checker, share_operations
from kafka_shim.history.share_operations import ACCEPT, REJECT, RELEASE, RENEW, ShareOperation

KEY = "t-0"
LIMIT = 3
LOCK_MS = 100


def send(at: float, *values: str, first: int = 0) -> ShareOperation:
    return ShareOperation("send", "ok", (at, at + 1), key=KEY, records=list(enumerate(values, first)))


def fetch(at: float, member: str, *acquired: tuple[int, int, str], life: int = 0, outcome: str = "ok"):
    return ShareOperation("fetch", outcome, (at, at + 1), member=member, life=life, acquired={KEY: list(acquired)})


def acknowledge(at: float, member: str, *types: tuple[int, int], life: int = 0, outcome: str = "ok"):
    return ShareOperation("acknowledge", outcome, (at, at + 1), member=member, life=life, key=KEY, types=types)


def clean() -> list[ShareOperation]:
    """Two records, of which one is released, runs out, crosses a crash and is accepted; the other is delivered to its
    limit."""
    return [
        send(0, "a", "b"),
        fetch(2, "m1", (0, 1, "a"), (1, 1, "b")),
        acknowledge(4, "m1", (0, RELEASE)),
        fetch(6, "m2", (0, 2, "a")),
        acknowledge(7.5, "m2", (0, RENEW)),
        fetch(110, "m2", (1, 2, "b")),
        acknowledge(120, "m1", (1, ACCEPT), outcome="fail"),
        # the broker crashed, and what was acquired last was not stored
        fetch(130, "m3", (0, 2, "a"), (1, 2, "b"), life=1),
        acknowledge(135, "m3", (0, ACCEPT), (1, RELEASE), life=1),
        ShareOperation("close", "ok", (140, 140), member="m3", life=1),
        fetch(150, "m4", (1, 3, "b"), life=1),
    ]


def test_a_clean_history_is_clean() -> None:
    report = share_checker.check(clean(), delivery_limit=LIMIT, lock_ms=LOCK_MS)
    assert not report.errors
    counts = report.sent, report.delivered, report.accepted, report.released, report.rejected, report.unclear
    assert counts == (2, 7, 1, 2, 0, 0)


A1 = fetch(2, "m1", (0, 1, "a"))
DONE = acknowledge(4, "m1", (0, ACCEPT))
PLANTED = {
    "wrong-record": [send(0, "a"), fetch(2, "m1", (0, 1, "b")), DONE],
    "repeated-delivery-count": [
        send(0, "a"),
        A1,
        acknowledge(4, "m1", (0, RELEASE), outcome="info"),
        fetch(6, "m2", (0, 1, "a")),
        acknowledge(8, "m2", (0, ACCEPT)),
    ],
    "delivery-count-went-back": [
        send(0, "a"),
        A1,
        acknowledge(4, "m1", (0, RELEASE)),
        fetch(6, "m2", (0, 1, "a"), life=1),
        acknowledge(8, "m2", (0, ACCEPT), life=1),
    ],
    "delivery-count-skipped": [send(0, "a"), fetch(2, "m1", (0, 2, "a")), DONE],
    "over-the-delivery-limit": [
        send(0, "a"),
        *(fetch(1, "m0", outcome="info") for _ in range(LIMIT)),
        fetch(2, "m1", (0, LIMIT + 1, "a")),
        DONE,
    ],
    "delivered-under-lock": [send(0, "a"), A1, fetch(6, "m2", (0, 2, "a")), acknowledge(8, "m2", (0, ACCEPT))],
    "delivered-after-accept": [send(0, "a"), A1, DONE, fetch(6, "m2", (0, 1, "a"), life=1)],
    "delivered-after-reject": [
        send(0, "a"),
        A1,
        acknowledge(4, "m1", (0, REJECT)),
        fetch(3.5, "m2", (0, 2, "a")),  # it waited while the record was rejected
    ],
    "acknowledged-by-another": [send(0, "a"), A1, acknowledge(4, "m2", (0, ACCEPT))],
    "acknowledged-twice": [
        send(0, "a"),
        A1,
        DONE,
        fetch(110, "m2", (0, 1, "a"), life=1),
        acknowledge(112, "m2", (0, ACCEPT), life=1),
    ],
    "lost": [send(0, "a", "b"), A1, DONE],
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_anomaly_is_found(name: str) -> None:
    report = share_checker.check(PLANTED[name], delivery_limit=LIMIT, lock_ms=LOCK_MS)
    # Nobody accepts a record twice that does not come again.
    others = {"delivered-after-accept"} if name == "acknowledged-twice" else set()
    assert set(report.errors) == {name} | others, list(report.lines())


def test_a_late_acknowledgement_of_what_another_has_is_not_allowed() -> None:
    history = [
        send(0, "a"),
        A1,
        fetch(110, "m2", (0, 2, "a")),
        acknowledge(120, "m1", (0, ACCEPT)),
    ]
    report = share_checker.check(history, delivery_limit=LIMIT, lock_ms=LOCK_MS)
    assert "acknowledged-by-another" in report.errors


def test_a_late_acknowledgement_of_what_others_have_finished_has_no_effect() -> None:
    late = acknowledge(120, "m1", (0, RELEASE))
    history = [send(0, "a"), A1, fetch(110, "m2", (0, 2, "a")), acknowledge(112, "m2", (0, ACCEPT)), late]
    report = share_checker.check(history, delivery_limit=LIMIT, lock_ms=LOCK_MS)
    assert (report.is_clean, report.accepted, report.released) == (True, 1, 0), list(report.lines())


def test_a_late_acknowledgement_of_what_the_member_itself_has_finished_has_no_effect() -> None:
    late = acknowledge(120, "m1", (0, RELEASE))
    history = [send(0, "a"), A1, fetch(110, "m1", (0, 2, "a")), acknowledge(112, "m1", (0, ACCEPT)), late]
    report = share_checker.check(history, delivery_limit=LIMIT, lock_ms=LOCK_MS)
    assert (report.is_clean, report.accepted, report.released) == (True, 1, 0), list(report.lines())
    # In time it is a second acknowledgement of what was finished.
    history = [send(0, "a"), A1, DONE, acknowledge(6, "m1", (0, ACCEPT))]
    assert not share_checker.check(history, delivery_limit=LIMIT, lock_ms=LOCK_MS).is_clean


def test_answers_that_were_lost_excuse_what_they_may_have_done() -> None:
    lost = [fetch(5 + number, f"x{number}", outcome="info") for number in range(2)]
    history = [send(0, "a"), *lost, fetch(20, "m1", (0, 3, "a")), acknowledge(22, "m1", (0, RELEASE))]
    assert share_checker.check(history, delivery_limit=LIMIT).is_clean
    unclear = share_checker.check([send(0, "a"), fetch(2, "m1", (0, 1, "a")), *lost], delivery_limit=LIMIT)
    assert (unclear.is_clean, unclear.unclear) == (True, 1)
    # A busy broker may carry out a fetch, for which nobody waits, after one that began later.
    unclear = share_checker.check([send(0, "a"), *lost, fetch(20, "m1", (0, 1, "a"))], delivery_limit=LIMIT)
    assert (unclear.is_clean, unclear.unclear) == (True, 1)
    # But not after a crash.
    late = fetch(20, "m1", (0, 1, "a"), life=1)
    assert "lost" in share_checker.check([send(0, "a"), *lost, late], delivery_limit=LIMIT).errors


def test_a_late_acknowledgement_of_what_was_delivered_too_often_in_a_lost_answer_has_no_effect() -> None:
    twice = [send(0, "a"), A1, fetch(110, "m2", (0, 2, "a"))]
    late = acknowledge(330, "m1", (0, ACCEPT))
    lost = fetch(220, "x", outcome="info")
    report = share_checker.check([*twice, lost, late], delivery_limit=LIMIT, lock_ms=LOCK_MS)
    assert (report.is_clean, report.accepted) == (True, 0), list(report.lines())
    # In another life it has used up nothing.
    lost.life = 1
    report = share_checker.check([*twice, lost, late], delivery_limit=LIMIT, lock_ms=LOCK_MS)
    assert "acknowledged-by-another" in report.errors


def test_a_history_survives_its_file() -> None:
    file = io.StringIO()
    share_operations.write(clean(), file)
    again = list(share_operations.read(file.getvalue().splitlines()))
    copy = io.StringIO()
    share_operations.write(again, copy)
    assert copy.getvalue() == file.getvalue()
    report = share_checker.check(again, delivery_limit=LIMIT, lock_ms=LOCK_MS)
    assert (report.is_clean, report.delivered) == (True, 7)
    with pytest.raises(ValueError, match="unknown operation"):
        list(share_operations.read(['{"kind": "poll", "outcome": "ok", "at": [0, 1]}']))
