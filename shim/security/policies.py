"""Builds what `create.topic.policy.class.name` and `alter.config.policy.class.name` name: Python classes by their
dotted paths. docs/plugins.md has their interface.
"""

from __future__ import annotations

from kafka_shim.metadata.policies import Policies
from kafka_shim.security.plugins import make_plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.config import BrokerConfig

CREATE_TOPIC, ALTER_CONFIG = "create.topic.policy.class.name", "alter.config.policy.class.name"


def make_policies(config: BrokerConfig) -> Policies | None:
    """Return the configured policies, or None if there are none. Raises ConfigError."""
    create_topic, alter_config = (
        _make(option, name, config)
        for option, name in (
            (CREATE_TOPIC, config.create_topic_policy_class_name),
            (ALTER_CONFIG, config.alter_config_policy_class_name),
        )
    )
    return None if create_topic is alter_config is None else Policies(create_topic, alter_config)


def _make(option: str, name: str | None, config: BrokerConfig) -> Any:
    return make_plugin(option, name, {}, ("validate",), dict(config.given), optional=("close",)) if name else None
