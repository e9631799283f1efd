"""Writes the rows of one task of one micro-batch in one Kafka transaction. Runs inside a Spark Python worker.

The guarantee depends on the order of the steps:

1. ``init_transactions`` on the transactional id of (query, task). This fences an earlier attempt that is still alive,
   aborts its open transaction, and completes a prepared one. Afterwards no other attempt can change the progress.
2. Read the committed progress. If the batch was already written, check that its rows were the same, and return.
3. Begin, send the rows, add *batch id + 1* as the offset of the task, commit. Rows and progress commit together.

Each task has its own producer. Spark gives a task to any of its worker processes, so a producer kept for the next batch
would always be fenced by the worker that gets that batch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from kafka_shim.spark.sink import clients, faults, progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from confluent_kafka import Producer

COMMIT_TIMEOUT_S = 60.0
# The rows of a large batch take longer than the one-minute default of Kafka's clients. Brokers allow 15 minutes by
# default.
TRANSACTION_TIMEOUT_MS = 300_000
POLL_EVERY_ROWS = 1000
NEEDS_VALUE = "the sink needs a column `value` (and takes key, headers, topic, partition, timestamp)"


@dataclass(frozen=True, slots=True)
class TaskAddress:
    """A task of a micro-batch of a query. ``query_id`` is valid as long as the query's checkpoint."""

    query_id: str
    batch_id: int
    task: int
    tasks: int


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where the rows go. ``topic`` is that of all rows, or None when every row names its own; ``client`` are
    librdkafka's options."""

    bootstrap_servers: str
    topic: str | None
    client: tuple[tuple[str, str], ...] = ()

    @property
    def settings(self) -> clients.Settings:
        """What every client of the sink is made with."""
        return (("bootstrap.servers", self.bootstrap_servers), *self.client)


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The result of a task. ``skipped`` means that an earlier attempt has committed its rows."""

    task: int
    rows: int
    skipped: bool


def write_task(
    rows: Iterable[Any], address: TaskAddress, options: SinkOptions, *, share: progress.Share | None = None
) -> TaskOutcome:
    """Writes ``rows`` (Row or mapping with ``value`` and optionally ``key``, ``headers``, ``topic``, ``partition``,
    ``timestamp``) exactly once.

    ``share``: what the driver has counted; commits only so many rows, because an input that broke off looks like one
    that ended. Without it the task counts for itself.
    Raises `progress.SinkError` when writing could double or lose rows, and confluent_kafka's KafkaException when the
    broker cannot be reached within its time-outs; Spark then retries the task, which is safe.
    """
    settings = options.settings
    producer = open_producer(options, address.query_id, address.task)
    mine = progress.read_progress(settings, address.query_id, [address.task], stable=True)
    ever = progress.task_count_ever(settings, address.query_id)
    others = [task for task in range(ever) if task != address.task]
    done = mine | progress.read_progress(settings, address.query_id, others, stable=False)
    progress.check_task_count(done, address.batch_id, address.tasks)
    progress.check_topic(done, address.batch_id, options.topic)
    if address.task in mine and mine[address.task].written_batches > address.batch_id:
        progress.check_same_rows(mine[address.task], address.batch_id, address.task, share or _share(rows))
        return TaskOutcome(address.task, 0, skipped=True)
    producer.begin_transaction()
    try:
        sent = _send(producer, rows, options)
        if share is not None and sent.rows != share.rows:
            place = f"batch {address.batch_id}, task {address.task}"
            raise progress.SinkError(f"{place}: the input broke off at {sent.rows} of {share.rows} rows")  # noqa: TRY301
        faults.reach("after_send", address.batch_id, address.task)
        _send_progress(producer, address, share or sent, options)
        faults.reach("after_offsets", address.batch_id, address.task)
        producer.commit_transaction(COMMIT_TIMEOUT_S)
    except BaseException:
        _abandon(producer)
        raise
    faults.reach("after_commit", address.batch_id, address.task)
    return TaskOutcome(address.task, sent.rows, skipped=False)


def open_producer(options: SinkOptions, query_id: str, task: int) -> Producer:
    """A producer that owns the task's transactional id; when this returns, every earlier owner is fenced and its
    transaction ended."""
    from confluent_kafka import Producer

    settings = {
        **clients.QUIET,
        "linger.ms": "20",
        "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
        # librdkafka's default puts keys elsewhere than Spark's own sink and all Java producers do.
        "partitioner": "murmur2_random",
        **dict(options.settings),
        "transactional.id": progress.transactional_id(query_id, task),
    }
    producer = Producer(settings)
    producer.init_transactions(COMMIT_TIMEOUT_S)
    return producer


def fence(options: SinkOptions, query_id: str, tasks: Iterable[int]) -> None:
    """Ends the transactions that those tasks of an earlier run have open. The tasks cannot commit
    anything afterwards.
    """
    for task in tasks:
        open_producer(options, query_id, task)


def _abandon(producer: Producer) -> None:
    """Aborts if possible. A failure does not matter, because the next attempt's init_transactions aborts
    what is left.
    """
    from confluent_kafka import KafkaException

    try:
        producer.abort_transaction(COMMIT_TIMEOUT_S)
    except KafkaException:
        producer.purge()


class _Counter:
    """Makes a share of rows, one at a time."""

    def __init__(self) -> None:
        self._rows = 0
        self._sum = 0

    def add(self, fields: Mapping[str, Any]) -> None:
        self._rows += 1
        digest = hashlib.blake2b(repr(sorted(fields.items())).encode(), digest_size=8).digest()
        self._sum += int.from_bytes(digest, "big")

    def share(self) -> progress.Share:
        return progress.Share(self._rows, f"{self._sum:x}")


def _share(rows: Iterable[Any]) -> progress.Share:
    counter = _Counter()
    for row in rows:
        counter.add(_fields(row))
    return counter.share()


def _send(producer: Producer, rows: Iterable[Any], options: SinkOptions) -> progress.Share:
    failures: list[Any] = []

    def on_delivery(error: Any, _message: Any) -> None:
        if error is not None:
            failures.append(error)

    counter = _Counter()
    for count, row in enumerate(rows, 1):
        fields = _fields(row)
        counter.add(fields)
        own = fields.pop("topic", None)
        # As in Spark's own sink: rows of Spark's Kafka source name the topic that they come from.
        topic = options.topic or own
        if topic is None:
            raise progress.SinkError("a row has no topic and the sink has no `topic` option")
        _produce(producer, topic, fields, on_delivery)
        if count % POLL_EVERY_ROWS == 0:
            producer.poll(0)
    producer.flush(COMMIT_TIMEOUT_S)
    if failures:
        from confluent_kafka import KafkaException

        raise KafkaException(failures[0])
    return counter.share()


def _produce(producer: Producer, topic: str, fields: Mapping[str, Any], on_delivery: Callable[..., None]) -> None:
    while True:
        try:
            producer.produce(topic, on_delivery=on_delivery, **fields)
        except BufferError:
            # The local queue is full. Serving delivery reports makes room.
            producer.poll(0.1)
        else:
            return


def _fields(row: Any) -> dict[str, Any]:
    given = row.asDict() if hasattr(row, "asDict") else dict(row)
    fields: dict[str, Any] = {"value": _bytes(given.get("value")), "key": _bytes(given.get("key"))}
    headers = given.get("headers")
    if headers is not None:
        fields["headers"] = [(header["key"], _bytes(header["value"])) for header in headers]
    if given.get("partition") is not None:
        fields["partition"] = int(given["partition"])
    if given.get("timestamp") is not None:
        fields["timestamp"] = round(given["timestamp"].timestamp() * 1000)
    if given.get("topic") is not None:
        fields["topic"] = str(given["topic"])
    return fields


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray):
        return bytes(value)
    raise progress.SinkError(f"key, value and header values are strings or binary, not {type(value).__name__}")


def _send_progress(producer: Producer, address: TaskAddress, share: progress.Share, options: SinkOptions) -> None:
    from confluent_kafka import TopicPartition

    position = TopicPartition(
        progress.progress_topic(address.query_id),
        address.task,
        address.batch_id + 1,
        metadata=progress.encode_metadata(address.batch_id, address.tasks, share, options.topic),
    )
    group = clients.group_metadata(options.settings, progress.progress_group(address.query_id))
    producer.send_offsets_to_transaction([position], group, COMMIT_TIMEOUT_S)
