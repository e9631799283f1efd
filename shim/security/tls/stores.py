"""Keystores and truststores: PEM in files or options, and PKCS12 (Kafka: DefaultSslEngineFactory).

A store of type JKS is read if its file is PKCS12, as Java does; a real JKS file is refused with the command that
converts it.
"""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from kafka_shim.config import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

    from kafka_shim.config import ListenerOptions

_JKS_MAGIC = bytes.fromhex("feedfeed")


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
        if location:
            raise ConfigError("both ssl.keystore.location and ssl.keystore.certificate.chain are given: keep one")
        return _pem("ssl.keystore.key", key.encode() + b"\n" + chain.encode(), options.text("ssl.key.password"))
    if not location:
        return None
    data = _file("ssl.keystore.location", location)
    if kind == "PEM":
        return _pem("ssl.keystore.location", data, options.text("ssl.key.password"))
    store = _pkcs12("keystore", location, kind, data, options.text("ssl.keystore.password"))
    if store.key is None or store.cert is None:
        raise ConfigError(f"ssl.keystore.location: {location} has no private key with a certificate")
    certificates = [store.cert.certificate, *(one.certificate for one in store.additional_certs)]
    private = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def read_truststore(options: ListenerOptions) -> str | None:
    """Return the trusted certificates as PEM, or None if there is no truststore. Raises ConfigError."""
    inline, location = options.text("ssl.truststore.certificates"), options.text("ssl.truststore.location")
    kind = (options.text("ssl.truststore.type") or "").upper()
    if inline is not None:
        if kind != "PEM" or location:
            raise ConfigError(
                "ssl.truststore.certificates needs ssl.truststore.type=PEM and no ssl.truststore.location"
            )
        return _certificates("ssl.truststore.certificates", inline.encode())
    if not location:
        return None
    data = _file("ssl.truststore.location", location)
    if kind == "PEM":
        return _certificates("ssl.truststore.location", data)
    store = _pkcs12("truststore", location, kind, data, options.text("ssl.truststore.password"))
    found = [one.certificate for one in store.additional_certs]
    if store.cert is not None:
        found.append(store.cert.certificate)
    if not found:
        raise ConfigError(f"ssl.truststore.location: {location} has no certificates")
    return b"".join(one.public_bytes(Encoding.PEM) for one in found).decode()


def _file(option: str, location: str) -> bytes:
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


def _pkcs12(which: str, location: str, kind: str, data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    option = f"ssl.{which}.location"
    if data[:4] == _JKS_MAGIC:
        raise ConfigError(
            f"{option}: {location} is a JKS store, which cannot be read here; convert it: keytool -importkeystore "
            f"-srckeystore {location} -destkeystore {Path(location).with_suffix('.p12')} -deststoretype PKCS12"
        )
    if kind not in ("PKCS12", "JKS"):
        raise ConfigError(f"ssl.{which}.type: {kind} is not PEM, PKCS12 or JKS")
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise ConfigError(f"{option}: {location} cannot be opened; is ssl.{which}.password right?") from None
