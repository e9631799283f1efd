"""Requests to a console as a browser makes them, without a socket."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from typing import Any
from urllib.parse import urlencode

from kafka_shim.console.app import Console
from kafka_shim.console.sessions import Sessions
from kafka_shim.embedded import Broker
from kafka_shim.http.server import Request, Response


def console_of(broker: Broker, **how: Any) -> Console:
    """A console of an open broker."""
    return Console(Sessions(broker.bootstrap_servers, {}), **how)


def request(
    console: Console, target: str, method: str = "GET", body: bytes = b"", host: str = "127.0.0.1:8080", **headers: str
) -> Response:
    """The answer; headers with underscores."""
    given: Message[str, str] = Message()
    given["Host"] = host
    for name, value in headers.items():
        given[name.replace("_", "-")] = value
    return console.handle(Request(method, target, given, body))


def get(console: Console, resource: str, status: int = 200, **parameters: object) -> Any:
    """What a resource holds."""
    answer = request(console, f"/api/{resource}?{urlencode(parameters)}")
    told = json.loads(answer.body)
    assert answer.status == status, told
    return told


@contextmanager
def stranger(told: bytes) -> Iterator[str]:
    """The http:// address of a server that tells its one client this, whatever it is asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1024)
                client.sendall(told)

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(60)
