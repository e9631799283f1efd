"""Every API at every version gets messages that are well formed and absurd: each is answered or its connection closed,
nothing is a bug, and the broker goes on. Names that exist are mixed in, so that requests get past the first look-up."""

from __future__ import annotations

import contextlib
import logging
import random

import pytest

from kafka_shim.api import APIS, Api
from kafka_shim.api.controller import CONTROLLER_APIS
from kafka_shim.cext.messages import encode
from kafka_shim.embedded import Broker
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.tests.produced import batch, make_topic, metadata, produce
from kafka_shim.tests.protocol.values import STRINGS, Seeded, make, systematic
from kafka_shim.tests.test_connection import until
from kafka_shim.wire_client import Connection, WireClientError

NAMES = ("t", "t", "group-1", "1", "x")
# What a handler may do to the whole process is not asked for here.
SEEDS = 3


class Known(Seeded):
    """As Seeded, with names that mean something to this broker."""

    def __init__(self, seed: int, topic_id: bytes) -> None:
        super().__init__(seed)
        self._pick = random.Random(seed)
        self._topic_id = topic_id

    def scalar(self, kind: str):
        if kind == "string" and self._pick.random() < 0.7:
            return self._pick.choice(NAMES)
        if kind == "uuid" and self._pick.random() < 0.6:
            return self._topic_id
        if kind in ("int8", "int16", "int32", "int64") and self._pick.random() < 0.7:
            return self._pick.choice((-1, 0, 1, 2))
        return super().scalar(kind)


@pytest.fixture(scope="module")
def shared():
    listen = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    with Broker(num_partitions=2, clock="virtual", listen=listen, controller_listener_names="CONTROLLER") as broker:
        yield broker


EVERY = (*APIS, *(api for api in CONTROLLER_APIS if api not in APIS))


def name_of(api: Api) -> str:
    return api.name if api in APIS else f"controller-{api.name}"


def address_of(shared: Broker, api: Api) -> str:
    return shared.bootstrap_servers if api in APIS else shared.bootstrap_controllers


@pytest.mark.parametrize("api", EVERY, ids=name_of)
def test_no_request_is_a_bug(shared: Broker, api: Api, caplog):
    caplog.set_level(logging.ERROR)
    api.load()
    with Connection(shared.bootstrap_servers, timeout_s=60) as client:
        metadata(client, "t")
        with contextlib.suppress(AssertionError):
            make_topic(client, "t")
        topic_id = metadata(client, "t").topics[0].topic_id
    sent = 0
    opened = shared.state.metrics.connections_opened
    for version in range(api.first, api.last + 1):
        requests = list(systematic(api.request, version, SEEDS))
        requests += [make(api.request, version, Known(seed, topic_id)) for seed in range(4 * SEEDS)]
        for request in requests:
            with contextlib.suppress(ValueError):
                encode(request, version)
                # A connection for each: a request that waits must not hold up the next.
                with Connection(address_of(shared, api), timeout_s=60, client_id=STRINGS[sent % 4]) as client:
                    sent += 1
                    client.send_bytes(encode_request_frame(request, version, 1, "absurd"))
    metrics = shared.state.metrics
    until(shared, lambda: metrics.connections_opened >= opened + sent)
    until(shared, lambda: metrics.connections_closed == metrics.connections_opened)
    shared.clock.advance("1h")
    assert shared.state.metrics.requests[api.key] > sent * 0.9 > 10
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR], caplog.text[-3000:]
    assert shared.state.metrics.errors_unexpected == 0
    with Connection(shared.bootstrap_servers, timeout_s=60) as client:
        metadata(client, "after")
        with contextlib.suppress(WireClientError):
            assert produce(client, "after", 0, batch(b"a")).error_code in (0, 10, 32, 56)


def mutated(frame: bytes, pick: random.Random) -> bytes:
    """The frame with a few bytes flipped, cut, doubled or made huge; its length field fits again."""
    body = bytearray(frame[4:])
    for _ in range(pick.randint(1, 3)):
        at = pick.randrange(8, len(body)) if len(body) > 9 else 8
        kind = pick.randrange(5)
        if kind == 0:
            del body[at:]
        elif kind == 1:
            body[at:at] = pick.randbytes(pick.randint(1, 9))
        elif kind == 2:
            body[at : at + 4] = b"\x7f\xff\xff\xff"
        elif kind == 3:
            body[at : at + 5] = b"\xff\xff\xff\xff\x0f"
        elif at < len(body):
            body[at] ^= 1 << pick.randrange(8)
    return len(body).to_bytes(4) + bytes(body)


@pytest.mark.parametrize("api", EVERY, ids=name_of)
def test_no_bytes_are_a_bug(shared: Broker, api: Api, caplog):
    caplog.set_level(logging.ERROR)
    api.load()
    with Connection(shared.bootstrap_servers, timeout_s=60) as client:
        topic_id = metadata(client, "t").topics[0].topic_id
    pick = random.Random(api.key)
    for version in range(api.first, api.last + 1):
        for seed in range(SEEDS):
            request = make(api.request, version, Known(seed, topic_id))
            frame = encode_request_frame(request, version, 1, "absurd")
            for _ in range(3):
                with (
                    contextlib.suppress(WireClientError),
                    Connection(address_of(shared, api), timeout_s=60) as client,
                ):
                    client.send_bytes(mutated(frame, pick))
    shared.clock.advance("1h")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR], caplog.text[-3000:]
    assert shared.state.metrics.errors_unexpected == 0
