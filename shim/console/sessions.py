"""Who looks: the cluster of each session. On a broker with SASL a person logs in, and is that person to the broker."""

from __future__ import annotations

import threading
import time

from kafka_shim.client_security import ClientSecurity, LoginRefusedError
from kafka_shim.config import ConfigError
from kafka_shim.console.cluster import Cluster
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_shim.randomness import Randomness
from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MOST_SESSIONS = 64
IDLE_S, LONGEST_S = 30 * 60, 8 * 3600
TOKEN_BYTES = 32
LONGEST_NAME = 1024
# The best first.
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Session:
    """One person's way to the cluster. `user` is empty where nobody logs in."""

    __slots__ = ("began_s", "cluster", "seen_s", "user")

    def __init__(self, cluster: Cluster, user: str = "") -> None:
        self.cluster = cluster
        self.user = user
        self.began_s = self.seen_s = time.monotonic()


class Sessions:
    """The sessions of one console. Thread-safe."""

    def __init__(self, bootstrap: str, properties: Mapping[str, str], offered: Collection[str] = ()) -> None:
        """`properties`: those of a Kafka client. With SASL and without a login (sasl.jaas.config) everybody logs in.
        `offered`: the mechanisms that the listener has, where that is known without asking. Raises ConfigError."""
        self.bootstrap = bootstrap
        self._properties = dict(properties)
        protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
        self.wants_login = protocol.startswith("SASL_") and "sasl.jaas.config" not in properties
        self._lock = threading.Lock()
        self._of: dict[str, Session] = {}
        self._everybody: Session | None = None
        # The mechanism of the last login, which the listener has probably still. A listener is asked by a handshake for
        # the best one: it logs the refusal of one that it does not have, and this not at each login.
        self._mechanism = properties.get("sasl.mechanism", "").strip()
        if self.wants_login:
            if self._mechanism and self._mechanism not in MECHANISMS:
                raise ConfigError(
                    f"sasl.mechanism {self._mechanism} needs sasl.jaas.config: on the page people log in with "
                    f"{', '.join(MECHANISMS)}"
                )
            self._mechanism = self._mechanism or next((one for one in MECHANISMS if one in offered), "")
            # Reads what TLS needs, so that a mistake in it fails the start.
            plain = protocol.removeprefix("SASL_")
            self._transport = ClientSecurity({**properties, "security.protocol": plain})
        else:
            security = ClientSecurity(properties) if protocol != "PLAINTEXT" else None
            self._everybody = Session(Cluster(bootstrap, security))

    def find(self, token: str) -> Session | None:
        """Return the session of a token, or None if there is none or it has ended."""
        if self._everybody is not None:
            return self._everybody
        with self._lock:
            self._end_old()
            session = self._of.get(token)
            if session is not None:
                session.seen_s = time.monotonic()
            return session

    def log_in(self, user: str, password: str) -> str:
        """Return the token of a new session. Raises WireClientError if the broker does not accept the login."""
        if not user or len(user) > LONGEST_NAME or len(password) > LONGEST_NAME:
            raise WireClientError(f"a user's name and password have 1 to {LONGEST_NAME} characters")
        mechanism = self._mechanism = self._mechanism or self._best_mechanism()
        jaas = f"{MODULES[mechanism]} required username={_quoted(user)} password={_quoted(password)};"
        security = ClientSecurity({**self._properties, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas})
        cluster = Cluster(self.bootstrap, security)
        try:
            cluster.ask(MetadataRequest(topics=[]))
        except LoginRefusedError:
            raise
        except WireClientError:
            self._mechanism = self._properties.get("sasl.mechanism", "").strip()
            raise
        token = Randomness().bytes_of(TOKEN_BYTES).hex()
        with self._lock:
            self._end_old()
            while len(self._of) >= MOST_SESSIONS:
                self._end(min(self._of, key=lambda one: self._of[one].seen_s))
            self._of[token] = Session(cluster, user)
        return token

    def log_out(self, token: str) -> None:
        """End a session, if there is one."""
        with self._lock:
            if token in self._of:
                self._end(token)

    def close(self) -> None:
        """End all sessions."""
        with self._lock:
            for token in list(self._of):
                self._end(token)
        if self._everybody is not None:
            self._everybody.cluster.close()

    def _best_mechanism(self) -> str:
        """Return the best mechanism that the listener has. Raises WireClientError."""
        cluster = Cluster(self.bootstrap, self._transport)
        try:
            offered = cluster.ask(SaslHandshakeRequest(mechanism=MECHANISMS[0]), 1).mechanisms
        finally:
            cluster.close()
        for mechanism in MECHANISMS:
            if mechanism in offered:
                return mechanism
        raise WireClientError(f"the listener has {', '.join(offered)}; the console logs in with {MECHANISMS}")

    def _end_old(self) -> None:
        now_s = time.monotonic()
        for token, session in list(self._of.items()):
            if now_s - session.seen_s > IDLE_S or now_s - session.began_s > LONGEST_S:
                self._end(token)

    def _end(self, token: str) -> None:
        self._of.pop(token).cluster.close()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
