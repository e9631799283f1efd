"""The console of a broker that serves it itself. It is a client all the same, of one of the broker's own listeners."""

from __future__ import annotations

from kafka_shim.config import ConfigError
from kafka_shim.console.app import Console
from kafka_shim.console.sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.http.server import Request
    from kafka_shim.session import Listener

# In the order of preference: people log in where the broker has SASL.
PROTOCOLS = ("SASL_PLAINTEXT", "PLAINTEXT")
EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def console_of(
    listeners: list[Listener],
    read_metrics: Callable[[], bytes],
    may_read_metrics: Callable[[Request], bool],
    *,
    public_url: str = "",
    allows_changes: bool = False,
) -> Console:
    """Return the console of a broker with these listeners, bound. `read_metrics` returns its metrics, or raises
    TimeoutError; `may_read_metrics`: whether they are for who sends a request; `public_url`: where browsers find it
    behind a proxy. Raises ConfigError."""
    by_protocol = {listener.security_protocol: listener for listener in reversed(listeners)}
    for protocol in PROTOCOLS:
        if protocol in by_protocol:
            listener = by_protocol[protocol]
            break
    else:
        raise ConfigError(
            "kafka.shim.http.console needs a listener without TLS, as SASL_PLAINTEXT on loopback; kafka-shim console "
            "--command-config speaks TLS"
        )
    host = EVERYWHERE.get(listener.host, listener.host)
    bootstrap = f"[{host}]:{listener.port}" if ":" in host else f"{host}:{listener.port}"
    offered = listener.security.sasl_settings().mechanisms if protocol.startswith("SASL_") and listener.security else ()
    names = [one.advertised_host for one in listeners if one.advertised_host]
    try:
        return Console(
            Sessions(bootstrap, {"security.protocol": listener.security_protocol}, offered),
            hosts=names,
            hosts_option="kafka.shim.http.console.public.url",
            public_url=public_url,
            read_metrics=read_metrics,
            may_read_metrics=may_read_metrics,
            allows_changes=allows_changes,
        )
    except ValueError as error:
        raise ConfigError(f"kafka.shim.http.console.public.url={error}") from None
