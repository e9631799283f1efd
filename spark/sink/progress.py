"""Stores the progress of each task of the sink, only as committed offsets of one group on a small topic.

The offset of (progress topic, task) is the number of micro-batches that this task has written, so *batch id + 1* after
batch *batch id*. ``sendOffsetsToTransaction`` commits it inside the transaction that carries the rows, so both become
visible together or not at all. Its metadata contain the batch, the number of tasks, the sum of the rows and the topic.
So a re-run with another number of tasks or topic, or with the rows distributed differently over the tasks, is detected.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from kafka_shim.spark.sink import clients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Consumer, TopicPartition

    from kafka_shim.spark.sink.clients import Settings

PROGRESS_TOPIC_PREFIX = "spark-exactly-once-progress"
ADMIN_TIMEOUT_S = 30.0
RETRY_S = 0.05


class SinkError(Exception):
    """The sink refuses to write because it could lose or duplicate rows. The message says what to change."""


class TopicChangedError(SinkError):
    """A batch that was written to one topic is written to another under the same id of a query."""


class TaskCountChangedError(SinkError):
    """A partly written batch is run again with another number of tasks."""


class RowsChangedError(SinkError):
    """A partly written batch is run again with other rows, or with its rows distributed differently over its tasks."""


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of one task of one batch: their number, and a sum over them that does not depend on their order."""

    rows: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """What one task has committed. ``written_batches`` is exclusive: the next batch id to write. ``topic`` is that of
    all rows, empty if each named its own, None if an earlier version of the sink did not say.
    """

    written_batches: int
    batch_id: int
    tasks: int
    share: Share | None = None
    topic: str | None = None


def progress_topic(query_id: str) -> str:
    return f"{PROGRESS_TOPIC_PREFIX}-{query_id}"


def progress_group(query_id: str) -> str:
    return f"spark-exactly-once-{query_id}"


def transactional_id(query_id: str, task: int) -> str:
    return f"spark-exactly-once-{query_id}-{task}"


def encode_metadata(batch_id: int, tasks: int, share: Share, topic: str | None) -> str:
    facts = {"batch": batch_id, "tasks": tasks, "rows": share.rows, "sum": share.fingerprint, "topic": topic or ""}
    return json.dumps(facts, separators=(",", ":"))


def ensure_progress_topic(settings: Settings, query_id: str, tasks: int) -> None:
    """Creates the progress topic with at least ``tasks`` partitions. Adds partitions if a later batch
    has more tasks.
    """
    if _partitions_known.get((settings, query_id), 0) >= tasks:
        return
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewPartitions, NewTopic

    admin = clients.admin(settings)
    name = progress_topic(query_id)
    config = {"cleanup.policy": "compact"}
    topic = NewTopic(name, num_partitions=tasks, replication_factor=-1, config=config)
    try:
        admin.create_topics([topic], operation_timeout=ADMIN_TIMEOUT_S)[name].result(ADMIN_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    if task_count_ever(settings, query_id) < tasks:
        try:
            admin.create_partitions([NewPartitions(name, tasks)])[name].result(ADMIN_TIMEOUT_S)
        except KafkaException as error:
            # Another task may have grown it first: INVALID_PARTITIONS then means that the work is done.
            if error.args[0].code() != KafkaError.INVALID_PARTITIONS:
                raise
        if task_count_ever(settings, query_id) < tasks:
            raise SinkError(f"the progress topic {name} did not get its {tasks} partitions")
    _partitions_known[settings, query_id] = tasks


# The number of partitions never decreases, so a cached value stays a valid lower bound.
_partitions_known: dict[tuple[Settings, str], int] = {}


def task_count_ever(settings: Settings, query_id: str) -> int:
    """The largest number of tasks that any batch of the query had: the partitions of its progress topic.

    Waits for a topic that was made a moment ago to show up in the broker's metadata.
    """
    from confluent_kafka import KafkaException

    topic = progress_topic(query_id)
    give_up = time.monotonic() + ADMIN_TIMEOUT_S
    while True:
        found = clients.admin(settings).list_topics(topic, timeout=ADMIN_TIMEOUT_S).topics[topic]
        if found.error is None and found.partitions:
            return len(found.partitions)
        if time.monotonic() > give_up:
            raise KafkaException(found.error) if found.error else SinkError(f"{topic} has no partitions")
        time.sleep(RETRY_S)


def read_progress(settings: Settings, query_id: str, tasks: Iterable[int], *, stable: bool) -> dict[int, TaskProgress]:
    """Returns what the tasks have committed, by task number. Tasks that never committed are absent.

    ``stable`` waits for pending commits; otherwise the previous commit of such a task is returned. A task that has
    initialised its transactional id has no pending commit. Each partition is named: Kafka's OffsetFetch for all
    partitions at once leaves out a partition that has only a pending commit.
    """
    from confluent_kafka import TopicPartition

    topic = progress_topic(query_id)
    asked = [TopicPartition(topic, task) for task in tasks]
    if not asked:
        return {}
    reader = clients.offsets_reader(settings, progress_group(query_id), stable=stable)
    found: dict[int, TaskProgress] = {}
    for partition in _committed(reader, asked):
        if partition.offset < 0:
            continue
        facts = json.loads(partition.metadata) if partition.metadata else {}
        found[partition.partition] = TaskProgress(
            written_batches=partition.offset,
            batch_id=int(facts.get("batch", partition.offset - 1)),
            tasks=int(facts.get("tasks", 0)),
            share=Share(int(facts["rows"]), str(facts["sum"])) if "sum" in facts else None,
            topic=facts.get("topic"),
        )
    return found


def _committed(reader: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """Returns the committed offsets. Retries while the coordinator moves, loads or is unavailable."""
    from confluent_kafka import KafkaError, KafkaException

    passing = {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
    }
    give_up = time.monotonic() + ADMIN_TIMEOUT_S
    while True:
        try:
            found = reader.committed(asked, timeout=ADMIN_TIMEOUT_S)
            failed = next((partition.error for partition in found if partition.error is not None), None)
        except KafkaException as error:
            failed = error.args[0]
        if failed is None:
            return found
        if failed.code() not in passing or time.monotonic() > give_up:
            raise KafkaException(failed)
        time.sleep(RETRY_S)


def check_task_count(progress: dict[int, TaskProgress], batch_id: int, tasks: int) -> None:
    """Raises TaskCountChangedError if some task has already written the batch when it had another number of tasks.

    With another number of tasks the rows are distributed differently. The rows of a skipped task would be lost, and
    other rows would be duplicated.
    """
    for task, done in progress.items():
        if done.batch_id == batch_id and done.tasks not in (0, tasks):
            raise TaskCountChangedError(
                f"batch {batch_id} was partly written with {done.tasks} tasks (task {task} has committed) and is run "
                f"again with {tasks}; run it with {done.tasks} tasks (same spark.sql.shuffle.partitions, minPartitions "
                f"and repartition) until it is complete"
            )


def check_topic(progress: dict[int, TaskProgress], batch_id: int, topic: str | None) -> None:
    """Raises TopicChangedError if some task has already written the batch to another topic.

    Two functions of one ``foreachBatch`` have the same id: the rows of the second would be taken for repeats.
    """
    for task, done in progress.items():
        if done.batch_id == batch_id and done.topic not in (None, topic or ""):
            first = done.topic or "the topics of its rows"
            raise TopicChangedError(
                f"batch {batch_id} was written to {first} (task {task} has committed) and is asked for in "
                f"{topic or 'the topics of its rows'}: of functions that write the batches of a query to several "
                f"topics give a query_id of its own to each but that of {first}, which under another id would write "
                f"this batch again; a query whose topic changes has to complete the batch before"
            )


def check_same_rows(done: TaskProgress, batch_id: int, task: int, share: Share) -> None:
    """Raises RowsChangedError if a task to be skipped has committed other rows of this batch than it has now."""
    if done.batch_id == batch_id and done.share not in (None, share):
        raise RowsChangedError(
            f"batch {batch_id}: task {task} has committed {done.share.rows if done.share else 0} rows and has "
            f"{share.rows} others now, so rows would be lost and doubled; the same rows must come to the same task in "
            f"every run: repartition by a column directly before the sink"
        )


def assign(shares: list[Share], done: dict[int, TaskProgress], batch_id: int) -> list[int]:
    """Returns the task number of each of Spark's partitions: the task that has committed these rows, else a free one.

    Spark may distribute a batch of Kafka's partitions in any order when a query is restarted. Raises RowsChangedError
    if the rows that some task has committed are not the rows of any partition.
    """
    numbers: list[int | None] = [None] * len(shares)
    free = set(range(len(shares)))
    for task, made in sorted(done.items()):
        if made.batch_id != batch_id or made.share is None:
            continue
        equal = [index for index, share in enumerate(shares) if numbers[index] is None and share == made.share]
        if not equal:
            raise RowsChangedError(
                f"batch {batch_id}: the {made.share.rows} rows that task {task} has committed are not together in this "
                f"run; the query must give the same batch the same rows in the same partitions every time"
            )
        numbers[task if task in equal else equal[0]] = task
        free.discard(task)
    rest = iter(sorted(free))
    return [next(rest) if number is None else number for number in numbers]
