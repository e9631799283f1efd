"""Where the sink keeps how far each task came: committed offsets of one group on a small topic, nothing else.

The offset of (progress topic, task) is the number of micro-batches that this task has written, so *batch id + 1* after batch *batch id*. It is committed
by ``sendOffsetsToTransaction`` inside the transaction that carries the rows, hence moves with them or not at all. Its metadata
says of which batch and of how many tasks it speaks, so that a re-run with another number of tasks is seen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

PROGRESS_TOPIC_PREFIX = "spark-exactly-once-progress"
ADMIN_TIMEOUT_S = 30.0


class SinkError(Exception):
    """The sink refuses to write: doing so could lose or double rows. The message says what to change."""


class TaskCountChangedError(SinkError):
    """A batch that was written in part is run again with another number of tasks."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """What one task has committed. ``written_batches`` is exclusive: the next batch id to write."""

    written_batches: int
    batch_id: int
    tasks: int


def progress_topic(query_id: str) -> str:
    return f"{PROGRESS_TOPIC_PREFIX}-{query_id}"


def progress_group(query_id: str) -> str:
    return f"spark-exactly-once-{query_id}"


def transactional_id(query_id: str, task: int) -> str:
    return f"spark-exactly-once-{query_id}-{task}"


def encode_metadata(batch_id: int, tasks: int) -> str:
    return json.dumps({"batch": batch_id, "tasks": tasks}, separators=(",", ":"))


def ensure_progress_topic(admin: AdminClient, query_id: str, tasks: int, *, replication_factor: int = -1) -> None:
    """Makes the progress topic with at least ``tasks`` partitions; grows it when a later batch has more tasks."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewPartitions, NewTopic

    name = progress_topic(query_id)
    config = {"cleanup.policy": "compact"}
    topic = NewTopic(name, num_partitions=tasks, replication_factor=replication_factor, config=config)
    try:
        admin.create_topics([topic], operation_timeout=ADMIN_TIMEOUT_S)[name].result(ADMIN_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    else:
        return
    existing = len(admin.list_topics(name, timeout=ADMIN_TIMEOUT_S).topics[name].partitions)
    if existing < tasks:
        try:
            admin.create_partitions([NewPartitions(name, tasks)])[name].result(ADMIN_TIMEOUT_S)
        except KafkaException as error:
            # Another task may have grown it first: INVALID_PARTITIONS then means that the work is done.
            if error.args[0].code() != KafkaError.INVALID_PARTITIONS:
                raise


def task_count_ever(admin: AdminClient, query_id: str) -> int:
    """The largest number of tasks that any batch of the query had: the partitions of its progress topic."""
    topic = progress_topic(query_id)
    return len(admin.list_topics(topic, timeout=ADMIN_TIMEOUT_S).topics[topic].partitions)


def read_progress(admin: AdminClient, query_id: str) -> dict[int, TaskProgress]:
    """What every task of the query has committed, by task number; absent are tasks that never committed and tasks whose commit is under way.

    Each partition is named: asked for all at once, Kafka leaves out a partition that has nothing but a pending commit, and asked
    without ``require_stable`` it answers the offset before. A task that has initialised its transactional id has no pending commit.
    """
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

    group, topic = progress_group(query_id), progress_topic(query_id)
    asked = [TopicPartition(topic, task) for task in range(task_count_ever(admin, query_id))]
    future = admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, asked)], require_stable=True, request_timeout=ADMIN_TIMEOUT_S
    )[group]
    found: dict[int, TaskProgress] = {}
    for partition in future.result(ADMIN_TIMEOUT_S).topic_partitions or ():
        if partition.error is not None and partition.error.code() != KafkaError.UNSTABLE_OFFSET_COMMIT:
            raise KafkaException(partition.error)
        if partition.error is not None or partition.offset < 0:
            continue
        facts = json.loads(partition.metadata) if partition.metadata else {}
        found[partition.partition] = TaskProgress(
            written_batches=partition.offset,
            batch_id=int(facts.get("batch", partition.offset - 1)),
            tasks=int(facts.get("tasks", 0)),
        )
    return found


def check_task_count(progress: dict[int, TaskProgress], batch_id: int, tasks: int) -> None:
    """Refuses a batch that some task has already written when the batch had another number of tasks.

    With another number of tasks rows fall to other tasks, so that the rows of a task that is skipped would be lost and others doubled.
    """
    for task, done in progress.items():
        if done.batch_id == batch_id and done.tasks not in (0, tasks):
            raise TaskCountChangedError(
                f"batch {batch_id} was partly written with {done.tasks} tasks (task {task} has committed) and is run again with {tasks}; "
                f"run it with {done.tasks} tasks (same spark.sql.shuffle.partitions, minPartitions and repartition) until it is complete"
            )
