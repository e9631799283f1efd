"""Stock clients by every mechanism, with TLS and without: each writes a transaction that aborts and one that commits,
and reads what was committed in a group. One broker serves them all.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest

from kafka_shim.compat.clients.go_client import compiled
from kafka_shim.embedded_security import EmbeddedSecurity, unsecured_token
from kafka_shim.security.sasl.scram import salted_password
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.targets import jvm, requests
from kafka_shim.targets.secured import SecuredShim
from kafka_shim.wire_client import Connection, check

# kafka-python leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CELLS = [("SSL", ""), *(("SASL_SSL", one) for one in MECHANISMS), *(("SASL_PLAINTEXT", one) for one in MECHANISMS)]
# With a client certificate; with TLS; without.
SAMPLE = [("SSL", ""), ("SASL_SSL", "SCRAM-SHA-512"), ("SASL_PLAINTEXT", "OAUTHBEARER")]
USER, PASSWORD = "alice", 'pass"word'
MODULE = "org.apache.kafka.common.security"
EXPECTED = "committed-0 committed-1 committed-2 committed-3 committed-4"
SOURCES = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 90


@dataclass(frozen=True)
class Place:
    """The broker, and the files that clients need."""

    broker: SecuredShim
    authority: Path
    certificate: Path

    def topic(self, client: str, cell: tuple[str, str]) -> str:
        name = f"{client}-{'-'.join(filter(None, cell))}".lower()
        with Connection(self.broker.bootstrap, timeout_s=60) as admin:
            topics = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
            (one,) = admin.request(requests.make("CreateTopics", topics=topics, timeout_ms=30_000), 5).topics
            assert one.error_code in (0, 36)
        return name

    def java(self, cell: tuple[str, str]) -> dict[str, str]:
        """The properties of a Java client."""
        protocol, mechanism = cell
        found = {"bootstrap.servers": self.broker.addresses[protocol], "security.protocol": protocol}
        if protocol.endswith("SSL"):
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority)}
        if not mechanism:
            return found | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificate)}
        words = {"PLAIN": "plain.PlainLoginModule", "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule"}
        module = f"{MODULE}.{words.get(mechanism, 'scram.ScramLoginModule')}"
        quoted = PASSWORD.replace('"', '\\"')
        login = f'username="{USER}" password="{quoted}"'
        if mechanism == "OAUTHBEARER":
            login = f'unsecuredLoginStringClaim_sub="{USER}"'
        return found | {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{module} required {login};"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = CertificateAuthority()
    files = {"ca": authority.certificate} | {one: "".join(authority.issue(one)) for one in ("broker", USER)}
    for name, text in files.items():
        (folder / f"{name}.pem").touch(0o600)
        (folder / f"{name}.pem").write_text(text)
    store = {"keystore": folder / "broker.pem", "truststore": folder / "ca.pem"}
    options = {f"ssl.{name}.location": str(path) for name, path in store.items()}
    options |= {f"ssl.{name}.type": "PEM" for name in store}
    options |= {"ssl.client.auth": "required", "sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    for name in ("sasl_ssl", "sasl_plaintext"):
        quoted = PASSWORD.replace('"', '\\"')
        for mechanism in MECHANISMS:
            users = None if mechanism == "OAUTHBEARER" else {USER: PASSWORD}
            own = EmbeddedSecurity(sasl=mechanism, users=users).options()
            jaas = own[f"listener.name.sasl_plaintext.{mechanism.lower()}.sasl.jaas.config"]
            assert mechanism != "PLAIN" or quoted in jaas
            options[f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config"] = jaas
    with SecuredShim(options, protocols=("SSL", "SASL_SSL", "SASL_PLAINTEXT")) as broker:
        with Connection(broker.bootstrap, timeout_s=60) as admin:
            for code, mechanism in enumerate(("SCRAM-SHA-256", "SCRAM-SHA-512"), 1):
                credential = {
                    "name": USER,
                    "mechanism": code,
                    "iterations": 4096,
                    "salt": b"salt",
                    "salted_password": salted_password(mechanism, PASSWORD, b"salt", 4096),
                }
                answer = admin.request(requests.make("AlterUserScramCredentials", upsertions=[credential]), 0)
                check(answer.results[0].error_code, answer.results[0].error_message)
        yield Place(broker, folder / "ca.pem", folder / f"{USER}.pem")


# --- the clients


def run_java(place: Place, cells: list[tuple[str, str]], folder: Path) -> list[str]:
    lines = []
    for number, cell in enumerate(cells):
        path = folder / f"{number}.properties"
        escaped = {name: text.replace("\\", "\\\\") for name, text in place.java(cell).items()}
        path.write_text("".join(f"{name}={text}\n" for name, text in escaped.items()))
        lines.append(f"{place.topic('java', cell)}\t{path}\n")
    classes = jvm.compiled(SOURCES / "java" / "SecuredClient.java")
    done = jvm.run("SecuredClient", stdin="".join(lines).encode(), timeout_s=PATIENCE_S * len(cells), extra=(classes,))
    return done.stdout.decode().replace("true", "committed").splitlines()


def run_go(place: Place, cells: list[tuple[str, str]], folder: Path) -> list[str]:
    lines = []
    for protocol, mechanism in cells:
        given = {
            "bootstrap": place.broker.addresses[protocol],
            "topic": place.topic("go", (protocol, mechanism)),
            "mechanism": mechanism,
            "user": USER,
            "password": PASSWORD,
            "token": unsecured_token(USER),
            "authority": str(place.authority) if protocol.endswith("SSL") else "",
            "certificate": "" if mechanism else str(place.certificate),
        }
        lines.append(json.dumps(given) + "\n")
    done = subprocess.run(
        [compiled("SecuredClient")],
        input="".join(lines),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * len(cells),
        check=True,
    )
    return done.stdout.replace("true", "committed").splitlines()


def run_librdkafka(place: Place, cells: list[tuple[str, str]], folder: Path) -> list[str]:
    return [_librdkafka(place, cell) for cell in cells]


def _librdkafka(place: Place, cell: tuple[str, str]) -> str:
    protocol, mechanism = cell
    topic = place.topic("librdkafka", cell)
    config: dict[str, Any] = {"bootstrap.servers": place.broker.addresses[protocol], "security.protocol": protocol}
    if protocol.endswith("SSL"):
        config["ssl.ca.location"] = str(place.authority)
    if not mechanism:
        config |= {"ssl.certificate.location": str(place.certificate), "ssl.key.location": str(place.certificate)}
    elif mechanism == "OAUTHBEARER":
        unsecured = {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": f"principal={USER}"}
        config |= {"sasl.mechanism": mechanism, **unsecured}
    else:
        config |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": PASSWORD}
    producer = confluent_kafka.Producer({**config, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for word, end in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
        producer.begin_transaction()
        for number in range(5):
            producer.produce(topic, f"{word}-{number}")
        producer.flush(PATIENCE_S)
        end(PATIENCE_S)
    group = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = confluent_kafka.Consumer({**config, **group})
    consumer.subscribe([topic])
    values = []
    while len(values) < 5:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        values.append(message.value().decode())
    consumer.commit(asynchronous=False)
    consumer.close()
    return " ".join(values)


def _python_settings(place: Place, cell: tuple[str, str], tokens: Callable[[str], Any]) -> dict[str, Any]:
    import ssl

    protocol, mechanism = cell
    config: dict[str, Any] = {"bootstrap_servers": place.broker.addresses[protocol], "security_protocol": protocol}
    if protocol.endswith("SSL"):
        config["ssl_context"] = context = ssl.create_default_context(cafile=str(place.authority))
        if not mechanism:
            context.load_cert_chain(place.certificate)
    if mechanism == "OAUTHBEARER":
        config |= {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": tokens(USER)}
    elif mechanism:
        config |= {"sasl_mechanism": mechanism, "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    return config


def run_kafka_python(place: Place, cells: list[tuple[str, str]], folder: Path) -> list[str]:
    from kafka_shim.embedded_security import _kafka_python_tokens

    found = []
    for cell in cells:
        topic = place.topic("kafka-python", cell)
        config = _python_settings(place, cell, _kafka_python_tokens)
        producer = kafka.KafkaProducer(**config, transactional_id=topic)
        producer.init_transactions()
        for word, end in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
            producer.begin_transaction()
            for number in range(5):
                producer.send(topic, f"{word}-{number}".encode()).get(PATIENCE_S)
            end()
        producer.close()
        group = {"group_id": topic, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        consumer = kafka.KafkaConsumer(topic, **config, **group, consumer_timeout_ms=PATIENCE_S * 1000)
        found.append(" ".join(next(consumer).value.decode() for _ in range(5)))
        consumer.commit()
        consumer.close()
    return found


def run_aiokafka(place: Place, cells: list[tuple[str, str]], folder: Path) -> list[str]:
    return [asyncio.run(_aiokafka(place, cell)) for cell in cells]


async def _aiokafka(place: Place, cell: tuple[str, str]) -> str:
    from kafka_shim.embedded_security import _aiokafka_tokens

    topic = place.topic("aiokafka", cell)
    config = _python_settings(place, cell, _aiokafka_tokens)
    async with aiokafka.AIOKafkaProducer(**config, transactional_id=topic) as producer:
        for word, end in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
            await producer.begin_transaction()
            for number in range(5):
                await producer.send_and_wait(topic, f"{word}-{number}".encode())
            await end()
    group = {"group_id": topic, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    async with aiokafka.AIOKafkaConsumer(topic, **config, **group) as consumer:
        values = [(await asyncio.wait_for(consumer.getone(), PATIENCE_S)).value.decode() for _ in range(5)]
        await consumer.commit()
    return " ".join(values)


CLIENTS = {
    "java": run_java,
    "librdkafka": run_librdkafka,
    "kafka-python": run_kafka_python,
    "aiokafka": run_aiokafka,
    "franz-go": run_go,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_client_has_transactions_and_groups_on_secured_listeners(place: Place, client: str, tmp_path: Path) -> None:
    assert CLIENTS[client](place, SAMPLE, tmp_path) == [EXPECTED] * len(SAMPLE)


@pytest.mark.soak
@pytest.mark.parametrize("client", CLIENTS)
def test_client_has_them_by_every_mechanism(place: Place, client: str, tmp_path: Path) -> None:
    rest = [cell for cell in CELLS if cell not in SAMPLE]
    assert CLIENTS[client](place, rest, tmp_path) == [EXPECTED] * len(rest)
