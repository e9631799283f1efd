"""`BrokerConfig`: the broker's options in force, static and dynamic."""

from __future__ import annotations

from kafka_shim.config.defaults import BrokerDefaults, ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from typing import Any


class BrokerConfig(BrokerDefaults):
    """The broker's options in force. Defaults are class attributes (`BrokerDefaults`); other values are instance
    attributes.

    `given` has the options that the operator set (text by Kafka's name). `dynamic` has those that AlterConfigs stored
    for the cluster and for this broker; the broker's own take precedence.
    """

    def __init__(self, **values: Any) -> None:
        """Set options by their Python attribute names, with typed values. Raises ConfigError for an unknown name."""
        self.given: dict[str, str] = {}
        self.dynamic: dict[str, str] = {}
        # Warnings about accepted options that have no effect here. `serve` logs them.
        self.warnings: list[str] = []
        # `--strict-security`: a warning of kafka_shim.security.warnings stops the start.
        self.strict_security = False
        # Passwords and keys that were given with `-o`, which the process list shows.
        self.shown_secrets: tuple[str, ...] = ()
        # The principals of the ACLs that an embedding program stores right after the start.
        self.acl_principals: tuple[str, ...] = ()
        for name, value in values.items():
            if not hasattr(BrokerDefaults, name):
                raise ConfigError(f"no such option: {name.replace('_', '.')}")
            setattr(self, name, value)

    @classmethod
    def parse(cls, options: Mapping[str, str], from_file: Container[str] = ()) -> BrokerConfig:
        """Return the configuration for these options (Kafka's names, text values).

        Raises ConfigError for an unknown name (the message suggests the nearest), a value of the wrong type or out of
        range, and a security or storage option that this version does not implement. An unknown name in `from_file`,
        the names that a server.properties file gave, is a warning, because Kafka ignores it.
        """
        config = cls()
        if options:
            from kafka_shim.config.parse import parse_broker

            parse_broker(config, options, from_file)
        return config

    def apply_dynamic(self, options: Mapping[str, str]) -> None:
        """Replace the dynamic options: the cluster's, overridden by the broker's own, both filtered by `usable`."""
        from kafka_shim.config.parse import apply_dynamic

        apply_dynamic(self, options)
