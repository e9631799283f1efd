"""Most OffsetCommits are served from frame to frame in `cext.plain_commits`. It must do what the handler does."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.api import TABLE, k08_offset_commit
from kafka_shim.cext import segment as cext_segment
from kafka_shim.cext.plain_commits import MOST_OFFSETS
from kafka_shim.clock import VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.group.groups import Groups
from kafka_shim.group.timers import Timers
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets.requests import make, protocols
from kafka_shim.tests.frames import FrameClient, counted
from kafka_shim.tests.odd_requests import OddRequests
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection

COMMIT = TABLE[8]
NOW_MS = 1_700_000_000_000
SESSION_MS = 600_000
PARTITIONS = 3
REQUESTS = 600
MARK = "fails?"
UNKNOWN_ID = bytes(15) + b"\7"


@pytest.fixture(autouse=True)
def _loaded() -> Iterator[None]:
    if not COMMIT.is_loaded:
        COMMIT.load()
    yield
    COMMIT.plain, COMMIT.handle = k08_offset_commit.PLAIN, k08_offset_commit.handle


def join(client: Connection, group: str, instance_id: str | None = None, *, is_synced: bool = True) -> dict[str, Any]:
    """A member of a classic group, which is stable unless nobody has said who gets what."""
    fields: dict[str, Any] = {
        "group_id": group,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": SESSION_MS,
        "protocol_type": "consumer",
        "protocols": protocols("range"),
        "group_instance_id": instance_id,
    }
    given = client.request(make("JoinGroup", **fields), 5)
    if given.error_code:  # the member id comes first
        given = client.request(make("JoinGroup", member_id=given.member_id, **fields), 5)
    who = {"group_id": group, "generation_id": given.generation_id, "member_id": given.member_id}
    if is_synced:
        assert client.request(make("SyncGroup", **who, group_instance_id=instance_id), 3).error_code == 0
    return {"group_id": group, "epoch": given.generation_id, "member_id": given.member_id, "instance_id": instance_id}


def join_modern(client: Connection, group: str) -> dict[str, Any]:
    """A member of a consumer group."""
    first = {"member_epoch": 0, "rebalance_timeout_ms": 30_000, "topic_partitions": [], "subscribed_topic_names": ["t"]}
    joined = client.request(make("ConsumerGroupHeartbeat", group_id=group, member_id="m", **first), 1)
    assert joined.error_code == 0
    return {"group_id": group, "epoch": joined.member_epoch, "member_id": "m", "instance_id": None}


class Traffic(OddRequests):
    """What consumers commit: mostly what is right, and wrong in everything now and then."""

    def __init__(self, client: Connection, seed: int) -> None:
        super().__init__(seed)
        self.ids = {name: make_topic(client, name, PARTITIONS) for name in ("t", "u")}
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["any"]), 4)
        nobody = {"epoch": -1, "member_id": "", "instance_id": None}
        self.members = [{"group_id": f"simple-{number}", **nobody} for number in range(4)]
        self.members += [join(client, "classic"), join(client, "static", "one"), join(client, "é")]
        self.members += [join_modern(client, "modern"), join_modern(client, "modern-2")]
        self.members.append(join(client, "completing", is_synced=False))

    def _partition(self) -> dict[str, Any]:
        some = self.chance.choice([None, "", "m", "metadata " * 9, MARK, MARK])
        return {
            "partition_index": self._rarely(self.chance.choice([-1, PARTITIONS]), self.chance.randrange(PARTITIONS)),
            "committed_offset": self._rarely(-1, self.chance.randrange(1 << 40)),
            "committed_leader_epoch": self.chance.choice([-1, 0, 7]),
            "committed_metadata": self._rarely(self.chance.choice(["é", "x" * 2048, "x" * 2049, "x" * 5000]), some),
        }

    def frame(self, version: int) -> bytes:
        who = dict(self.chance.choice(self.members))
        who["epoch"] += self._rarely(self.chance.choice([1, -1, 5]), 0, 0.05)
        who["member_id"] = self._rarely(self.chance.choice(["", "nobody", "é"]), who["member_id"], 0.03)
        who["group_id"] = self._rarely(self.chance.choice(["", "nowhere", "modern"]), who["group_id"], 0.03)
        who["instance_id"] = self._rarely(self.chance.choice(["one", "two", ""]), who["instance_id"], 0.03)
        topics = []
        for _ in range(self.chance.choice([1, 1, 1, 2])):
            name = self._rarely(
                self.chance.choice(["nowhere", "é", "", GROUP_METADATA_TOPIC]), self.chance.choice("tu")
            )
            rows = [self._partition() for _ in range(self.chance.choice([1, 1, 2, 4]))]
            topic = {"partitions": self._rarely([], rows, 0.01)}
            topics.append({**topic, **self._named(name, version)})
        fields: dict[str, Any] = {
            "group_id": who["group_id"],
            "generation_id_or_member_epoch": who["epoch"],
            "member_id": who["member_id"],
            "topics": self._rarely([], topics, 0.01),
        }
        if version >= 7:
            fields["group_instance_id"] = who["instance_id"]
        if version <= 4:
            fields["retention_time_ms"] = self.chance.choice([-1, -1, 0, 60_000, (1 << 63) - 1])
        frame = encode_request_frame(make("OffsetCommit", **fields), version, 7, self._rarely("é", "client"))
        return self._bent(frame)

    def _named(self, name: str, version: int) -> dict[str, Any]:
        return {"topic_id": self.ids.get(name, UNKNOWN_ID)} if version >= 10 else {"name": name}


def state_of(broker: Broker) -> dict[str, Any]:
    names = ("offset", "leader_epoch", "metadata", "commit_ms", "expire_ms", "topic_id", "record_offset")
    found: dict[str, Any] = {}
    runtime = broker.state.groups._runtime
    for partition, groups in runtime.loader.by_partition.items():
        assert groups.is_current
        stored = [
            (group_id, topic, index, [getattr(committed, name) for name in names])
            for group_id in groups.offsets.group_ids()
            for topic, of_topic in groups.offsets.of_group(group_id).items()
            for index, committed in of_topic.items()
        ]
        found[f"groups {partition}"] = stored, [(one.group_id, one.state_name) for one in groups.by_id.values()]
    found["timers"] = {key: (one.due_ms, one.delay_ms) for key, one in runtime.timers._entries.items()}
    for key, log in broker.state.logs.partitions.loaded.items():
        sizes = [(one.base_offset, one.size_bytes, one.max_timestamp()) for one in log.segments]
        counts = log.appended_records, log.appended_bytes, log.log_end_offset, log.is_offline
        found["-".join(map(str, key))] = sizes, counts
    found["metrics"] = broker.state.metrics.appended_bytes, dict(broker.state.metrics.requests)
    return found


def files_of(data_dir: Path) -> dict[str, bytes]:
    suffixes = {".log", ".index", ".timeindex", ".txnindex"}
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in data_dir.rglob("*")
        if path.suffix in suffixes and path.parent.name.startswith(GROUP_METADATA_TOPIC)
    }


def failing_now_and_then(append: Any, seed: int) -> Any:
    """Of the writes of offsets, by what they write: the same ones whatever else is written."""
    chance = random.Random(seed)

    def put(fd: int, buffers: Any) -> int:
        if any(MARK.encode() in bytes(one) for one in buffers) and chance.random() < 0.03:
            raise chance.choice([OSError(errno.EIO, "no"), OSError(errno.ENOSPC, "full"), MemoryError(), ValueError()])
        return append(fd, buffers)  # type: ignore[no-any-return]

    return put


@pytest.mark.parametrize("seed", range(4))
def test_answers_states_and_files_are_those_of_the_handler(tmp_path, monkeypatch, seed):
    """Simple consumers and members of both protocols, in all versions, whose writes fail now and then."""
    left: list[Any] = []
    for is_short in (True, False):
        data_dir = tmp_path / str(is_short)
        with (
            Broker(clock=VirtualClock(NOW_MS, seed), data_dir=data_dir) as broker,
            Connection(broker.bootstrap_servers, timeout_s=60) as admin,
        ):
            traffic, client = Traffic(admin, seed), FrameClient(broker)
            with counted(k08_offset_commit, is_short) as ways, monkeypatch.context() as patch:
                patch.setattr(cext_segment, "append", failing_now_and_then(cext_segment.append, seed))
                for number in range(REQUESTS):
                    client.send(traffic.frame(2 + number % 9))
                    if number % 10 == 9:
                        broker.clock.advance(0.5)
                        broker.call(broker.state.logs.reopen_offline)
            client.close()
            left.append((client.answers, broker.call(state_of, broker)))
        left[-1] += (files_of(data_dir),)
        if is_short:
            assert REQUESTS - ways["handler"] - ways["rest"] > 250, ways
            assert ways["rest"] > 3, ways
    (answers, state, files), (other_answers, other_state, other_files) = left
    assert answers == other_answers
    assert state == other_state
    assert files == other_files
    assert any(files.values())


@pytest.fixture
def member(client: Connection) -> dict[str, Any]:
    make_topic(client, "t", 1)
    client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
    return join(client, "g")


def request_of(who: dict[str, Any], partitions: int = 1, **fields: Any) -> Any:
    rows = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}] * partitions
    topics = [{"name": "t", "partitions": rows}]
    epoch = who["epoch"]
    return make(
        "OffsetCommit",
        **{
            "group_id": who["group_id"],
            "generation_id_or_member_epoch": epoch,
            "member_id": who["member_id"],
            "topics": topics,
            **fields,
        },
    )


def codes_of(answer: Any) -> set[int]:
    return {row.error_code for topic in answer.topics for row in topic.partitions}


@pytest.mark.parametrize("version", range(2, 11))
def test_each_version_is_served(client, member, version):
    topic_id = make_topic(client, "v", 1)
    rows = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": None}]
    topics = [{"topic_id": topic_id, "partitions": rows} if version >= 10 else {"name": "v", "partitions": rows}]
    client.request(request_of(member), 8)  # opens the segment
    with counted(k08_offset_commit, is_short=True) as ways:
        assert codes_of(client.request(request_of(member, topics=topics), version)) == {0}
    assert not ways
    fetched = client.request(make("OffsetFetch", groups=[{"group_id": "g", "topics": None}]), 8)
    ((row,),) = (topic.partitions for topic in fetched.groups[0].topics if topic.name == "v")
    assert (row.committed_offset, row.metadata) == (5, "")


@pytest.mark.parametrize("count", [MOST_OFFSETS, MOST_OFFSETS + 1])
def test_a_request_of_many_partitions(client, member, count):
    client.request(request_of(member), 8)
    with counted(k08_offset_commit, is_short=True) as ways:
        assert codes_of(client.request(request_of(member, count), 8)) == {0}
    assert ways == ({} if count <= MOST_OFFSETS else {"handler": 1})


@pytest.mark.parametrize(
    ("place", "error", "code", "is_stored"),
    [
        ((cext_segment, "append"), OSError(errno.ENOSPC, "full"), ErrorCode.NOT_COORDINATOR, False),
        ((cext_segment, "append"), MemoryError(), ErrorCode.NOT_COORDINATOR, False),
        ((Groups, "commit_all"), MemoryError(), ErrorCode.NOT_COORDINATOR, True),
        ((Groups, "commit_all"), ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR, False),
        ((Timers, "move"), MemoryError(), ErrorCode.UNKNOWN_SERVER_ERROR, True),
    ],
)
@pytest.mark.parametrize("is_short", [True, False])
def test_what_fails_is_answered_as_by_the_handler(
    broker, client, member, monkeypatch, place, error, code, is_stored, is_short
):
    client.request(request_of(member, topics=[]), 8)

    def fail(*_):
        raise error

    with counted(k08_offset_commit, is_short) as ways:
        with monkeypatch.context() as patch:
            patch.setattr(*place, fail)
            assert codes_of(client.request(request_of(member), 8)) == {code}
        assert ways == {"rest" if is_short else "handler": 1}
    broker.call(broker.state.logs.reopen_offline)
    fetched = client.request(make("OffsetFetch", groups=[{"group_id": "g", "topics": None}]), 8)
    assert bool(fetched.groups[0].topics) == is_stored
    assert all(groups.is_current for groups in broker.state.groups._runtime.loader.by_partition.values())


def test_it_is_left_to_the_handler_with_a_codec_a_fault_or_a_partition_that_was_not_read(broker, client, member):
    client.request(request_of(member), 8)
    with counted(k08_offset_commit, is_short=True) as ways:
        client.request(request_of(member), 8)
        assert not ways
        broker.faults.arm("request.received", "hold", where={"api_key": 99}, nth=1)
        client.request(request_of(member), 8)
        assert ways == {"handler": 1}
        broker.faults.disarm("request.received")
        loader = broker.state.groups._runtime.loader
        for groups in list(loader.by_partition.values()):
            groups.is_current = False
        assert codes_of(client.request(request_of(member), 8)) == {0}
        assert ways == {"handler": 2}
        client.request(request_of(member), 8)
        assert ways == {"handler": 2}


def test_a_broker_with_metrics_counts_its_answers():
    counts = []
    for is_short in (True, False):
        with (
            Broker(kafka_shim_http_listener="127.0.0.1:0") as broker,
            Connection(broker.bootstrap_servers, timeout_s=60) as client,
        ):
            make_topic(client, "t", 1)
            client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
            who = {"group_id": "g", "epoch": -1, "member_id": ""}
            client.request(request_of(who), 8)
            with counted(k08_offset_commit, is_short) as ways:
                for partitions in (1, 3):
                    assert codes_of(client.request(request_of(who, partitions), 8)) == {0}
            assert bool(ways) is not is_short
            times = broker.call(lambda served=broker: served._server._dispatcher.times[8])
            counts.append((times.errors, times.total.count, broker.call(lambda b=broker: b.state.metrics.requests[8])))
    assert counts[0] == counts[1] == ({0: 5}, 3, 3)
