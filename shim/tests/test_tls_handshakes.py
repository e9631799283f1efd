"""Handshakes are the work of a thread: what the loop does for them, and what ends them."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kafka_shim.clock import RealClock, VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.security.tls.context import private_file
from kafka_shim.tests.test_connection import until
from kafka_shim.tls_handshakes import MOST_UNDELIVERED, TlsHandshakes

HANDSHAKES = 10


def rsa_options() -> dict[str, str]:
    """A key with which a signature takes some milliseconds."""
    key = rsa.generate_private_key(65537, 4096)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        "ssl.keystore.certificate.chain": made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode(),
    }


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        client_context().wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker(listen="SSL://127.0.0.1:0", **rsa_options()) as broker:
        yield broker


def address(broker: Broker) -> tuple[str, int]:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return host, int(port)


def shake_hands(broker: Broker) -> None:
    with socket.create_connection(address(broker), timeout=60) as bare, client_context().wrap_socket(bare):
        pass


def test_the_loop_does_none_of_the_cryptography(running: Broker):
    """By the time of the CPU, which a loaded machine does not stretch. On the loop a handshake took 5 ms with this
    key, and half a millisecond is what a connection takes anyway."""
    shake_hands(running)
    on_loop_s = running.call(time.thread_time)
    in_all_s = time.process_time() - time.thread_time()
    for _ in range(HANDSHAKES):
        shake_hands(running)
    on_loop_s = running.call(time.thread_time) - on_loop_s
    in_all_s = time.process_time() - time.thread_time() - in_all_s
    assert on_loop_s < in_all_s / 2


def test_a_client_that_sends_byte_by_byte_costs_no_step_for_each(running: Broker, monkeypatch: pytest.MonkeyPatch):
    taken = []
    take_step = TlsHandshakes.take_step

    def counted(self: TlsHandshakes, *arguments: object) -> None:
        taken.append(arguments)
        take_step(self, *arguments)

    # The last step of a handshake is taken when its client has gone on already.
    until(running, lambda: not running._server._registry.connections)
    monkeypatch.setattr(TlsHandshakes, "take_step", counted)
    with socket.create_connection(address(running), timeout=60) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        first = hello()
        for at in range(len(first)):
            client.sendall(first[at : at + 1])
        assert client.recv(1) == b"\x16"
    assert len(taken) == 1


@pytest.mark.parametrize("start", [b"\x16\x09\x01\x00\x05", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x00\x00"])
def test_what_is_no_record_of_tls_is_refused_without_waiting_for_the_rest(running: Broker, start: bytes):
    with socket.create_connection(address(running), timeout=60) as client:
        client.sendall(start + bytes(20))
        answer = client.recv(100)
        assert answer == b"" or answer[0] == 0x15  # an alert


def test_a_client_that_goes_during_its_handshake_disturbs_nobody(running: Broker):
    for _ in range(HANDSHAKES):
        with socket.create_connection(address(running), timeout=60) as client:
            client.sendall(hello())
    shake_hands(running)
    until(running, lambda: not running._server._registry.connections)


class Waiting:
    """Whose handshake it is."""

    def __init__(self, context: ssl.SSLContext) -> None:
        incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        incoming.write(hello())
        self.tls = context.wrap_bio(incoming, self.outgoing, server_side=True)
        self.taken: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def is_closing(self) -> bool:
        return False

    def step_taken(self, error: Exception | None) -> None:
        self.taken.set_result(error)


def server_context() -> ssl.SSLContext:
    key, chain = CertificateAuthority().issue("localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with private_file(f"{key}\n{chain}".encode()) as path:
        context.load_cert_chain(path)
    return context


def test_the_thread_waits_for_the_loop_and_not_the_loop_for_the_thread():
    """A crowd whose handshakes are all answered takes a turn of the loop for each two of them."""

    async def main() -> list[Waiting]:
        context = server_context()
        crowd = [Waiting(context) for _ in range(HANDSHAKES)]
        handshakes = TlsHandshakes(RealClock())
        for one in crowd:
            handshakes.take_step(one.tls, one)
        # The loop does not turn here: the thread has taken one more, which waits for its place.
        deadline = time.monotonic() + 60
        while handshakes._steps.qsize() != HANDSHAKES - MOST_UNDELIVERED - 1:
            assert time.monotonic() < deadline
        assert sum(one.outgoing.pending > 0 for one in crowd) <= MOST_UNDELIVERED
        errors = await asyncio.gather(*(one.taken for one in crowd))
        assert [type(error) for error in errors] == [ssl.SSLWantReadError] * HANDSHAKES
        handshakes.stop()
        assert handshakes._thread is not None
        await asyncio.to_thread(handshakes._thread.join, 60)
        assert not handshakes._thread.is_alive()
        return crowd

    assert all(one.outgoing.pending for one in asyncio.run(main()))


def test_a_stop_leaves_out_what_has_not_begun():
    async def main() -> None:
        context = server_context()
        crowd = [Waiting(context) for _ in range(HANDSHAKES)]
        handshakes = TlsHandshakes(RealClock())
        for one in crowd:
            handshakes.take_step(one.tls, one)
        handshakes.stop()
        assert handshakes._thread is not None
        handshakes._thread.join(60)
        assert not handshakes._thread.is_alive()
        assert sum(one.outgoing.pending > 0 for one in crowd) <= MOST_UNDELIVERED

    asyncio.run(main())


class OutOfMemory:
    def do_handshake(self) -> None:
        raise MemoryError


def test_a_handshake_that_fails_unexpectedly_does_not_end_the_thread():
    async def main() -> None:
        context = server_context()
        failed, next_one = Waiting(context), Waiting(context)
        handshakes = TlsHandshakes(RealClock())
        handshakes.take_step(OutOfMemory(), failed)
        handshakes.take_step(next_one.tls, next_one)
        errors = await asyncio.wait_for(asyncio.gather(failed.taken, next_one.taken), 60)
        assert [type(error) for error in errors] == [MemoryError, ssl.SSLWantReadError]
        handshakes.stop()

    asyncio.run(main())


def test_a_result_for_which_there_is_no_memory_does_not_end_the_thread(monkeypatch: pytest.MonkeyPatch):
    """No client could begin TLS after that."""

    async def main() -> None:
        context, loop = server_context(), asyncio.get_running_loop()
        tell, failures = loop.call_soon_threadsafe, [MOST_UNDELIVERED]

        def short(*arguments: Any) -> asyncio.Handle:
            if failures[0]:
                failures[0] -= 1
                raise MemoryError
            return tell(*arguments)

        crowd = [Waiting(context) for _ in range(HANDSHAKES)]
        handshakes = TlsHandshakes(RealClock())
        monkeypatch.setattr(loop, "call_soon_threadsafe", short)
        for one in crowd:
            handshakes.take_step(one.tls, one)
        await asyncio.wait_for(asyncio.gather(*(one.taken for one in crowd[MOST_UNDELIVERED:])), 60)
        assert not any(one.taken.done() for one in crowd[:MOST_UNDELIVERED])
        handshakes.stop()

    asyncio.run(main())


WITHOUT_MEMORY = """
import asyncio
from functools import partial
import _testcapi
from kafka_shim.clock import RealClock
from kafka_shim.tls_handshakes import MOST_UNDELIVERED, TlsHandshakes

class Step:
    def __init__(self, taken, is_short):
        self.taken, self.is_short = taken, is_short
    def is_closing(self):
        return False
    def do_handshake(self):
        pass
    def step_taken(self, error):
        self.taken.set_result(error)

deliver = TlsHandshakes._deliver

def deliver_without_memory(handshakes, step, *how):
    call = partial(deliver, handshakes, step, *how)
    if step.is_short:
        _testcapi.set_nomemory(0, 0)
    try:
        call()
    finally:
        _testcapi.remove_mem_hooks()

async def main():
    loop, handshakes = asyncio.get_running_loop(), TlsHandshakes(RealClock())
    loop.set_exception_handler(lambda *_: None)
    short, others = [[Step(loop.create_future(), is_short) for _ in range(10)] for is_short in (True, False)]
    for one in (*short, *others):
        handshakes.take_step(one, one)
    await asyncio.wait_for(asyncio.gather(*(one.taken for one in others)), 60)
    handshakes.stop()
    print("taken")

TlsHandshakes._deliver = deliver_without_memory
asyncio.run(main())
"""


def test_results_that_are_delivered_without_memory_do_not_hold_up_the_thread():
    """No client could begin TLS after that."""
    pytest.importorskip("_testcapi")  # some Pythons come without it
    ran = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "taken\n"), ran.stderr


def test_a_virtual_clock_goes_on_after_handshakes():
    async def main() -> None:
        clock, context = VirtualClock(start_ms=0), server_context()
        crowd = [Waiting(context) for _ in range(HANDSHAKES)]
        handshakes = TlsHandshakes(clock)
        for one in crowd:
            handshakes.take_step(one.tls, one)
        await asyncio.wait_for(clock.advance_and_drain(1), 60)
        assert all(one.taken.done() for one in crowd)
        handshakes.stop()

    asyncio.run(main())


def test_a_thread_that_cannot_be_started_is_started_by_the_next_handshake(monkeypatch: pytest.MonkeyPatch):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with Broker(listen="SSL://127.0.0.1:0", **rsa_options()) as broker:
        address = broker.bootstrap_servers.rpartition(":")
        where = (address[0], int(address[2]))
        with monkeypatch.context() as patched, socket.create_connection(where, timeout=60) as first:
            patched.setattr(threading.Thread, "start", refuse)
            first.sendall(hello())
            assert first.recv(1) == b""
        with socket.create_connection(where, timeout=60) as second:
            client_context().wrap_socket(second).close()


def test_the_thread_keeps_nobody_whose_step_is_taken():
    """It waits for the next one, maybe for hours."""

    async def main() -> None:
        one = Waiting(server_context())
        handshakes = TlsHandshakes(RealClock())
        handshakes.take_step(one.tls, one)
        await asyncio.wait_for(one.taken, 60)
        gone = weakref.ref(one)
        del one
        deadline = time.monotonic() + 60
        while gone() is not None:
            assert time.monotonic() < deadline
            await asyncio.sleep(0)
        handshakes.stop()

    asyncio.run(main())
