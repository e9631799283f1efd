"""Memory ends between the append of a change and what follows it: the image becomes what the log says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.cext.records import iterate
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC as TOPIC
from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC, Image
from kafka_shim.metadata.replay import APPLY_RETRY_MS, APPLY_TRIES, RECOVER_EVERY_MS, Replayer
from kafka_shim.protocol.record_frames import decode_metadata
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.no_op_record import NoOpRecord
from kafka_shim.protocol.records.partition_change_record import PartitionChangeRecord
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage.removals import NO_MEMORY_RETRY_MS
from kafka_shim.tests.metadata.opened import Opened
from kafka_shim.tests.no_memory import no_memory_left, runs_out
from kafka_shim.turns import at_once

# CPython 3.14 may end a `with os.scandir(...)` before its first step; the directory is closed all the same.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored while finalizing scandir:pytest.PytestUnraisableExceptionWarning"
)
# More calls than any change makes behind its append.
MOST_CALLS = 600


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Opened]:
    made = Opened(tmp_path).start()
    yield made
    made.stop()


def create(node: Opened, name: str) -> None:
    node.store.create_topic(name, 3, 1, {"retention.ms": "7"})


def grow(node: Opened, name: str) -> None:
    node.store.create_topic(name, 1, 1)
    node.store.create_partitions(name, 3)


def delete(node: Opened, name: str) -> None:
    node.store.create_topic(name, 2, 1, {"retention.ms": "7"})
    node.store.delete_topic(name)


def alter(node: Opened, name: str) -> None:
    node.store.create_topic(name, 1, 1)
    record = ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name=name, name="retention.ms", value="9")
    node.store.alter_configs([record])


def elect(node: Opened, name: str) -> None:
    topic = node.store.create_topic(name, 1, 1)
    node.store.commit([PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, leader=1)])


def take_producer_ids(node: Opened, name: str) -> None:
    node.store.next_producer_id_block()


def stored(node: Opened) -> Image:
    """What a start would find."""
    replayer = Replayer(Image())
    for buffer, batch in node.store.partition_log.batches():
        for record in () if batch.is_control else iterate(buffer):
            replayer.apply(decode_metadata(record.value or b"")[0])
    return replayer.image


def content(image: Image) -> dict[str, Any]:
    kept = ("configs", "features", "next_producer_id", "partition_count", "colliding_names")
    shown: dict[str, Any] = {name: getattr(image, name) for name in kept}
    shown["topics"] = {name: _topic(topic) for name, topic in image.topics.items()}
    shown["by id"] = {topic_id: topic.name for topic_id, topic in image.topics_by_id.items()}
    return shown


def settle(node: Opened) -> None:
    """One more change, which the store refuses once if there is one before it in the log alone."""
    with contextlib.suppress(KafkaError):
        node.store.commit([NoOpRecord()])
    node.store.commit([NoOpRecord()])


def _topic(topic: Any) -> object:
    return [[getattr(one, field) for field in one.__slots__] for one in topic.partitions]


@pytest.mark.parametrize(
    ("change", "append"),
    [
        pytest.param(create, 0, marks=pytest.mark.slow),
        (grow, 1),
        (delete, 1),
        (alter, 1),
        (elect, 1),
        (take_producer_ids, 0),
    ],
)
def test_the_image_is_what_the_log_says(node: Opened, change: Callable[[Opened, str], None], append: int) -> None:
    for call in range(MOST_CALLS):
        name = f"{change.__name__}.{call}"
        is_reached = runs_out(change, node, name, appends="append_batch", topic=TOPIC, append=append, call=call)
        settle(node)
        assert content(node.store.image) == content(stored(node)), call
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize(("change", "append"), [(create, 0), (grow, 1), (delete, 1)])
def test_what_follows_a_change_is_done(
    node: Opened, change: Callable[[Opened, str], None], append: int, is_later: bool
) -> None:
    """Logs are there or gone, and whoever asked for it has heard of the change: before the next change, or a second
    later without one."""
    heard = set[str]()
    store = node.store
    hooks = {create: store.on_topic_created, grow: store.on_partitions_added, delete: store.on_topic_deleted}[change]
    hooks.append(lambda topic, *_: heard.add(topic.name))  # type: ignore[attr-defined]
    hooks.append(lambda topic, *_: hear(topic))  # type: ignore[attr-defined]

    def hear(topic: Any) -> None:
        heard.add(f"{topic.name} too")

    for call in range(MOST_CALLS):
        name = f"{change.__name__}.{call}"
        is_reached = runs_out(change, node, name, appends="append_batch", topic=TOPIC, append=append, call=call)
        if is_later:
            node.clock.advance(APPLY_RETRY_MS)
        else:
            settle(node)
        topic = store.image.topics.get(name)
        wanted = 0 if topic is None else len(topic.partitions)
        assert [node.logs.find(name, number) is not None for number in range(3)] == [True] * wanted + [False] * (
            3 - wanted
        ), call
        assert {name, f"{name} too"} <= heard, call
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1


def alter_brokers(node: Opened, name: str) -> None:
    value = str(1_000_000 + int(name.rpartition(".")[2]))
    record = ConfigRecord(resource_type=RESOURCE_BROKER, resource_name="", name="log.retention.ms", value=value)
    node.store.alter_configs([record])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a generator that is dropped
@pytest.mark.parametrize(("change", "kind"), [(alter, RESOURCE_TOPIC), (alter_brokers, RESOURCE_BROKER)])
def test_changed_options_are_in_force(node: Opened, change: Callable[[Opened, str], None], kind: int) -> None:
    heard = list[tuple[int, str]]()
    store = node.store
    store.on_config_changed.append(lambda *resource: heard.append(resource))
    store.create_topic("t", 1, 1)
    append = 1 if kind == RESOURCE_TOPIC else 0
    for call in range(MOST_CALLS):
        name = f"{change.__name__}.{call}"
        heard.clear()
        is_reached = runs_out(change, node, name, appends="append_batch", topic=TOPIC, append=append, call=call)
        node.clock.advance(APPLY_RETRY_MS)
        wanted = 9 if kind == RESOURCE_TOPIC else 1_000_000 + call
        topic = name if kind == RESOURCE_TOPIC else "t"
        assert store.topic_config(topic).retention_ms == wanted, call
        log = node.logs.find(topic, 0)
        assert log is not None
        assert log.config.retention_ms == wanted, call
        assert (kind, name if kind == RESOURCE_TOPIC else "") in heard, call
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1


def create_in_steps(node: Opened, name: str) -> None:
    store = node.store
    records = at_once(store.creation_records(name, [[1]] * 2, {}))
    at_once(store.commit_topics_in_steps([name], records, at_once(store.prepare(records))))


def grow_in_steps(node: Opened, name: str) -> None:
    store = node.store
    topic = store.create_topic(name, 1, 1)
    records = at_once(store.growth_records(topic, [[1]] * 2))
    at_once(store.commit_partitions_in_steps([(topic, 1)], records, at_once(store.prepare(records))))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a generator that is dropped
def test_topics_that_grow_in_steps_have_grown_although_memory_ended_on_the_way(node: Opened) -> None:
    heard = set[str]()
    node.store.on_partitions_added.append(lambda topic, first: heard.add(f"{topic.name} from {first}"))
    for call in range(MOST_CALLS):
        name = f"t.{call}"
        is_reached = runs_out(grow_in_steps, node, name, appends="append_batch", topic=TOPIC, append=1, call=call)
        node.clock.advance(APPLY_RETRY_MS)
        assert f"{name} from 1" in heard, call
        assert [node.logs.find(name, number) is not None for number in range(3)] == [True] * 3, call
        assert content(node.store.image) == content(stored(node)), call
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a generator that is dropped
def test_topics_that_are_made_in_steps_are_made_although_memory_ended_on_the_way(node: Opened) -> None:
    heard = set[str]()
    node.store.on_topic_created.append(lambda topic: heard.add(topic.name))
    for call in range(MOST_CALLS):
        name = f"t.{call}"
        is_reached = runs_out(create_in_steps, node, name, appends="append_batch", topic=TOPIC, append=0, call=call)
        node.clock.advance(APPLY_RETRY_MS)
        assert name in heard, call
        assert [node.logs.find(name, number) is not None for number in range(2)] == [True] * 2, call
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1


def test_what_found_no_memory_to_be_tried_again_is_done_without_another_change(node: Opened) -> None:
    node.store.run_periodically()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Replayer, "apply", no_memory_left)
        patch.setattr(Scheduler, "after", no_memory_left)
        with pytest.raises(MemoryError):
            node.store.create_topic("t", 2, 1)
    node.clock.advance(RECOVER_EVERY_MS)
    assert node.logs.find("t", 1) is not None


def test_the_directories_of_a_deleted_topic_are_removed_without_a_new_start(node: Opened) -> None:
    path = Path(node.config.log_dirs[0])
    for call in range(MOST_CALLS):
        name = f"deleted.{call}"
        is_reached = runs_out(delete, node, name, appends="append_batch", topic=TOPIC, append=1, call=call)
        settle(node)
        node.clock.advance(NO_MEMORY_RETRY_MS)
        node.clock.advance(node.config.log_segment_delete_delay_ms)
        node.logs.services.flusher.stop()
        assert not list(path.glob(f"{name}-*")), call
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1


def test_files_whose_removal_found_no_memory_are_removed_later(node: Opened) -> None:
    path = Path(node.config.log_dirs[0])
    delete(node, "t")
    flusher = node.logs.services.flusher
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flusher, "run", no_memory_left)
        for _ in range(2):  # its partitions
            with contextlib.suppress(MemoryError):
                node.clock.advance(node.config.log_segment_delete_delay_ms)
    assert len(list(path.glob("t-*"))) == 2
    node.clock.advance(NO_MEMORY_RETRY_MS)
    flusher.stop()
    assert not list(path.glob("t-*"))


@pytest.mark.parametrize("is_later", [False, True])
def test_what_could_not_be_applied_comes_before_the_next_change(
    node: Opened, monkeypatch: pytest.MonkeyPatch, is_later: bool
) -> None:
    left = [APPLY_TRIES]
    apply = Replayer.apply

    def apply_some(replayer: Replayer, record: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise MemoryError
        apply(replayer, record)

    monkeypatch.setattr(Replayer, "apply", apply_some)
    with pytest.raises(MemoryError):
        node.store.create_topic("t", 2, 1)
    image = node.store.image
    assert "t" not in image.topics
    before = image.last_offset
    if is_later:
        node.clock.advance(1000)
    else:
        # It was decided without the topic: a second one of the name would be in the log.
        with pytest.raises(KafkaError) as refused:
            node.store.create_topic("t", 5, 1)
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
    assert content(image) == content(stored(node))
    assert len(image.topics["t"].partitions) == 2
    # A snapshot made now is of all that the image has.
    assert before < image.last_offset == node.store.partition_log.log_end_offset - 1
