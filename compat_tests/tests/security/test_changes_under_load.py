"""What a change of ACLs and of passwords does to clients at work, on the shim and on Apache Kafka."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.client_security import ClientSecurity
from kafka_shim.compat.tests.security.principals import SETTINGS, Rule
from kafka_shim.errors import ErrorCode
from kafka_shim.security.sasl.scram import salted_password
from kafka_shim.targets import requests
from kafka_shim.targets.secured import SecuredKafka, SecuredShim
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.produced import batch
from kafka_shim.wire_client import Connection, WireClientError, check

pytestmark = pytest.mark.java

MECHANISM = "SCRAM-SHA-256"
PREFIX = "listener.name.sasl_plaintext.scram-sha-256."
OPTIONS = {
    **SETTINGS,
    "sasl.enabled.mechanisms": MECHANISM,
    f"{PREFIX}sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "connection.failed.authentication.delay.ms": "10",
    f"{PREFIX}connections.max.reauth.ms": "600000",
}
TOPIC = "load"
SAMPLES = 5
Pair = tuple[SecuredShim, SecuredKafka]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with SecuredShim(OPTIONS) as shim, SecuredKafka(OPTIONS) as kafka:
        for one in (shim, kafka):
            with Connection(one.bootstrap, timeout_s=60) as admin:
                topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
                told = admin.request(requests.make("CreateTopics", topics=[topic], timeout_ms=30_000), 5).topics[0]
                check(told.error_code, told.error_message)
        yield shim, kafka


def set_password(broker: SecuredShim | SecuredKafka, user: str, password: str | None) -> None:
    """None removes it. Returns when the broker decides so: a new connection logs in, or does not."""
    with Connection(broker.bootstrap, timeout_s=60) as admin:
        if password is None:
            request = requests.make("AlterUserScramCredentials", deletions=[{"name": user, "mechanism": 1}])
        else:
            salted = salted_password(MECHANISM, password, b"salt", 4096)
            fields = {"name": user, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": salted}
            request = requests.make("AlterUserScramCredentials", upsertions=[fields])
        check(admin.request(request, 0).results[0].error_code)
    wait_until(lambda: logs_in(broker, user, password or "any") is (password is not None), f"the password of {user}")


def add_acl(broker: SecuredShim | SecuredKafka, rule: Rule) -> None:
    with Connection(broker.bootstrap, timeout_s=60) as admin:
        check(admin.request(requests.make("CreateAcls", creations=[rule.creation]), 3).results[0].error_code)


def remove_acl(broker: SecuredShim | SecuredKafka, rule: Rule) -> None:
    with Connection(broker.bootstrap, timeout_s=60) as admin:
        found = admin.request(requests.make("DeleteAcls", filters=[rule.filter]), 3).filter_results[0]
        assert len(found.matching_acls) == 1


def login(user: str, password: str) -> ClientSecurity:
    jaas = f'ScramLoginModule required username="{user}" password="{password}";'
    return ClientSecurity(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MECHANISM, "sasl.jaas.config": jaas}
    )


def connect(broker: SecuredShim | SecuredKafka, user: str, password: str) -> Connection:
    return Connection(broker.addresses["SASL_PLAINTEXT"], timeout_s=60, security=login(user, password))


def logs_in(broker: SecuredShim | SecuredKafka, user: str, password: str) -> bool:
    try:
        connect(broker, user, password).close()
    except WireClientError:
        return False
    return True


def produced(client: Connection) -> int:
    part = {"index": 0, "records": batch(b"a")}
    topics = [{"name": TOPIC, "partition_data": [part]}]
    told = client.request(requests.make("Produce", acks=-1, timeout_ms=30_000, topic_data=topics), 9)
    return int(told.responses[0].partition_responses[0].error_code)


class Load:
    """Clients that write one record after the other, each on its connection, until the end."""

    def __init__(self, broker: SecuredShim | SecuredKafka, user: str, password: str, clients: int = 4) -> None:
        self.codes: list[list[int | str]] = [[] for _ in range(clients)]
        self._over = threading.Event()
        connections = [connect(broker, user, password) for _ in range(clients)]
        self._threads = [
            threading.Thread(target=self._run, args=each) for each in zip(connections, self.codes, strict=True)
        ]

    def _run(self, client: Connection, codes: list[int | str]) -> None:
        with client:
            while not self._over.is_set():
                try:
                    codes.append(produced(client))
                except WireClientError:
                    codes.append("closed")
                    return

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        self.all_see({0})
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def all_see(self, wanted: set[Any]) -> None:
        """Returns once the last few answers of each client are among these."""
        wait_until(
            lambda: all(len(codes) >= SAMPLES and set(codes[-SAMPLES:]) <= wanted for codes in self.codes),
            f"all see {wanted}",
        )

    def steps(self) -> list[list[int | str]]:
        """What each client saw, without repetitions."""
        return [[one for at, one in enumerate(codes) if not at or codes[at - 1] != one] for codes in self.codes]


WRITE = Rule(2, TOPIC, 4, principal="User:alice")
DENIAL = Rule(2, TOPIC, 4, permission_type=2, principal="User:alice")


def acls_change(broker: SecuredShim | SecuredKafka) -> list[list[int | str]]:
    """One ACL at a time: of several that one request changes, Kafka's clients see one change after another."""
    set_password(broker, "alice", "secret")
    add_acl(broker, WRITE)
    with connect(broker, "alice", "secret") as client:
        wait_until(lambda: produced(client) == 0, "written")
    with Load(broker, "alice", "secret") as load:
        add_acl(broker, DENIAL)
        load.all_see({ErrorCode.TOPIC_AUTHORIZATION_FAILED})
        remove_acl(broker, DENIAL)
        load.all_see({0})
        remove_acl(broker, WRITE)
        load.all_see({ErrorCode.TOPIC_AUTHORIZATION_FAILED})
    return load.steps()


def test_acls_act_on_the_requests_of_connections_that_exist(pair: Pair) -> None:
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    ours, theirs = (acls_change(broker) for broker in pair)
    assert ours == [[0, denied, 0, denied]] * 4
    assert theirs == ours


READ_TOPIC = Rule(2, TOPIC, 3, principal="User:carol")
UNREADABLE = Rule(2, TOPIC, 3, permission_type=2, principal="User:carol")


def begin_fetch(client: Connection, offset: int, wait_ms: int, session: tuple[int, int]) -> None:
    part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    session_id, epoch = session
    topics = [{"topic": TOPIC, "partitions": [part]}] if epoch <= 0 else []
    fields = {"max_wait_ms": wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "topics": topics}
    client.send(requests.make("Fetch", session_id=session_id, session_epoch=epoch, **fields), 12)


def end_fetch(client: Connection) -> tuple[int, list[tuple[int, int, bool]]]:
    """Returns the session's id; the error, the high watermark and whether there are records of each partition."""
    told = client.receive(1, 12)[1]
    parts = [part for topic in told.responses for part in topic.partitions]
    return told.session_id, [(one.error_code, one.high_watermark, bool(one.records)) for one in parts]


def waiting_fetches(broker: SecuredShim | SecuredKafka) -> list[Any]:
    set_password(broker, "carol", "secret")
    add_acl(broker, READ_TOPIC)
    told: list[Any] = []
    with connect(broker, "carol", "secret") as client, connect(broker, "carol", "secret") as other:

        def code() -> int:
            begin_fetch(other, 0, 0, (0, -1))
            return end_fetch(other)[1][0][0]

        def deny(*, denied: bool) -> None:
            (add_acl if denied else remove_acl)(broker, UNREADABLE)
            wait_until(lambda: (code() != 0) is denied, "the ACL acts")

        wait_until(lambda: code() == 0, "read")
        with Connection(broker.bootstrap, timeout_s=60) as writer:
            begin_fetch(other, 0, 0, (0, -1))
            ((_, end_offset, _),) = end_fetch(other)[1]

            def relative(found: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
                return [(error, max(-1, offset - end_offset), has_records) for error, offset, has_records in found]

            # The right is taken before there is a record, which the fetch that waits returns all the same.
            begin_fetch(client, end_offset, 30_000, (0, -1))
            deny(denied=True)
            check(produced(writer))
            told.append(relative(end_fetch(client)[1]))
            begin_fetch(client, end_offset, 0, (0, -1))
            told.append(relative(end_fetch(client)[1]))
            deny(denied=False)
            # The right is taken while the fetch waits that opens a session: the next one of the session is told.
            begin_fetch(client, end_offset + 1, 3_000, (0, 0))
            deny(denied=True)
            session_id, found = end_fetch(client)
            told.append(relative(found))
            for epoch in (1, 2):
                begin_fetch(client, 0, 0, (session_id, epoch))
                told.append(relative(end_fetch(client)[1]))
            deny(denied=False)
            begin_fetch(client, 0, 0, (session_id, 3))
            told.append(relative(end_fetch(client)[1]))
    return told


def test_a_fetch_that_waits_keeps_its_rights_and_the_next_one_has_new_ones(pair: Pair) -> None:
    ours, theirs = (waiting_fetches(broker) for broker in pair)
    denied = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1, False)
    assert ours == [[(0, 1, True)], [denied], [(0, 1, False)], [denied], [denied], [(0, 1, False)]]
    assert theirs == ours


def password_changes(broker: SecuredShim | SecuredKafka) -> dict[str, Any]:
    set_password(broker, "bob", "old")
    add_acl(broker, Rule(2, TOPIC, 4, principal="User:bob"))
    told: dict[str, Any] = {}
    with connect(broker, "bob", "old") as client, connect(broker, "bob", "old") as other:
        wait_until(lambda: produced(client) == 0, "written")
        with Load(broker, "bob", "old") as load:
            set_password(broker, "bob", "new")
            told["a new connection with the old password"] = logs_in(broker, "bob", "old")
            set_password(broker, "bob", None)
            told["a new connection after the deletion"] = logs_in(broker, "bob", "new")
            load.all_see({0})
        told["connections that exist"] = load.steps()
        told["produce on them"] = produced(client)
        for name, connection in (("the old password", client), ("the new password", other)):
            try:
                login("bob", name.split()[1]).log_in(connection)
            except WireClientError as err:
                told[f"re-authentication with {name}"] = str(err)
            try:
                told[f"then with {name}"] = produced(connection)
            except WireClientError:
                told[f"then with {name}"] = "closed"
    return told


def test_a_deleted_password_acts_at_the_next_authentication(pair: Pair) -> None:
    ours, theirs = (password_changes(broker) for broker in pair)
    assert ours["connections that exist"] == [[0]] * 4
    assert not ours["a new connection after the deletion"]
    assert ours["then with the old password"] == "closed"
    assert theirs == ours
