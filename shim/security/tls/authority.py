"""A throw-away certificate authority, for tests and embedded brokers. Its key exists in memory alone."""

from __future__ import annotations

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

VALID = datetime.timedelta(days=30)
# It may be the certificate of a client, too: the one that a truststore holds.
AUTHORITY_USAGE = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
HOSTS = ("localhost", "127.0.0.1", "::1")


class CertificateAuthority:
    """Signs certificates of brokers and clients. Everything is PEM text."""

    def __init__(self, name: str = "kafka-shim throw-away CA") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = self._signed(self._name, self._key, is_authority=True)

    @property
    def certificate(self) -> str:
        """The certificate that clients and brokers trust."""
        return _pem(self._certificate)

    def issue(self, common_name: str, hosts: tuple[str, ...] = HOSTS, days: int = 30) -> tuple[str, str]:
        """Return (private key in PKCS #8, certificate with that of the authority). Negative `days`: it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        certificate = self._signed(name, key, hosts=hosts, days=days)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return private, _pem(certificate) + self.certificate

    def _signed(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        hosts: tuple[str, ...] = (),
        days: int = VALID.days,
        is_authority: bool = False,
    ) -> x509.Certificate:
        """With the key identifiers and the key usage that RFC 5280 asks for: OpenSSL's strict check wants them, which
        Python's clients make from 3.13 on."""
        now = datetime.datetime.now(datetime.UTC)
        until = now + datetime.timedelta(days=days)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, until) - datetime.timedelta(days=1))
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if is_authority:
            builder = builder.add_extension(AUTHORITY_USAGE, critical=True)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(one) for one in hosts]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
