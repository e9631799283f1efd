"""Which of the options that AlterConfigs stored for brokers are in force.

The controller of Kafka stores more than a broker acts on: unknown names, and, from other versions or past a broker's
own checks, values that cannot be read. A broker leaves these out, says so, and goes on (Kafka: DynamicBrokerConfig).
"""

from __future__ import annotations

import re

from kafka_shim.config.defaults import ConfigError
from kafka_shim.config.table import BROKER_OPTIONS, CLUSTER_WIDE, PER_BROKER, QUOTA_OPTIONS, READ_ONLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.config.table import Option

_LISTENER_OPTION = re.compile(r"listener\.name\.[^.]*\.(.*)")


def base_name(name: str) -> str:
    """The option that `listener.name.NAME.OPTION` sets for one listener; any other name as it is."""
    found = _LISTENER_OPTION.fullmatch(name)
    return name if found is None else found[1]


def dynamic_option(name: str) -> Option | None:
    """The row that checks the value of a stored option of a broker; None for a name that Kafka has no table for."""
    base = base_name(name)
    return BROKER_OPTIONS.get(base) or QUOTA_OPTIONS.get(base)


def is_listener_security(name: str) -> bool:
    """Whether a running broker takes this option for a single listener only, by `listener.name.NAME.`."""
    return name in _LISTENER_SECURITY


# SslConfigs.RECONFIGURABLE_CONFIGS
_LISTENER_SECURITY = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)


def is_per_broker(name: str) -> bool:
    """Whether this option cannot be set for all brokers at once."""
    row = BROKER_OPTIONS.get(base_name(name))
    if base_name(name) == name:
        return row is not None and row.update == PER_BROKER
    return row is None or row.update != CLUSTER_WIDE


def usable(stored: Mapping[str, str], *, is_default: bool) -> tuple[dict[str, str], dict[str, str]]:
    """(what a broker takes of these stored options, why it ignores each of the others); `is_default`: they are those
    of all brokers."""
    taken: dict[str, str] = {}
    ignored: dict[str, str] = {}
    for name, text in stored.items():
        reason = _reason_to_ignore(name, text, is_default)
        if reason:
            ignored[name] = reason
        else:
            taken[name] = text
    return taken, ignored


def _reason_to_ignore(name: str, text: str, is_default: bool) -> str:
    row = dynamic_option(name)
    if name in BROKER_OPTIONS and BROKER_OPTIONS[name].update == READ_ONLY:
        return "it cannot change while a broker runs"
    if is_listener_security(name):
        return "it can be changed for a single listener only"
    if is_default and is_per_broker(name):
        return "it can be changed for a single broker only"
    if row is not None:
        try:
            row.parse(text)
        except ConfigError as err:
            return str(err)
    return ""
