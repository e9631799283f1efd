"""A topology with the partition counts of its topics, or what is wrong with it (Kafka: InternalTopicManager,
RepartitionTopics, CopartitionedTopicsEnforcer, ChangelogTopics).

`configure` finds the topics of a topology, decides the partition counts of internal topics, and returns which of these
are missing. A topology whose topics do not fit is not an error of the request: its status goes to every member.
"""

from __future__ import annotations

from heapq import heappop, heappush

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.streams.topology import source_names
from kafka_shim.java_order import order_strings, table_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.streams.topology import Topology
    from kafka_shim.protocol.records.streams_group_topology_value import Subtopology, TopicInfo

    Count = Callable[[str], int | None]

# Status codes of a heartbeat's response (Kafka: StreamsGroupHeartbeatResponse.Status).
STALE_TOPOLOGY = 0
MISSING_SOURCE_TOPICS = 1
INCORRECTLY_PARTITIONED_TOPICS = 2
MISSING_INTERNAL_TOPICS = 3
SHUTDOWN_APPLICATION = 4
ASSIGNMENT_DELAYED = 5

# A sentence names at most so many topics.
MOST_NAMED = 3


class InternalTopic:
    """A topic that the broker makes. `replication_factor` 0 is the broker's default."""

    __slots__ = ("configs", "name", "partitions", "replication_factor")

    def __init__(self, name: str, partitions: int, replication_factor: int, configs: dict[str, str]) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.configs = configs


class ConfiguredSubtopology:
    """One subtopology. `tasks` is the number of its tasks: the most partitions that one of its sources has."""

    __slots__ = ("changelogs", "repartition_sinks", "repartition_sources", "source_topics", "tasks")

    def __init__(
        self,
        tasks: int,
        source_topics: frozenset[str],
        repartition_sources: dict[str, InternalTopic],
        repartition_sinks: frozenset[str],
        changelogs: dict[str, InternalTopic],
    ) -> None:
        self.tasks = tasks
        self.source_topics = source_topics
        self.repartition_sources = repartition_sources
        self.repartition_sinks = repartition_sinks
        self.changelogs = changelogs


class ConfiguredTopology:
    """`subtopologies` is sorted by id, or None if the counts could not be decided. `status` is None for a topology that
    is ready, else (code, sentence)."""

    __slots__ = ("epoch", "missing", "status", "subtopologies")

    def __init__(
        self,
        epoch: int,
        subtopologies: dict[str, ConfiguredSubtopology] | None,
        missing: dict[str, InternalTopic],
        status: tuple[int, str] | None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies
        self.missing = missing
        self.status = status

    @property
    def is_ready(self) -> bool:
        return self.status is None


class _Misfit(Exception):
    """The topics do not fit the topology: a status of the heartbeat."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = code, sentence


def configure(topology: Topology, image: CoordinatorMetadataImage) -> ConfiguredTopology:
    """Returns the topology with its counts. Raises STREAMS_INVALID_TOPOLOGY for one that no topics could fit, and
    UNKNOWN_SERVER_ERROR where Kafka fails unexpectedly."""
    try:
        _refuse_missing_sources(topology, image)
        decided = _decide_counts(topology, image)
        count = _counter(image, decided)
        subtopologies = {
            name: _configured(topology.subtopologies[name], count, decided) for name in sorted(topology.subtopologies)
        }
        missing = _missing_topics(subtopologies, topology, image)
    except _Misfit as misfit:
        return ConfiguredTopology(topology.epoch, None, {}, misfit.status)
    status = None
    if missing:
        status = MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_named(missing)}"
    return ConfiguredTopology(topology.epoch, subtopologies, missing, status)


def _counter(image: CoordinatorMetadataImage, decided: dict[str, int]) -> Count:
    """Returns the partition count by name: of the topic, or as decided for it; None for neither."""

    def count(name: str) -> int | None:
        topic = image.metadata.topics.get(name)
        return decided.get(name) if topic is None else len(topic.partitions)

    return count


def _named(names: Iterable[str]) -> str:
    found = list(names)
    rest = len(found) - MOST_NAMED
    return ", ".join(found[:MOST_NAMED]) + (f" and {rest} additional topics" if rest > 0 else "")


def _unexpected() -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, reason)


def _refuse_missing_sources(topology: Topology, image: CoordinatorMetadataImage) -> None:
    missing = {
        topic
        for subtopology in topology.subtopologies.values()
        for topic in subtopology.source_topics
        if topic not in image.metadata.topics
    }
    if missing:
        raise _Misfit(MISSING_SOURCE_TOPICS, f"Source topics {_named(sorted(missing))} are missing.")


# --- partition counts of internal topics


def _decide_counts(topology: Topology, image: CoordinatorMetadataImage) -> dict[str, int]:
    decided: dict[str, int] = {}
    count = _counter(image, decided)
    decided.update(_repartition_counts(topology, count))
    fixed: set[str] = set()
    flexible: set[str] = set()
    for subtopology in topology.subtopologies.values():
        for topic in subtopology.repartition_source_topics:
            (flexible if topic.partitions == 0 else fixed).add(topic.name)
    # The groups below change none of these.
    fixed_counts = {count(name) for name in fixed}
    groups = {name: _copartition_groups(each) for name, each in topology.subtopologies.items()}
    for name in order_strings(groups):
        for group in groups[name]:
            decided.update(_enforced(group, fixed, fixed_counts, flexible, count))
    changelogs: dict[str, int] = {}
    for subtopology in topology.subtopologies.values():
        counts = [count(name) for name in source_names(subtopology)]
        if not counts:
            raise _invalid(f"No source topics found for subtopology {subtopology.subtopology_id}")
        known = [each for each in counts if each is not None]
        if len(known) < len(counts):
            raise _unexpected()
        changelogs.update((topic.name, max(known)) for topic in subtopology.state_changelog_topics)
    decided.update(changelogs)
    return decided


def _repartition_counts(topology: Topology, count: Count) -> dict[str, int]:
    """Returns the counts of the topics for repartitioning: as given, else the most partitions that a source of the
    subtopology that writes the topic has."""
    subtopologies = list(topology.subtopologies.values())
    counts = {
        topic.name: topic.partitions
        for subtopology in subtopologies
        for topic in subtopology.repartition_source_topics
        if topic.partitions != 0
    }
    readers: dict[str, list[int]] = {}
    for index, subtopology in enumerate(subtopologies):
        for topic in subtopology.repartition_source_topics:
            readers.setdefault(topic.name, []).append(index)
    # Kafka goes over all subtopologies until nothing is open. Here one is looked at again in the round, and at the
    # place in it, where one of its sources is decided: the result is the same, the time does not grow with the square.
    queue = [(0, index) for index in range(len(subtopologies))]
    done: set[int] = set()
    while queue:
        turn, index = heappop(queue)
        if index in done:
            continue
        subtopology = subtopologies[index]
        candidates = [counts.get(topic.name) for topic in subtopology.repartition_source_topics]
        candidates += [count(name) for name in subtopology.source_topics]
        known = [each for each in candidates if each is not None]
        if not known:
            continue
        done.add(index)
        most = max(known)
        for sink in subtopology.repartition_sink_topics:
            if sink not in counts:
                counts[sink] = most
                for reader in readers.get(sink, ()):
                    heappush(queue, (turn if reader > index else turn + 1, reader))
    if any(sink not in counts for subtopology in subtopologies for sink in subtopology.repartition_sink_topics):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics. There may be loops in the topology "
            "that cannot be resolved."
        )
    for subtopology in subtopologies:
        if any(topic.name not in counts for topic in subtopology.repartition_source_topics):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic "
                "is never used as a sink topic."
            )
    return counts


def _copartition_groups(subtopology: Subtopology) -> list[set[str]]:
    sources, repartition = subtopology.source_topics, subtopology.repartition_source_topics
    found = []
    for group in subtopology.copartition_groups:
        indexes = ((group.source_topics, sources), (group.repartition_source_topics, repartition))
        if any(not 0 <= index < len(topics) for numbers, topics in indexes for index in numbers):
            raise _unexpected()
        names = {sources[index] for index in group.source_topics}
        names.update(repartition[index].name for index in group.repartition_source_topics)
        found.append(names)
    return found


def _enforced(
    group: set[str], fixed: set[str], fixed_counts: set[int | None], flexible: set[str], count: Count
) -> dict[str, int]:
    """Returns the counts of the topics for repartitioning in a group of topics that must have equal counts."""
    if not group:
        return {}
    counts: dict[str, int] = {}
    for name in group:
        found = count(name)
        if found is None:
            raise _unexpected()
        counts[name] = found
    repartition = {name: counts[name] for name in group if name in fixed or name in flexible}
    others = {name: counts[name] for name in group if name not in repartition}
    if others:
        wanted = next(iter(others.values()))
        if any(each != wanted for each in others.values()):
            raise _unequal(others)
    elif fixed:
        if len(fixed_counts) > 1:
            raise _unequal(repartition)
        wanted = next(iter(fixed_counts)) or 0
    else:
        wanted = max(repartition.values())
        if wanted == 0:
            raise _invalid(
                "All topics in the copartition group had undefined partition number: "
                f"[{', '.join(order_strings(repartition))}]"
            )
    for name in order_strings(repartition):
        if name in fixed and repartition[name] != wanted:
            raise _Misfit(
                INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{repartition[name]}] of repartition topic [{name}] doesn't match number of "
                f"partitions [{wanted}] of the source topic.",
            )
    return dict.fromkeys(repartition, wanted)


def _unequal(counts: dict[str, int]) -> _Misfit:
    shown = ", ".join(f"{name}={counts[name]}" for name in sorted(counts))
    return _Misfit(
        INCORRECTLY_PARTITIONED_TOPICS, f"Following topics do not have the same number of partitions: [{{{shown}}}]"
    )


# --- the configured topology


def _configured(subtopology: Subtopology, count: Count, decided: dict[str, int]) -> ConfiguredSubtopology:
    counts = [count(name) for name in source_names(subtopology)]
    known = [each for each in counts if each is not None]
    if not known or len(known) < len(counts):
        raise _unexpected()
    tasks = max(known)
    if tasks <= 0:
        raise _unexpected()
    return ConfiguredSubtopology(
        tasks,
        frozenset(subtopology.source_topics),
        _internal_topics(subtopology.repartition_source_topics, decided),
        frozenset(subtopology.repartition_sink_topics),
        _internal_topics(subtopology.state_changelog_topics, decided),
    )


def _internal_topics(topics: list[TopicInfo], decided: dict[str, int]) -> dict[str, InternalTopic]:
    found: dict[str, InternalTopic] = {}
    for topic in topics:
        partitions = topic.partitions or decided.get(topic.name, 0)
        configs = {each.key: each.value for each in topic.topic_configs}
        if topic.name in found or partitions < 1 or len(configs) < len(topic.topic_configs):
            raise _unexpected()
        found[topic.name] = InternalTopic(topic.name, partitions, topic.replication_factor, configs)
    return {name: found[name] for name in order_strings(found)}


def _missing_topics(
    subtopologies: dict[str, ConfiguredSubtopology], topology: Topology, image: CoordinatorMetadataImage
) -> dict[str, InternalTopic]:
    wanted: dict[str, InternalTopic] = {}
    for subtopology in subtopologies.values():
        wanted.update(subtopology.repartition_sources)
        wanted.update(subtopology.changelogs)
    buckets = table_size(len(wanted))
    for name in order_strings(topology.required_topics):
        topic = image.metadata.topics.get(name)
        if topic is None:
            continue
        expected = wanted.pop(name, None)
        if expected is not None and expected.partitions != len(topic.partitions):
            raise _Misfit(
                INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected.partitions}, found "
                f"{len(topic.partitions)}",
            )
    return {name: wanted[name] for name in order_strings(wanted, buckets)}
