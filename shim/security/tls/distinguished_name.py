"""The name of a certificate's subject as Java's X500Principal.getName writes it (RFC 2253).

An attribute that has no short name there, as an e-mail address, is its OID and the hex of its DER value.
"""

from __future__ import annotations

from cryptography import x509

# RFC 2253, section 2.3
_SHORT_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPES = str.maketrans({"\0": r"\00"} | {special: f"\\{special}" for special in ',=+<>#;"\\'})


def java_name(name: x509.Name) -> str:
    """Returns the name, its last part first."""
    return ",".join("+".join(map(_written, part)) for part in reversed(name.rdns))


def _written(attribute: x509.NameAttribute[str | bytes]) -> str:
    oid = attribute.oid.dotted_string
    short = _SHORT_NAMES.get(oid)
    if short is None or isinstance(attribute.value, bytes):
        return f"{short or oid}=#{_der_value(attribute).hex()}"
    text = attribute.value.translate(_ESCAPES)
    inner = text.lstrip(" \r")
    middle = inner.rstrip(" \r")
    return f"{short}={_escaped(text[: len(text) - len(inner)])}{middle}{_escaped(inner[len(middle) :])}"


def _escaped(spaces: str) -> str:
    return "".join(f"\\{space}" for space in spaces)


def _der_value(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    # A name is SEQUENCE { SET { SEQUENCE { OID, value } } }: open three headers, then skip the OID.
    rest = x509.Name([attribute]).public_bytes()
    for is_skipped in (False, False, False, True):
        size_bytes, at = rest[1], 2
        if size_bytes & 0x80:
            at += size_bytes & 0x7F
            size_bytes = int.from_bytes(rest[2:at])
        rest = rest[at + size_bytes if is_skipped else at :]
    return rest
