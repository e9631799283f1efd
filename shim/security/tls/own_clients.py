"""Whether brokers that use a listener among themselves could still connect when its stores change: a client with the
stores in force reaches a server with the new ones, and the other way round (Kafka: SslFactory.SslEngineValidator).

There is one broker here. The check keeps out what would cut a cluster in two that goes on with this directory.
"""

from __future__ import annotations

import ssl

from kafka_shim.config import ConfigError
from kafka_shim.security.tls.replacement import FAILED

# A handshake of TLS 1.2 has six flights.
_MOST_FLIGHTS = 10


def check_own_clients(old: tuple[ssl.SSLContext, ssl.SSLContext], new: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """Raises ConfigError unless the client of each pair (server, client) reaches the server of the other."""
    for (server, _), (_, client) in ((old, new), (new, old)):
        try:
            _shake_hands(server, client)
        except ssl.SSLError as err:
            raise ConfigError(
                f"{FAILED}brokers could not connect to each other: {err.reason or err.strerror}; the keystore of the "
                "listener between brokers has to be trusted by its truststore, the new ones by the old ones and vice "
                "versa"
            ) from None


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Raises ssl.SSLError if the two do not accept each other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(_MOST_FLIGHTS):
        for end in tuple(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
        if not ends:
            return
    raise ssl.SSLError("the handshake did not end")
