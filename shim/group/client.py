"""The client that sends a request, as groups store and show it."""

from __future__ import annotations


class Client:
    """`client_id` is "" if the request had none. `host` is the address with a leading slash, as Kafka shows it."""

    __slots__ = ("client_id", "host")

    def __init__(self, client_id: str, host: str) -> None:
        self.client_id = client_id
        self.host = host
