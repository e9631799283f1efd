"""Each known difference is shown on both brokers, and the document is the table. The first tests need new brokers."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kafka_shim.api.broker_loggers import KAFKA_NAMES
from kafka_shim.cext.crc32c import crc32c
from kafka_shim.compat.differences import DIFFERENCES, NOT_COMPARED, page
from kafka_shim.compat.groups import script
from kafka_shim.compat.scenarios import load, scenario_client
from kafka_shim.compat.tests.admin.test_data_directory import await_topic
from kafka_shim.errors import ErrorCode
from kafka_shim.group.classic_join import MAX_METADATA_BYTES, MAX_PENDING_JOINS
from kafka_shim.security.principals import MOST_PARTS
from kafka_shim.security.sasl.mechanism import LONGEST_MESSAGE_BYTES
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.targets import Target, TargetError, jvm, make
from kafka_shim.targets import requests as ask
from kafka_shim.targets.base import answers, free_ports
from kafka_shim.targets.waiting import right_answer
from kafka_shim.wire_client import Connection, WireClientError
from kafka_shim.wiretap import compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

JOIN_GROUP = 11
LOGIN_MS = 1000
ROOT = Path(__file__).resolve().parent.parent.parent.parent


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Target, Target]]:
    """(shim, Kafka), of which nobody has asked anything."""
    ours, theirs = make("shim"), make("kafka-native")
    ours.settings |= {"controller.listener.names": "CONTROLLER", "kafka.shim.login.timeout.ms": str(LOGIN_MS)}
    for target in (ours, theirs):
        target.settings.pop("group.initial.rebalance.delay.ms")  # the defaults of the brokers, not of these tests
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def each(brokers: tuple[Target, Target]) -> Callable[[Callable[[Connection], Any]], list[Any]]:
    """Asks both, and returns (shim's, Kafka's)."""
    return lambda question: _ask_each((target.bootstrap for target in brokers), question)


@pytest.fixture
def each_controller(brokers: tuple[Target, Target]) -> Callable[[Callable[[Connection], Any]], list[Any]]:
    """Like `each`, by the listener of the controller."""
    return lambda question: _ask_each((target.controller for target in brokers), question)


def _ask_each(addresses: Iterable[str], question: Callable[[Connection], Any]) -> list[Any]:
    found = []
    for address in addresses:
        with Connection(address, timeout_s=6) as connection:
            found.append(question(connection))
    return found


def test_the_first_look_up_of_a_coordinator(each) -> None:
    look_up = ask.make("FindCoordinator", key="g", key_type=0)
    codes = each(lambda connection: connection.request(look_up, 3).error_code)
    assert codes == [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_the_shim_advertises_kafkas_apis_in_kafkas_versions(each) -> None:
    ours, theirs = each(lambda connection: connection.ranges())
    assert len(theirs) == 75
    assert ours == theirs


# --- listeners that are added while the broker runs; in this order

ADDED = {"SUITES": "SSL", "NAMES": "SSL", "LOGINS": "SASL_PLAINTEXT", "ADDED": "PLAINTEXT"}
AUTHORITY = CertificateAuthority()


@pytest.fixture(scope="module")
def ports(brokers: tuple[Target, Target]) -> list[dict[str, int]]:
    """Of both brokers, by the names of the listeners. The last one is open."""
    return [_add_listeners(target) for target in brokers]


def _add_listeners(target: Target) -> dict[str, int]:
    ports = dict(zip(ADDED, free_ports(len(ADDED)), strict=True))
    key, chain = AUTHORITY.issue("broker")
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="a";'
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    values = {
        "listener.name.suites.ssl.keystore.type": "PEM",
        "listener.name.suites.ssl.keystore.key": key,
        "listener.name.suites.ssl.keystore.certificate.chain": chain,
        "listener.name.suites.ssl.cipher.suites": "TLS_AES_128_GCM_SHA256",
        "listener.name.names.ssl.keystore.type": "PEM",
        "listener.name.names.ssl.keystore.key": key,
        "listener.name.names.ssl.keystore.certificate.chain": chain,
        "listener.name.names.ssl.truststore.type": "PEM",
        "listener.name.names.ssl.truststore.certificates": AUTHORITY.certificate,
        "listener.name.names.ssl.client.auth": "required",
        "listener.name.logins.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.logins.plain.sasl.jaas.config": users,
        "listener.name.logins.scram-sha-256.sasl.jaas.config": scram,
    }
    with Connection(target.bootstrap) as connection:
        listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
        protocols = [f"{name}:{protocol}" for name, protocol in ADDED.items()]
        map_ = "listener.security.protocol.map"
        values["listeners"] = ",".join([_option(connection, "listeners").value, *listeners])
        values[map_] = ",".join([_option(connection, map_).value, "CONTROLLER:PLAINTEXT", *protocols])
        changes = [{"name": name, "config_operation": 0, "value": value} for name, value in values.items()]
        resource = {"resource_type": 4, "resource_name": "1", "configs": changes}
        made = connection.request(ask.make("IncrementalAlterConfigs", resources=[resource]), 1).responses[0]
    assert made.error_code == 0, made.error_message
    _until(lambda: answers("127.0.0.1", ports["ADDED"]) or None)
    return ports


def test_clients_of_an_added_listener(each, ports) -> None:
    def create(connection: Connection) -> None:
        ask.create_topic(connection, "through-all")
        await_topic(connection, "through-all", is_there=True)

    def told(port: int) -> tuple[list[int], int]:
        with Connection(f"127.0.0.1:{port}") as added:
            metadata = added.request(ask.make("Metadata", topics=[{"name": "through-all"}]), 12)
        return [one.port for one in metadata.brokers], metadata.topics[0].partitions[0].error_code

    each(create)
    ours, theirs = (of["ADDED"] for of in ports)
    assert told(ours) == ([ours], ErrorCode.NONE)
    assert told(theirs) == ([], ErrorCode.LISTENER_NOT_FOUND)


def test_suites_of_tls_1_3(ports) -> None:
    def suite(port: int) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            plain = socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            return "not opened"
        with plain, context.wrap_socket(plain) as wrapped:
            return str(wrapped.cipher()[0])

    assert [suite(of["SUITES"]) for of in ports] == ["not opened", "TLS_AES_128_GCM_SHA256"]


def test_the_time_of_a_login(ports) -> None:
    def is_closed(port: int, within_s: float) -> bool:
        with socket.create_connection(("127.0.0.1", port)) as silent:
            silent.settimeout(within_s)
            try:
                return silent.recv(1) == b""
            except TimeoutError:
                return False

    ours, theirs = (of["LOGINS"] for of in ports)
    assert is_closed(ours, 60)
    assert not is_closed(theirs, 3 * LOGIN_MS / 1000)


def test_a_name_in_a_certificate_of_many_parts(ports, tmp_path) -> None:
    def is_served(port: int, parts: int) -> bool:
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, f"u{at}") for at in range(parts)])
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path = tmp_path / f"{port}-{parts}.pem"
        path.write_bytes(pem + AUTHORITY._signed(name, key).public_bytes(Encoding.PEM))
        context = ssl.create_default_context(cadata=AUTHORITY.certificate)
        context.load_cert_chain(path)
        with Connection(f"127.0.0.1:{port}") as client:
            try:
                client._socket = context.wrap_socket(client._socket, server_hostname="localhost")
                return bool(client.ranges())
            except (WireClientError, OSError):
                return False

    parts = (MOST_PARTS, MOST_PARTS + 1)
    assert [[is_served(of["NAMES"], count) for count in parts] for of in ports] == [[True, False], [True, True]]


def test_a_long_message_of_a_login(each, ports) -> None:
    def add_user(connection: Connection) -> None:
        user = {"name": "a", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p" * 32}
        request = ask.make("AlterUserScramCredentials", deletions=[], upsertions=[user])
        assert connection.request(request, 0).results[0].error_code == 0

    def first_answer(port: int, nonce: bytes) -> int | str:
        with Connection(f"127.0.0.1:{port}") as client:
            try:
                assert client.request(ask.make("SaslHandshake", mechanism="SCRAM-SHA-256"), 1).error_code == 0
                return client.request(ask.make("SaslAuthenticate", auth_bytes=b"n,,n=a,r=" + nonce), 2).error_code
            except WireClientError:
                return "closed"  # on a busy machine: the time of a login is over

    each(add_user)
    ours, theirs = (of["LOGINS"] for of in ports)
    # Kafka has the user some time after its answer.
    _until(lambda: first_answer(theirs, b"x") == ErrorCode.NONE or None)
    long = b"x" * (LONGEST_MESSAGE_BYTES + 1)
    assert first_answer(ours, long) in (ErrorCode.SASL_AUTHENTICATION_FAILED, "closed")
    assert first_answer(theirs, long) == ErrorCode.NONE


def test_a_listener_without_its_logins(each, ports) -> None:
    def forget(connection: Connection) -> int:
        change = {"name": "listener.name.logins.plain.sasl.jaas.config", "config_operation": 1, "value": None}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        request = ask.make("IncrementalAlterConfigs", resources=[resource], validate_only=True)
        return connection.request(request, 1).responses[0].error_code

    assert each(forget) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]


def test_changed_logins_of_an_open_listener(each, ports) -> None:
    def change(connection: Connection) -> int:
        users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="changed";'
        change = {"name": "listener.name.logins.plain.sasl.jaas.config", "config_operation": 0, "value": users}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        return connection.request(ask.make("IncrementalAlterConfigs", resources=[resource]), 1).responses[0].error_code

    def login(port: int, password: str) -> int:
        with Connection(f"127.0.0.1:{port}", timeout_s=60) as connection:
            assert connection.request(ask.make("SaslHandshake", mechanism="PLAIN"), 1).error_code == 0
            token = f"\0a\0{password}".encode()
            return connection.request(ask.make("SaslAuthenticate", auth_bytes=token), 2).error_code

    assert each(change) == [ErrorCode.NONE, ErrorCode.NONE]
    failed = ErrorCode.SASL_AUTHENTICATION_FAILED
    assert [login(of["LOGINS"], "changed") for of in ports] == [ErrorCode.NONE, failed]
    assert [login(of["LOGINS"], "a") for of in ports] == [failed, ErrorCode.NONE]


# --- the same brokers


def test_the_initial_rebalance_delay(each) -> None:
    def seconds_to_join(connection: Connection) -> float:
        join = ask.make(
            "JoinGroup",
            group_id="alone",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=ask.protocols("range", metadata=ask.subscription("absent")),
        )
        _await_coordinator(connection, "alone")

        def seconds() -> float | None:
            began = time.monotonic()
            return None if connection.request(join, 3).error_code else time.monotonic() - began

        return _until(seconds)

    ours, theirs = each(seconds_to_join)
    assert ours < 2.9 < theirs


def test_the_queue_of_connections(each) -> None:
    def default(connection: Connection) -> str:
        node_id = str(connection.request(ask.make("Metadata", topics=[]), 12).brokers[0].node_id)
        names = ["socket.listen.backlog.size"]
        resource = {"resource_type": 4, "resource_name": node_id, "configuration_keys": names}
        return connection.request(ask.make("DescribeConfigs", resources=[resource]), 4).results[0].configs[0].value

    assert each(default) == ["4096", "50"]


def _await_coordinator(connection: Connection, group: str) -> None:
    look_up = ask.make("FindCoordinator", key=group, key_type=0)
    _until(lambda: connection.request(look_up, 3).error_code == 0 or None)
    # Found, it may still be loading its groups.
    beat = ask.make("Heartbeat", group_id=group, generation_id=1, member_id="nobody")
    _until(lambda: connection.request(beat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID or None)


def _until(question: Callable[[], Any]) -> Any:
    """Asks until there is an answer, and returns it."""
    return right_answer(question, lambda found: found is not None, "an answer")


def test_documentation_of_options(each) -> None:
    ours, theirs = each(lambda one: _option(one, "log.retention.ms").documentation)
    assert ours
    assert theirs
    assert ours != theirs


def _option(connection: Connection, name: str, kind: int = 4) -> Any:
    resource = {"resource_type": kind, "resource_name": "1", "configuration_keys": [name]}
    request = ask.make("DescribeConfigs", resources=[resource], include_documentation=True)
    return connection.request(request, 4).results[0].configs[0]


def test_produce_of_null_records(each) -> None:
    message = ask.make(
        "Produce",
        acks=-1,
        timeout_ms=1000,
        topic_data=[{"name": "null", "partition_data": [{"index": 0, "records": None}]}],
    )

    def why(connection: Connection) -> str:
        ask.create_topic(connection, "null")
        await_topic(connection, "null", is_there=True)
        with pytest.raises(WireClientError) as caught:
            connection.request(message, 9)
        return str(caught.value)

    ours, theirs = each(why)
    assert "no answer from" not in ours
    assert "no answer from" in theirs


def test_broker_loggers(each) -> None:
    request = ask.make("DescribeConfigs", resources=[{"resource_type": 8, "resource_name": "1"}])
    ours, theirs = each(lambda one: {entry.name for entry in one.request(request, 4).results[0].configs})
    assert ours - {"root"} - set(KAFKA_NAMES) == {name for name in ours if name.startswith("kafka_shim")}
    assert theirs - ours
    assert {"root", "kafka.server.KafkaApis"} <= ours & theirs


def test_files_of_an_idle_partition(each, brokers: tuple[Target, Target]) -> None:
    def create(connection: Connection) -> None:
        ask.create_topic(connection, "idle")
        await_topic(connection, "idle", is_there=True)
        wanted = [{"name": "idle", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        end = ask.make("ListOffsets", replica_id=-1, topics=wanted)
        _until(lambda: connection.request(end, 5).topics[0].partitions[0].error_code == 0 or None)

    each(create)
    ours, theirs = (
        {path.suffix for path in (target.data_dir / "idle-0").iterdir() if path.stem.isdecimal()} for target in brokers
    )
    assert ours == set()
    assert theirs == {".log", ".index", ".timeindex"}


def test_a_large_regular_expression(each) -> None:
    def join(connection: Connection) -> int:
        _await_coordinator(connection, "large")
        beat = ask.make(
            "ConsumerGroupHeartbeat",
            group_id="large",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[],
            subscribed_topic_regex="((a{100}){100}){10}",
            topic_partitions=[],
        )

        def code() -> int | None:
            found = int(connection.request(beat, 1).error_code)
            loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
            return None if found in loading else found

        return int(_until(code))

    assert each(join) == [ErrorCode.INVALID_REGULAR_EXPRESSION, ErrorCode.NONE]


def test_a_subscription_that_claims_a_huge_array(each) -> None:
    metadata = b"\0\0" + (2**31 - 1).to_bytes(4, "big")
    join = ask.make(
        "JoinGroup",
        group_id="huge",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=ask.protocols("range", metadata=metadata),
    )

    def code_of(connection: Connection) -> int | str:
        _await_coordinator(connection, "huge")
        try:
            return connection.request(join, 3).error_code
        except WireClientError as err:
            return str(err)

    ours, theirs = each(code_of)
    assert ours == ErrorCode.NONE
    assert "no answer from" in str(theirs)


def test_ids_that_no_member_uses(each) -> None:
    join = ask.make(
        "JoinGroup",
        group_id="flooded",
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=ask.protocols("range", metadata=ask.subscription("absent")),
    )

    def leave_first_and_last(connection: Connection) -> list[int]:
        connection._socket.settimeout(60)
        _await_coordinator(connection, "flooded")
        given = []
        for _ in range(MAX_PENDING_JOINS // 500 + 1):
            for _ in range(500):
                connection.send(join, 4)
            given += [connection.receive(join.API_KEY, 4)[1].member_id for _ in range(500)]
        leave = [ask.make("LeaveGroup", group_id="flooded", member_id=one) for one in (given[0], given[-1])]
        return [connection.request(one, 2).error_code for one in leave]

    ours, theirs = each(leave_first_and_last)
    assert ours == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert theirs == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_member_that_joins_again_while_it_waits(brokers) -> None:
    join = {
        "group_id": "again",
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": ask.protocols("range", metadata=ask.subscription("absent")),
    }
    describe = ask.make("DescribeGroups", groups=["again"])

    def send(connection: Connection, member_id: str) -> None:
        connection.send(ask.make("JoinGroup", **join, member_id=member_id), 5)

    def receive(connection: Connection) -> Any:
        return connection.receive(JOIN_GROUP, 5)[1]

    def first_answer(target: Target) -> int | str:
        with (
            Connection(target.bootstrap, timeout_s=30) as leader,
            Connection(target.bootstrap, timeout_s=3) as first,
            Connection(target.bootstrap, timeout_s=30) as second,
        ):
            _await_coordinator(leader, "again")
            send(leader, "")
            leads = receive(leader).member_id
            send(leader, leads)
            assert receive(leader).error_code == ErrorCode.NONE
            send(first, "")
            waits = receive(first).member_id
            send(first, waits)
            _until(lambda: len(second.request(describe, 5).groups[0].members) == 2 or None)
            send(second, waits)
            try:
                told: int | str = receive(first).error_code
            except WireClientError as err:
                told = str(err)
            send(leader, leads)
            assert receive(second).error_code == ErrorCode.NONE
            return told

    ours, theirs = [first_answer(target) for target in brokers]
    assert ours == ErrorCode.UNKNOWN_MEMBER_ID
    assert "no answer from" in str(theirs)


def test_a_group_of_refused_offsets(each) -> None:
    refused = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "x" * 5000}
    commit = ask.make("OffsetCommit", group_id="refused", topics=[{"name": "of-refused", "partitions": [refused]}])

    def delete(connection: Connection) -> tuple[int, int]:
        ask.create_topic(connection, "of-refused")
        await_topic(connection, "of-refused", is_there=True)
        _await_coordinator(connection, "refused")
        committed = connection.request(commit, 8).topics[0].partitions[0].error_code
        (deleted,) = connection.request(ask.make("DeleteGroups", groups_names=["refused"]), 2).results
        return committed, deleted.error_code

    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert each(delete) == [(too_large, ErrorCode.GROUP_ID_NOT_FOUND), (too_large, ErrorCode.NONE)]


def test_share_offsets_of_a_partition_that_does_not_exist(each) -> None:
    beat = ask.make(
        "ShareGroupHeartbeat",
        group_id="share-of-few",
        member_id="A" * 22,
        member_epoch=0,
        rack_id=None,
        subscribed_topic_names=["few"],
    )
    topics = [{"topic_name": "few", "partitions": [7]}]
    describe = ask.make("DescribeShareGroupOffsets", groups=[{"group_id": "share-of-few", "topics": topics}])

    def described(connection: Connection) -> int | str:
        ask.create_topic(connection, "few")
        await_topic(connection, "few", is_there=True)
        _await_coordinator(connection, "share-of-few")
        assert _until(lambda: not connection.request(beat, 1).error_code or None)
        try:
            (topic,) = connection.request(describe, 1).groups[0].topics
        except WireClientError as err:
            return str(err)
        return topic.partitions[0].start_offset

    ours, theirs = each(described)
    assert ours == -1
    assert "no answer from" in str(theirs)


def test_a_class_in_a_change_of_options(each) -> None:
    def text_of(connection: Connection, name: str) -> str:
        change = {"name": "metric.reporters", "config_operation": 0, "value": name}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        request = ask.make("IncrementalAlterConfigs", resources=[resource], validate_only=True)
        told = connection.request(request, 1).responses[0]
        assert told.error_code == ErrorCode.INVALID_REQUEST
        return str(told.error_message)

    ours, theirs = each(lambda connection: text_of(connection, "no.such.Reporter"))
    assert "A class is loaded only if the options that the broker starts with name it" in ours
    assert "Validation of dynamic config update of Set(metric.reporters) failed" in theirs


def test_metadata_of_classic_members(each) -> None:
    join = ask.make(
        "JoinGroup",
        group_id="wordy",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=ask.protocols("range", metadata=ask.subscription("t") + bytes(MAX_METADATA_BYTES)),
    )

    def code_of(connection: Connection) -> int:
        connection._socket.settimeout(60)
        _await_coordinator(connection, "wordy")
        return connection.request(join, 3).error_code

    assert each(code_of) == [ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.NONE]


def test_a_damaged_batch_header_in_an_old_segment(each, brokers) -> None:
    topic, large = "damaged", bytes(700_000)

    def write(connection: Connection, value: bytes) -> int:
        answer = connection.request(ask.produce(topic, 0, [(None, value)]), 9)
        return answer.responses[0].partition_responses[0].error_code

    def fill(connection: Connection) -> None:
        ask.create_topic(connection, topic, config={"segment.bytes": "1048576"})
        await_topic(connection, topic, is_there=True)
        for value in (b"a", b"b", b"c", large, large):
            _until(lambda value=value: write(connection, value) == ErrorCode.NONE or None)

    def damage(folder: Path) -> None:
        """Makes the second batch claim to be longer than its segment."""
        first = folder / f"{0:020}.log"
        assert (folder / f"{4:020}.log").exists()
        with first.open("r+b") as file:
            file.seek(8)
            file.seek(12 + int.from_bytes(file.read(4)) + 8)
            file.write((1 << 30).to_bytes(4))

    def read(connection: Connection) -> tuple[int, int]:
        part = connection.request(ask.fetch(topic, 0, 2), 11).responses[0].partitions[0]
        return part.error_code, int.from_bytes(bytes(part.records or b"")[:8])

    each(fill)
    for target in brokers:
        damage(target.data_dir / f"{topic}-0")
    ours, theirs = each(read)
    assert ours == (ErrorCode.CORRUPT_MESSAGE, 0)
    assert theirs == (ErrorCode.NONE, 4)


def test_a_damaged_small_file_of_a_partition(tmp_path) -> None:
    folder = tmp_path / "data" / "scratched-0"

    def write(connection: Connection) -> int:
        answer = connection.request(ask.produce("scratched", 0, [(None, b"value")]), 9)
        return answer.responses[0].partition_responses[0].error_code

    def damage(name: str) -> None:
        with (folder / name).open("ab") as file:
            file.write(b"nonsense\n")

    with make("shim", data_dir=tmp_path / "data") as ours, Connection(ours.bootstrap) as connection:
        ask.create_topic(connection, "scratched")
        assert write(connection) == ErrorCode.NONE
    damage("leader-epoch-checkpoint")
    theirs = make("kafka-native", data_dir=tmp_path / "data")
    try:
        with pytest.raises(TargetError, match="ended with status 1"):
            theirs.start()
        assert f"Malformed line in checkpoint file [{folder}/leader-epoch-checkpoint]: nonsense" in theirs.log()
    finally:
        theirs.close()
    damage("partition.metadata")
    with make("shim", data_dir=tmp_path / "data") as ours, Connection(ours.bootstrap) as connection:
        part = connection.request(ask.fetch("scratched", 0, 0), 11).responses[0].partitions[0]
        assert (part.error_code, b"value" in bytes(part.records)) == (ErrorCode.NONE, True)
        assert "scratched-0: leader epochs are read from the batches" in ours.log()
        assert write(connection) == ErrorCode.NONE


@pytest.mark.parametrize("kind", ["shim", "kafka-native"])
def test_a_log_that_was_cut_short_after_a_clean_stop(tmp_path, kind: str) -> None:
    folder = tmp_path / "data" / "cut-0"

    def write(connection: Connection, value: bytes) -> int:
        answer = connection.request(ask.produce("cut", 0, [(None, value)]), 9)
        return answer.responses[0].partition_responses[0].error_code

    with make("shim", data_dir=tmp_path / "data") as ours, Connection(ours.bootstrap) as connection:
        ask.create_topic(connection, "cut")
        assert [write(connection, value) for value in (b"first", b"second")] == [ErrorCode.NONE] * 2
    with (folder / f"{0:020}.log").open("r+b") as file:
        file.truncate(file.seek(-3, 2))
    with make(kind, data_dir=tmp_path / "data") as target, Connection(target.bootstrap) as connection:
        _until(lambda: write(connection, b"third") == ErrorCode.NONE or None)
        part = connection.request(ask.fetch("cut", 0, 0), 11).responses[0].partitions[0]
    assert part.high_watermark == 2
    assert list(_batches(bytes(part.records)))[:2] == (
        [(0, True), (1, True)] if kind == "shim" else [(0, True), (1, False)]
    )


def _batches(records: bytes) -> Iterator[tuple[int, bool]]:
    """(base offset, whether its CRC is right) of each batch."""
    at = 0
    while at < len(records):
        end = at + 12 + int.from_bytes(records[at + 8 : at + 12])
        is_valid = crc32c(records[at + 21 : end]) == int.from_bytes(records[at + 17 : at + 21])
        yield int.from_bytes(records[at : at + 8]), is_valid
        at = end


def test_which_clients_push_metrics(each) -> None:
    def look_ahead(connection: Connection) -> int:
        change = {"name": "match", "config_operation": 0, "value": "client_id=(?!b).*"}
        resource = {"resource_type": 16, "resource_name": "ahead", "configs": [change]}
        request = ask.make("IncrementalAlterConfigs", resources=[resource], validate_only=True)
        return connection.request(request, 1).responses[0].error_code

    assert each(look_ahead) == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]


def test_fetch_snapshot_without_a_snapshot(each_controller) -> None:
    def fetched(connection: Connection) -> Any:
        topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
        (quorum,) = connection.request(ask.make("DescribeQuorum", topics=topics), 1).topics[0].partitions
        wanted = {"snapshot_id": {"end_offset": 5, "epoch": 1}, "current_leader_epoch": quorum.leader_epoch}
        topics = [{"name": "__cluster_metadata", "partitions": [wanted]}]
        return connection.request(ask.make("FetchSnapshot", cluster_id=None, max_bytes=100, topics=topics), 1)

    ours, theirs = each_controller(fetched)
    assert ours.topics[0].partitions[0].error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert theirs.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_another_broker_registers(each_controller) -> None:
    def register(connection: Connection) -> int:
        cluster = connection.request(ask.make("DescribeCluster", endpoint_type=2), 1).cluster_id
        names = {"client_software_name": "test", "client_software_version": "1"}
        features = [
            {"name": one.name, "min_supported_version": one.min_version, "max_supported_version": one.max_version}
            for one in connection.request(ask.make("ApiVersions", **names), 4).supported_features
        ]
        listener = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 1, "security_protocol": 0}
        request = ask.make(
            "BrokerRegistration",
            broker_id=77,
            cluster_id=cluster,
            incarnation_id=b"1" * 16,
            listeners=[listener],
            features=features,
            log_dirs=[b"2" * 16],
        )
        return connection.request(request, 4).error_code

    assert each_controller(register) == [ErrorCode.INVALID_REGISTRATION, ErrorCode.NONE]


def test_a_broker_without_a_listener_of_the_controller() -> None:
    with make("shim") as ours, Connection(ours.bootstrap) as connection:
        assert connection.request(ask.make("DescribeQuorum", topics=[]), 2).error_code == ErrorCode.NONE
    theirs = make("kafka-native")
    theirs.settings["controller.listener.names"] = ""
    try:
        with pytest.raises(TargetError, match=r"controller\.listener\.names"):
            theirs.start()
    finally:
        theirs.close()


def test_stores_of_the_listener_between_brokers(tmp_path) -> None:
    (keystore, truststore) = (tmp_path / "broker.pem", tmp_path / "other.pem")
    keystore.write_text("".join(AUTHORITY.issue("broker")))
    truststore.write_text(CertificateAuthority("another CA").certificate)
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(truststore),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,INSIDE:SSL",
        "inter.broker.listener.name": "INSIDE",
    }
    ours, theirs = make("shim", settings=stores), make("kafka-native", settings=stores)
    ours.bootstrap = "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0"
    broker, inside, controller = free_ports(3)
    theirs.bootstrap, theirs.controller_port = f"127.0.0.1:{broker}", controller
    advertised = f"PLAINTEXT://{theirs.bootstrap},INSIDE://127.0.0.1:{inside}"
    theirs.settings |= {
        "listeners": f"{advertised},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": advertised,
    }
    with ours, Connection(ours.bootstrap) as connection:
        assert connection.ranges()
    try:
        with pytest.raises(TargetError, match="ended with status 1"):
            theirs.start()
        assert "can't connect to a server SSLEngine" in theirs.log()
    finally:
        theirs.close()


def test_passwords_in_dumps_of_the_metadata_log(each, brokers) -> None:
    def store(connection: Connection) -> None:
        change = {"name": "listener.name.any.ssl.keystore.password", "config_operation": 0, "value": "not-told"}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        request = ask.make("IncrementalAlterConfigs", resources=[resource])
        assert connection.request(request, 1).responses[0].error_code == 0

    each(store)
    folders = [str(one) for target in brokers for one in (target.data_dir / "__cluster_metadata-0").glob("*.log")]
    command = [sys.executable, "-m", "kafka_shim", "dump-log", "--cluster-metadata-decoder", "--files", folders[0]]
    ours = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = jvm.tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", folders[1])
    assert "listener.name.any.ssl.keystore.password" in ours
    assert "not-told" not in ours
    assert "not-told" in theirs


def test_another_leader_of_the_quorum(each_controller) -> None:
    """One of the last on these brokers: Kafka's controller resigns, and is elected again after some time."""

    def vote(connection: Connection) -> tuple[int, int]:
        quorum = ask.make("DescribeQuorum", topics=[_of_quorum({})])
        before = connection.request(quorum, 1).topics[0].partitions[0].leader_epoch
        ballot = {"replica_epoch": before + 5, "replica_id": 2, "last_offset_epoch": before, "last_offset": 0}
        request = ask.make("Vote", cluster_id=None, voter_id=1, topics=[_of_quorum(ballot)])
        (partition,) = connection.request(request, 1).topics[0].partitions

        def leader() -> Any:
            found = connection.request(quorum, 1).topics[0].partitions[0]
            return found if found.leader_id == 1 and not found.error_code else None

        leads = _until(leader)
        return partition.error_code, leads.leader_epoch - before

    ours, theirs = each_controller(vote)
    assert ours == (ErrorCode.INVALID_REQUEST, 0)
    assert theirs[0] == ErrorCode.NONE
    assert theirs[1] > 5


def _of_quorum(partition: dict[str, int]) -> dict[str, Any]:
    return {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0, **partition}]}


def test_unregistering_the_running_broker(each, brokers) -> None:
    """The last one on these brokers: Kafka's serves no partition after it, and does not stop."""
    codes = each(lambda connection: connection.request(ask.make("UnregisterBroker", broker_id=1), 0).error_code)
    brokers[1].kill()
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]


# --- the table


def test_the_document_is_the_table_and_the_readme_counts_it() -> None:
    assert (ROOT / "docs" / "differences.md").read_text() == page()
    assert f"{len(DIFFERENCES)} known differences" in (ROOT / "README.md").read_text()


def test_each_difference_has_a_test_that_exists() -> None:
    for row in DIFFERENCES:
        path, _, function = row.test.partition("::")
        if function:
            assert f"def {function}(" in (ROOT / path).read_text(), row.name
        else:
            assert row.test in globals() or row.test in load(), row.name
    assert len({row.name for row in DIFFERENCES}) == len(DIFFERENCES)


def test_every_field_that_is_not_compared_is_on_the_page() -> None:
    listed = {name for names in NOT_COMPARED.values() for name in names.split()}
    assert listed == compare.IGNORED | scenario_client.IGNORED | script._IGNORED
