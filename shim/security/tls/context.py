"""The TLS settings of a listener, made of its options: an `ssl.SSLContext` (Kafka: SslFactory)."""

from __future__ import annotations

import datetime
import hashlib
import os
import ssl
import tempfile
from contextlib import contextmanager, suppress

from cryptography import x509

from kafka_shim.config import BrokerConfig, ConfigError, ListenerOptions
from kafka_shim.memory_files import memory_file
from kafka_shim.security.tls.replacement import Stores
from kafka_shim.security.tls.stores import read_keystore, read_truststore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
# The suites of TLS 1.3 that OpenSSL enables. Python cannot choose among them.
_TLS13_SUITES = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})


# Versions that Java knows by name and never speaks (`jdk.tls.disabledAlgorithms`).
_RETIRED = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
# Why OpenSSL's security level 2 refuses certificates that Java serves: signed with SHA-1, or a key under 2048 bits.
_WEAK = frozenset({"CA_MD_TOO_WEAK", "CA_KEY_TOO_SMALL", "EE_KEY_TOO_SMALL"})


def make_context(options: ListenerOptions, *, uses_sasl: bool) -> tuple[ssl.SSLContext, Stores, list[str]]:
    """Return (the context of a listener, what its stores hold, warnings of one line each). Raises ConfigError."""
    keystore = read_keystore(options)
    if keystore is None:
        raise ConfigError("TLS needs a certificate: set ssl.keystore.location, or ssl.keystore.certificate.chain")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    set_versions_and_suites(context, options)
    warnings = load_certificates(context, keystore)
    # On SASL_SSL listeners Kafka asks clients for certificates only if the option has the listener's prefix.
    asked = options.own_text("ssl.client.auth") if uses_sasl else options.get("ssl.client.auth")
    mode = _CLIENT_AUTH.get((asked or "none").strip().lower())
    if mode is None:
        raise ConfigError(f"ssl.client.auth: {asked} is not none, requested or required")
    context.verify_mode = mode
    truststore = read_truststore(options)
    if truststore is not None:
        context.load_verify_locations(cadata=truststore)
        # As in Java, whatever is in the store is trusted, also several self-signed certificates of one name.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    elif mode is not ssl.CERT_NONE:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    return (
        context,
        Stores(
            x509.load_pem_x509_certificates(keystore)[0],
            None if truststore is None else hashlib.sha256(truststore.encode()).digest(),
            mode,
        ),
        warnings,
    )


def load_certificates(context: ssl.SSLContext, keystore: bytes) -> list[str]:
    """Give a context the private key and the certificates of a keystore (PEM). Returns warnings of one line each: a
    certificate that OpenSSL finds weak is served as Java serves it, and said. Raises ConfigError."""
    with private_file(keystore) as path:
        reason = _refusal(context, path)
        if reason is None:
            return []
        suites = ":".join(suite["name"] for suite in context.get_ciphers() if not suite["name"].startswith("TLS_"))
        for level in (1, 0):  # level 1 takes shorter keys, level 0 SHA-1 too; the suites stay the same
            if reason in _WEAK:
                context.set_ciphers(f"{suites or 'DEFAULT'}:@SECLEVEL={level}")
                reason = _refusal(context, path)
    if reason == "KEY_VALUES_MISMATCH":
        raise ConfigError("ssl.keystore: the private key does not belong to the first certificate")
    if reason is not None:
        raise ConfigError(f"ssl.keystore: OpenSSL refuses the certificates: {reason}")
    return [
        "ssl.keystore: a certificate is weak (a key under 2048 bits, or a signature by SHA-1): many clients refuse it; "
        "issue a new one"
    ]


def out_of_date(certificate: x509.Certificate) -> list[str]:
    """Return a warning if the certificate is not valid now, by the machine's clock, as clients see it. It is no
    error: Java's listeners serve it."""
    now = datetime.datetime.now(datetime.UTC)
    if certificate.not_valid_after_utc < now:
        ended = certificate.not_valid_after_utc.isoformat()
        return [f"ssl.keystore: the certificate has expired ({ended}): clients refuse it; issue a new one"]
    if certificate.not_valid_before_utc > now:
        begins = certificate.not_valid_before_utc.isoformat()
        return [f"ssl.keystore: the certificate is not valid before {begins}: clients refuse it until then"]
    return []


def _refusal(context: ssl.SSLContext, path: str) -> str | None:
    """Load a key and its certificates from a file of PEM. Returns OpenSSL's reason if it refuses them."""
    try:
        context.load_cert_chain(path)
    except ssl.SSLError as err:
        return err.reason or str(err)
    except OSError as err:
        return str(err)
    return None


def make_client_context(options: ListenerOptions) -> ssl.SSLContext:
    """Return the context of a client with the listener's own stores, as another broker would have them. Raises
    ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # as Kafka's own check of its stores
    set_versions_and_suites(context, options)
    keystore, truststore = read_keystore(options), read_truststore(options)
    assert keystore is not None  # else `make_context` has refused
    load_certificates(context, keystore)
    if truststore is not None:
        context.load_verify_locations(cadata=truststore)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


def client_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of a client with these `ssl.` properties of Kafka's clients. Raises ConfigError."""
    config = BrokerConfig()
    config.given = dict(properties)
    options = ListenerOptions(config, "")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    context.check_hostname = algorithm == "https"
    set_versions_and_suites(context, options)
    truststore = read_truststore(options)
    if truststore is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        context.load_verify_locations(cadata=truststore)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java, whatever is in the store is trusted
    keystore = read_keystore(options)
    if keystore is not None:
        load_certificates(context, keystore)
    return context


def login_context(login: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context for an `https:` endpoint of OAUTHBEARER, by the options of the login module (Kafka:
    JaasOptionsUtils). The name of the endpoint is always checked, as HttpsURLConnection does. Raises ConfigError."""
    try:
        context = client_context({name: text for name, text in login.items() if name.startswith("ssl.")})
    except ConfigError as err:
        raise ConfigError(f"sasl.jaas.config, {err}") from None
    context.check_hostname = True
    return context


def set_versions_and_suites(context: ssl.SSLContext, options: ListenerOptions) -> None:
    """Set the protocols and cipher suites that the options name. Raises ConfigError."""
    names: tuple[str, ...] = options.get("ssl.enabled.protocols") or (options.text("ssl.protocol") or "",)
    strange = [name for name in names if name not in _VERSIONS and name not in _RETIRED]
    versions = {_VERSIONS[name] for name in names if name in _VERSIONS}
    if strange or not versions:
        name = (strange or names)[0]
        raise ConfigError(f"ssl.enabled.protocols: {name} is not TLSv1.2 or TLSv1.3, older ones are not safe")
    suites: tuple[str, ...] = options.get("ssl.cipher.suites")
    if suites:
        newer = _TLS13_SUITES.intersection(suites)
        older = [suite for suite in suites if suite not in _TLS13_SUITES]
        if newer and newer != _TLS13_SUITES:
            raise ConfigError(
                "ssl.cipher.suites: Python cannot choose among the suites of TLS 1.3; name all of "
                f"{', '.join(sorted(_TLS13_SUITES))} or none of them"
            )
        if not newer:
            versions.discard(ssl.TLSVersion.TLSv1_3)
        if older:
            try:
                context.set_ciphers(":".join(map(openssl_name, older)))
            except ssl.SSLError:
                raise ConfigError(f"ssl.cipher.suites: OpenSSL knows none of {', '.join(older)}") from None
        else:
            versions.discard(ssl.TLSVersion.TLSv1_2)
    if not versions:
        raise ConfigError("ssl.cipher.suites has no suite of a protocol in ssl.enabled.protocols")
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is
    ECDHE-RSA-AES128-GCM-SHA256."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not cipher:
        return suite
    cipher = cipher.replace("AES_", "AES").replace("_CBC", "").replace("POLY1305_SHA256", "POLY1305")
    return f"{'' if exchange == 'RSA' else exchange + '-'}{cipher}".replace("_", "-")


@contextmanager
def private_file(data: bytes) -> Iterator[str]:
    """A file that only this process can read, for the one call that wants a path. On Linux it is on no disk."""
    fd = memory_file("keystore")
    path = f"/proc/self/fd/{fd}"
    if fd is None:
        fd, path = tempfile.mkstemp()
    try:
        os.write(fd, data)
        yield path
    finally:
        os.close(fd)
        if not path.startswith("/proc/"):
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 a path of mkstemp
