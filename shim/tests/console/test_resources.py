"""Groups, transactions, configs, access, cluster and metrics as the console shows them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka_shim.client import overview
from kafka_shim.client.cluster import Cluster
from kafka_shim.client.offsets import commit_offsets
from kafka_shim.client.requests import make
from kafka_shim.console import metrics
from kafka_shim.console.app import Console
from kafka_shim.console.cluster import Cluster as AskedCluster
from kafka_shim.console.configs import plain
from kafka_shim.console.metrics import MetricsReader, described, sums_of
from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.console.asking import console_of, get, request, stranger
from kafka_shim.tests.console.test_safety import OWN
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection


def test_groups_of_all_kinds_have_their_lag(console: Console, broker: Broker, client: Connection) -> None:
    make_topic(client, "t", 2)
    for partition in (0, 1):
        produce(client, "t", partition, batch(b"1", b"2", b"3"))
    with Cluster(broker.bootstrap_servers) as cluster:
        commit_offsets(cluster, "old", {("t", 0): 1, ("t", 1): 3})
        cluster.coordinator("new")
    member = "AAAAAAAAAAAAAAAAAAAAAA"
    for api, group in (("ConsumerGroupHeartbeat", "new"), ("ShareGroupHeartbeat", "shared")):
        fields = {"rebalance_timeout_ms": 1000, "topic_partitions": []} if group == "new" else {}
        joined = client.request(
            make(api, group_id=group, member_id=member, member_epoch=0, subscribed_topic_names=["t"], **fields)
        )
        assert joined.error_code == 0
    found = {one["name"]: (one["kind"], one["lag"], one["partitions"]) for one in get(console, "groups")["groups"]}
    assert found["old"] == ("classic", 2, 2)
    assert (found["new"][0], found["shared"][0]) == ("consumer", "share")
    assert [one["name"] for one in get(console, "groups", kind="share")["groups"]] == ["shared"]
    old = get(console, "group", name="old")
    assert [(one["partition"], one["committed"], one["end"], one["lag"]) for one in old["offsets"]] == [
        (0, 1, 3, 2),
        (1, 3, 3, 0),
    ]
    new = get(console, "group", name="new")
    assert (new["kind"], new["memberCount"], {one["member"] for one in new["offsets"]}) == ("consumer", 1, {member})
    assert get(console, "group", name="shared")["members"][0]["id"] == member
    assert get(console, "group", 409, name="none")["code"] == "GROUP_ID_NOT_FOUND"


def test_a_transaction_says_what_it_holds_back_and_why(console: Console, client: Connection) -> None:
    make_topic(client, "t", 2)
    assert get(console, "held")["partitions"] == []
    first, second, third = (Producer(client, name) for name in ("first", "second", "third"))
    first.write(b"1")
    second.write(b"2")
    third.write(b"3", partition=1)
    produce(client, "t", 0, batch(b"plain"))
    one, two = (get(console, "transaction", name=name) for name in ("first", "second"))
    assert (one["state"], one["held"]) == (
        "Ongoing",
        [{"topic": "t", "partition": 0, "start": 0, "lastStable": 0, "latest": 3, "isFirst": True}],
    )
    assert [(each["start"], each["lastStable"], each["isFirst"]) for each in two["held"]] == [(1, 0, False)]
    assert "Ongoing" in one["explain"]
    rows = get(console, "held")["partitions"]
    assert [(row["partition"], row["latest"] - row["lastStable"]) for row in rows] == [(0, 3), (1, 1)]
    assert [each["name"] for each in rows[0]["open"]] == ["first", "second"]
    ongoing = get(console, "transactions", state="Ongoing")["transactions"]
    assert [(row["name"], row["partitions"]) for row in ongoing] == [
        ("first", ["t-0"]),
        ("second", ["t-0"]),
        ("third", ["t-1"]),
    ]
    remembered = get(console, "producers", topic="t")["producers"]
    assert [(row["partition"], row["producer"], row["start"]) for row in remembered] == [
        (0, first.producer_id, 0),
        (0, second.producer_id, 1),
        (1, third.producer_id, 0),
    ]
    for producer in (first, second, third):
        producer.end(commit=True)
    assert get(console, "held")["count"] == 0
    assert get(console, "transaction", 409, name="none")["code"] == "TRANSACTIONAL_ID_NOT_FOUND"


def test_options_say_where_they_come_from(console: Console, client: Connection) -> None:
    make_topic(client, "t", 1, retention_ms="1234")
    configs = {one["name"]: one for one in get(console, "configs", kind="topic", name="t")["configs"]}
    changed = configs["retention.ms"]
    assert (changed["value"], changed["source"], changed["isDefault"]) == ("1234", "topic", False)
    assert configs["cleanup.policy"]["isDefault"]
    brokers = {one["name"]: one for one in get(console, "configs", kind="broker", name="1")["configs"]}
    assert brokers["num.partitions"]["value"] == "2"
    get(console, "configs", 400, kind="user", name="x")


@pytest.mark.parametrize(
    ("documentation", "shown"),
    [
        ('markers for <a href="#compaction">log compacted</a> topics.', "markers for log compacted topics."),
        ("One.<p>Two:<ul>\n  <li>a</li><li><code>b</code></li></ul>", "One. Two: a b"),
        ("less than: a < b, &lt;a&gt; &amp; &quot;b&quot;", 'less than: a < b, <a> & "b"'),
    ],
)
def test_documentation_of_apache_kafka_is_shown_without_its_tags(documentation: str, shown: str) -> None:
    assert plain(documentation) == shown


def test_offsets_beyond_the_end_take_nothing_from_the_lag_of_others(console: Console, broker: Broker) -> None:
    """The page of the group had another lag than the list of groups."""
    broker.create_topic("t", 2)
    broker.produce("t", "a", partition=0)
    with broker.cluster() as cluster:
        commit_offsets(cluster, "g", {("t", 0): 0, ("t", 1): 15})
    group = get(console, "group", name="g")
    assert [one["lag"] for one in group["offsets"]] == [1, 0]
    assert [group["lag"]] == [one["lag"] for one in get(console, "groups")["groups"]] == [1]


@pytest.mark.usefixtures("looked_up")
def test_how_far_a_share_group_is_behind(console: Console, client: Connection) -> None:
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"a", b"b", b"c"))
    topics = [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    assert not client.request(make("AlterShareGroupOffsets", group_id="shared", topics=topics)).error_code
    group = get(console, "group", name="shared")
    row = {"topic": "t", "partition": 0, "committed": 1, "end": 3, "lag": 2, "member": ""}
    assert (group["kind"], group["lag"], group["offsets"]) == ("share", 2, [row])


def test_the_cluster_is_shown(console: Console, client: Connection) -> None:
    make_topic(client, "t", 3)
    cluster = get(console, "cluster")
    (broker,) = cluster["brokers"]
    assert (cluster["topics"], cluster["partitions"], broker["leads"], cluster["controller"]) == (1, 3, 3, 1)
    assert broker["disks"][0]["total"] > 0
    assert "metadata.version" in cluster["features"]


def test_who_may_do_what(console: Console, client: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.console.access.MOST_ROWS", 1)
    note = get(console, "acls")["note"]
    assert "no authorizer" in note
    assert get(console, "users") == {"users": [], "count": 0, "note": ""}
    entity = [{"entity_type": "user", "entity_name": None}]
    quota = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 1024.0, "remove": False}]}
    assert client.request(make("AlterClientQuotas", entries=[quota])).entries[0].error_code == 0
    assert get(console, "quotas")["quotas"] == [{"entity": "user (default)", "quotas": ["producer_byte_rate = 1024"]}]


def test_acls_and_users_of_a_broker_that_has_them() -> None:
    acls = [{"principal": "User:alice", "operation": "READ", "topic": "her", "pattern": "prefixed"}]
    with Broker(acls=acls, super_users="User:ANONYMOUS") as broker:
        console = console_of(broker)
        (row,) = get(console, "acls", filter="ALICE")["acls"]
        assert row == {
            "principal": "User:alice",
            "permission": "ALLOW",
            "operation": "READ",
            "kind": "topic",
            "resource": "her",
            "pattern": "prefixed",
            "host": "*",
        }
        assert get(console, "acls", filter="bob")["count"] == 0
        console.close()
    with Broker(sasl="SCRAM-SHA-256", users={"alice": "secret"}, listen="PLAINTEXT://127.0.0.1:0") as broker:
        console = console_of(broker)
        told = get(console, "users")["users"]
        assert told == [{"name": "alice", "credentials": ["SCRAM-SHA-256, 4096 iterations"]}]
        console.close()


def test_metrics_are_summed_over_their_labels() -> None:
    with Broker(kafka_shim_http_listener="127.0.0.1:0") as broker:
        console = console_of(broker, read_metrics=MetricsReader(f"{broker.state.http_address}/metrics"))
        with Connection(broker.bootstrap_servers) as client:
            for name in ("a", "b"):
                make_topic(client, name, 1)
                produce(client, name, 0, batch(b"x"))
        sums = get(console, "metrics")["sums"]
        assert sums["kafka_server_brokertopicmetrics_messagesin_total"] == 2
        assert sums["process_resident_memory_bytes"] > 1e6
        assert len(sums) < 100
        console.close()
    assert get(console, "metrics", 502)["error"].startswith("no metrics at")
    assert sums_of('kafka_a{x="1"} 1\nkafka_a{x="}"} 2.5\nkafka_b_bucket 3\nother 4\nkafka_c NaN\n') == {"kafka_a": 3.5}


@pytest.mark.parametrize(
    ("told", "said"),
    [(b"220 ready\r\n", "no metrics at"), (b"HTTP/1.0 200 OK\r\n\r\nkafka_a 1\n", "have more than")],
)
def test_what_is_no_answer_with_metrics_is_told(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, told: bytes, said: str
) -> None:
    monkeypatch.setattr(metrics, "LARGEST_ANSWER_BYTES", 5)
    with stranger(told) as address:
        console = console_of(broker, read_metrics=MetricsReader(address))
        assert said in get(console, "metrics", 502)["error"]
        console.close()


def test_the_metrics_of_the_broker_that_serves_the_console_are_sums() -> None:
    assert described(lambda: b'kafka_a{x="1"} 1\nkafka_a{x="2"} 2\n') == {"sums": {"kafka_a": 3.0}}


def test_all_topics_of_a_large_cluster_are_asked_for_now_and_then(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_shim.console.cluster.LONGEST_PAUSE_S", 3600.0)
    monkeypatch.setattr("kafka_shim.console.cluster.PAUSE_FACTOR", 1e9)
    console = console_of(broker, allows_changes=True)

    def asked() -> int:
        return int(broker.call(lambda: broker.state.metrics.requests[MetadataRequest.API_KEY]))

    def names(**how: object) -> list[str]:
        return [one["name"] for one in get(console, "topics", **how)["topics"]]

    make_topic(client, "a")
    assert names() == ["a"]
    make_topic(client, "b")
    assert names() == ["a", "b"], "a small cluster is asked each time"
    monkeypatch.setattr("kafka_shim.console.cluster.LARGE_TOPICS", 2)
    assert names() == ["a", "b"]
    before = asked()
    assert (names(), names(filter="b"), names(start=1)) == (["a", "b"], ["b"], ["b"])
    assert asked() == before
    words = json.dumps({"name": "c"}).encode()
    assert request(console, "/api/topic/new", "POST", words, **OWN).status == 200
    assert names() == ["a", "b", "c"], "what is changed here is seen here"
    console.close()


class OvertakenCluster(AskedCluster):
    """A change is made while the broker answers."""

    def ask(self, *arguments: Any, **named: Any) -> Any:
        answer = super().ask(*arguments, **named)
        self.forget()
        return answer


def test_an_answer_that_a_change_has_overtaken_is_not_kept(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_shim.console.cluster.LARGE_TOPICS", 0)
    monkeypatch.setattr("kafka_shim.console.cluster.PAUSE_FACTOR", 1e9)
    cluster = OvertakenCluster(broker.bootstrap_servers)
    assert cluster.metadata(None).topics == []
    make_topic(client, "a")
    assert [one.name for one in cluster.metadata(None).topics] == ["a"]
    cluster.close()


def test_no_question_holds_a_broker_for_long(
    console: Console, broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request with many entries is what another client's record waits for: of each kind so many entries at most as
    take a broker 0.1 ms or little more."""
    topics = [{"name": f"t{number:03}", "num_partitions": 1, "replication_factor": 1} for number in range(120)]
    client.request(make("CreateTopics", topics=topics, timeout_ms=60_000))
    with Cluster(broker.bootstrap_servers) as cluster:
        for number in range(45):
            names = [f"t{(number * 3 + each) % 120:03}" for each in range(3)]
            commit_offsets(cluster, f"g{number:02}", dict.fromkeys([(name, 0) for name in names], 0))
    entries: dict[str, list[int]] = {}
    send = Connection.send

    def noted(self: Connection, message: Any, version: int) -> int:
        known = {
            "ListOffsetsRequest": lambda: sum(len(topic.partitions) for topic in message.topics),
            "OffsetFetchRequest": lambda: len(message.groups),
            "FindCoordinatorRequest": lambda: len(message.coordinator_keys),
            "DescribeLogDirsRequest": lambda: len(message.topics or ()),
            "MetadataRequest": lambda: len(message.topics or ()),
        }
        name = type(message).__name__
        if name in known:
            entries.setdefault(name, []).append(known[name]())
        return send(self, message, version)

    monkeypatch.setattr(Connection, "send", noted)
    assert len(get(console, "topics", limit=500, internal="no")["topics"]) == 120
    assert [one["partitions"] for one in get(console, "groups", limit=200)["groups"]] == [3] * 45
    get(console, "held")
    with Cluster(broker.bootstrap_servers) as cluster:
        seen = overview.look(cluster)
    assert [one.lag for one in seen.groups] == [0] * 45
    assert {name: max(of) for name, of in entries.items()} == {
        "ListOffsetsRequest": 20,
        "OffsetFetchRequest": 5,
        "FindCoordinatorRequest": 20,
        "DescribeLogDirsRequest": 20,
        "MetadataRequest": 50,
    }
