"""`BrokerConfig`: the broker's options in force, static and dynamic."""

from __future__ import annotations

from kafka_shim.config.defaults import BrokerDefaults, ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class BrokerConfig(BrokerDefaults):
    """The broker's options in force: `BrokerDefaults`, and in the instance what differs.

    `given` is what the operator gave (text by Kafka's name), `dynamic` what AlterConfigs stored for the cluster and
    then for this broker.
    """

    def __init__(self, **values: Any) -> None:
        """Set attributes by their Python names, already typed. Raises ConfigError for one that is not here."""
        self.given: dict[str, str] = {}
        self.dynamic: dict[str, str] = {}
        # One sentence per accepted option that has no effect here; `serve` logs them.
        self.warnings: list[str] = []
        for name, value in values.items():
            if not hasattr(BrokerDefaults, name):
                raise ConfigError(f"no such option: {name.replace('_', '.')}")
            setattr(self, name, value)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> BrokerConfig:
        """The configuration that these options (Kafka's names, text values) ask for.

        Raises ConfigError for an unknown name (it tells the nearest), an ill-typed or out-of-range value, and an option
        of security or of storage that this version does not implement.
        """
        config = cls()
        if options:
            from kafka_shim.config.parse import parse_broker

            parse_broker(config, options)
        return config

    def apply_dynamic(self, options: Mapping[str, str]) -> None:
        """Replace what AlterConfigs has stored for this broker: the cluster's options, then its own over them, each as
        `usable` takes them."""
        from kafka_shim.config.parse import apply_dynamic

        apply_dynamic(self, options)
