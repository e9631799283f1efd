"""Frames that were received together: in which order and in how many writes their answers leave."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafka_shim.cext.frame_base import FrameBase
from kafka_shim.cext.replies import Reply

PRODUCE, METADATA = 0, 3


def frame(api_key: int, text: bytes) -> bytes:
    body = api_key.to_bytes(2) + text
    return len(body).to_bytes(4) + body


class Receiver(FrameBase):
    """What it does in order, in `done`. The dispatcher has what comes of each frame by its text."""

    def __init__(self, outcomes: dict[bytes, Any] | None = None) -> None:
        self.done: list[Any] = []
        self.handled: list[bytes] = []
        self.outcomes = outcomes or {}
        self.session = SimpleNamespace(muted_ms=0)
        self.faults = SimpleNamespace(armed=False)
        broker = SimpleNamespace(faults=self.faults)
        self._dispatcher = SimpleNamespace(handle=self.handle, run=self.done.append, broker=broker)
        self._transport = SimpleNamespace(write=self.done.append)
        self._frame = self._held = self._task = None
        self._must_log_in = self._write_paused = self.is_closing = False
        self._max_frame_bytes = 1 << 20
        self.kept = b""

    def handle(self, session: Any, data: memoryview) -> Any:
        text = bytes(data[2:])
        self.handled.append(text)
        outcome = self.outcomes.get(text, text)
        if isinstance(outcome, Exception):
            raise outcome
        if callable(outcome):
            outcome = outcome(self)
        return Reply([outcome]) if isinstance(outcome, bytes) else outcome

    def _failed(self, error: Exception) -> None:
        self.done.append(error)
        self.is_closing = True

    def _wait_for(self, reply: Reply) -> None:
        self.done.append("waits")
        self._task = reply

    def _send(self, parts: list[Any]) -> None:
        self.done.append(parts)

    def _mute(self) -> None:
        self.done.append("muted")
        self.session.muted_ms = 0
        self._task = "muted"

    def _let_others(self) -> None:
        self.done.append("others")

    def _keep(self, rest: memoryview) -> None:
        self.kept = bytes(rest)

    def _frame_refusal(self, data: memoryview, at: int) -> str:
        return "refused"

    def close(self, reason: str) -> None:
        self.done.append(reason)
        self.is_closing = True

    def receive(self, *frames: bytes) -> list[Any]:
        data = b"".join(frames)
        self._consume(memoryview(data), len(data))
        return self.done


def produces(*texts: bytes) -> list[bytes]:
    return [frame(PRODUCE, text) for text in texts]


def test_answers_to_produces_that_came_together_leave_together():
    assert Receiver().receive(*produces(b"a", b"b", b"c")) == [b"abc"]
    assert Receiver().receive(frame(METADATA, b"m"), *produces(b"a", b"b")) == [b"mab"]


def test_an_answer_waits_for_no_other_request():
    """Another request may wait for other clients, or close the connection."""
    frames = [*produces(b"a", b"b"), frame(METADATA, b"m"), frame(METADATA, b"n"), *produces(b"c")]
    assert Receiver().receive(*frames) == [b"ab", b"m", b"nc"]


def test_an_answer_does_not_wait_for_a_request_that_is_not_whole():
    receiver = Receiver()
    last = frame(PRODUCE, b"last")
    assert receiver.receive(*produces(b"a", b"b"), last[:-1]) == [b"ab"]
    assert receiver.kept == last[:-1]
    for size_bytes in (3, 4, 5):
        assert Receiver().receive(*produces(b"a"), last[:size_bytes]) == [b"a"]


def test_an_answer_leaves_before_a_length_that_is_refused():
    for length in (-1, 1 << 20 | 1):
        wrong = length.to_bytes(4, signed=True) + bytes(10)
        assert Receiver().receive(*produces(b"a", b"b"), wrong) == [b"ab", "refused"]


def test_answers_leave_before_a_request_that_waits_or_fails():
    error = ValueError("wrong")
    for outcome, seen in ((Reply(None), "waits"), (error, error)):
        receiver = Receiver({b"b": outcome})
        assert receiver.receive(*produces(b"a", b"b", b"c")) == [b"a", seen]
        assert receiver.handled == [b"a", b"b"]


def test_answers_leave_before_one_of_several_parts_and_before_what_follows_one():
    receiver = Receiver({b"b": Reply([b"b1", b"b2"]), b"d": Reply([b"d"], follow_up=len)})
    assert receiver.receive(*produces(b"a", b"b", b"c", b"d", b"e")) == [b"a", [b"b1", b"b2"], b"cd", len, b"e"]


def test_a_request_without_an_answer_holds_none_back():
    receiver = Receiver({b"b": lambda _: None, b"d": lambda _: None})
    assert receiver.receive(*produces(b"a", b"b", b"c", b"d")) == [b"ac"]


def test_answers_leave_before_the_client_is_muted():
    def muted(receiver: Receiver) -> bytes:
        receiver.session.muted_ms = 5
        return b"b"

    receiver = Receiver({b"b": muted})
    assert receiver.receive(*produces(b"a", b"b", b"c")) == [b"ab", "muted"]
    assert receiver.kept == produces(b"c")[0]


def test_answers_that_wait_are_bounded():
    texts = [b"%03d" % number for number in range(70)]
    large = {text: text * 2000 for text in texts[:7]}
    assert [len(each) for each in Receiver(large).receive(*produces(*texts[:7]))] == [18_000, 18_000, 6_000]
    huge = {b"a": b"a" * 20_000}
    assert [len(each) for each in Receiver(huge).receive(*produces(b"a", b"b", b"c"))] == [20_000, 2]


def test_so_many_requests_are_handled_before_others_have_their_turn():
    texts = [b"%02d" % number for number in range(70)]
    receiver = Receiver()
    assert receiver.receive(*produces(*texts)) == ["others", b"".join(texts[:32])]
    assert receiver.kept == b"".join(produces(*texts[32:]))
    assert Receiver().receive(*produces(*texts[:32])) == [b"".join(texts[:32])]


def test_answers_leave_although_the_connection_was_closed_meanwhile():
    def closing(receiver: Receiver) -> bytes:
        receiver.is_closing = True
        return b"b"

    assert Receiver({b"b": closing}).receive(*produces(b"a", b"b", b"c")) == [b"ab"]


def test_each_answer_leaves_before_the_next_request_where_a_fault_may_end_the_process():
    receiver = Receiver()
    receiver.faults.armed = True
    assert receiver.receive(*produces(b"a", b"b", b"c")) == [b"a", b"b", b"c"]
