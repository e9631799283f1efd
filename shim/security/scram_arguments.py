"""The argument of `storage format --add-scram`: a first SCRAM user (Kafka: ScramParser).

SCRAM-SHA-512=[name=alice,password=secret,iterations=8192]
"""

from __future__ import annotations

import binascii
from base64 import b64decode

from kafka_shim.config import ConfigError
from kafka_shim.security.sasl.scram import MAX_ITERATIONS, MECHANISMS, MIN_ITERATIONS, salted_password
from kafka_shim.security.scram_credentials import credential_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.protocol.records.user_scram_credential_record import UserScramCredentialRecord
    from kafka_shim.randomness import Randomness

_KEYS = frozenset({"name", "salt", "iterations", "password", "saltedpassword"})


def parse_add_scram(text: str, random: Randomness) -> UserScramCredentialRecord:
    """Return the credential's record. Raises ConfigError with Kafka's message, without the password."""
    mechanism, equals, rest = text.strip().partition("=")
    if not equals:
        raise ConfigError("Failed to find equals sign in SCRAM argument")
    if mechanism not in MECHANISMS:
        raise ConfigError(f"The add-scram mechanism {mechanism} is not supported.")
    if not rest.startswith("["):
        raise ConfigError("Expected configuration string to start with [")
    if not rest.endswith("]"):
        raise ConfigError("Expected configuration string to end with ]")
    given: dict[str, str] = {}
    for part in rest[1:-1].split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise ConfigError("No equals sign found in SCRAM component")
        quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        given[key] = value[1:-1] if quoted else value
    if "name" not in given:
        raise ConfigError("You must supply 'name' to add-scram")
    if given.keys() - _KEYS:
        raise ConfigError(f"Unknown SCRAM configurations: {', '.join(sorted(given.keys() - _KEYS))}")
    if "password" not in given and "saltedpassword" not in given:
        raise ConfigError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if "password" not in given and "salt" not in given:
        raise ConfigError("You must supply 'salt' with 'saltedpassword' to add-scram")
    try:
        iterations = int(given.get("iterations", "4096"))
    except ValueError:
        raise ConfigError(f"Failed to parse iterations count: {given['iterations']}") from None
    if iterations < MIN_ITERATIONS:
        raise ConfigError(f"The 'iterations' value must be >= {MIN_ITERATIONS} for add-scram using {mechanism}")
    if iterations > MAX_ITERATIONS:
        raise ConfigError(f"The 'iterations' value must be <= {MAX_ITERATIONS} for add-scram using {mechanism}")
    try:
        salt = b64decode(given["salt"], validate=True) if "salt" in given else random.bytes_of(16)
        if "password" in given:
            salted = salted_password(mechanism, given["password"], salt, iterations)
        else:
            salted = b64decode(given["saltedpassword"], validate=True)
    except binascii.Error:
        raise ConfigError("Failed to decode given salt or saltedpassword, which are base64") from None
    return credential_record(given["name"], mechanism, salt, salted, iterations)
