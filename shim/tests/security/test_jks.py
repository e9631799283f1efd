"""Java's store format. The stores are written here, because a reader is tested with stores that are damaged in each
place; `test_tls` reads those of keytool."""

from __future__ import annotations

import hashlib
import struct

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from kafka_shim.security.tls import jks
from kafka_shim.security.tls.authority import CertificateAuthority

AUTHORITY = CertificateAuthority()
KEY, CHAIN = AUTHORITY.issue("broker")
KEY_DER = load_pem_private_key(KEY.encode(), None).private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
CHAIN_DER = [one.public_bytes(Encoding.DER) for one in x509.load_pem_x509_certificates(CHAIN.encode())]
TRUSTED_DER = x509.load_pem_x509_certificate(AUTHORITY.certificate.encode()).public_bytes(Encoding.DER)


def der(tag: int, content: bytes) -> bytes:
    return bytes([tag, 0x82]) + struct.pack(">H", len(content)) + content


def hidden(key: bytes, password: str) -> bytes:
    salt, secret = bytes(range(20)), password.encode("utf-16-be")
    mask, digest = b"", salt
    while len(mask) < len(key):
        digest = hashlib.sha1(secret + digest).digest()
        mask += digest
    masked = bytes(one ^ other for one, other in zip(key, mask, strict=False))
    return der(0x30, der(0x30, b"") + der(0x04, salt + masked + hashlib.sha1(secret + key).digest()))


def text(words: bytes) -> bytes:
    return struct.pack(">H", len(words)) + words


def store(password: str, key_password: str, version: int = 2, kind: int = 2) -> bytes:
    def certificate(one: bytes) -> bytes:
        return (text(b"X.509") if version > 1 else b"") + struct.pack(">I", len(one)) + one

    secret = hidden(KEY_DER, key_password)
    body = jks.MAGIC + struct.pack(">II", version, 2)
    body += struct.pack(">I", 1) + text(b"own") + bytes(8) + struct.pack(">I", len(secret)) + secret
    body += struct.pack(">I", len(CHAIN_DER)) + b"".join(map(certificate, CHAIN_DER))
    body += struct.pack(">I", kind) + text(b"ca") + bytes(8) + certificate(TRUSTED_DER)
    return body + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_gives_its_key_its_chain_and_what_it_trusts(version: int):
    found = jks.read(store("outer", "inner", version), "outer", "inner")
    assert (found.key, found.chain, found.trusted) == (KEY_DER, CHAIN_DER, [TRUSTED_DER])


def test_the_key_has_the_password_of_the_store_where_none_is_given():
    assert jks.read(store("same", "same"), "same", None).key == KEY_DER


def test_a_truststore_is_read_without_a_password():
    found = jks.read(store("outer", "inner"), None, None)
    assert (found.key, found.trusted) == (None, [TRUSTED_DER])


@pytest.mark.parametrize(
    ("data", "password", "key_password", "reason"),
    [
        (store("outer", "inner"), "other", "inner", "the password is wrong"),
        (store("outer", "inner"), "outer", "other", "password of the private key"),
        (store("outer", "inner")[:-300], None, None, "ends too early"),
        (b"nothing".ljust(40), None, None, "it is not a JKS store"),
        (store("outer", "inner", version=3), "outer", "inner", "JKS version 3 is unknown"),
        (store("outer", "inner", kind=9), "outer", "inner", "its entry of kind 9 is unknown"),
    ],
)
def test_a_store_that_cannot_be_read_says_why(data: bytes, password: str, key_password: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        jks.read(data, password, key_password)
