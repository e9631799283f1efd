"""ApiVersions is answered from frame to frame in `cext.plain_versions`. The answers, and what the session then knows of
the client, must be those of the handler."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.api import TABLE, k18_api_versions
from kafka_shim.api.k18_api_versions import is_valid_name
from kafka_shim.cext.frame_base import PROBE_BYTES
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.session import Session
from kafka_shim.targets.requests import make
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection, parse_address

KEY, VERSIONS = 18, range(5)
VALID = ["a", "apache-kafka-java", "4.3.1", "9", "a-b.c", "x" * 200]
INVALID = ["", "-a", "a.", "a b", "a_b", "\u00e9", "\u0663", "a\u00e9b", "a/b", "a:b", "a[b", "a`b", "a@b", "a{b", "."]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


class Ways:
    """Has both ways serve the same request."""

    def __init__(self, broker: Broker) -> None:
        self.api: Any = TABLE[KEY]
        if not self.api.is_loaded:
            self.api.load()
        self._broker = broker
        self._plain, self._handle = self.api.plain, self.api.handle
        assert self._plain is not None
        self.handled = 0
        self.api.handle = self._counted

    def _counted(self, context: Any, request: Any) -> Any:
        self.handled += 1
        return self._handle(context, request)

    def ask(self, frame: bytes) -> tuple[bytes, bool]:
        """The frame of the answer, the same by both ways, and whether the fast path made it."""
        before = self.handled
        found = [self._by(plain, frame) for plain in (self._plain, None)]
        assert found[0] == found[1]
        return found[0][0], self.handled == before + 1

    def _by(self, plain: Any, frame: bytes) -> tuple[bytes, str, str]:
        """The answer, and the name and version of the client's software as the session knows them."""
        self.api.plain = plain
        with socket.create_connection(parse_address(self._broker.bootstrap_servers), timeout=60) as client:
            client.sendall(frame)
            answer = client.recv(PROBE_BYTES)
            session = self._broker.call(self._session, client.getsockname()[1])
            return answer, session.client_software_name, session.client_software_version

    def _session(self, port: int) -> Session:
        connections = self._broker._server._registry.connections
        return next(one.session for one in connections if one.session.peer_port == port)

    def restore(self) -> None:
        self.api.plain, self.api.handle = self._plain, self._handle


@pytest.fixture
def ways(broker: Broker) -> Iterator[Ways]:
    both = Ways(broker)
    yield both
    both.restore()


def frame(version: int, name: str = "a", software: str = "1", correlation_id: int = 7) -> bytes:
    ask = make("ApiVersions", client_software_name=name, client_software_version=software)
    return encode_request_frame(ask, version, correlation_id, "c")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_short_way_answers_as_the_handler(ways: Ways, version: int) -> None:
    answer, is_short = ways.ask(frame(version, correlation_id=-2))
    assert is_short
    assert answer[4:10] == b"\xff\xff\xff\xfe\0\0", "the correlation id and no error"
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4


@pytest.mark.parametrize("text", VALID)
def test_the_session_knows_the_client(ways: Ways, text: str) -> None:
    assert ways.ask(frame(4, name=text))[1]
    assert ways.ask(frame(3, software=text))[1]


@pytest.mark.parametrize("text", INVALID)
def test_a_name_that_is_not_valid_is_left_to_the_handler(ways: Ways, text: str) -> None:
    for ask in (frame(4, name=text), frame(3, software=text)):
        answer, is_short = ways.ask(ask)
        assert not is_short
        assert int.from_bytes(answer[8:10], "big") == ErrorCode.INVALID_REQUEST


def test_every_byte_is_judged_as_by_the_handler(ways: Ways) -> None:
    for byte in range(128):
        for text in (chr(byte), f"a{chr(byte)}b"):
            assert ways.ask(frame(3, name=text))[1] == is_valid_name(text), text


def test_a_tag_is_left_to_the_codec(ways: Ways) -> None:
    plain = frame(4)
    tagged = (len(plain) - 4 + 3).to_bytes(4, "big") + plain[4:-1] + b"\x01\x63\x01x"
    assert not ways.ask(tagged)[1]


def test_the_answer_follows_the_metadata(broker: Broker, ways: Ways) -> None:
    before, _ = ways.ask(frame(4))
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        make_topic(client, "t", 1)
    after, is_short = ways.ask(frame(4))
    assert is_short
    assert after != before, "the epoch of the features"


def test_the_answer_follows_what_is_finalised(broker: Broker, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two brokers of one process, with as many records of metadata, each has its own."""
    before, _ = ways.ask(frame(4))
    monkeypatch.setitem(broker.state.metadata.image.features, "transaction.version", 1)
    after, is_short = ways.ask(frame(4))
    assert is_short
    assert after != before


def test_memory_that_ends_leaves_the_request_to_the_handler(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k18_api_versions, "_ranges_of", no_memory_once(k18_api_versions._ranges_of))
    assert not ways.ask(frame(4))[1]


def no_memory_once(function: Any) -> Any:
    calls = [no_memory_left]

    def call(*arguments: Any) -> Any:
        return (calls.pop() if calls else function)(*arguments)

    return call
