"""`kafka-configs.sh` of users, clients and addresses: quotas, and the passwords of users (Kafka: ConfigCommand)."""

from __future__ import annotations

import re
import socket
from decimal import Decimal

from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.tools.errors import exception_of
from kafka_shim.tools.subcommands import ToolError
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from kafka_shim.client.cluster import Cluster

# Type of the tool -> that of the protocol, and its word.
KINDS = {"users": ("user", "user-principal"), "clients": ("client-id", "client-id"), "ips": ("ip", "ip")}
QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_QUOTAS = ("connection_creation_rate",)
EXACT, OF_DEFAULT, ANY = 0, 1, 2
DEFAULT_ITERATIONS = 4096
SALT_BYTES = 16
CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)", re.DOTALL)
# Where Java's Double.toString leaves plain digits.
PLAIN_FROM, PLAIN_BELOW = 1e-3, 1e7


def check_address(text: str) -> None:
    """Raises ToolError unless `text` is an address or a host that resolves."""
    try:
        socket.getaddrinfo(text, None)
    except (OSError, UnicodeError):
        raise ToolError(f"The entity name for ips must be a valid IP or resolvable host, but it is: {text}") from None


def alter(
    cluster: Cluster, kinds: Sequence[str], names: Sequence[str], added: Mapping[str, str], removed: Sequence[str]
) -> None:
    """Raises ToolError for options that do not fit."""
    keys = [*added, *removed]
    if kinds[0] == "ips":
        _only(keys, IP_QUOTAS, "Only connection quota configs can be added for 'ips' using --bootstrap-server.")
        return _alter_quotas(cluster, kinds, names, added, removed)
    if list(kinds) != ["users"]:
        _only(keys, QUOTAS, "Only quota configs can be added for 'clients' using --bootstrap-server.")
        return _alter_quotas(cluster, kinds, names, added, removed)
    from kafka_shim.security.sasl.scram import MECHANISMS

    said = "Only quota and SCRAM credential configs can be added for 'users' using --bootstrap-server."
    _only(keys, (*QUOTAS, *MECHANISMS), said)
    if not any(key in MECHANISMS for key in keys):
        return _alter_quotas(cluster, kinds, names, added, removed)
    if "" in names:
        raise ToolError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
            "--bootstrap-server."
        )
    if any(key in QUOTAS for key in keys):
        raise ToolError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using --bootstrap-server."
        )
    return _alter_passwords(cluster, names[0], added, removed)


def _only(keys: Iterable[str], known: Iterable[str], said: str) -> None:
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise ToolError(f"{said} Unexpected config names: {','.join(unknown)}")


def _alter_quotas(
    cluster: Cluster, kinds: Sequence[str], names: Sequence[str], added: Mapping[str, str], removed: Sequence[str]
) -> None:
    old = next((one.values for one in _quotas(cluster, kinds, names)), ())
    absent = [key for key in removed if key not in {value.key for value in old}]
    if absent:
        raise ToolError(f"Invalid config(s): {','.join(absent)}")
    changes: list[dict[str, Any]] = []
    for key, text in added.items():
        try:
            changes.append({"key": key, "value": float(text)})
        except ValueError:
            raise ToolError(f"Cannot parse quota configuration value for {key}: {text}") from None
    changes += [{"key": key, "remove": True} for key in removed]
    entity = [
        {"entity_type": KINDS[kind][0], "entity_name": name or None} for kind, name in zip(kinds, names, strict=True)
    ]
    for result in (
        cluster.any().request(make("AlterClientQuotas", entries=[{"entity": entity, "ops": changes}])).entries
    ):
        check(result.error_code, result.error_message)


def _alter_passwords(cluster: Cluster, name: str, added: Mapping[str, str], removed: Iterable[str]) -> None:
    from kafka_shim.randomness import Randomness
    from kafka_shim.security.sasl.scram import MECHANISMS, MIN_ITERATIONS, salted_password

    upsertions = []
    for mechanism, text in added.items():
        match = CREDENTIAL.fullmatch(text)
        if match is None:
            raise ToolError(f"Invalid credential property {mechanism}={text}")
        iterations = DEFAULT_ITERATIONS if match[1] in (None, "-1") else int(match[1] or 0)
        if iterations < MIN_ITERATIONS:
            raise ToolError(
                f"Iterations {iterations} is less than the minimum {MIN_ITERATIONS} required for {mechanism}"
            )
        salt = Randomness().bytes_of(SALT_BYTES)
        upsertions.append(
            {
                "name": name,
                "mechanism": MECHANISMS[mechanism][0],
                "iterations": iterations,
                "salt": salt,
                "salted_password": salted_password(mechanism, match[2], salt, iterations),
            }
        )
    deletions = [{"name": name, "mechanism": MECHANISMS[mechanism][0]} for mechanism in removed]
    asked = make("AlterUserScramCredentials", deletions=deletions, upsertions=upsertions)
    for result in cluster.any().request(asked).results:
        check(result.error_code, result.error_message)


def describe(cluster: Cluster, kinds: Sequence[str], names: Sequence[str]) -> None:
    for entry in _quotas(cluster, kinds, names):
        values = ", ".join(f"{one.key}={_double(one.value)}" for one in sorted(entry.values, key=lambda each: each.key))
        print(f"Quota configs for {_entity(entry.entity)} are {values}")
    if "users" not in kinds or "clients" in kinds or "" in names:
        return
    from kafka_shim.security.sasl.scram import NAME_OF

    users = [{"name": name} for name in names] or None
    answer = cluster.any().request(make("DescribeUserScramCredentials", users=users))
    check(answer.error_code, answer.error_message)
    for result in answer.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        user = result.user
        if result.error_code:
            said = exception_of(RequestError(result.error_code, result.error_message))
            print(f"Error retrieving SCRAM credential configs for user-principal '{user}': ExecutionException: {said}")
            continue
        shown = ", ".join(f"{NAME_OF[one.mechanism]}=iterations={one.iterations}" for one in result.credential_infos)
        print(f"SCRAM credential configs for user-principal '{user}' are {shown}")


def _quotas(cluster: Cluster, kinds: Sequence[str], names: Sequence[str]) -> list[Any]:
    """The entries of exactly these kinds; a kind without a name stands for each of its names but the default."""
    if len(names) > len(kinds):
        raise ToolError("More entity names specified than entity types")
    components = [
        {"entity_type": KINDS[kind][0], "match_type": EXACT if name else OF_DEFAULT, "match": name or None}
        for kind, name in zip(kinds, names, strict=False)
    ]
    components += [{"entity_type": KINDS[kind][0], "match_type": ANY, "match": None} for kind in kinds[len(names) :]]
    answer = cluster.any().request(make("DescribeClientQuotas", components=components, strict=True))
    check(answer.error_code, answer.error_message)
    return sorted(answer.entries or (), key=lambda entry: _entity(entry.entity))


def _entity(parts: Iterable[Any]) -> str:
    names = {part.entity_type: part.entity_name for part in parts}
    return ", ".join(
        f"the default {word}" if names[kind] is None else f"{word} '{names[kind]}'"
        for kind, word in KINDS.values()
        if kind in names
    )


def _double(value: float) -> str:
    """As Java prints a double."""
    if value == 0 or PLAIN_FROM <= abs(value) < PLAIN_BELOW:
        return repr(float(value))
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{int(exponent) + len(digits) - 1}"
