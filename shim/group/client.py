"""The client that sends a request, as groups store and show it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Client:
    """`client_id` is "" if the request had none. `host` is the address with a leading slash, as Kafka shows it.
    `may_describe` says of a topic whether the client may describe it; None: it may describe all."""

    __slots__ = ("client_id", "host", "may_describe")

    def __init__(self, client_id: str, host: str, may_describe: Callable[[str], bool] | None = None) -> None:
        self.client_id = client_id
        self.host = host
        self.may_describe = may_describe
