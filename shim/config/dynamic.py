"""Decides which of the broker options that AlterConfigs stored take effect.

Kafka's controller may store unknown names, and values that this broker cannot parse (from other versions, or without
the broker's own checks). A broker ignores these with a warning (Kafka: DynamicBrokerConfig).
"""

from __future__ import annotations

from kafka_shim.config import providers
from kafka_shim.config.defaults import ConfigError
from kafka_shim.config.listener import LISTENER_LIMITS, base_name
from kafka_shim.config.table import BROKER_OPTIONS, PER_BROKER, QUOTA_OPTIONS, READ_ONLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.config.table import Option


# Options that name a class, which is loaded when a listener's options change.
CLASS_OPTIONS = ("metric.reporters", "principal.builder.class", "sasl.server.callback.handler.class")
KAFKAS_OWN = "org.apache.kafka."
_FOREIGN_CLASS = "a class is loaded only if the options of the start name it"


def dynamic_option(name: str) -> Option | None:
    """Return the `Option` that validates a stored broker option, or None if Kafka has no such option."""
    base = base_name(name)
    return BROKER_OPTIONS.get(base) or QUOTA_OPTIONS.get(base)


def is_listener_security(name: str) -> bool:
    """Whether this option can be changed dynamically only for a single listener (`listener.name.NAME.`)."""
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
    """Whether this option can be set only for a single broker, not for all brokers."""
    if (base := base_name(name)) != name:
        return base not in LISTENER_LIMITS
    row = BROKER_OPTIONS.get(name)
    return row is not None and row.update == PER_BROKER


def is_password(name: str) -> bool:
    """Whether this is an option of Kafka whose value is a secret: a password, a key, a login module."""
    option = dynamic_option(name)
    return option is not None and option.is_sensitive


def is_secret(name: str) -> bool:
    """Whether the value of a stored broker option must not be shown: a password, or an option that nobody knows."""
    return dynamic_option(name) is None or is_password(name)


def is_foreign_class(name: str, text: str, given: Mapping[str, str]) -> bool:
    """Whether the option names a class that is neither Kafka's nor one of the options `given` at the start, also as one
    of a list. Nobody may make a broker load Python by storing an option."""
    base = base_name(name)
    if base not in CLASS_OPTIONS:
        return False
    known = {entry for one, value in given.items() if base_name(one) == base for entry in _entries(value)}
    return any(entry and not entry.startswith(KAFKAS_OWN) and entry not in known for entry in _entries(text))


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",")]


def usable(
    stored: Mapping[str, str], given: Mapping[str, str], *, is_default: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Return (the stored options that take effect, option -> reason for each ignored one). `given` has the options of
    the start; `is_default` means that the stored ones are for all brokers. References to values that are kept elsewhere
    stay in them."""
    taken: dict[str, str] = {}
    ignored: dict[str, str] = {}
    try:
        values = providers.resolve(stored)
    except ConfigError:
        values = dict(stored)  # `in_force` says why, when all options are known
    for name, text in stored.items():
        reason = _reason_to_ignore(name, values[name], is_default)
        if is_foreign_class(name, values[name], given):
            reason = _FOREIGN_CLASS
        if reason:
            ignored[name] = reason
        else:
            taken[name] = text
    return taken, ignored


def in_force(stored: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return `stored` (all options that `usable` took) with the values that are kept elsewhere. Raises ConfigError if
    one cannot be had: then none of the options takes effect (DynamicBrokerConfig.updateCurrentConfig)."""
    values = providers.resolve(stored, {**given, **stored})
    foreign = [name for name, text in values.items() if is_foreign_class(name, text, given)]
    if foreign:
        raise ConfigError(f"{', '.join(foreign)}: {_FOREIGN_CLASS}")
    return values


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
