"""Keystores and truststores that cannot be used: each has a reason, and none shows a password."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificates

from kafka_shim.config import BrokerConfig, ConfigError, ListenerOptions
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.security.tls.stores import read_keystore, read_truststore

AUTHORITY = CertificateAuthority()
KEY, CHAIN = AUTHORITY.issue("broker")
IN_OPTIONS = {"keystore_certificate_chain": CHAIN, "keystore_key": KEY}
PASSWORD = "tell-nobody"


def options(**given: str) -> ListenerOptions:
    named = {f"ssl.{name.replace('_', '.')}": value for name, value in given.items()}
    return ListenerOptions(BrokerConfig.parse(named), "SSL")


def test_pem_in_options_and_in_a_file_are_the_same(tmp_path: Path):
    path = tmp_path / "store.pem"
    path.write_text(f"a comment\n{KEY}{CHAIN}")
    inline = read_keystore(options(keystore_type="PEM", keystore_certificate_chain=CHAIN, keystore_key=KEY))
    assert inline == read_keystore(options(keystore_type="PEM", keystore_location=str(path)))
    assert inline is not None
    assert b"PRIVATE KEY" in inline
    assert read_keystore(options()) is None
    assert read_truststore(options()) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"keystore_certificate_chain": CHAIN}, "must be given together"),
        (IN_OPTIONS, "needs ssl.keystore.type=PEM"),
        ({**IN_OPTIONS, "keystore_type": "PEM", "keystore_location": "/x"}, "keep one"),
        ({"keystore_certificate_chain": CHAIN, "keystore_key": "no key", "keystore_type": "PEM"}, "there are 0"),
        ({"keystore_certificate_chain": "none", "keystore_key": KEY, "keystore_type": "PEM"}, "no certificate in PEM"),
        ({"keystore_location": "/does/not/exist"}, "cannot read /does/not/exist"),
    ],
)
def test_keystore_that_cannot_be_used_says_why(given: dict[str, str], reason: str):
    with pytest.raises(ConfigError, match=reason) as caught:
        read_keystore(options(key_password=PASSWORD, **given))
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        (bytes.fromhex("feedfeed0000"), "JKS", "is ssl.keystore.password right"),
        (b"nothing", "PKCS12", "is ssl.keystore.password right"),
        (f"{KEY}{CHAIN}".encode(), "JKS", r"cannot be opened; set ssl\.keystore\.type=PEM"),
        (b"nothing", "BCFKS", "BCFKS is not PEM, PKCS12 or JKS"),
    ],
)
def test_store_in_a_file_that_cannot_be_used_says_why(tmp_path: Path, content: bytes, kind: str, reason: str):
    path = tmp_path / "store"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason) as caught:
        read_keystore(options(keystore_location=str(path), keystore_type=kind, keystore_password=PASSWORD))
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"keystore_type": "PEM", "keystore_location": "keys.pem", "keystore_password": PASSWORD},
        {**IN_OPTIONS, "keystore_type": "PEM", "keystore_password": PASSWORD},
        {**IN_OPTIONS, "keystore_type": "PEM", "keystore_location": ""},
        {"keystore_password": PASSWORD},
        {"keystore_location": ""},
        {"keystore_location": "keys.p12", "keystore_type": "PKCS12"},
        {
            "keystore_location": "keys.p12",
            "keystore_type": "PKCS12",
            "keystore_password": PASSWORD,
            "key_password": "other",
        },
        {"truststore_type": "PEM", "truststore_location": "keys.pem", "truststore_password": PASSWORD},
        {"truststore_type": "PEM", "truststore_certificates": CHAIN, "truststore_password": PASSWORD},
        {"truststore_type": "PEM", "truststore_certificates": CHAIN, "truststore_location": ""},
        {"truststore_password": PASSWORD},
        {"truststore_location": ""},
        {"truststore_location": "", "truststore_type": "PEM"},
    ],
)
def test_what_kafka_refuses_about_a_store_is_refused(tmp_path: Path, monkeypatch, given: dict[str, str]):
    """A password without anything that it opens, an empty location, and the wrong password of a key. An empty location
    of a truststore was taken for none, and then all authorities of the machine are trusted."""
    monkeypatch.chdir(tmp_path)
    Path("keys.pem").write_text(KEY + CHAIN)
    key, chain = load_pem_private_key(KEY.encode(), None), load_pem_x509_certificates(CHAIN.encode())
    encryption = BestAvailableEncryption(PASSWORD.encode())
    Path("keys.p12").write_bytes(serialize_key_and_certificates(b"x", key, chain[0], chain[1:], encryption))
    read = read_truststore if any(name.startswith("trust") for name in given) else read_keystore
    with pytest.raises(ConfigError, match=r"^(both )?ssl\.(key|trust)store") as caught:
        read(options(**given))
    assert PASSWORD not in str(caught.value)
    assert read_keystore(
        options(keystore_location="keys.p12", keystore_type="PKCS12", keystore_password=PASSWORD, key_password=PASSWORD)
    )


@pytest.mark.parametrize("form", ["traditional", "PBES2"])
def test_private_keys_in_other_forms_than_pkcs_8_are_read(form: str):
    """docs/differences.md"""
    key = load_pem_private_key(KEY.encode(), None)
    if form == "traditional":
        text = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
        assert text.startswith(("-----BEGIN EC PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----"))
        found = read_keystore(options(keystore_type="PEM", keystore_key=text, keystore_certificate_chain=CHAIN))
    else:
        encryption = BestAvailableEncryption(PASSWORD.encode())
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
        assert text.startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
        given = {"keystore_type": "PEM", "keystore_key": text, "keystore_certificate_chain": CHAIN}
        found = read_keystore(options(**given, key_password=PASSWORD))
    assert found is not None
    assert load_pem_private_key(found, None).private_numbers() == key.private_numbers()


def test_truststore_in_options_needs_its_type():
    assert read_truststore(options(truststore_type="PEM", truststore_certificates=AUTHORITY.certificate)) is not None
    with pytest.raises(ConfigError, match=r"needs ssl\.truststore\.type=PEM"):
        read_truststore(options(truststore_certificates=AUTHORITY.certificate))
