"""From what a client has proved to a principal (Kafka: KafkaPrincipalBuilder, DefaultKafkaPrincipalBuilder).

`principal.builder.class` is Kafka's own class or the dotted path of a Python class, `package.module.Class`, that is
made without arguments and has `build(context: AuthenticationContext) -> str`, which returns `TYPE:NAME`. If it has
`configure(options: Mapping[str, str])`, it gets the options that were given first.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from kafka_shim.config import ConfigError
from kafka_shim.security.plugins import make_plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    class PrincipalBuilder(Protocol):
        """What `principal.builder.class` names."""

        def build(self, context: AuthenticationContext) -> str:
            """Return the principal as `TYPE:NAME`."""


DEFAULT_CLASS = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
ANONYMOUS = "User:ANONYMOUS"
# The parts of a name in a certificate.
MOST_PARTS = 256


@dataclass(frozen=True, slots=True)
class AuthenticationContext:
    """What is known of a client that has authenticated. Without SASL `authorization_id` and `mechanism` are None;
    without a client certificate `certificate` (DER) and `certificate_name` (the subject, RFC 2253) are None."""

    listener_name: str
    security_protocol: str
    client_address: str
    mechanism: str | None = None
    authorization_id: str | None = None
    certificate: bytes | None = None
    certificate_name: str | None = None


class DefaultPrincipalBuilder:
    """Kafka's: `User:` and the SASL name, that of Kerberos after `sasl.kerberos.principal.to.local.rules`, or the name
    in the certificate after `ssl.principal.mapping.rules`."""

    def __init__(
        self,
        map_certificate_name: Callable[[str], str] | None = None,
        map_kerberos_name: Callable[[str], str] | None = None,
    ) -> None:
        self._map = map_certificate_name
        self._map_kerberos = map_kerberos_name

    def build(self, context: AuthenticationContext) -> str:
        if context.authorization_id is not None:
            if context.mechanism == "GSSAPI" and self._map_kerberos is not None:
                return f"User:{self._map_kerberos(context.authorization_id)}"
            return f"User:{context.authorization_id}"
        name = context.certificate_name
        if name is None:
            return ANONYMOUS
        return f"User:{name if self._map is None else self._map(name)}"


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate (DER) as Java's X500Principal.getName does (RFC 2253). Raises ConfigError
    for one of more than `MOST_PARTS` parts, which holds the event loop for tens of milliseconds, or that is no DER."""
    from kafka_shim.security.tls.distinguished_name import attributes_of, java_name, names_of

    try:
        _, subject = names_of(certificate)
        if len(list(islice(attributes_of(subject), MOST_PARTS + 1))) > MOST_PARTS:
            raise ConfigError(f"the name in the client's certificate has more than {MOST_PARTS} parts")
        return java_name(subject)
    except ValueError as err:
        raise ConfigError(f"the name in the client's certificate cannot be read: {err}") from None


def principal_builder(
    class_name: str | None,
    map_certificate_name: Callable[[str], str] | None = None,
    options: Mapping[str, str] | None = None,
    map_kerberos_name: Callable[[str], str] | None = None,
) -> PrincipalBuilder:
    """Return the builder that the option names. Raises ConfigError."""
    if class_name in (None, "", DEFAULT_CLASS):
        return DefaultPrincipalBuilder(map_certificate_name, map_kerberos_name)
    assert class_name is not None
    built_in = {DEFAULT_CLASS: f"{__name__}.{DefaultPrincipalBuilder.__name__}"}
    builder: PrincipalBuilder = make_plugin("principal.builder.class", class_name, built_in, ("build",), options or {})
    return builder
