"""What people change by a console that lets them, and what tries to change something by one that does not."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.client.cluster import Cluster
from kafka_shim.client.offsets import commit_offsets, committed_offsets
from kafka_shim.console.app import Console
from kafka_shim.console.changes import CHANGES
from kafka_shim.console.sessions import Sessions
from kafka_shim.embedded import Broker
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.console.asking import console_of, get, request
from kafka_shim.tests.console.test_safety import OWN, SCRIPT, cookie_of, log_in
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection


@pytest.fixture
def console(broker: Broker) -> Iterator[Console]:
    made = console_of(broker, allows_changes=True)
    yield made
    made.close()


def post(console: Console, resource: str, status: int = 200, cookie: str = "", **asked: Any) -> Any:
    """What a change answers."""
    answer = request(console, f"/api/{resource}", "POST", json.dumps(asked).encode(), **OWN, Cookie=cookie)
    told = json.loads(answer.body)
    assert answer.status == status, told
    return told


def test_a_topic_is_made_changed_and_deleted(console: Console, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert post(console, "topic/new", name="t", partitions=3, configs={"retention.ms": "1000"}) == {"name": "t"}
    assert get(console, "topic", name="t")["partitionCount"] == 3
    post(console, "topic/configs", name="t", set={"max.message.bytes": "2000"}, remove=["retention.ms"])
    options = {one["name"]: one for one in get(console, "configs", name="t")["configs"]}
    assert (options["max.message.bytes"]["value"], options["retention.ms"]["source"]) == ("2000", "default")
    assert post(console, "topic/new", 409, name="t")["code"] == "TOPIC_ALREADY_EXISTS"
    assert post(console, "topic/configs", 409, name="t", set={"retention.ms": "x"})["code"] == "INVALID_CONFIG"
    assert post(console, "topic/delete", 400, name="t")["error"].startswith("confirm must be the same")
    assert post(console, "topic/delete", 400, name="t", confirm="T")["error"].startswith("confirm must be the same")
    assert get(console, "topic", name="t")["partitionCount"] == 3
    post(console, "topic/delete", name="t", confirm="t")
    assert get(console, "topic", 404, name="t")["code"] == "UNKNOWN_TOPIC_OR_PARTITION"
    said = [one.getMessage() for one in caplog.records if "by the console" in one.getMessage()]
    assert said == [
        "somebody made topic 't' by the console",
        "somebody changed options of topic 't': ['max.message.bytes', 'retention.ms'] by the console",
        "somebody deleted topic 't' by the console",
    ]


def test_a_record_is_written(console: Console, client: Connection) -> None:
    make_topic(client, "t", 2)
    raw = base64.b64encode(b"\xff\x00").decode()
    headers = [["h", "v"], ["h", None], [SCRIPT, {"base64": raw}]]
    told = post(console, "record/new", topic="t", key="k", value=SCRIPT, headers=headers, partition=1)
    assert told == {"topic": "t", "partition": 1, "offset": 0}
    assert post(console, "record/new", topic="t", partition=1, value=None)["offset"] == 1
    tombstone, row = get(console, "records", topic="t", partition=1)["records"]
    assert (row["key"]["text"], row["value"]["text"]) == ("k", SCRIPT)
    assert [(name, value and value["text"]) for name, value in row["headers"]] == [
        ("h", "v"),
        ("h", None),
        (SCRIPT, "ff 00"),
    ]
    assert (tombstone["key"], tombstone["value"]) == (None, None)
    # No topic is made by a record for one that is not there.
    assert post(console, "record/new", 404, topic="missing", value="x")["code"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert post(console, "record/new", 400, topic="t", partition=7, value="x")["error"] == "t has no partition 7"
    assert [one["name"] for one in get(console, "topics", internal="no")["topics"]] == ["t"]


def test_offsets_are_shown_first_and_moved_when_that_is_confirmed(
    console: Console, broker: Broker, client: Connection
) -> None:
    make_topic(client, "t", 1)
    for value in (b"a", b"b", b"c"):
        produce(client, "t", 0, batch(value))
    with Cluster(broker.bootstrap_servers) as cluster:
        commit_offsets(cluster, "g", {("t", 0): 2})
        for asked, offset in (
            ({"to": "earliest"}, 0),
            ({"to": "latest"}, 3),
            ({"to": "current"}, 2),
            ({"to": "shift", "value": -1}, 1),
            ({"to": "time", "value": 1 << 60}, 3),
            ({"to": "offset", "value": 99}, 3),
        ):
            told = post(console, "group/offsets", name="g", **asked)
            assert (told["isMade"], [one["offset"] for one in told["moves"]]) == (False, [offset]), asked
        assert told["moves"][0]["wanted"] == 99
        post(console, "group/offsets", 400, name="g", to="earliest", confirm="other")
        assert committed_offsets(cluster, "g") == {("t", 0): 2}
        assert post(console, "group/offsets", name="g", topic="t", to="earliest", confirm="g")["isMade"]
        assert committed_offsets(cluster, "g") == {("t", 0): 0}
    assert "has no offsets" in post(console, "group/offsets", 409, name="nobody", to="earliest")["error"]


def test_a_transaction_is_ended_by_force(console: Console, client: Connection) -> None:
    make_topic(client, "t", 1)
    Producer(client, "id").write(b"open")
    assert get(console, "transaction", name="id")["state"] == "Ongoing"
    post(console, "transaction/end", 400, name="id", confirm="")
    post(console, "transaction/end", name="id", confirm="id")
    assert get(console, "transaction", name="id")["state"] == "Empty"
    assert post(console, "transaction/end", 409, name="no", confirm="no")["code"] == "TRANSACTIONAL_ID_NOT_FOUND"


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": OWN["Origin"]},
        {"Content_Type": "application/json"},
        {**OWN, "Origin": "http://evil.example"},
        {**OWN, "Origin": "null"},
        {**OWN, "Sec_Fetch_Site": "cross-site"},
        {**OWN, "Sec_Fetch_Site": "same-site"},
        {**OWN, "Content_Type": "text/plain"},
        {**OWN, "Content_Type": "application/x-www-form-urlencoded"},
        {**OWN, "host": "evil.example:8080", "Origin": "http://evil.example:8080"},
    ],
)
def test_another_site_changes_nothing(
    console: Console, client: Connection, path: str, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    monkeypatch.setattr("kafka_shim.console.changes.make", lambda *asked: made.append(asked) or {})
    body = json.dumps({"name": "t", "confirm": "t", "topic": "t", "to": "earliest", "set": {"a": "b"}}).encode()
    assert request(console, path, "POST", body, **headers).status == 403
    assert made == []
    assert request(console, path, "POST", body, **OWN).status == 200
    assert len(made) == 1


@pytest.mark.parametrize("path", CHANGES)
def test_a_console_that_reads_refuses_each_change(broker: Broker, client: Connection, path: str) -> None:
    make_topic(client, "t", 1)
    console = console_of(broker)
    body = json.dumps({"name": "t", "confirm": "t", "topic": "t", "value": "x", "to": "earliest"}).encode()
    answer = request(console, path, "POST", body, **OWN)
    assert (answer.status, b"--allow-changes" in answer.body) == (405, True)
    assert get(console, "session")["mayChange"] is False
    assert [(one["name"], one["offsets"]) for one in get(console, "topics", internal="no")["topics"]] == [("t", 0)]
    console.close()


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_a_change_is_a_post(console: Console, path: str, method: str) -> None:
    """An address that a person follows or an image names changes nothing."""
    assert request(console, f"{path}?name=t&confirm=t&topic=t&value=x&to=earliest", method, **OWN).status == 405


@pytest.mark.parametrize(
    ("resource", "asked", "said"),
    [
        ("record/new", {}, "topic is a text"),
        ("record/new", {"topic": ["t"]}, "topic is a text"),
        ("record/new", {"topic": "t", "value": 7}, "value is text"),
        ("record/new", {"topic": "t", "value": {"base64": "%"}}, "value is text"),
        ("record/new", {"topic": "t", "value": {"base64": 1}}, "value is text"),
        ("record/new", {"topic": "t", "key": "\ud800"}, "key is text"),
        ("record/new", {"topic": "t", "headers": {"a": "b"}}, "headers is a list"),
        ("record/new", {"topic": "t", "headers": [["a"]]}, "headers is a list"),
        ("record/new", {"topic": "t", "headers": [["", "b"]]}, "a header has a name"),
        ("record/new", {"topic": "t", "partition": "0"}, "partition is a whole number"),
        ("record/new", {"topic": "t", "partition": 1 << 40}, "partition is a whole number"),
        ("topic/new", {"name": ""}, "name is a text"),
        ("topic/new", {"name": "x" * 9000}, "name is longer"),
        ("topic/new", {"name": "\ud800"}, "half a surrogate pair"),
        ("topic/new", {"name": "t", "partitions": True}, "partitions is a whole number"),
        ("topic/new", {"name": "t", "partitions": 0}, "partitions is a whole number"),
        ("topic/new", {"name": "t", "configs": {"a": 1}}, "configs is an object of texts"),
        ("topic/configs", {"name": "t"}, "set or remove names an option"),
        ("topic/configs", {"name": "t", "remove": "a"}, "remove is a list"),
        ("group/offsets", {"name": "g"}, "to is one of"),
        ("group/offsets", {"name": "g", "to": ["earliest"]}, "to is one of"),
        ("group/offsets", {"name": "g", "to": "offset"}, "value is a whole number"),
        ("group/offsets", {"name": "g", "to": "offset", "value": -1}, "value is a whole number"),
        ("group/offsets", {"name": "g", "to": "shift", "value": 1.5}, "value is a whole number"),
        ("transaction/end", {"name": "x", "confirm": ["x"]}, "confirm must be the same as name"),
    ],
)
def test_what_is_asked_is_checked(console: Console, resource: str, asked: dict[str, Any], said: str) -> None:
    assert said in post(console, resource, 400, **asked)["error"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 60000, b"\xff", b'"x"'])
def test_a_body_that_is_no_object_is_refused(console: Console, body: bytes) -> None:
    for path in CHANGES:
        assert request(console, path, "POST", body, **OWN).status == 400


def test_a_person_changes_what_their_acls_allow() -> None:
    acls = [{"principal": "User:alice", "operation": operation, "topic": "hers"} for operation in ("WRITE", "DESCRIBE")]
    users = {"alice": "secret", "root": "r-secret"}
    with Broker(sasl="SCRAM-SHA-512", users=users, acls=acls, super_users="User:root;User:ANONYMOUS") as broker:
        sessions = Sessions(broker.bootstrap_servers, {"security.protocol": "SASL_PLAINTEXT"})
        console = Console(sessions, allows_changes=True)
        post(console, "topic/new", 401, name="hers")
        root, alice = (cookie_of(log_in(console, *who)) for who in (("root", "r-secret"), ("alice", "secret")))
        for name in ("hers", "others"):
            post(console, "topic/new", cookie=root, name=name)
        assert post(console, "record/new", cookie=alice, topic="hers", value="x")["offset"] == 0
        for resource, asked in (
            ("record/new", {"topic": "others", "value": "x"}),
            ("topic/new", {"name": "third"}),
            ("topic/delete", {"name": "hers", "confirm": "hers"}),
            ("topic/configs", {"name": "hers", "set": {"retention.ms": "1"}}),
            ("group/offsets", {"name": "g", "topic": "hers", "to": "earliest", "confirm": "g"}),
            ("transaction/end", {"name": "id", "confirm": "id"}),
        ):
            assert post(console, resource, 403, cookie=alice, **asked)["code"].endswith("AUTHORIZATION_FAILED")
        console.close()
