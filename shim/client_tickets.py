"""A client's side of GSSAPI (RFC 4752), by the properties of Kafka's clients (Java: Krb5LoginModule, GssKrb5Client)."""

from __future__ import annotations

from kafka_shim.config import ConfigError
from kafka_shim.security.sasl.gssapi import LOGIN_MODULE, NO_LAYER, library, reason_of
from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from kafka_shim.security.sasl.jaas import LoginModule


class Initiator:
    """Logs in with a ticket of the cache (`useTicketCache=true`) or with a key (`useKeyTab=true`)."""

    def __init__(self, module: LoginModule, properties: Mapping[str, str]) -> None:
        """Raises ConfigError."""
        self._gssapi = library()
        if module.name != LOGIN_MODULE:
            raise ConfigError(f"sasl.jaas.config: GSSAPI needs {LOGIN_MODULE}")
        options = module.options
        self._service = options.get("serviceName") or properties.get("sasl.kerberos.service.name", "").strip()
        if not self._service:
            raise ConfigError("set sasl.kerberos.service.name, as the broker has it")
        self._principal = options.get("principal")
        self._keytab = None
        if options.get("useKeyTab", "").lower() == "true":
            self._keytab = options.get("keyTab", "").removeprefix("file:")
            if not self._keytab or not self._principal:
                raise ConfigError('sasl.jaas.config: useKeyTab=true needs keyTab="FILE" and principal="NAME@REALM"')
        elif options.get("useTicketCache", "").lower() != "true":
            raise ConfigError("sasl.jaas.config: set useTicketCache=true after kinit, or useKeyTab=true")

    def log_in(self, host: str, send: Callable[[bytes], bytes]) -> None:
        """Exchange tokens with the service on this host. `send` returns the broker's answer. Raises WireClientError."""
        try:
            self._exchange(host, send)
        except self._gssapi.exceptions.GSSError as err:
            advice = "check the keytab, or kinit; the KDC; and the name that you connect to"
            raise WireClientError(f"no ticket for {self._service}@{host}: {reason_of(err)}; {advice}") from None

    def _exchange(self, host: str, send: Callable[[bytes], bytes]) -> None:
        gssapi = self._gssapi
        flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
        context = gssapi.SecurityContext(
            name=gssapi.Name(f"{self._service}@{host}", gssapi.NameType.hostbased_service),
            creds=self._credentials(),
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=flags,
        )
        answer: bytes | None = None
        while not context.complete:
            answer = send(bytes(context.step(answer) or b""))
        offered = bytes(context.unwrap(answer or b"").message)
        if len(offered) != 4 or not offered[0] & NO_LAYER:
            raise WireClientError("the broker offers no session without a security layer, which Kafka's clients need")
        send(bytes(context.wrap(NO_LAYER.to_bytes(1) + bytes(3), False).message))

    def _credentials(self) -> Any:
        gssapi = self._gssapi
        name = None
        if self._principal:
            name = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal)
        store = None
        if self._keytab:
            store = {"client_keytab": self._keytab, "ccache": "MEMORY:kafka-shim"}
        return gssapi.Credentials(name=name, usage="initiate", store=store)
