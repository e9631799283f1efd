"""The order in which DescribeConfigs lists options: that of the Java HashMap in which Kafka has the parsed values.

A client that shows an answer as it came, as those on librdkafka do, shows this order. Names of one bucket are in the
order of Kafka's definition. That of most is the alphabet; the others are below.

Source: ConfigHelperUtils, AbstractConfig.nonInternalValues and ConfigDef.parse of Kafka 4.3.1.
"""

from __future__ import annotations

import functools

from kafka_shim.config import BROKER_OPTIONS, GROUP_OPTIONS, TOPIC_OPTIONS
from kafka_shim.java_order import order_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Options that Kafka defines before one of their bucket that comes earlier in the alphabet.
_EARLY_OF_TOPICS = ("segment.bytes", "retention.ms", "flush.messages", "max.compaction.lag.ms", "retention.bytes")
_EARLY_OF_BROKERS = """
    remote.log.metadata.manager.listener.name group.consumer.max.session.timeout.ms
    num.recovery.threads.per.data.dir ssl.keystore.type metadata.log.segment.bytes
    fetch.purgatory.purge.interval.requests group.streams.num.standby.replicas
    remote.log.manager.fetch.max.bytes.per.second remote.log.manager.copy.quota.window.size.seconds
    sasl.oauthbearer.scope group.consumer.max.size max.connections remote.fetch.max.wait.ms
    transaction.partition.verification.enable replica.fetch.response.max.bytes group.max.session.timeout.ms
    early.start.listeners log.message.timestamp.before.max.ms
    transaction.abort.timed.out.transaction.cleanup.interval.ms log.cleaner.min.cleanable.ratio ssl.keystore.key
    remote.log.storage.manager.class.name socket.receive.buffer.bytes replica.fetch.min.bytes
    producer.purgatory.purge.interval.requests group.share.max.assignment.interval.ms num.io.threads
    sasl.mechanism.controller.protocol share.fetch.purgatory.purge.interval.requests log.cleaner.enable
    transaction.state.log.min.isr remote.log.metadata.manager.impl.prefix replica.fetch.backoff.ms
    socket.connection.setup.timeout.ms remote.log.manager.expiration.thread.pool.size ssl.keymanager.algorithm
    share.coordinator.threads metadata.log.max.snapshot.interval.ms compression.lz4.level log.roll.hours
    remote.log.metadata.manager.class.path group.share.max.size metadata.log.dir process.roles broker.id
    max.request.partition.size.limit offsets.topic.compression.codec
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
"""


def _ordered(names: Iterable[str], early: Iterable[str] = ()) -> tuple[str, ...]:
    return tuple(order_strings([*early, *sorted(set(names).difference(early))]))


@functools.cache
def topic_options() -> tuple[str, ...]:
    """Return the options of topics that are not internal."""
    return _ordered((name for name, option in TOPIC_OPTIONS.items() if not option.is_internal), _EARLY_OF_TOPICS)


@functools.cache
def broker_options() -> tuple[str, ...]:
    """Return the options of brokers that are not internal."""
    names = (name for name, option in BROKER_OPTIONS.items() if not option.is_internal)
    return _ordered(names, _EARLY_OF_BROKERS.split())


@functools.cache
def group_options() -> tuple[str, ...]:
    return _ordered(GROUP_OPTIONS)
