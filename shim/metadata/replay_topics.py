"""Applies the metadata records of topics and their partitions to an `Image`, and checks before a commit that they can
be applied."""

from __future__ import annotations

from kafka_shim.metadata.image import RESOURCE_TOPIC, Image, Partition, Topic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NO_LEADER_CHANGE = -2

TOPIC, PARTITION, PARTITION_CHANGE, REMOVE_TOPIC, CLEAR_ELR = 2, 3, 5, 9, 28
# Record types that refer to a topic by its id.
_OF_TOPICS = frozenset({PARTITION, PARTITION_CHANGE, REMOVE_TOPIC})

_shared: dict[tuple[Any, ...], tuple[Any, ...]] = {}


def share(values: Any) -> tuple[Any, ...]:
    """Return the values as a tuple. Equal tuples are the same object, for the first 4096 distinct ones."""
    key = tuple(values)
    if len(_shared) < 4096:
        return _shared.setdefault(key, key)
    return _shared.get(key, key)


class ReplayError(ValueError):
    """A record cannot be applied, because it names a topic or partition that does not exist or has an unknown type.
    `offset` is the record's where that is not the next one of the image, -1 elsewhere."""

    def __init__(self, reason: str, offset: int = -1) -> None:
        super().__init__(reason)
        self.offset = offset


class TopicChecks:
    """Whether records can be applied to an image in order. Changes nothing, and holds while nothing is applied."""

    __slots__ = ("_counts", "_image", "_names")

    def __init__(self, image: Image) -> None:
        self._image = image
        # What the records so far make of topics: their number of partitions by topic id, their ids by name. None: the
        # topic is removed.
        self._counts: dict[bytes, int | None] = {}
        self._names: dict[str, bytes | None] = {}

    def check(self, record: Any) -> None:
        """Raise ReplayError if the record cannot be applied after those that were checked before."""
        key = record.API_KEY
        if key == TOPIC:
            self._check_new(record)
            self._counts[record.topic_id] = 0
            self._names[record.name] = record.topic_id
        elif key in _OF_TOPICS:
            self._check_of_topic(key, record)
        elif key == CLEAR_ELR and record.topic_name:
            if self._names.get(record.topic_name, b"") is None:
                raise _no_topic_named(record.topic_name)
            if record.topic_name not in self._names:
                _named(self._image, record.topic_name)

    def _check_new(self, record: Any) -> None:
        name, topic_id = record.name, record.topic_id
        named, known = self._image.topics.get(name), self._image.topics_by_id.get(topic_id)
        id_of_name = self._names.get(name, None if named is None else named.topic_id)
        if id_of_name is not None and id_of_name != topic_id:
            raise _duplicate(record)
        if topic_id in self._counts and self._counts[topic_id] is None:
            return
        if (topic_id in self._counts or known is not None) and id_of_name != topic_id:
            raise _duplicate(record)

    def _check_of_topic(self, key: int, record: Any) -> None:
        topic_id = record.topic_id
        if topic_id not in self._counts:
            self._counts[topic_id] = len(_topic_of(self._image, record).partitions)
        count = self._counts[topic_id]
        if count is None:
            raise _no_topic(record)
        if key == REMOVE_TOPIC:
            self._counts[topic_id] = None
            removed = self._image.topics_by_id.get(topic_id)
            names = [name for name, one in self._names.items() if one == topic_id]
            self._names.update(dict.fromkeys(names if removed is None else [*names, removed.name]))
        elif key == PARTITION_CHANGE:
            if not 0 <= record.partition_id < count:
                raise _no_partition(record)
        elif 0 <= record.partition_id <= count:
            self._counts[topic_id] = max(count, record.partition_id + 1)
        else:
            raise ReplayError(
                f"a PartitionRecord names partition {record.partition_id} of a topic that has {count} partitions"
            )


def check_whole(image: Image) -> None:
    """Raise ReplayError if a topic lacks a partition before one that it has: a number of the log is damaged."""
    for topic_id, ahead in image.ahead.items():
        topic = image.topics_by_id[topic_id]
        number, missing = min(ahead), f"whose partition {len(topic.partitions)} has no record"
        offset = ahead[number][1]
        raise ReplayError(f"a PartitionRecord names partition {number} of topic {topic.name}, {missing}", offset)


def _topic_of(image: Image, record: Any) -> Topic:
    topic = image.topics_by_id.get(record.topic_id)
    if topic is None:
        raise _no_topic(record)
    return topic


def _no_topic(record: Any) -> ReplayError:
    return ReplayError(f"a {type(record).__name__} names topic id {record.topic_id.hex()}, which does not exist")


def _named(image: Image, name: str) -> Topic:
    topic = image.topics.get(name)
    if topic is None:
        raise _no_topic_named(name)
    return topic


def _no_topic_named(name: str) -> ReplayError:
    return ReplayError(f"a ClearElrRecord names topic {name}, which does not exist")


def _no_partition(record: Any) -> ReplayError:
    return ReplayError(f"a {type(record).__name__} names partition {record.partition_id}, which does not exist")


def _duplicate(record: Any) -> ReplayError:
    return ReplayError(f"a TopicRecord names topic {record.name}, whose name or topic id another topic has")


def apply_topic(image: Image, record: Any) -> None:
    known = image.topics.get(record.name)
    if known is None:
        known = Topic(record.name, record.topic_id)
    # The same topic comes twice where memory ended on the way.
    if known.topic_id != record.topic_id or image.topics_by_id.get(record.topic_id, known) is not known:
        raise _duplicate(record)
    image.topics[record.name] = known
    image.topics_by_id[record.topic_id] = known
    if "." in record.name or "_" in record.name:
        image.colliding_names.setdefault(record.name.replace(".", "_"), set()).add(record.name)


def apply_remove_topic(image: Image, record: Any) -> None:
    topic = _topic_of(image, record)
    image.ahead.pop(record.topic_id, None)
    left = image.partition_count - len(topic.partitions)
    unified = topic.name.replace(".", "_")
    names = image.colliding_names.get(unified)
    if names is not None:
        names.discard(topic.name)
        if not names:
            del image.colliding_names[unified]
    image.configs.pop((RESOURCE_TOPIC, topic.name), None)
    image.topics.pop(topic.name, None)
    del image.topics_by_id[record.topic_id]
    image.partition_count = left


def partition_of(record: Any) -> Partition:
    """Return what a PartitionRecord says."""
    partition = Partition()
    partition.partition = record.partition_id
    partition.replicas = share(record.replicas)
    partition.isr = share(record.isr)
    partition.removing_replicas = share(record.removing_replicas)
    partition.adding_replicas = share(record.adding_replicas)
    partition.directories = share(record.directories)
    partition.elr = share(record.eligible_leader_replicas or ())
    partition.last_known_elr = share(record.last_known_elr or ())
    partition.leader = record.leader
    partition.leader_epoch = record.leader_epoch
    partition.partition_epoch = record.partition_epoch
    partition.leader_recovery_state = record.leader_recovery_state
    return partition


def apply_partition(image: Image, record: Any) -> None:
    _place(image, _topic_of(image, record), partition_of(record))


def _place(image: Image, topic: Topic, partition: Partition) -> None:
    """Add or replace a partition. Kafka writes those of a topic in hash map order, so one may come before others that
    have lower numbers. It waits for them outside the list: no number in a record may decide how long the list is."""
    number, partitions = partition.partition, topic.partitions
    if number < 0:
        raise ReplayError(f"a PartitionRecord names partition {number} of topic {topic.name}")
    if number > len(partitions):
        image.ahead.setdefault(topic.topic_id, {})[number] = partition, image.last_offset + 1
        return
    if number < len(partitions):
        partitions[number] = partition
        return
    count = image.partition_count + 1
    partitions.append(partition)
    image.partition_count = count
    ahead = image.ahead.get(topic.topic_id)
    while ahead:
        if len(partitions) not in ahead:
            return
        partitions.append(ahead.pop(len(partitions))[0])
        image.partition_count += 1
    if ahead is not None:
        del image.ahead[topic.topic_id]


def apply_partition_change(image: Image, record: Any) -> None:
    partitions = _topic_of(image, record).partitions
    if not 0 <= record.partition_id < len(partitions):
        raise _no_partition(record)
    # Each change creates a new object, because readers in steps and the writer of a snapshot hold the old one.
    partition = partitions[record.partition_id].copy()
    if record.isr is not None:
        partition.isr = share(record.isr)
    if record.replicas is not None:
        partition.replicas = share(record.replicas)
    if record.removing_replicas is not None:
        partition.removing_replicas = share(record.removing_replicas)
    if record.adding_replicas is not None:
        partition.adding_replicas = share(record.adding_replicas)
    if record.directories is not None:
        partition.directories = share(record.directories)
    if record.eligible_leader_replicas is not None:
        partition.elr = share(record.eligible_leader_replicas)
    if record.last_known_elr is not None:
        partition.last_known_elr = share(record.last_known_elr)
    if record.leader != NO_LEADER_CHANGE:
        partition.leader = record.leader
        partition.leader_epoch += 1
    if record.leader_recovery_state >= 0:
        partition.leader_recovery_state = record.leader_recovery_state
    partition.partition_epoch += 1
    partitions[record.partition_id] = partition


def apply_clear_elr(image: Image, record: Any) -> None:
    topics = [_named(image, record.topic_name)] if record.topic_name else image.topics.values()
    for topic in topics:
        for number, before in enumerate(topic.partitions):
            if before.elr or before.last_known_elr:
                partition = before.copy()
                partition.elr = partition.last_known_elr = ()
                partition.partition_epoch += 1
                topic.partitions[number] = partition
