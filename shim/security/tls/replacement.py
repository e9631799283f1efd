"""Whether new stores may replace those of a running listener (Kafka: SslFactory.createNewSslEngineFactory,
CertificateEntries).

A listener keeps its name: unless `ssl.allow.dn.changes` the new certificate has the subject of the old one, and unless
`ssl.allow.san.changes` all its alternative names.
"""

from __future__ import annotations

from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kafka_shim.config import ConfigError
from kafka_shim.security.tls.distinguished_name import java_name, names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from kafka_shim.config import ListenerOptions

FAILED = "Validation of dynamic config update of SSLFactory failed: "


@dataclass(frozen=True, slots=True)
class Stores:
    """What of a listener's stores is compared with the next ones."""

    certificate: x509.Certificate
    # A digest of the certificates in the truststore; None: there is no truststore.
    truststore_digest: bytes | None
    # By `ssl.client.auth`.
    client_auth: ssl.VerifyMode

    @property
    def has_truststore(self) -> bool:
        return self.truststore_digest is not None

    @property
    def subject(self) -> str:
        return java_name(names_of(self.certificate.public_bytes(Encoding.DER))[1])

    @property
    def alternative_names(self) -> frozenset[tuple[str, str]]:
        """The kind and the value of each alternative name."""
        try:
            found = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return frozenset()
        return frozenset((type(one).__name__, str(one.value)) for one in found)


def check_replacement(old: Stores, new: Stores, options: ListenerOptions) -> None:
    """Raises ConfigError with Kafka's reason, and with the option that allows the change."""
    if old.certificate == new.certificate and old.has_truststore == new.has_truststore:
        return
    if not options.get("ssl.allow.dn.changes") and old.subject.lower() != new.subject.lower():
        raise ConfigError(
            f"{FAILED}Keystore DistinguishedName does not match: existing={{DN={old.subject}}}, "
            f"new={{DN={new.subject}}}; ssl.allow.dn.changes=true allows it"
        )
    if not options.get("ssl.allow.san.changes") and not new.alternative_names >= old.alternative_names:
        raise ConfigError(
            f"{FAILED}Keystore SubjectAltNames do not match: existing={{SAN={_listed(old)}}}, "
            f"new={{SAN={_listed(new)}}}; ssl.allow.san.changes=true allows it"
        )
    if new.has_truststore and not old.has_truststore:
        raise ConfigError(
            f"{FAILED}Cannot add SSL truststore to an existing listener for which no truststore was configured."
        )


def _listed(stores: Stores) -> str:
    return f"[{', '.join(sorted(value for _, value in stores.alternative_names))}]"
