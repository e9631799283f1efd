"""The name of a certificate's subject as Java's X500Principal.getName writes it (RFC 2253).

It is read from the DER, as Java reads it: a library that checks each text refuses names that authorities have issued,
as a PrintableString with an `@`. A value whose attribute has no short name, or whose type is no text to Java, is
written as the hex of its DER.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString. Java takes the bytes of each for UTF-8
# (sun.security.x509.AVA).
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
_VERSION = 0xA0
# The longest object identifier (DER): the time to write its numbers grows with the square of their lengths.
MOST_OID_BYTES = 64


def names_of(certificate: bytes) -> tuple[bytes, bytes]:
    """Return the names of the issuer and of the subject of a certificate, all in DER. Raises ValueError."""
    fields = [whole for whole, _ in _elements(_content(_content(certificate)))]
    if fields and fields[0][0] == _VERSION:
        del fields[0]
    # The serial number, the algorithm of the signature, the issuer, the validity, the subject.
    if len(fields) < 5:
        raise ValueError("a certificate without a subject")
    return fields[2], fields[4]


def attributes_of(name: bytes) -> Iterator[tuple[str, bytes, bool]]:
    """Yield (the OID, the DER of the value, whether it is in one part with the one before) of each attribute of a name
    (DER). Raises ValueError."""
    for _, part in _elements(_content(name)):
        for at, (_, attribute) in enumerate(_elements(part)):
            (_, oid), (value, _) = _elements(attribute)
            yield _dotted(oid), value, at > 0


def java_name(name: bytes) -> str:
    """Return a name (DER), its last part first. Raises ValueError."""
    parts: list[str] = []
    for oid, value, is_further in attributes_of(name):
        written = _written(oid, value)
        if is_further:
            parts[-1] += f"+{written}"
        else:
            parts.append(written)
    return ",".join(reversed(parts))


def _written(oid: str, value: bytes) -> str:
    short = _SHORT_NAMES.get(oid)
    if short is None or value[0] not in _TEXTS:
        return f"{short or oid}=#{value.hex()}"
    text = _content(value).decode(errors="replace").translate(_ESCAPES)
    inner = text.lstrip(" \r")
    middle = inner.rstrip(" \r")
    return f"{short}={_escaped(text[: len(text) - len(inner)])}{middle}{_escaped(inner[len(middle) :])}"


def _escaped(spaces: str) -> str:
    return "".join(f"\\{space}" for space in spaces)


def _dotted(oid: bytes) -> str:
    if len(oid) > MOST_OID_BYTES:
        raise ValueError(f"an object identifier of {len(oid)} bytes, at most {MOST_OID_BYTES} are read")
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise ValueError("an object identifier without a number")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _content(der: bytes) -> bytes:
    return next(_elements(der), (b"", b""))[1]


def _elements(der: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield (the whole element, its content) of each of the elements."""
    at = 0
    while at < len(der):
        size_bytes, begins = int.from_bytes(der[at + 1 : at + 2]), at + 2
        if size_bytes == 0x80:
            raise ValueError("an element without a length, which DER has not")
        if size_bytes & 0x80:
            begins += size_bytes & 0x7F
            size_bytes = int.from_bytes(der[at + 2 : begins])
        ends = begins + size_bytes
        if ends > len(der):
            raise ValueError("an element of DER that is longer than what it is in")
        yield der[at:ends], der[begins:ends]
        at = ends
