"""Stock Python clients by every mechanism, with TLS and without, set up by `Broker.client_config`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiokafka
import confluent_kafka
import kafka
import psutil
import pytest

from kafka_shim.embedded import Broker
from kafka_shim.security.sasl.jaas import parse_jaas
from kafka_shim.tests.security.sasl_client import log_in_plain, log_in_scram
from kafka_shim.wire_client import Connection

# kafka-python leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CASES = [(False, mechanism) for mechanism in MECHANISMS] + [(True, mechanism) for mechanism in (None, *MECHANISMS)]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{'tls' if case[0] else 'clear'}-{case[1]}")
def secured(request: pytest.FixtureRequest) -> Iterator[Broker]:
    tls, sasl = request.param
    users = {"alice": 'pass"word, =1', "bob": "b"} if sasl and sasl != "OAUTHBEARER" else None
    with Broker(tls=tls, sasl=sasl, users=users) as running:
        yield running


def principals(broker: Broker) -> set[str]:
    return broker.call(lambda: {one.session.principal for one in broker._server._registry.connections})


def expected(broker: Broker) -> str:
    return "User:ANONYMOUS" if broker._security.sasl is None else "User:alice"


def test_librdkafka_connects_by_its_client_config(secured: Broker):
    config = secured.client_config("confluent-kafka", "alice")
    problems: list[object] = []
    producer = confluent_kafka.Producer({**config, "error_cb": problems.append})
    delivered = []
    for number in range(100):
        producer.produce("librdkafka", str(number), callback=lambda err, msg: delivered.append((err, msg.offset())))
    assert producer.flush(60) == 0
    assert delivered == [(None, number) for number in range(100)]
    consumer = confluent_kafka.Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    values = []
    while len(values) < 100:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        values.append(int(message.value()))
    assert values == list(range(100))
    assert expected(secured) in principals(secured)
    consumer.close()
    assert not problems


def test_kafka_python_connects_by_its_client_config(secured: Broker):
    config = secured.client_config("kafka-python", "alice")
    producer = kafka.KafkaProducer(**config)
    assert producer.send("kafka-python", b"x" * 100_000).get(60).offset == 0
    producer.close()
    consumer = kafka.KafkaConsumer(
        "kafka-python", **config, group_id="g", auto_offset_reset="earliest", consumer_timeout_ms=60_000
    )
    assert next(consumer).value == b"x" * 100_000
    assert expected(secured) in principals(secured)
    consumer.close()


def test_aiokafka_connects_by_its_client_config(secured: Broker):
    config = secured.client_config("aiokafka", "alice")

    async def run() -> bytes:
        async with aiokafka.AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait("aiokafka", b"x" * 100_000)
        async with aiokafka.AIOKafkaConsumer("aiokafka", **config, auto_offset_reset="earliest") as consumer:
            return (await asyncio.wait_for(consumer.getone(), 60)).value

    assert asyncio.run(run()) == b"x" * 100_000
    assert secured.state.metrics.errors_unexpected == 0


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_broker_in_a_process_of_its_own_has_tls_and_users_and_shows_no_secret(mechanism: str):
    word = "a word that nobody else has"
    with Broker(tls=True, sasl=mechanism, users={"alice": word}, process=True) as broker:
        admin = kafka.KafkaAdminClient(**broker.client_config("kafka-python", "alice"))
        assert admin.list_topics() == []
        admin.close()
        child = psutil.Process(broker._process.popen.pid)
        shown = " ".join([*child.cmdline(), *child.environ().values()])
        assert word not in shown
        assert "PRIVATE KEY" not in shown
        broker.kill()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_users_and_passwords_may_have_any_characters_that_kafka_takes(mechanism: str):
    users = {"alice@example.com": "pw", "a b": "x", "a=b,c;": 'p"\\n', "#x": "//", "u": "two\nlines\r"}
    with Broker(sasl=mechanism, users=users) as broker:
        for user, password in users.items():
            with Connection(broker.bootstrap_servers) as client:
                if mechanism == "PLAIN":
                    assert log_in_plain(client, user, password).error_code == 0
                else:
                    assert log_in_scram(client, mechanism, user, password).error_code == 0
        assert parse_jaas(broker.client_config("java", "u")["sasl.jaas.config"]).options["password"] == users["u"]


def test_a_user_of_scram_whose_name_is_not_ascii_is_told_of(caplog: pytest.LogCaptureFixture):
    with Broker(sasl="SCRAM-SHA-256", users={"ü": "x"}) as broker, Connection(broker.bootstrap_servers) as client:
        assert log_in_scram(client, "SCRAM-SHA-256", "ü", "x").error_code
    assert "the name of a user has ASCII characters alone, as in Kafka" in caplog.text
