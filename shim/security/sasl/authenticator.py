"""The SASL exchange of one connection, and the end of its session (Kafka: SaslServerAuthenticator, KafkaChannel).

`dispatch` asks `admit` before each request of a SASL connection. The handlers of SaslHandshake and SaslAuthenticate
call `handshake` and `authenticate`. A failure is logged once, for the operator; the client gets Kafka's message.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from traceback import format_tb

from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError
from kafka_shim.security.printable import MAX_NAME, MAX_REASON, printable
from kafka_shim.security.sasl.mechanism import SaslAuthenticationError, SaslError, SaslSilentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.clock import Clock
    from kafka_shim.security.listener_security import ListenerSecurity
    from kafka_shim.security.principals import AuthenticationContext
    from kafka_shim.security.sasl.mechanism import Mechanism
    from kafka_shim.security.sasl.settings import SaslSettings

logger = logging.getLogger("kafka_shim.security")

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
# A client may not authenticate again more often (KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS).
MIN_REAUTH_INTERVAL_MS = 1000
# The longest session: Kafka counts it in nanoseconds, as a signed number of 64 bits (Utils.msToNs).
LONGEST_SESSION_MS = (2**63 - 1) // 1_000_000


class State(Enum):
    """What the next request may be."""

    INITIAL = auto()  # ApiVersions or SaslHandshake; anything else is not a SASL client
    HANDSHAKE = auto()  # SaslHandshake, after ApiVersions
    EXCHANGE = auto()  # SaslAuthenticate, or a raw token after SaslHandshake version 0
    BAD_MECHANISM = auto()  # re-authentication with another mechanism: the next token fails
    COMPLETE = auto()  # any request
    FAILED = auto()  # none


class Authenticator:
    """Belongs to one connection on a SASL listener. Event-loop thread only."""

    __slots__ = (
        "_clock",
        "_context",
        "_handshake_at_ms",
        "_mechanism",
        "_security",
        "_settings",
        "expires_at_ms",
        "is_refused",
        "mechanism_name",
        "on_begin",
        "on_complete",
        "principal",
        "state",
        "token_id",
        "user",
        "uses_headers",
    )

    def __init__(self, security: ListenerSecurity, context: AuthenticationContext, clock: Clock) -> None:
        # Constant for the life of the connection.
        self._security = security
        self._context = context
        self._clock = clock
        # Called when a client begins to authenticate again, and with the principal after each successful exchange.
        self.on_begin: Callable[[], None] = _nothing
        self.on_complete: Callable[[str], None] = _ignore
        # The current exchange, or the one that made the session.
        self.state = State.INITIAL
        self._settings: SaslSettings = security.sasl_settings()
        self._mechanism: Mechanism | None = None
        self.mechanism_name = ""
        self.uses_headers = False
        # Of the session: its principal, when it ends by the monotonic clock, when a handshake last began again.
        self.principal: str | None = None
        # Whose credentials made the session: a principal builder may have made another name of it.
        self.user = ""
        self.expires_at_ms: float | None = None
        self.token_id = ""
        self._handshake_at_ms: float | None = None
        # The connection is closed once the answer to the failure is sent.
        self.is_refused = False

    def forget_connection(self) -> None:
        """The connection is closed. It has this authenticator: a cycle would wait for the garbage collector."""
        self.on_begin, self.on_complete = _nothing, _ignore

    # --- the gate

    @property
    def takes_raw_tokens(self) -> bool:
        """Whether the next frame is a token without a request header (SaslHandshake version 0)."""
        return not self.uses_headers and self.state in (State.EXCHANGE, State.BAD_MECHANISM)

    @property
    def is_in_exchange(self) -> bool:
        """Whether the client is not through with its login, or with another one, or has failed."""
        return self.state is not State.COMPLETE

    def admit(self, api_key: int) -> bool:
        """Return whether the request may be handled; False: it is answered with ILLEGAL_SASL_STATE, and the connection
        is closed. Raises DisconnectError if it gets no answer."""
        state = self.state
        if state is State.COMPLETE:
            expires_at_ms = self.expires_at_ms
            if expires_at_ms is None:
                return True
            now_ms = self._clock.monotonic_ms()
            if (api_key != SASL_HANDSHAKE or not self._begin_again(now_ms)) and now_ms > expires_at_ms:
                who = printable(str(self.principal), MAX_NAME)
                raise DisconnectError(f"the session of {who} has expired and its client did not authenticate again")
            return True
        if state is State.EXCHANGE:
            if api_key == SASL_AUTHENTICATE:
                return True
            self._log("it sent another request during the exchange; check its security.protocol")
            return False
        if api_key == SASL_HANDSHAKE and state in (State.INITIAL, State.HANDSHAKE):
            return True
        if api_key == API_VERSIONS and state is State.INITIAL:
            return True
        if state is State.BAD_MECHANISM and api_key == SASL_AUTHENTICATE:
            return True
        raise DisconnectError(
            "a request before authentication: the client is configured for another security.protocol than "
            f"{self._context.security_protocol}"
        )

    def versions_answered(self) -> None:
        """ApiVersions was served. Before authentication it is served once."""
        if self.state is State.INITIAL:
            self.state = State.HANDSHAKE

    def _begin_again(self, now_ms: float) -> bool:
        """Return whether the handshake begins another login, and is not one that comes too soon."""
        last_ms = self._handshake_at_ms
        if last_ms is not None and now_ms - last_ms < MIN_REAUTH_INTERVAL_MS:
            return False
        self._handshake_at_ms = now_ms
        self.state = State.HANDSHAKE
        self.on_begin()
        return True

    # --- the exchange

    def handshake(self, mechanism: str, version: int) -> tuple[ErrorCode, tuple[str, ...]]:
        """Begin an exchange. Return (error code, the enabled mechanisms)."""
        if self.state not in (State.INITIAL, State.HANDSHAKE):
            return ErrorCode.ILLEGAL_SASL_STATE, ()
        settings = self._security.sasl_settings()
        self.uses_headers = version >= 1
        if mechanism not in settings.mechanisms:
            self._log(
                f"it wants {mechanism[:MAX_NAME]!r}, this listener has {', '.join(settings.mechanisms)}: change "
                "sasl.mechanism of the client or sasl.enabled.mechanisms"
            )
            self._fail()
            if self.principal is not None:
                raise DisconnectError  # logged already; Kafka does not answer it when a client authenticates again
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, settings.listed
        if self.principal is not None and mechanism != self.mechanism_name:
            self._log(
                f"it authenticated with {self.mechanism_name} and wants to do so again with {mechanism[:MAX_NAME]}"
            )
            self.state = State.BAD_MECHANISM
        else:
            self.mechanism_name = mechanism
            self._mechanism = None
            self.state = State.EXCHANGE
        return ErrorCode.NONE, settings.listed

    async def authenticate(self, token: bytes) -> tuple[bytes, int]:
        """Take one token of the client. Return (answer, lifetime of the session in ms, 0 for no limit). Raises
        KafkaError for the client, after which the connection is closed; DisconnectError for no answer."""
        if self.state is State.COMPLETE:
            raise KafkaError(
                ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication"
            )
        if self.state is not State.EXCHANGE:
            self._fail()
            raise DisconnectError("a SASL token outside an authentication exchange")
        attempt = "authentication" if self.principal is None else "re-authentication"
        unspecific = (
            f"Authentication failed during {attempt} due to invalid credentials with SASL mechanism "
            f"{self.mechanism_name}"
        )
        try:
            mechanism = self._mechanism or self._begin()
            answer = await mechanism.evaluate(token)
            lifetime_ms = self._complete(mechanism) if mechanism.is_complete else 0
        except SaslAuthenticationError as err:
            self._log(f"{err}{f' ({err.advice})' if err.advice else ''}")
            message = str(err)
        except SaslSilentError as err:
            self._fail()
            raise DisconnectError(str(err)) from None
        except SaslError as err:
            self._log(str(err))
            message = unspecific
        except DisconnectError:
            raise
        except Exception as err:
            # A bug of a mechanism, or of a class that the operator has plugged in, must not leave the exchange open.
            self._log(f"{type(err).__name__}: {err}", "".join(["\n", *format_tb(err.__traceback__)]))
            message = unspecific
        else:
            return answer, lifetime_ms
        self._fail()
        raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, message)

    def _begin(self) -> Mechanism:
        """The first token begins the exchange, with the options in force: a client may wait with it after the
        handshake, and a password that was changed meanwhile lets nobody in."""
        settings = self._security.sasl_settings()
        if self.mechanism_name not in settings.mechanisms:
            raise SaslError("the listener had this mechanism at the handshake, and has it no more")
        self._settings = settings
        self._mechanism = mechanism = settings.make(self.mechanism_name)
        return mechanism

    def _complete(self, mechanism: Mechanism) -> int:
        """Make the session. Return its lifetime in ms, 0 for no limit."""
        principal = self._security.principal_of(self._context, self.mechanism_name, mechanism.authorization_id)
        if self.principal is not None and principal != self.principal:
            raise SaslAuthenticationError(
                "Cannot change principals during re-authentication from "
                f"{self.principal.replace(':', '.', 1)}: {principal.replace(':', '.', 1)}"
            )
        lifetime_ms = 0
        self.expires_at_ms = None
        max_reauth_ms = self._settings.max_reauth_ms.get(self.mechanism_name, 0)
        expires_at_ms = mechanism.expires_at_ms
        if expires_at_ms is not None or max_reauth_ms > 0:
            left_ms = max_reauth_ms if expires_at_ms is None else expires_at_ms - self._clock.now_ms()
            lifetime_ms = max(0, min(left_ms, max_reauth_ms) if max_reauth_ms > 0 else left_ms)
            if lifetime_ms > LONGEST_SESSION_MS:
                self._fail()
                raise DisconnectError(
                    f"the session of {printable(principal, MAX_NAME)} would last {lifetime_ms} ms, Kafka counts at "
                    f"most {LONGEST_SESSION_MS}: give the token an earlier end, or lower connections.max.reauth.ms"
                )
            # Without a lifetime, as by a token that is over and not removed yet, no request is in time.
            self.expires_at_ms = self._clock.monotonic_ms() + (lifetime_ms or -1)
        self.principal = principal
        # A session by a token has nothing of the owner's password.
        self.user = "" if mechanism.token_id else mechanism.authorization_id
        self.token_id = mechanism.token_id
        self._mechanism = None
        self.state = State.COMPLETE
        logger.debug("%s authenticated with %s as %s", self._who, self.mechanism_name, printable(principal, MAX_NAME))
        self.on_complete(principal)
        return lifetime_ms

    # --- failure

    @property
    def failure_delay_ms(self) -> int:
        """How long an answer to a failure is held back (`connection.failed.authentication.delay.ms`)."""
        return self._settings.failure_delay_ms

    @property
    def max_receive_bytes(self) -> int:
        """The longest request before authentication (`sasl.server.max.receive.size`)."""
        return self._settings.max_receive_bytes

    def refuse(self) -> None:
        """The connection is closed once the answer in progress is sent."""
        self._fail()

    def _fail(self) -> None:
        self.state = State.FAILED
        self._mechanism = None
        self.is_refused = True

    @property
    def _who(self) -> str:
        return f"{self._context.client_address} on {self._context.listener_name}"

    def _log(self, reason: str, stack: str = "") -> None:
        with_what = f" with {self.mechanism_name}" if self.mechanism_name else ""
        shown = printable(reason, MAX_REASON)
        self._security.failures.write("%s failed to authenticate%s: %s%s", self._who, with_what, shown, stack)


def _nothing() -> None:
    """Before a connection is interested."""


def _ignore(principal: str) -> None:
    """Before a connection is interested."""
