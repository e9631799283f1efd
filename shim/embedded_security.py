"""Security of an embedded broker in a few words: `Broker(tls=True, sasl="SCRAM-SHA-512", users={"alice": "secret"})`.

TLS has a throw-away certificate authority, whose key exists in memory alone. `Broker.client_config` returns what each
client library needs to connect.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from kafka_shim.broker import Broker as State
    from kafka_shim.config import BrokerConfig

LIBRARIES = ("confluent-kafka", "kafka-python", "aiokafka", "java", "spark")
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
TOKEN_SECONDS = 3600


class EmbeddedSecurity:
    """What `tls`, `sasl` and `users` of an embedded broker mean."""

    def __init__(self, *, tls: bool = False, sasl: str | None = None, users: Mapping[str, str] | None = None) -> None:
        """Raises TypeError."""
        if sasl is not None and sasl not in _MODULES:
            raise TypeError(f"sasl is one of {', '.join(_MODULES)}, not {sasl!r}")
        if (sasl is None or sasl == "OAUTHBEARER") == bool(users):
            raise TypeError("users and their passwords belong to PLAIN and SCRAM, which need them")
        self.tls = tls
        self.sasl = sasl
        self.users = dict(users or {})
        self.authority_certificate = ""
        self._store: dict[str, str] = {}
        if tls:
            from kafka_shim.security.tls.authority import CertificateAuthority

            authority = CertificateAuthority()
            key, chain = authority.issue("localhost")
            self.authority_certificate = authority.certificate
            self._store = {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": key,
                "ssl.keystore.certificate.chain": chain,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": authority.certificate,
            }

    @property
    def protocol(self) -> str:
        """The security protocol, and the name of the listener."""
        return f"{'SASL_' if self.sasl else ''}{'SSL' if self.tls else 'PLAINTEXT'}"

    def options(self) -> dict[str, str]:
        """Return the broker's options."""
        if self.sasl is None:
            return dict(self._store)
        prefix = f"listener.name.{self.protocol.lower()}."
        users = self.users.items() if self.sasl == "PLAIN" else ()
        words = [f"{_quoted(f'user_{name}')}={_quoted(password)}" for name, password in users]
        jaas = " ".join([_MODULES[self.sasl], "required", *words])
        return {
            **self._store,
            "sasl.enabled.mechanisms": self.sasl,
            f"{prefix}{self.sasl.lower()}.sasl.jaas.config": f"{jaas};",
        }

    def add_users(self, broker: State) -> None:
        """Store the SCRAM credentials. Call it on the broker's thread."""
        if self.scram_users:
            from kafka_shim.security.scram_credentials import records_of_users

            assert self.sasl is not None
            broker.metadata.commit(records_of_users(self.sasl, self.scram_users, broker.clock.random))

    @property
    def scram_users(self) -> dict[str, str]:
        """The users that are records of the metadata log, with their passwords."""
        return self.users if self.sasl is not None and self.sasl.startswith("SCRAM-") else {}

    # --- what clients need

    def listener_of(self, config: BrokerConfig, addresses: Mapping[str, str]) -> str | None:
        """Return the address, of these by listener, of the first listener with this protocol, if there are several
        listeners and one has it."""
        if len(addresses) == 1:
            return None
        from kafka_shim.listeners import listeners_of

        found = [one.name for one in listeners_of(config)[0] if one.security_protocol == self.protocol]
        return addresses[found[0]] if found else None

    def client_config(self, library: str, bootstrap_servers: str, user: str | None) -> dict[str, Any]:
        """Return the settings of a client library. `user` is one of `users`, or for OAUTHBEARER any name; None: the
        first. Raises ValueError."""
        if library not in LIBRARIES:
            raise ValueError(f"{library!r} is not one of {', '.join(LIBRARIES)}")
        name = user or next(iter(self.users), "user")
        if self.users and name not in self.users:
            raise ValueError(f"{name!r} is not one of the users of this broker: {', '.join(self.users)}")
        password = self.users[name] if self.users else ""
        if library == "confluent-kafka":
            return self._confluent(bootstrap_servers, name, password)
        if library in ("kafka-python", "aiokafka"):
            return self._python(library, bootstrap_servers, name, password)
        java = self._java(bootstrap_servers, name, password)
        return {f"kafka.{key}": value for key, value in java.items()} if library == "spark" else java

    def _confluent(self, bootstrap_servers: str, name: str, password: str) -> dict[str, Any]:
        config: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "security.protocol": self.protocol}
        if self.tls:
            config["ssl.ca.pem"] = self.authority_certificate
        if self.sasl == "OAUTHBEARER":
            config |= {
                "sasl.mechanism": self.sasl,
                "enable.sasl.oauthbearer.unsecure.jwt": True,
                "sasl.oauthbearer.config": f"principal={name}",
            }
        elif self.sasl is not None:
            config |= {"sasl.mechanism": self.sasl, "sasl.username": name, "sasl.password": password}
        return config

    def _python(self, library: str, bootstrap_servers: str, name: str, password: str) -> dict[str, Any]:
        config: dict[str, Any] = {"bootstrap_servers": bootstrap_servers, "security_protocol": self.protocol}
        if self.tls:
            import ssl

            config["ssl_context"] = ssl.create_default_context(cadata=self.authority_certificate)
        if self.sasl == "OAUTHBEARER":
            provider = _aiokafka_tokens(name) if library == "aiokafka" else _kafka_python_tokens(name)
            config |= {"sasl_mechanism": self.sasl, "sasl_oauth_token_provider": provider}
        elif self.sasl is not None:
            config |= {"sasl_mechanism": self.sasl, "sasl_plain_username": name, "sasl_plain_password": password}
        return config

    def _java(self, bootstrap_servers: str, name: str, password: str) -> dict[str, Any]:
        config = {"bootstrap.servers": bootstrap_servers, "security.protocol": self.protocol}
        if self.tls:
            config |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.authority_certificate}
        if self.sasl is not None:
            given = f"username={_quoted(name)} password={_quoted(password)}"
            if self.sasl == "OAUTHBEARER":
                given = f"unsecuredLoginStringClaim_sub={_quoted(name)}"
            config |= {"sasl.mechanism": self.sasl, "sasl.jaas.config": f"{_MODULES[self.sasl]} required {given};"}
        return config


def unsecured_token(name: str) -> str:
    """Return a token for OAUTHBEARER that nobody has signed."""
    import json
    from base64 import urlsafe_b64encode

    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": name, "iat": now, "exp": now + TOKEN_SECONDS})
    return ".".join([urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts] + [""])


def _kafka_python_tokens(name: str) -> Any:
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return unsecured_token(name)

    return Tokens()


def _aiokafka_tokens(name: str) -> Any:
    from aiokafka.abc import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return unsecured_token(name)

    return Tokens()


def _quoted(text: str) -> str:
    """Return a text as a word of JAAS options, as Java's tokenizer reads it."""
    for special, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(special, escaped)
    return f'"{text}"'
