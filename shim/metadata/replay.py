"""Applies records of the metadata log to an `Image`, at start-up and at each commit. No other code changes an image.

A record is applied whole, or can be applied again after memory ended on the way: what needs memory comes first.
A metadata transaction (KIP-868) takes effect at its EndTransactionRecord, or not at all if it is aborted.
"""

from __future__ import annotations

import logging
from collections import deque

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata import replay_topics
from kafka_shim.metadata.after_commit import AfterCommit
from kafka_shim.metadata.image import Image, Position
from kafka_shim.metadata.replay_topics import ReplayError, TopicChecks
from kafka_shim.scheduler import Scheduler
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.turns import Steps

logger = logging.getLogger(__name__)

# How often a record is applied for which there is no memory, and when again.
APPLY_TRIES = 3
APPLY_RETRY_MS = 1000
# How often it is looked for what found no memory to be tried again, either.
RECOVER_EVERY_MS = 30_000


class Replayer:
    """Applies records to one image in order. The records of an open metadata transaction are held back until it
    ends."""

    __slots__ = ("_held", "_scheduler", "after", "image", "rest")

    def __init__(self, image: Image, clock: Clock | None = None) -> None:
        """`clock` is that of a broker, which commits."""
        self.image = image
        self._scheduler = None if clock is None else Scheduler(clock)
        self.after = AfterCommit(self.try_later)
        self._held: deque[Any] | None = None
        # What a commit has appended and not applied yet: records, or all that they make in an image of their own, and
        # the position behind them.
        self.rest: deque[Any] = deque()

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open. A new leader aborts it first."""
        return self._held is not None

    def check(self, records: Iterable[Any]) -> None:
        """Raise ReplayError unless all of `records` can be applied in order. Changes nothing. A commit calls it before
        the append, because every later start must be able to replay what was written."""
        at_once(self.check_in_steps(records))

    def check_in_steps(self, records: Iterable[Any]) -> Steps[None]:
        """As `check`. It holds while nothing is applied."""
        topics = TopicChecks(self.image)
        for record in records:
            key = record.API_KEY
            if key not in APPLY and not BEGIN_TRANSACTION <= key <= ABORT_TRANSACTION:
                raise ReplayError(f"metadata records of type {key} are unknown")
            topics.check(record)
            yield

    @property
    def is_whole(self) -> bool:
        """Whether the image is that of `last_offset`: no transaction is open, and nothing is in the log alone."""
        return self._held is None and not self.rest

    def begin(self) -> None:
        """Called before a commit. Raises NOT_CONTROLLER, which the client tries again, if it was decided without what
        was in the log alone."""
        is_late = bool(self.rest)
        self.resume()
        if is_late:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the change before this one had no memory, and is made now")

    def resume(self) -> None:
        """Do what found no memory."""
        self.apply_rest()
        self.after.run()

    def run_periodically(self) -> None:
        """Look now and then for what is left. With the real clock it needs a running event loop."""
        if self._scheduler is not None:
            self._scheduler.every("look", RECOVER_EVERY_MS, self.resume)

    def stop(self) -> None:
        """Stop the timers. What is left in the log alone is applied by the next start."""
        if self._scheduler is not None:
            self._scheduler.stop()

    def try_later(self) -> None:
        """Have done later what found no memory."""
        if self._scheduler is not None:
            self._scheduler.after("recovery", APPLY_RETRY_MS, self.resume)

    def apply_rest(self) -> None:
        """Apply what is in the log alone. What finds no memory is tried again: at once, later, and before the next
        commit, because no other change may come before it. Nothing else can fail: `check` saw every record."""
        rest = self.rest
        tries = APPLY_TRIES
        while rest:
            try:
                if (kind := rest[0].__class__) is Image:
                    self.adopt(rest[0])
                elif kind is Position:
                    self.image.last_offset, self.image.last_epoch, self.image.last_timestamp_ms = rest[0]
                else:
                    self.apply(rest[0])
                del rest[0]  # without a call: it must not come again
            except MemoryError:
                tries -= 1
                if not tries:
                    logger.exception("no memory is left to apply a change of the metadata, trying on")
                    self.try_later()
                    raise

    def adopt(self, made: Image) -> None:
        """Apply records that made all this in an image of their own (`prepared_changes.state_made`)."""
        image = self.image
        image.topics.update(made.topics)
        image.topics_by_id.update(made.topics_by_id)
        image.configs.update(made.configs)
        image.quotas.update(made.quotas)
        image.scram.update(made.scram)
        for unified, names in made.colliding_names.items():
            image.colliding_names.setdefault(unified, set()).update(names)
        for topic_id, (first, partitions) in made.added.items():
            grown = image.topics_by_id[topic_id].partitions
            if len(grown) == first:  # else memory ended behind this
                grown += partitions
        image.partition_count += made.partition_count

    def apply(self, record: Any) -> None:
        """Apply one record message. Raises ReplayError if it names a topic or partition that does not exist."""
        key = record.API_KEY
        if key == BEGIN_TRANSACTION:
            self._held = deque()
        elif key == ABORT_TRANSACTION:
            self._held = None
        elif key == END_TRANSACTION:
            held = self._held
            while held:
                APPLY[held[0].API_KEY](self.image, held[0])
                del held[0]  # only now: memory may have ended, and the rest is applied when this record comes again
            self._held = None
        elif self._held is not None:
            self._held.append(record)
        else:
            APPLY[key](self.image, record)


def _register_broker(image: Image, record: Any) -> None:
    image.brokers[record.broker_id] = record


def _unregister_broker(image: Image, record: Any) -> None:
    image.brokers.pop(record.broker_id, None)


def _change_broker_registration(image: Image, record: Any) -> None:
    broker = image.brokers.get(record.broker_id)
    if broker is None or broker.broker_epoch != record.broker_epoch:
        return
    if record.fenced:
        broker.fenced = record.fenced > 0
    if record.in_controlled_shutdown:
        broker.in_controlled_shutdown = record.in_controlled_shutdown > 0
    if record.log_dirs:
        broker.log_dirs = record.log_dirs
    if record.cordoned_log_dirs is not None:
        broker.cordoned_log_dirs = record.cordoned_log_dirs


def _fence_broker(image: Image, record: Any) -> None:
    if record.id in image.brokers:
        image.brokers[record.id].fenced = True


def _unfence_broker(image: Image, record: Any) -> None:
    if record.id in image.brokers:
        image.brokers[record.id].fenced = False


def _register_controller(image: Image, record: Any) -> None:
    image.controllers[record.controller_id] = record


def _config(image: Image, record: Any) -> None:
    key = (record.resource_type, record.resource_name)
    # Each change creates a new dict, because callers of `Image.config_of` may hold the old one.
    options = dict(image.configs.get(key, ()))
    if record.value is None:
        options.pop(record.name, None)
    else:
        options[record.name] = record.value
    if options:
        image.configs[key] = options
    else:
        image.configs.pop(key, None)


def _feature_level(image: Image, record: Any) -> None:
    if record.feature_level == 0:
        image.features.pop(record.name, None)
    else:
        image.features[record.name] = record.feature_level


def _producer_ids(image: Image, record: Any) -> None:
    image.next_producer_id = record.next_producer_id


def _acl(image: Image, record: Any) -> None:
    image.acls[record.id] = record


def _remove_acl(image: Image, record: Any) -> None:
    image.acls.pop(record.id, None)


def _scram(image: Image, record: Any) -> None:
    image.scram[(record.name, record.mechanism)] = record


def _remove_scram(image: Image, record: Any) -> None:
    image.scram.pop((record.name, record.mechanism), None)


def entity_of(record: Any) -> tuple[tuple[str, str | None], ...]:
    """Return the entity of a ClientQuotaRecord, as `Image.quotas` names it."""
    return tuple(sorted((one.entity_type, one.entity_name) for one in record.entity))


def _quota(image: Image, record: Any) -> None:
    entity = entity_of(record)
    values = dict(image.quotas.get(entity, ()))
    if record.remove:
        values.pop(record.key, None)
    else:
        values[record.key] = record.value
    if values:
        image.quotas[entity] = values
    else:
        image.quotas.pop(entity, None)


def _delegation_token(image: Image, record: Any) -> None:
    image.delegation_tokens[record.token_id] = record


def _remove_delegation_token(image: Image, record: Any) -> None:
    image.delegation_tokens.pop(record.token_id, None)


def _nothing(image: Image, record: Any) -> None:
    """Ignore NoOpRecord and ZkMigrationStateRecord, which do not change the image."""


BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION = 23, 24, 25

# Record type (API key) -> function that applies it.
APPLY: dict[int, Callable[[Image, Any], None]] = {
    0: _register_broker,
    1: _unregister_broker,
    2: replay_topics.apply_topic,
    3: replay_topics.apply_partition,
    4: _config,
    5: replay_topics.apply_partition_change,
    7: _fence_broker,
    8: _unfence_broker,
    9: replay_topics.apply_remove_topic,
    10: _delegation_token,
    11: _scram,
    12: _feature_level,
    14: _quota,
    15: _producer_ids,
    17: _change_broker_registration,
    18: _acl,
    19: _remove_acl,
    20: _nothing,
    21: _nothing,
    22: _remove_scram,
    26: _remove_delegation_token,
    27: _register_controller,
    28: replay_topics.apply_clear_elr,
}
