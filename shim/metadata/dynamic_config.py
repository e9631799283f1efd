"""The effective options of this broker and its topics: the stored ones over the static ones (DynamicBrokerConfig)."""

from __future__ import annotations

import logging

from kafka_shim.config import ConfigError, TopicConfig
from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.config import BrokerConfig
    from kafka_shim.metadata.image import Image

logger = logging.getLogger(__name__)

MIN_ISR = "min.insync.replicas"
CORDONED = "cordoned.log.dirs"


class DynamicConfig:
    """Owned by the metadata store, whose image it reads."""

    def __init__(self, config: BrokerConfig, image: Image, node_id: int) -> None:
        self._config = config
        self._image = image
        self._node_id = node_id
        # The dynamic options in force, stored for all brokers and for this broker.
        self.cluster_options: dict[str, str] = {}
        self.broker_options: dict[str, str] = {}
        # Topics without overrides share one TopicConfig.
        self._default_config = TopicConfig(config)
        self._topic_configs: dict[str, TopicConfig] = {}
        # Whether the topics' options may be older than the broker's: memory ended on the way.
        self._is_behind = False

    def topic_config(self, name: str) -> TopicConfig:
        """Return the topic's effective options: its own, else the dynamic broker options, else the static ones.
        Cached."""
        overrides = self._image.configs.get((RESOURCE_TOPIC, name))
        if not overrides:
            return self._default_config
        config = self._topic_configs.get(name)
        if config is None:
            try:
                config = TopicConfig(self._config, overrides)
            except ConfigError:
                config = TopicConfig(self._config, self._readable(name, overrides))
            self._topic_configs[name] = config
        return config

    def apply_broker_options(self) -> bool:
        """Apply the stored options of the cluster and then of this broker over the static ones. Returns whether
        anything changed for the topics, until `topics_have_options` is called."""
        cluster = self._image.config_of(RESOURCE_BROKER, "")
        own = self._image.config_of(RESOURCE_BROKER, str(self._node_id))
        is_new = not self._config.dynamic and not self._is_behind
        if not own and is_new and cluster == {MIN_ISR: str(self._config.min_insync_replicas)}:
            # The state of every new directory. Return early so that a start does not load the option parser.
            self._config.dynamic = self.cluster_options = cluster
            return False
        self.cluster_options = self._usable(cluster, "all brokers", is_default=True)
        self.broker_options = self._usable(own, "this broker", is_default=False)
        dynamic = {**self.cluster_options, **self.broker_options}
        if any("${" in text for text in dynamic.values()):
            from kafka_shim.config import in_force

            try:
                dynamic = in_force(dynamic, self._config.given)
            except ConfigError as err:
                logger.warning("the stored options of brokers are not applied: %s", err)
                return False
        dynamic = self._within_limits(dynamic)
        if dynamic == self._config.dynamic and not self._is_behind:
            return False
        self._is_behind = True
        self._config.apply_dynamic(dynamic)
        self._default_config = TopicConfig(self._config)
        self._topic_configs.clear()
        return True

    def topics_have_options(self) -> None:
        """All topics have the options that `apply_broker_options` applied."""
        self._is_behind = False

    def forget(self, topic: str) -> None:
        """Drop the cached options of a topic, which changed or was deleted."""
        self._topic_configs.pop(topic, None)

    def _usable(self, stored: dict[str, str], whose: str, *, is_default: bool) -> dict[str, str]:
        if not stored:
            return stored
        from kafka_shim.config import check_cordoned, usable

        taken, ignored = usable(stored, self._config.given, is_default=is_default)
        paths = taken.get(CORDONED, "")
        if paths and "${" not in paths:
            # Stored when `log.dirs`, an option of the start, had other directories.
            try:
                check_cordoned([path.strip() for path in paths.split(",")], self._config.log_dirs)
            except ConfigError as err:
                ignored[CORDONED] = str(err)
                del taken[CORDONED]
        for name, reason in ignored.items():
            logger.warning("%s, stored for %s, is ignored: %s", name, whose, reason)
        return taken

    def _within_limits(self, stored: dict[str, str]) -> dict[str, str]:
        if not any(name.startswith("group.") for name in stored):
            return stored
        from kafka_shim.config import within_limits

        found = within_limits(stored, self._config.given)
        for name, text in found.items():
            if text != stored[name]:
                logger.warning("%s, stored as %s, is out of its limits: it is %s", name, stored[name], text)
        return found

    def _readable(self, topic: str, overrides: Mapping[str, str]) -> dict[str, str]:
        """Return the overrides that this version can parse. Another version may have stored others, which are logged
        and ignored."""
        readable = {}
        for name, text in overrides.items():
            try:
                TopicConfig(self._config, {name: text})
            except ConfigError as err:
                logger.warning("%s, stored for topic %s, is ignored: %s", name, topic, err)
            else:
                readable[name] = text
        return readable
