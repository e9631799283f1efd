"""Client quotas on both brokers: the same answers to good and bad requests, and the same throttling."""

from __future__ import annotations

import subprocess
import time

import confluent_kafka
import pytest

from kafka_shim.cext.builder import build
from kafka_shim.compat.tests.admin.compare import Pair
from kafka_shim.protocol.messages import alter_client_quotas_request as alter
from kafka_shim.protocol.messages import create_partitions_request as grow
from kafka_shim.protocol.messages import create_topics_request as create
from kafka_shim.protocol.messages import delete_topics_request as delete
from kafka_shim.protocol.messages import describe_client_quotas_request as describe
from kafka_shim.targets import jvm, requests
from kafka_shim.targets.waiting import right_answer, wait_until
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_shim.targets import Target

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
ANONYMOUS = {"user": "ANONYMOUS"}
PROBE = {"user": "probe"}
PRODUCER, CONSUMER = "org.apache.kafka.tools.ProducerPerformance", "org.apache.kafka.tools.consumer.ConsoleConsumer"


@pytest.fixture(scope="module")
def pair(shim: Target, kafka: Target) -> Iterator[Pair]:
    both = Pair(shim.bootstrap, kafka.bootstrap)
    yield both
    both.close()


def entry(entity, *operations):
    return alter.EntryData(
        entity=[alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[alter.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in operations],
    )


RATE = ("producer_byte_rate", 1e12)
ALTERATIONS = {
    "a user": [entry({"user": "u"}, RATE, ("consumer_byte_rate", 2e12))],
    "a user's client": [entry({"user": "u", "client-id": "c"}, RATE)],
    "defaults": [entry({"user": None, "client-id": None}, ("request_percentage", 1e6))],
    "default client": [entry({"client-id": None}, ("controller_mutation_rate", 1e6))],
    "an address": [entry({"ip": "127.0.0.9"}, ("connection_creation_rate", 100000))],
    "default address": [entry({"ip": None}, ("connection_creation_rate", 100000))],
    "removed": [entry({"user": "u"}, ("consumer_byte_rate", None))],
    "removed though absent": [entry({"user": "nobody"}, ("consumer_byte_rate", None))],
    "the same again": [entry({"user": "u"}, RATE)],
    "nothing": [],
    "no operations": [entry({"user": "u"})],
    "empty entity": [entry({}, RATE)],
    "unknown type": [entry({"group": "g"}, RATE)],
    "empty name": [entry({"user": ""}, RATE)],
    "address and user": [entry({"ip": "127.0.0.1", "user": "u"}, ("connection_creation_rate", 1))],
    "no address": [entry({"ip": "no such host.invalid"}, ("connection_creation_rate", 1))],
    "key of another type": [entry({"user": "u"}, ("connection_creation_rate", 1))],
    "key of another type, address": [entry({"ip": "127.0.0.1"}, RATE)],
    "unknown key": [entry({"user": "u"}, ("invalid", 1))],
    "zero": [entry({"user": "u"}, ("producer_byte_rate", 0.0))],
    "negative": [entry({"user": "u"}, ("request_percentage", -1.0))],
    "fraction of a long": [entry({"user": "u"}, ("producer_byte_rate", 1.5))],
    "fraction of a double": [entry({"user": "v"}, ("request_percentage", 1.5))],
    "too large a long": [entry({"user": "u"}, ("producer_byte_rate", 1e19))],
    "too large an int": [entry({"ip": "127.0.0.1"}, ("connection_creation_rate", 3e9))],
    "key twice": [entry({"user": "w"}, RATE, RATE)],
    "entity twice": [entry({"user": "x"}, RATE), entry({"user": "x"}, ("consumer_byte_rate", 5))],
    "good beside bad": [entry({"user": "y"}, RATE), entry({"user": "z"}, ("invalid", 1), RATE)],
}


@pytest.mark.parametrize("is_validated", [True, False], ids=["validated", "done"])
@pytest.mark.parametrize("name", ALTERATIONS)
def test_alterations_get_kafkas_answers(pair: Pair, name: str, is_validated: bool):
    request = alter.AlterClientQuotasRequest(entries=ALTERATIONS[name], validate_only=is_validated)
    assert pair.ask(request, range(2)) == []


def component(kind, how, name=None):
    return describe.ComponentData(entity_type=kind, match_type=how, match=name)


FILTERS = {
    "all": [],
    "a user": [component("user", EXACT, "u")],
    "default user": [component("user", DEFAULT)],
    "any user": [component("user", SPECIFIED)],
    "any client of a user": [component("user", EXACT, "u"), component("client-id", SPECIFIED)],
    "any address": [component("ip", SPECIFIED)],
    "nobody": [component("user", EXACT, "nobody")],
    "empty type": [component("", SPECIFIED)],
    "unknown type": [component("group", SPECIFIED)],
    "type twice": [component("user", SPECIFIED), component("user", EXACT, "u")],
    "exact without name": [component("user", EXACT)],
    "default with name": [component("user", DEFAULT, "u")],
    "any with name": [component("user", SPECIFIED, "u")],
    "unknown match": [component("user", 9, "u")],
    "address and user": [component("ip", SPECIFIED), component("user", SPECIFIED)],
}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", FILTERS)
def test_filters_get_kafkas_answers(pair: Pair, name: str, strict: bool):
    """After all alterations."""
    request = describe.DescribeClientQuotasRequest(components=FILTERS[name], strict=strict)
    assert pair.ask(request, range(2)) == []


def put(admin: Connection, entity: dict[str, str], key: str, value: float | None) -> None:
    """Set a quota of a user, or remove it for None, and return when the broker shows that."""
    told = admin.request(alter.AlterClientQuotasRequest(entries=[entry(entity, (key, value))]), 1)
    assert told.entries[0].error_code == 0
    (name,) = entity.values()
    shown = describe.DescribeClientQuotasRequest(components=[component("user", EXACT, name)], strict=True)
    right_answer(
        lambda: [one.value for row in admin.request(shown, 1).entries for one in row.values if one.key == key],
        lambda values: values == ([] if value is None else [value]),
        f"{key} of {name} is {value}",
    )


def put_in_force(admin: Connection, key: str, value: float | None) -> None:
    """Set the quota of anonymous clients, and return when the broker throttles by it.

    Kafka answers before its broker has applied the record, and shows a record just before its quota managers take it
    over. They have when it shows the next record: it applies one commit after the other.
    """
    put(admin, ANONYMOUS, key, value)
    put(admin, PROBE, key, value)


class Limited:
    """A client of one broker under a quota, for the throttle times that it is told."""

    def __init__(self, address: str, key: str, value: float) -> None:
        self._address = address
        self._key = key
        with Connection(address) as admin:
            put_in_force(admin, key, value)
        self.client = Connection(address, timeout_s=60)

    def __enter__(self) -> Connection:
        return self.client

    def __exit__(self, *_: object) -> None:
        self.client.close()
        with Connection(self._address) as admin:
            put_in_force(admin, self._key, None)


def test_produce_and_fetch_are_throttled_as_long_as_on_kafka(shim: Target, kafka: Target):
    """60 kB at 2 kB a second, of which a window has 20: the rest is 20 seconds, which the brokers tell and nobody
    waits. A pause of the machine between request and measurement moves that by its own length."""
    told = []
    for target in (shim, kafka):
        with Connection(target.bootstrap) as client:
            requests.create_topic(client, "limited", 1)
        with Limited(target.bootstrap, "producer_byte_rate", 2000) as client:
            produced = client.request(requests.produce("limited", 0, build([(None, b"x" * 60_000, 1, ())])), 9)
        with Limited(target.bootstrap, "consumer_byte_rate", 2000) as client:
            # The limit of a window is 20,000 bytes, the first batch is returned whole.
            fetched = client.request(requests.fetch("limited", 0, 0), 12)
        assert fetched.responses == []
        told.append((produced.throttle_time_ms, fetched.throttle_time_ms))
    for ours, theirs in zip(*told, strict=True):
        assert theirs > 10_000
        assert abs(ours - theirs) <= 0.25 * theirs


def test_mutations_are_refused_as_on_kafka(shim: Target, kafka: Target):
    """The burst is 5.5 tokens, so the second topic takes more than there are, and as many as come in a minute."""
    told = []
    for target in (shim, kafka):
        with Limited(target.bootstrap, "controller_mutation_rate", 0.5) as client:
            wanted = [
                create.CreatableTopic(name=f"m{at}", num_partitions=count, replication_factor=1)
                for at, count in enumerate((3, 33, 3))
            ]
            made = client.request(create.CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)
            steps = [(sorted((one.name, one.error_code, one.error_message) for one in made.topics))]
            with Connection(target.bootstrap) as other:
                more = grow.CreatePartitionsTopic(name="m0", count=5, assignments=None)
                grown = other.request(grow.CreatePartitionsRequest(topics=[more], timeout_ms=10_000), 3)
                steps.append([(one.name, one.error_code, one.error_message) for one in grown.results])
            with Connection(target.bootstrap) as other:
                gone = delete.DeleteTopicsRequest(topics=[delete.DeleteTopicState(name="m0")], timeout_ms=10_000)
                deleted = other.request(gone, 6)
                steps.append([(one.name, one.error_code, one.error_message) for one in deleted.responses])
        told.append((steps, made.throttle_time_ms > 0, grown.throttle_time_ms > 0, deleted.throttle_time_ms > 0))
    assert told[0] == told[1]
    assert told[0][1:] == (True, True, True)


SUSTAINED_S, SUSTAINED_RATE = 30.0, 200_000


def sustained(target: Target, key: str) -> float:
    """Bytes of batches a second, behind the first windows, in which a burst is free."""
    topic = f"sustained-{key.replace('_', '-')}"
    part = {"index": 0, "records": build([(None, bytes(20_000), 0, ())])}
    request = requests.make(
        "Produce", acks=-1, timeout_ms=30_000, topic_data=[{"name": topic, "partition_data": [part]}]
    )
    fields = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 20_000}
    fetch = requests.make(
        "Fetch",
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=20_000,
        session_epoch=-1,
        topics=[{"topic": topic, "partitions": [fields]}],
    )
    with Connection(target.bootstrap, timeout_s=60) as client:
        requests.create_topic(client, topic, 1)
        # Kafka answers before the topic takes records.
        wait_until(lambda: client.request(request, 9).responses[0].partition_responses[0].error_code == 0, topic)
        with Connection(target.bootstrap) as admin:
            put_in_force(admin, key, SUSTAINED_RATE)
        try:
            began, total, counted_from = time.monotonic(), 0, time.monotonic()
            while (now := time.monotonic()) < began + 12 + SUSTAINED_S:
                if now < began + 12:
                    counted_from, total = now, 0
                if key == "producer_byte_rate":
                    answer = client.request(request, 9)
                    got = len(part["records"])
                else:
                    answer = client.request(fetch, 11)
                    got = len(answer.responses[0].partitions[0].records or b"") if answer.responses else 0
                total += got
                # The broker mutes the connection for this long anyway.
                time.sleep(answer.throttle_time_ms / 1000)
            return total / (time.monotonic() - counted_from)
        finally:
            with Connection(target.bootstrap) as admin:
                put_in_force(admin, key, None)


VALUE = bytes(1000)
STORED = 4000


def sustained_by_librdkafka(target: Target, key: str) -> float:
    """Bytes of values a second, behind the first windows, in which a burst is free."""
    topic = f"stock-{key.replace('_', '-')}"
    with Connection(target.bootstrap) as client:
        requests.create_topic(client, topic, 1)
    told = 0

    def count(error: object, _: object) -> None:
        nonlocal told
        assert error is None
        told += len(VALUE)

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": target.bootstrap, "linger.ms": 20, "batch.num.messages": 20, "message.timeout.ms": 0}
    )
    is_produced = key == "producer_byte_rate"
    if not is_produced:
        for _ in range(STORED):
            producer.produce(topic, VALUE)
        producer.flush()
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": target.bootstrap, "group.id": topic, "fetch.message.max.bytes": 20_000}
    )
    with Connection(target.bootstrap) as admin:
        put_in_force(admin, key, SUSTAINED_RATE)
    try:
        start = confluent_kafka.TopicPartition(topic, 0, 0)
        consumer.assign([start])
        began = counted_from = time.monotonic()
        while (now := time.monotonic()) < began + 12 + SUSTAINED_S:
            if now < began + 12:
                counted_from, told = now, 0
            if is_produced:
                while len(producer) < 200:
                    producer.produce(topic, VALUE, on_delivery=count)
                producer.poll(0.02)
                continue
            for message in consumer.consume(20, 0.05):
                assert message.error() is None
                told += len(message.value())
                if message.offset() == STORED - 1:
                    consumer.seek(start)  # the same records again
        return told / (time.monotonic() - counted_from)
    finally:
        with Connection(target.bootstrap) as admin:
            put_in_force(admin, key, None)
        consumer.close()
        producer.purge()


def sustained_by_java(target: Target, key: str) -> float:
    """Bytes of values a second of Kafka's own tools, behind the first windows, in which a burst is free."""
    topic = f"java-{key.replace('_', '-')}"
    at = ("--bootstrap-server", target.bootstrap, "--topic", topic)
    with Connection(target.bootstrap) as client:
        requests.create_topic(client, topic, 1)
    if key == "producer_byte_rate":
        wants = ("--num-records", "1000000", "--throughput", "-1", "--record-size", f"{len(VALUE)}")
        # No record waits long enough to expire.
        paced = ("linger.ms=20", "batch.size=20000", "buffer.memory=400000", "max.block.ms=600000")
        how = [word for option in paced for word in ("--command-property", option)]
        line = jvm.command(PRODUCER, *at, *wants, "--reporting-interval", "500", *how)
    else:
        # A batch is returned whole, so a large one is paid for in one long pause.
        producer = confluent_kafka.Producer({"bootstrap.servers": target.bootstrap, "batch.num.messages": 20})
        for _ in range(3 * STORED):
            producer.produce(topic, b"v" * (len(VALUE) - 1))
        assert producer.flush(60) == 0
        how = ["--from-beginning", "--command-property", "max.partition.fetch.bytes=20000"]
        line = jvm.command(CONSUMER, *at, *how)
    with Connection(target.bootstrap) as admin:
        put_in_force(admin, key, SUSTAINED_RATE)
    began = counted_from = now = time.monotonic()
    total = 0
    try:
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tool:
            assert tool.stdout is not None
            for told in tool.stdout:
                now = time.monotonic()
                total += len(told) if key == "consumer_byte_rate" else int(told.split()[0]) * len(VALUE)
                if now < began + 12:
                    counted_from, total = now, 0
                if now > began + 12 + SUSTAINED_S:
                    break
            tool.kill()
        assert now > began + 12 + SUSTAINED_S, f"the tool ended with {total} bytes"
        return total / (now - counted_from)
    finally:
        with Connection(target.bootstrap) as admin:
            put_in_force(admin, key, None)


@pytest.mark.soak
@pytest.mark.parametrize("key", ["producer_byte_rate", "consumer_byte_rate"])
@pytest.mark.parametrize("measured", [sustained, sustained_by_librdkafka, sustained_by_java])
def test_a_client_gets_the_rate_that_it_gets_from_kafka(
    shim: Target, kafka: Target, measured: Callable[[Target, str], float], key: str
):
    """Over 30 seconds, within a tenth: a producer and a consumer that want more than their quota, and stock clients,
    which pace themselves by nothing but the answers."""
    rates = {one.kind: measured(one, key) for one in (shim, kafka)}
    print(f"{measured.__name__} {key} {SUSTAINED_RATE}: {rates['shim']:.0f} and {rates['kafka-native']:.0f} B/s")
    ours, theirs = rates.values()
    assert abs(ours - theirs) < 0.1 * theirs
    # Java's consumer asks again some time after each pause is over, on both brokers.
    least = 0.5 if measured is sustained_by_java else 0.75
    assert least * SUSTAINED_RATE < ours < 1.25 * SUSTAINED_RATE
