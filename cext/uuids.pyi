"""Random uuids, and uuids as Java prints them. Both raise ValueError unless they get 16 bytes."""

def version_4(random: bytes) -> bytes:
    """Return the uuid of version 4 that these bytes make."""

def java_uuid_text(uuid: bytes) -> str:
    """Return the uuid as `java.util.UUID` prints it: hexadecimal digits with four dashes."""
