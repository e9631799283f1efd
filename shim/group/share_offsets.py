"""Which partitions of a share group have a state in the share coordinator, and how that changes (KIP-932).

Every rule returns the record that replaces the group's ShareGroupStatePartitionMetadata. Source:
org.apache.kafka.coordinator.group.GroupMetadataManager of 4.3.1.
"""

from __future__ import annotations

from kafka_shim.group.share import UNKNOWN_TOPIC_NAME, TopicStates, combine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.records import Record
    from kafka_shim.group.share import ShareGroup, States


def uninitialized_states(
    group: ShareGroup, topics: Iterable[str], image: CoordinatorMetadataImage, now_ms: int
) -> States:
    """Returns the partitions of these topics that have no state, without those that began to get one less than
    `group.share.initialize.retry.interval.ms` ago."""
    found: States = {}
    retry_ms = image.config.group_share_initialize_retry_interval_ms
    for name in topics:
        topic = image.metadata.topics.get(name)
        if topic is None:
            continue
        topic_id = topic.topic_id
        known = group.initialized.get(topic_id)
        partitions = frozenset[int]() if known is None else known.partitions
        if len(partitions) >= len(topic.partitions):
            continue
        if (
            topic_id in group.initializing
            and 0 <= now_ms - group.initializing_ms.get(topic_id, now_ms - retry_ms) < retry_ms
        ):
            partitions |= group.initializing[topic_id].partitions
        if len(partitions) < len(topic.partitions):
            found[topic_id] = TopicStates(name, set(range(len(topic.partitions))) - partitions)
    return found


def begin_initializing(group: ShareGroup, states: States, image: CoordinatorMetadataImage) -> Record:
    """Returns the record with these partitions initialising."""
    initializing = combine(group.initializing, states)
    deleting = group.deleting - initializing.keys()
    return group.states_record(initializing, group.initialized, names_of(deleting, image))


def end_initializing(group: ShareGroup, states: States, image: CoordinatorMetadataImage) -> Record:
    """Returns the record with these partitions initialised."""
    named = {topic_id: TopicStates(_name(topic_id, image), found.partitions) for topic_id, found in states.items()}
    return group.states_record(
        _without(group.initializing, states), combine(group.initialized, named), names_of(group.deleting, image)
    )


def give_up_initializing(group: ShareGroup, states: States, image: CoordinatorMetadataImage) -> Record | None:
    """Returns the record without these initialising partitions, or None if there are none."""
    if not group.initializing:
        return None
    return group.states_record(_without(group.initializing, states), group.initialized, names_of(group.deleting, image))


def begin_deleting(group: ShareGroup, topic_ids: Iterable[bytes], image: CoordinatorMetadataImage) -> Record:
    """Returns the record with these topics deleting, and not initialised any more."""
    gone = frozenset(topic_ids)
    initialized = {topic_id: states for topic_id, states in group.initialized.items() if topic_id not in gone}
    return group.states_record(group.initializing, initialized, names_of(group.deleting | gone, image))


def end_deleting(group: ShareGroup, topic_ids: Iterable[bytes], image: CoordinatorMetadataImage) -> Record:
    """Returns the record in which these topics are not deleting any more."""
    return group.states_record(group.initializing, group.initialized, names_of(group.deleting - set(topic_ids), image))


def delete_all(group: ShareGroup, image: CoordinatorMetadataImage) -> tuple[States, Record | None]:
    """Returns the states to delete with the group, and the record with their topics deleting (None: the group never had
    a state). An earlier deletion that failed is tried again."""
    if not group.has_states_record:
        return {}, None
    states = combine(group.initialized, group.initializing)
    topics = image.metadata.topics_by_id
    again = {
        topic_id: TopicStates(topics[topic_id].name, range(len(topics[topic_id].partitions)))
        for topic_id in group.deleting
        if topic_id in topics
    }
    states = combine(states, again)
    return states, group.states_record({}, {}, {topic_id: found.name for topic_id, found in states.items()})


def deleted_topics(group: ShareGroup, image: CoordinatorMetadataImage) -> set[bytes]:
    """Returns the ids of the topics that the group knows and that do not exist any more."""
    topics = image.metadata.topics_by_id
    return {
        topic_id
        for known in (group.initializing, group.initialized, group.deleting)
        for topic_id in known
        if topic_id not in topics
    }


def forget_topics(group: ShareGroup, topic_ids: Container[bytes], image: CoordinatorMetadataImage) -> Record:
    """Returns the record without these topics."""
    initializing = {key: states for key, states in group.initializing.items() if key not in topic_ids}
    initialized = {key: states for key, states in group.initialized.items() if key not in topic_ids}
    deleting = (key for key in group.deleting if key not in topic_ids)
    return group.states_record(initializing, initialized, names_of(deleting, image))


def names_of(topic_ids: Iterable[bytes], image: CoordinatorMetadataImage) -> dict[bytes, str]:
    """Returns the names of topics by their ids."""
    return {topic_id: _name(topic_id, image) for topic_id in topic_ids}


def _name(topic_id: bytes, image: CoordinatorMetadataImage) -> str:
    topic = image.metadata.topics_by_id.get(topic_id)
    return UNKNOWN_TOPIC_NAME if topic is None else topic.name


def _without(states: States, gone: States) -> States:
    left: States = {}
    for topic_id, found in states.items():
        partitions = found.partitions - gone[topic_id].partitions if topic_id in gone else found.partitions
        if partitions:
            left[topic_id] = TopicStates(found.name, partitions)
    return left
