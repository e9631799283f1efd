"""Answers that wait for those of other connections: in which turns, for how many and for how long."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafka_shim.cext.held_answers import HeldAnswers
from kafka_shim.cext.replies import Reply
from kafka_shim.cext.tests.test_frame_base import METADATA, PRODUCE, Receiver, frame, produces

CROWD, MOST_HELD, CHANGES_PER_COUNT = 8, 16, 64
# What a turn of CROWD requests may take.
MOST_TURN_US = 300 + CROWD * 30


class Turns:
    """A loop's turns, as the clock of a broker shows them."""

    is_virtual = False

    def __init__(self) -> None:
        self.now_us = 0
        self.due: list[Any] = []
        self.looks = 0
        self.has_memory = True

    def monotonic_us(self) -> int:
        return self.now_us

    def monotonic_ms(self) -> int:
        return self.now_us // 1000

    def soon(self) -> Any:
        if not self.has_memory:
            raise MemoryError
        self.looks += 1
        return self.due.append

    def end(self) -> None:
        due, self.due = self.due, []
        for call in due:
            call()


class Client(Receiver):
    def proceed(self) -> None:
        """There is nothing to go on with."""

    def close(self, reason: str) -> None:
        self.send_held()  # as `Connection` does
        super().close(reason)


class Crowd:
    """Connections of one broker. All requests are answered by a fast path, unless `outcomes` has another reply."""

    def __init__(self, count: int, clock: Any = None) -> None:
        self.clock = Turns() if clock is None else clock
        held = HeldAnswers(self.clock)
        self.sent: list[tuple[int, Any]] = []
        self.all = [Client() for _ in range(count)]
        for number, one in enumerate(self.all):
            one._held_answers, one._clock = held, self.clock
            one.session.authenticator = None
            one._dispatcher.handle = self.handle
            one._transport = SimpleNamespace(write=lambda data, number=number: self.sent.append((number, data)))
        self.outcomes: dict[bytes, Any] = {}

    def handle(self, session: Any, data: memoryview) -> Any:
        text = bytes(data[2:])
        reply = Reply([text])
        reply.is_plain = True
        return self.outcomes.get(text, reply)

    def ask(self, *numbers: int) -> list[int]:
        """A request of each. Returns the connections that got answers meanwhile."""
        before = len(self.sent)
        for number in numbers:
            self.all[number].receive(frame(METADATA, b"a"))
        return [number for number, _ in self.sent[before:]]

    def end_turn(self) -> list[int]:
        before = len(self.sent)
        self.clock.end()
        return [number for number, _ in self.sent[before:]]

    def gather(self) -> None:
        """So many turns, the last of which is counted, that the next one holds its answers."""
        for _ in range(CHANGES_PER_COUNT // CROWD + 1):
            self.ask(*range(CROWD))
            self.end_turn()
        self.sent.clear()


def test_the_answers_of_a_crowd_leave_sixteen_at_a_time_and_the_rest_when_the_turn_ends():
    crowd = Crowd(40)
    for _ in range(CHANGES_PER_COUNT // 20 + 2):
        assert (crowd.ask(*range(20)), crowd.end_turn()) == ([*range(20)], []), "no turn has been counted"
    assert crowd.ask(*range(MOST_HELD - 1)) == []
    assert crowd.ask(15) == [*range(MOST_HELD)]
    assert crowd.ask(*range(16, 40)) == [*range(16, 32)]
    assert crowd.end_turn() == [*range(32, 40)]


def test_a_crowd_that_has_left_is_noticed_a_turn_later():
    crowd = Crowd(CROWD)
    crowd.gather()
    assert (crowd.ask(0, 1), crowd.end_turn()) == ([], [0, 1])
    assert crowd.ask(0, 1) == [0, 1]


def test_one_client_is_never_looked_at_and_few_are_seldom():
    crowd = Crowd(2)
    assert crowd.ask(*[0] * 100) == [0] * 100
    assert crowd.clock.looks == 0
    for _ in range(500):
        assert crowd.ask(1, 0) == [1, 0]
        assert crowd.end_turn() == []
    # A count asks for the ends of two turns, in which no changes are counted.
    assert 20 < crowd.clock.looks <= 2 * 1000 // (CHANGES_PER_COUNT + 2)


def test_after_a_turn_that_took_long_the_next_one_holds_nothing():
    crowd = Crowd(CROWD)
    crowd.gather()
    assert crowd.ask(*range(CROWD)) == []
    crowd.clock.now_us += MOST_TURN_US
    assert crowd.end_turn() == [*range(CROWD)]
    assert crowd.ask(*range(CROWD)) == []
    crowd.clock.now_us += MOST_TURN_US + 1
    assert crowd.end_turn() == [*range(CROWD)]
    assert crowd.ask(*range(CROWD)) == [*range(CROWD)]


def test_nothing_is_held_with_a_virtual_clock():
    clock = Turns()
    clock.is_virtual = True
    crowd = Crowd(CROWD, clock)
    crowd.gather()
    assert (crowd.ask(*range(CROWD)), clock.looks) == ([*range(CROWD)], 0)


def test_nothing_is_held_that_no_short_way_has_served_or_where_a_fault_is_armed():
    crowd = Crowd(CROWD)
    crowd.gather()
    crowd.all[1].faults.armed = True
    crowd.all[2].receive(frame(METADATA, b"b"), frame(METADATA, b"c"), frame(METADATA, b"d"))
    crowd.outcomes[b"a"] = Reply([b"long"])
    assert crowd.ask(3) == [3]
    del crowd.outcomes[b"a"]
    assert crowd.ask(1) == [1]
    assert crowd.sent == [(2, b"b"), (2, b"c"), (3, b"long"), (1, b"a")]
    crowd.end_turn()
    assert crowd.sent[4:] == [(2, b"d")], "the others went before the next request of the same client"


def test_the_answers_to_requests_that_waited_are_held_too():
    """All members of a group get theirs at once."""
    crowd = Crowd(CROWD + MOST_HELD)
    crowd.gather()
    crowd.all[0]._held = b"more"
    crowd.all[1].session.muted_ms = 5
    crowd.all[2]._closing_reason = "in order"
    for one in crowd.all:
        one._finished([b"late"])
    # The first is not held; the next two are, and leave before their client is muted or gone.
    assert [number for number, _ in crowd.sent] == [*range(1 + MOST_HELD)]
    assert crowd.end_turn() == [*range(1 + MOST_HELD, CROWD + MOST_HELD)]


def test_an_answer_that_is_held_goes_before_the_next_request_of_its_connection():
    crowd = Crowd(CROWD)
    crowd.gather()
    crowd.all[0].receive(frame(PRODUCE, b"a"))
    crowd.outcomes[b"b"] = None
    crowd.all[0].receive(frame(PRODUCE, b"b"))
    assert crowd.sent == [(0, b"a")]
    assert crowd.end_turn() == []


def test_answers_of_one_connection_keep_their_order():
    """Also of the one with which there are enough held answers to send."""
    crowd = Crowd(MOST_HELD)
    crowd.gather()
    assert crowd.ask(*range(MOST_HELD - 1)) == []
    crowd.all[-1].receive(*produces(b"a", b"b", b"c"))
    assert crowd.sent == [(15, b"abc")], "those of one client leave together, and wait for nobody's"
    crowd.all[-1].receive(*produces(b"d"))
    assert crowd.sent[1:] == [*((number, b"a") for number in range(15)), (15, b"d")]
    assert crowd.end_turn() == []


def test_one_that_closes_gets_its_answer_and_one_that_is_gone_none():
    crowd = Crowd(CROWD)
    crowd.gather()
    assert crowd.ask(0, 1, 2) == []
    crowd.all[0].send_held()
    crowd.all[1].is_closing = True
    assert crowd.end_turn() == [2]
    assert crowd.sent == [(0, b"a"), (2, b"a")]


def test_one_that_cannot_be_written_to_stands_in_nobodys_way():
    crowd = Crowd(CROWD)
    crowd.gather()
    error = RuntimeError("the handle is closed")

    def refuse(data: bytes) -> None:
        raise error

    crowd.all[0]._transport = SimpleNamespace(write=refuse)
    assert crowd.ask(0, 1) == []
    assert crowd.end_turn() == [1]
    assert crowd.all[0].done == [error]


def test_the_loop_may_have_no_memory_for_the_end_of_a_turn():
    crowd = Crowd(CROWD)
    crowd.gather()
    crowd.clock.has_memory = False
    assert crowd.ask(*range(CROWD)) == [*range(CROWD)]
