"""Keystores and truststores: PEM in files or options, PKCS12 and JKS (Kafka: DefaultSslEngineFactory).

Whether a file is PKCS12 or JKS is seen by its first bytes, as Java does, whichever of the two types is given.
"""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from kafka_shim.config import ConfigError
from kafka_shim.security.tls import jks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

    from kafka_shim.config import ListenerOptions


def read_keystore(options: ListenerOptions) -> bytes | None:
    """Return the certificates and the private key as PEM without a password, or None if there is no keystore. Raises
    ConfigError, whose message has no password."""
    chain, key = options.text("ssl.keystore.certificate.chain"), options.text("ssl.keystore.key")
    location = options.text("ssl.keystore.location")
    kind = (options.text("ssl.keystore.type") or "").upper()
    if (chain is None) != (key is None):
        raise ConfigError("ssl.keystore.certificate.chain and ssl.keystore.key must be given together")
    if chain is not None and key is not None:
        if kind != "PEM":
            raise ConfigError("ssl.keystore.certificate.chain needs ssl.keystore.type=PEM")
        if location is not None:
            raise ConfigError("both ssl.keystore.location and ssl.keystore.certificate.chain are given: keep one")
        _refuse_password(options, "keystore", "a store in PEM has none, only ssl.key.password")
        return _pem("ssl.keystore.key", key.encode() + b"\n" + chain.encode(), options.text("ssl.key.password"))
    if location is None:
        _refuse_password(options, "keystore", "there is no keystore: set ssl.keystore.location")
        return None
    data = _file("ssl.keystore.location", location)
    if kind == "PEM":
        _refuse_password(options, "keystore", "a store in PEM has none, only ssl.key.password")
        return _pem("ssl.keystore.location", data, options.text("ssl.key.password"))
    private_key, certificates, _ = _store(options, "keystore", location, kind, data)
    if private_key is None or not certificates:
        raise ConfigError(f"ssl.keystore.location: {location} has no private key with a certificate")
    private = private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def read_truststore(options: ListenerOptions) -> str | None:
    """Return the trusted certificates as PEM, or None if there is no truststore. Raises ConfigError."""
    inline, location = options.text("ssl.truststore.certificates"), options.text("ssl.truststore.location")
    kind = (options.text("ssl.truststore.type") or "").upper()
    if inline is not None:
        if kind != "PEM" or location is not None:
            raise ConfigError(
                "ssl.truststore.certificates needs ssl.truststore.type=PEM and no ssl.truststore.location"
            )
        _refuse_password(options, "truststore", "a store in PEM has none")
        return _certificates("ssl.truststore.certificates", inline.encode())
    if location is None:
        _refuse_password(options, "truststore", "there is no truststore: set ssl.truststore.location")
        return None
    data = _file("ssl.truststore.location", location)
    if kind == "PEM":
        _refuse_password(options, "truststore", "a store in PEM has none")
        return _certificates("ssl.truststore.location", data)
    _, _, found = _store(options, "truststore", location, kind, data)
    if not found:
        raise ConfigError(f"ssl.truststore.location: {location} has no certificates")
    return b"".join(one.public_bytes(Encoding.PEM) for one in found).decode()


def _refuse_password(options: ListenerOptions, which: str, reason: str) -> None:
    """A password that opens nothing is a mistake, which Kafka refuses. Raises ConfigError if there is one."""
    if options.text(f"ssl.{which}.password") is not None:
        raise ConfigError(f"ssl.{which}.password is given, and {reason}")


def _file(option: str, location: str) -> bytes:
    if not location:  # not as if it were not set: without a truststore all authorities of the machine are trusted
        raise ConfigError(f"{option} is empty: name a file, or leave it out")
    try:
        return Path(location).read_bytes()
    except OSError as err:
        raise ConfigError(f"{option}: cannot read {location}: {err.strerror}") from None


def _pem(option: str, data: bytes, password: str | None) -> bytes:
    begin = data.find(b"-----BEGIN")
    blocks = data[begin:].split(b"-----BEGIN ") if begin >= 0 else []
    keys = [b"-----BEGIN " + block for block in blocks if b"PRIVATE KEY-----" in block[:40]]
    if len(keys) != 1:
        raise ConfigError(f"{option}: there must be one private key in PEM (PKCS #8), there are {len(keys)}")
    try:
        key = load_pem_private_key(keys[0], password.encode() if password and b"ENCRYPTED" in keys[0] else None)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    except (ValueError, TypeError):
        raise ConfigError(f"{option}: the private key cannot be read; is ssl.key.password right?") from None
    return private + _certificates(option, data).encode()


def _certificates(option: str, data: bytes) -> str:
    try:
        found = x509.load_pem_x509_certificates(data)
    except ValueError:
        raise ConfigError(f"{option}: there is no certificate in PEM that can be read") from None
    return b"".join(one.public_bytes(Encoding.PEM) for one in found).decode()


def _store(
    options: ListenerOptions, which: str, location: str, kind: str, data: bytes
) -> tuple[PrivateKeyTypes | None, list[x509.Certificate], list[x509.Certificate]]:
    """Return the private key, its chain, and all other certificates, in a truststore also the key's own."""
    option, password = f"ssl.{which}.location", options.text(f"ssl.{which}.password")
    if kind not in ("PKCS12", "JKS"):
        raise ConfigError(f"ssl.{which}.type: {kind} is not PEM, PKCS12 or JKS")
    key_password = options.text("ssl.key.password") if which == "keystore" else None
    if which == "keystore" and password is None:
        raise ConfigError("ssl.keystore.location is given, and ssl.keystore.password is not")
    try:
        if data[:4] == jks.MAGIC:
            store = jks.read(data, password, key_password)
            chain = [x509.load_der_x509_certificate(one) for one in store.chain]
            key = None if store.key is None else load_der_private_key(store.key, None)
            return key, chain, [x509.load_der_x509_certificate(one) for one in store.trusted]
        found = load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        advice = f"set ssl.{which}.type=PEM" if b"-----BEGIN " in data else f"is ssl.{which}.password right?"
        raise ConfigError(f"{option}: {location} cannot be opened; {advice}") from None
    if key_password not in (None, password):
        raise ConfigError(f"{option}: the key in {location} has the password of its store; is ssl.key.password right?")
    others = [one.certificate for one in found.additional_certs]
    own = [] if found.cert is None else [found.cert.certificate]
    return found.key, [*own, *others], [*others, *own]
