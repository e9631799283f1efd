"""The options of one listener: with the prefix `listener.name.NAME.`, those of SASL also with `listener.name.NAME.
MECHANISM.`, else those of all listeners (Kafka: valuesWithPrefixOverride).
"""

from __future__ import annotations

import re
from copy import copy

from kafka_shim.config.defaults import ConfigError
from kafka_shim.config.table import BROKER_OPTIONS, LISTENER_OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from kafka_shim.config.broker import BrokerConfig

_LISTENER_OPTION = re.compile(r"listener\.name\.[^.]*\.(.*)")
_MECHANISMS = frozenset({"plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "gssapi"})


def base_name(name: str) -> str:
    """Return OPTION for `listener.name.NAME.OPTION` and `listener.name.NAME.MECHANISM.OPTION`; any other name
    unchanged."""
    found = _LISTENER_OPTION.fullmatch(name)
    if found is None:
        return name
    mechanism, _, option = found[1].partition(".")
    return option if mechanism in _MECHANISMS else found[1]


# What an open listener keeps as it was when it was opened: of a change Kafka takes over the stores alone
# (SslFactory.createNewSslEngineFactory, SslConfigs.RECONFIGURABLE_CONFIGS). It accepts and stores the others, and only
# listeners that are opened while it runs have them: those of its start are made before stored options are read.
KEPT_WHILE_OPEN = frozenset(
    {
        "ssl.allow.dn.changes",
        "ssl.allow.san.changes",
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.principal.mapping.rules",
    }
)

# What may change of a listener that stays open, besides its security (SocketServer.ListenerReconfigurableConfigs).
LISTENER_LIMITS = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
# Those of them without which nobody could connect any more, also to take the change back.
_OF_CONNECTIONS = ("max.connections", "max.connection.creation.rate")
# A change of one of these has all listeners checked, as in Kafka (DynamicListenerConfig.RECONFIGURABLE_CONFIGS), also
# those without an effect here.
CHECKS_ALL_LISTENERS = LISTENER_LIMITS | {
    "listener.security.protocol.map",
    "listeners",
    "principal.builder.class",
    "sasl.enabled.mechanisms",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.mechanism.inter.broker.protocol",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
}


class ListenerOptions:
    """The options in force for one listener, read at each call. An own value precedes the one for all listeners; of the
    same name, a stored value precedes the one in the configuration file."""

    __slots__ = ("_dynamic", "_given", "_prefix", "is_strict", "listener_name")

    def __init__(self, config: BrokerConfig, listener_name: str, dynamic: Mapping[str, str] | None = None) -> None:
        """`dynamic`: the stored options to use in place of those of `config`, to check a change before it is made."""
        self.listener_name = listener_name
        # Whether a warning of security is an error (`--strict-security`).
        self.is_strict = config.strict_security
        self._prefix = f"listener.name.{listener_name.lower()}."
        self._given = config.given
        self._dynamic = config.dynamic if dynamic is None else dynamic

    def given(self) -> dict[str, str]:
        """All options of the start, for a class that one of them names."""
        return dict(self._given)

    def texts(self) -> dict[str, str]:
        """All options that this listener may read, as they are set; two equal answers are the same security."""
        return {
            name: text
            for name, text in {**self._given, **self._dynamic}.items()
            if name in LISTENER_OPTIONS or name.startswith(self._prefix)
        }

    def kept(self) -> dict[str, str]:
        """The stored options of this listener that hold for as long as it is open."""
        names = KEPT_WHILE_OPEN.union(self._prefix + name for name in KEPT_WHILE_OPEN)
        return {name: text for name, text in self._dynamic.items() if name in names}

    def keeping(self, kept: Mapping[str, str]) -> ListenerOptions:
        """Return these options with what `kept` returned when the listener was opened."""
        changed = self.kept()
        options = copy(self)
        options._dynamic = {name: text for name, text in self._dynamic.items() if name not in changed} | dict(kept)
        return options

    def own_text(self, name: str, mechanism: str = "") -> str | None:
        """Return the text of an option that is set for this listener (and mechanism) itself, or None."""
        key = f"{self._prefix}{mechanism.lower()}.{name}" if mechanism else self._prefix + name
        return self._dynamic.get(key, self._given.get(key))

    def text(self, name: str, mechanism: str = "") -> str | None:
        """Return the text of an option: of this listener and mechanism, of this listener, of all, else the default."""
        found = self.own_text(name, mechanism) if mechanism else None
        if found is None:
            found = self.own_text(name)
        if found is None:
            found = self._dynamic.get(name, self._given.get(name))
        return BROKER_OPTIONS[name].default if found is None else found

    def get(self, name: str, mechanism: str = "") -> Any:
        """Return the typed value of an option, or None if it has neither a value nor a default. Raises ConfigError."""
        text = self.text(name, mechanism)
        return None if text is None else BROKER_OPTIONS[name].parse(text)


def check_limits(config: BrokerConfig, listener_names: Iterable[str], proposed: Mapping[str, str]) -> None:
    """Check the limits that these listeners would have with the `proposed` dynamic options. A broker may start with
    others. Raises ConfigError (Kafka: ListenerConnectionQuota.validateReconfiguration)."""
    for listener_name in listener_names:
        before, after = (ListenerOptions(config, listener_name, dynamic) for dynamic in (config.dynamic, proposed))
        limits = {name: after.get(name) for name in _OF_CONNECTIONS}
        if limits == {name: before.get(name) for name in _OF_CONNECTIONS}:
            continue
        for name, limit in limits.items():
            if limit <= 0:
                raise ConfigError(
                    f"Invalid value org.apache.kafka.common.config.ConfigException: Invalid {name} {limit} for "
                    "configuration Invalid dynamic configuration"
                )
