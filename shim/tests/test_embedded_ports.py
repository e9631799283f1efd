"""The ports of an embedded broker are told, and held from one start to the next."""

from __future__ import annotations

import socket
import threading
import urllib.request

import pytest

from kafka_shim import Broker
from kafka_shim.tests.ipv6 import has_ipv6, wants_ipv6


@pytest.mark.parametrize("process", [False, True])
def test_the_address_of_metrics_is_told_and_kept(process):
    with Broker(kafka_shim_http_listener=":0", process=process) as broker:
        address = broker.http_address
        assert address.startswith("http://127.0.0.1:")
        for again in (broker.restart, broker.reset):
            again()
            assert broker.http_address == address
            with urllib.request.urlopen(f"{address}/health/ready", timeout=60) as answer:
                assert answer.status == 200
        broker.stop()
        with pytest.raises(RuntimeError, match=r"not running: .*start\(\)` starts one"):
            _ = broker.http_address
    with Broker() as broker:
        assert broker.http_address == ""


def test_the_port_of_metrics_is_held_from_a_kill_to_the_next_start():
    """Of a listener on loopback IPv6 was held too, or nothing, where somebody had the port there."""
    with Broker(kafka_shim_http_listener=":0", process=True) as broker:
        address = broker.http_address
        host, port = address.removeprefix("http://").split(":")
        with socket.socket(socket.AF_INET6 if has_ipv6() else socket.AF_INET) as others:
            others.bind(("::1" if has_ipv6() else "127.0.0.2", int(port)))
            others.listen()
            broker.kill()
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind((host, int(port)))
            broker.start()
        assert broker.http_address == address


def test_metrics_end_with_the_broker_also_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch):
    """As where the program is at its end: the port stayed taken, and the log said that the next start recovers."""

    def refused(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    others = set(threading.enumerate())
    with Broker(kafka_shim_http_listener="127.0.0.1:0") as broker:
        address = ("127.0.0.1", int(broker.http_address.rpartition(":")[2]))
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refused)
            broker.stop()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        assert "http" not in {thread.name for thread in set(threading.enumerate()) - others}


@pytest.mark.parametrize("way", ["restart", "reset"])
def test_no_other_program_gets_the_port_between_two_starts(monkeypatch, way):
    with Broker() as broker:
        port, start = broker.port, broker.start

        def start_later():
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))
            start()

        monkeypatch.setattr(broker, "start", start_later)
        getattr(broker, way)()
        assert broker.port == port
        broker.stop()
        monkeypatch.undo()
        broker.restart()  # has no address to keep


@wants_ipv6
@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_the_port_of_every_address_is_held_for_both_families(host):
    """That of IPv6 was anybody's: the next start found its port in use."""
    with Broker(listen=f"PLAINTEXT://{host}:0", process=True) as broker:
        port = broker.port
        broker.kill()
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as other, pytest.raises(OSError, match="in use"):
                other.bind((address, port))
        broker.start()
        assert broker.port == port


@pytest.mark.parametrize("process", [False, True])
def test_several_listeners_keep_their_ports(process):
    options = {
        "process": process,
        "listeners": "CLIENT://127.0.0.1:0,INNER://127.0.0.1:0",
        "listener_security_protocol_map": "CLIENT:PLAINTEXT,INNER:PLAINTEXT",
        "inter_broker_listener_name": "INNER",
    }
    with Broker(**options) as broker:
        ready = broker._ready.split(" ")[1]
        broker.restart()
        assert broker._ready.split(" ")[1] == ready
