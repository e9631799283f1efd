"""Java's own store format, JKS, which is what `ssl.keystore.type` and `ssl.truststore.type` mean when unset.

A store is entries (a private key with its chain, or a trusted certificate) and a SHA-1 over them with the password. A
private key is hidden by a keystream of SHA-1 over the password and the last digest, with a digest behind it (the
algorithm 1.3.6.1.4.1.42.2.17.1.1 of the JDK's `sun.security.provider.KeyProtector`).
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

MAGIC = bytes.fromhex("feedfeed")
_KEY, _CERTIFICATE = 1, 2
_PHRASE = b"Mighty Aphrodite"
_DIGEST_BYTES = 20


@dataclass
class JksStore:
    """Certificates and the key in DER. `key` is PKCS #8, `chain` is the chain of the key."""

    key: bytes | None = None
    chain: list[bytes] = field(default_factory=list)
    trusted: list[bytes] = field(default_factory=list)


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size_bytes: int) -> bytes:
        taken = self._data[self._at : self._at + size_bytes]
        if len(taken) < size_bytes:
            raise ValueError("the store ends too early")
        self._at += size_bytes
        return taken

    def number(self, size_bytes: int) -> int:
        return int.from_bytes(self.take(size_bytes), "big")

    def der(self) -> bytes:
        """Return the content of one DER value."""
        self.take(1)
        length = self.number(1)
        return self.take(length if length < 0x80 else self.number(length & 0x7F))


def read(data: bytes, password: str | None, key_password: str | None) -> JksStore:
    """Return what is in a store: of several private keys the first. Without `password` nothing is verified, and a
    private key cannot be read. Raises ValueError for a wrong password or a damaged store."""
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        expected = hashlib.sha1(password.encode("utf-16-be") + _PHRASE + body).digest()
        if not hmac.compare_digest(digest, expected):
            raise ValueError("the password is wrong, or the store is damaged")
    cursor = _Cursor(body)
    if cursor.take(4) != MAGIC:
        raise ValueError("it is not a JKS store")
    version = cursor.number(4)
    if version not in (1, 2):
        raise ValueError(f"its JKS version {version} is unknown")
    store = JksStore()
    for _ in range(cursor.number(4)):
        kind = cursor.number(4)
        cursor.take(cursor.number(2))  # the alias
        cursor.take(8)  # when it was made
        if kind == _CERTIFICATE:
            store.trusted.append(_certificate(cursor, version))
        elif kind == _KEY:
            hidden = cursor.take(cursor.number(4))
            chain = [_certificate(cursor, version) for _ in range(cursor.number(4))]
            if store.key is None and (password or key_password) is not None:
                store.key, store.chain = _reveal(hidden, (key_password or password or "").encode("utf-16-be")), chain
        else:
            raise ValueError(f"its entry of kind {kind} is unknown in a JKS store")
    return store


def _certificate(cursor: _Cursor, version: int) -> bytes:
    if version > 1:
        cursor.take(cursor.number(2))  # its type, X.509
    return cursor.take(cursor.number(4))


def _reveal(hidden: bytes, password: bytes) -> bytes:
    information = _Cursor(_Cursor(hidden).der())
    information.der()  # the algorithm
    protected = information.der()
    digest, masked, check = protected[:_DIGEST_BYTES], protected[_DIGEST_BYTES:-_DIGEST_BYTES], protected[-20:]
    mask = bytearray()
    while len(mask) < len(masked):
        digest = hashlib.sha1(password + digest).digest()
        mask += digest
    key = bytes(one ^ other for one, other in zip(masked, mask, strict=False))
    if not hmac.compare_digest(check, hashlib.sha1(password + key).digest()):
        raise ValueError("the password of the private key is wrong")
    return key
