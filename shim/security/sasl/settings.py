"""What a SASL listener asks of its clients, made of its options (Kafka: SaslChannelBuilder)."""

from __future__ import annotations

from kafka_shim.config import ConfigError
from kafka_shim.java_order import order_strings
from kafka_shim.security.sasl import plain, scram
from kafka_shim.security.sasl.callback_handlers import HandledPlain, HandledTokens, credentials_of, make_handler
from kafka_shim.security.sasl.jaas import login_modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.clock import Clock
    from kafka_shim.config import ListenerOptions
    from kafka_shim.security.sasl.mechanism import Mechanism
    from kafka_shim.security.sasl.scram import Credentials

OAUTHBEARER, GSSAPI = "OAUTHBEARER", "GSSAPI"
PLAIN_HANDLER = "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler"
GSSAPI_HANDLER = "org.apache.kafka.common.security.authenticator.SaslServerCallbackHandler"
SCRAM_HANDLER = "org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler"


class SaslSettings:
    """The mechanisms of one listener, in the order of `sasl.enabled.mechanisms`. Replaced as a whole when its options
    change; an exchange that has begun keeps the settings it began with."""

    __slots__ = (
        "_makers",
        "_passwords",
        "failure_delay_ms",
        "listed",
        "max_reauth_ms",
        "max_receive_bytes",
        "mechanisms",
        "warnings",
    )

    def __init__(self, options: ListenerOptions, credentials: Credentials, clock: Clock) -> None:
        """Raises ConfigError, with the name of the listener."""
        self.mechanisms: tuple[str, ...] = options.get("sasl.enabled.mechanisms")
        self.max_receive_bytes: int = options.get("sasl.server.max.receive.size")
        self.failure_delay_ms: int = options.get("connection.failed.authentication.delay.ms")
        self.max_reauth_ms = {name: options.get("connections.max.reauth.ms", name) for name in self.mechanisms}
        self.warnings: list[str] = []
        # The passwords of PLAIN by user, unless a callback handler checks them.
        self._passwords: dict[str, str] = {}
        self._makers: dict[str, Callable[[], Mechanism]] = {}
        # Kafka lists them out of a HashMap.
        self.listed = tuple(order_strings(self.mechanisms))
        if not self.mechanisms:
            raise ConfigError(f"listener {options.listener_name}: sasl.enabled.mechanisms is empty")
        for name in self.mechanisms:
            try:
                self._makers[name] = self._maker(name, options, credentials, clock)
            except ConfigError as err:
                raise ConfigError(f"listener {options.listener_name}, {name}: {err}") from None

    def make(self, mechanism: str) -> Mechanism:
        """Return a new exchange of an enabled mechanism."""
        return self._makers[mechanism]()

    def changed_since(self, before: SaslSettings) -> set[str]:
        """Return the users of PLAIN whose password is another one now, or gone."""
        return {user for user, password in before._passwords.items() if self._passwords.get(user) != password}

    def _maker(
        self, name: str, options: ListenerOptions, credentials: Credentials, clock: Clock
    ) -> Callable[[], Mechanism]:
        if name not in ("PLAIN", OAUTHBEARER, GSSAPI, *scram.MECHANISMS):
            raise ConfigError(
                f"Kafka has no mechanism {name}; set sasl.enabled.mechanisms to PLAIN, SCRAM-SHA-512 or others"
            )
        handler = options.own_text("sasl.server.callback.handler.class", name)
        modules = login_modules(options.listener_name, options.own_text("sasl.jaas.config", name))
        if name == GSSAPI:
            from kafka_shim.security.sasl.gssapi import Acceptor, Gssapi

            _check_handler(handler, GSSAPI_HANDLER)
            acceptor = Acceptor(modules, options, self.warnings)
            return lambda: Gssapi(acceptor)
        own = make_handler(handler, name, modules, options)
        if name == OAUTHBEARER:
            from kafka_shim.security.sasl.oauthbearer import maker

            return maker(handler if own is None else HandledTokens(own), modules, options, clock, self.warnings)
        if name == plain.NAME:
            if own is not None:
                return lambda: HandledPlain(own.authenticate)
            _check_handler(handler, PLAIN_HANDLER)
            self._passwords = passwords = plain.passwords_of(modules)
            return lambda: plain.Plain(passwords)
        if own is not None:
            asked = credentials_of(own)
            return lambda: scram.Scram(name, asked, clock.random)
        _check_handler(handler, SCRAM_HANDLER)
        return lambda: scram.Scram(name, credentials, clock.random)


def _check_handler(given: str | None, built_in: str) -> None:
    if given not in (None, "", built_in):
        raise ConfigError(f"sasl.server.callback.handler.class: {given} cannot run here; {built_in} is built in")
