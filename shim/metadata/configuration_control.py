"""Stores the options of topics, brokers, groups and clients' metrics, and applies them (Kafka:
ConfigurationControlManager). `configs` decides them.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC, Image
from kafka_shim.metadata.prepared_changes import commit_in_steps
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kafka_shim.config import TopicConfig
    from kafka_shim.metadata.after_commit import AfterCommit
    from kafka_shim.metadata.assignments import Assignments
    from kafka_shim.metadata.authors import Author
    from kafka_shim.metadata.dynamic_config import DynamicConfig
    from kafka_shim.metadata.prepared_changes import PreparedChange
    from kafka_shim.outcome import Flush
    from kafka_shim.storage.logs import Logs
    from kafka_shim.turns import Steps


class ConfigurationControl:
    """A base of `MetadataStore`, which sets what is declared here. Event-loop thread only."""

    image: Image
    assignments: Assignments
    on_topic_config_changed: list[Callable[[str, TopicConfig], None]]
    on_config_changed: list[Callable[[int, str], None]]
    _after: AfterCommit
    _logs: Logs
    _options: DynamicConfig

    def commit(
        self,
        records: Sequence[Any],
        prepared: PreparedChange | None = None,
        then: Sequence[Callable[[], object]] = (),
        by: Author | None = None,
    ) -> Callable[[], Flush | None]:
        """See `MetadataStore.commit`."""
        raise NotImplementedError

    def topic_config(self, name: str) -> TopicConfig:
        """See `MetadataStore.topic_config`."""
        raise NotImplementedError

    def alter_configs(self, records: Sequence[Any], by: Author | None = None) -> None:
        """As `alter_configs_in_steps`, in one turn."""
        if records:
            at_once(self.alter_configs_in_steps(records, by=by))

    def alter_configs_in_steps(
        self, records: Sequence[Any], prepared: PreparedChange | None = None, by: Author | None = None
    ) -> Steps[None]:
        """Commit checked ConfigRecords and accompanying records in the first step, and apply the options. `prepared`
        and `by` as for `commit`."""
        options = [record for record in records if isinstance(record, ConfigRecord)]
        changed = deque(dict.fromkeys((record.resource_type, record.resource_name) for record in options))
        commit, follow = partial(self.commit, records, prepared, by=by), partial(self._options_changed, changed)
        return commit_in_steps(commit, self._after, prepared, follow, options, by)

    def _options_changed(self, changed: deque[tuple[int, str]]) -> Steps[None]:
        """Apply the options of these resources, and take them from `changed`. After a MemoryError, again."""
        for kind, name in changed:
            if kind == RESOURCE_TOPIC:
                self._options.forget(name)
        if any(kind == RESOURCE_BROKER for kind, _ in changed):
            self._broker_options_changed()
        while changed:
            kind, name = changed[0]
            if kind == RESOURCE_TOPIC and name in self.image.topics:  # else it was deleted meanwhile
                self._logs.configure(name, len(self.image.topics[name].partitions), self.topic_config(name))
                for topic_hook in self.on_topic_config_changed:
                    topic_hook(name, self.topic_config(name))
            for hook in self.on_config_changed:
                hook(kind, name)
            del changed[0]
            yield

    def _broker_options_changed(self) -> None:
        if self._options.apply_broker_options():
            self.assignments.record_cordoned()
            self._logs.configure_all(self.topic_config)
            for hook in self.on_topic_config_changed:
                for name in self.image.topics:
                    hook(name, self.topic_config(name))
            self._options.topics_have_options()
