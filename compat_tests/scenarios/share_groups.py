"""Row C19, share groups (KIP-932): what members get, acknowledge and lose; the answers of both brokers are the same."""

from __future__ import annotations

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, Producer, ScenarioClient, name_of, records_of
from kafka_shim.targets import Power
from kafka_shim.targets.requests import make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from kafka_shim.compat.scenarios.scenario_client import Parked

    # First offset, last offset, acknowledge types.
    Acks = Sequence[tuple[int, int, Sequence[int]]]

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP_RESOURCE = 32
# Long enough for what happens meanwhile, on a slow machine too: so long waits what is woken, and what its time ends.
WOKEN_MS, ENDED_MS = 60_000, 10_000
# Short locks; brokers start with bounds that allow them.
LOCKS = {"group.share.min.record.lock.duration.ms": "1000"}


class Member:
    """A member of a share group with its own share session."""

    def __init__(self, t: ScenarioClient, group: str, name: str, topic: str) -> None:
        self.t = t
        self.group = group
        self.name = t.name(name)
        self.topic = topic
        self.topic_id = t.topic_id(topic)
        t.rename(self.topic_id, "id of the topic")
        self.epoch = 0

    def join(self) -> Member:
        """Looks up the coordinator, then heartbeats until the group has given the member its partitions."""
        self.t.quietly("FindCoordinator", 4, key_type=0, coordinator_keys=[self.group])

        def has_partitions() -> bool:
            answer = self.t.quietly(
                "ShareGroupHeartbeat",
                1,
                group_id=self.group,
                member_id=self.name,
                member_epoch=0,
                subscribed_topic_names=[self.topic],
            )
            return not answer.error_code and bool(answer.assignment and answer.assignment.topic_partitions)

        self.t.wait(has_partitions, f"{self.name} has partitions")
        return self

    def fetch_fields(self, acks: Acks = (), **how: Any) -> dict[str, Any]:
        batches = [{"first_offset": a, "last_offset": b, "acknowledge_types": list(c)} for a, b, c in acks]
        part = {"partition_index": 0, "acknowledgement_batches": batches}
        return {
            "group_id": self.group,
            "member_id": self.name,
            "share_session_epoch": self.epoch,
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": [{"topic_id": self.topic_id, "partitions": [part]}],
            **how,
        }

    def fetch(self, acks: Acks = (), **how: Any) -> Any:
        """A ShareFetch; its answer is noted."""
        answer = self.t.ask("ShareFetch", 2, **self.fetch_fields(acks, **how))
        self._count(answer)
        return answer

    def poll(self, acks: Acks = (), **how: Any) -> list[tuple[int, int, int]]:
        """Fetches until there are records; (first offset, last offset, delivery count) of what the member got."""
        given = acks
        found: list[Any] = []

        def has_records() -> bool:
            nonlocal given
            answer = self.t.quietly("ShareFetch", 2, **self.fetch_fields(given, **how))
            self.t.error(answer, NONE)
            self._count(answer)
            given = ()
            found[:] = [one for topic in answer.responses for one in topic.partitions if one.acquired_records]
            return bool(found)

        self.t.wait(has_records, f"records for {self.name}")
        (part,) = found
        got = [(one.first_offset, one.last_offset, one.delivery_count) for one in part.acquired_records]
        values = [record.value.decode() for record, batch in records_of(part.records) if not batch.is_control]
        self.t.note("ShareFetch until there are records", self.name, self.t.plain([got, values]))
        return got

    def has_nothing(self) -> None:
        """Fetches once; there is nothing for the member."""
        answer = self.fetch()
        self.t.error(answer, NONE)
        got = [one for topic in answer.responses for part in topic.partitions for one in part.acquired_records]
        self.t.same(got, [], f"records for {self.name}")

    def acknowledge(self, *acks: tuple[int, int, Sequence[int]], **how: Any) -> str:
        """A ShareAcknowledge; the name of the partition's error."""
        batches = [{"first_offset": a, "last_offset": b, "acknowledge_types": list(c)} for a, b, c in acks]
        part = {"partition_index": 0, "acknowledgement_batches": batches}
        answer = self.t.ask(
            "ShareAcknowledge",
            2,
            **{
                "group_id": self.group,
                "member_id": self.name,
                "share_session_epoch": self.epoch,
                "topics": [{"topic_id": self.topic_id, "partitions": [part]}],
                **how,
            },
        )
        self._count(answer)
        return name_of(answer.error_code or answer.responses[0].partitions[0].error_code)

    def _count(self, answer: Any) -> None:
        if not answer.error_code and self.epoch >= 0:
            self.epoch += 1


def group_of(t: ScenarioClient, **options: str) -> str:
    """A group that reads from the start of the log."""
    group = t.name("g")
    options = {
        "share.auto.offset.reset": "earliest",
        **{name.replace("_", "."): each for name, each in options.items()},
    }
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in options.items()]
    row = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": configs}
    answer = t.quietly("IncrementalAlterConfigs", 1, resources=[row])
    t.error(answer.responses[0], NONE, "options of the group")
    return group


@scenario("C19")
def each_record_has_one_member(t: ScenarioClient) -> None:
    """A record belongs to one member until it is released; accepted and rejected ones are never delivered again."""
    topic, group = t.topic(), group_of(t)
    t.produce(topic, [b"a", b"b", b"c"])
    one, two = Member(t, group, "m1", topic).join(), Member(t, group, "m2", topic).join()
    t.same(one.poll(), [(0, 2, 1)], "all of it")
    two.has_nothing()
    t.same(one.acknowledge((0, 0, [ACCEPT]), (1, 1, [RELEASE]), (2, 2, [REJECT])), NONE, "acknowledged")
    t.same(two.poll(), [(1, 1, 2)], "what was released")
    t.same(one.acknowledge((1, 1, [ACCEPT])), "INVALID_RECORD_STATE", "another's record")
    t.same(two.acknowledge((1, 1, [ACCEPT])), NONE, "its own")
    t.same(two.acknowledge((1, 1, [ACCEPT])), NONE, "below the start offset nothing is checked")
    two.has_nothing()


@scenario("C19")
def acknowledgements_travel_with_fetches(t: ScenarioClient) -> None:
    """A ShareFetch carries out its acknowledgements first, and says what became of them."""
    topic, group = t.topic(), group_of(t)
    t.produce(topic, [b"a", b"b", b"c", b"d"])
    one = Member(t, group, "m1", topic).join()
    t.same(one.poll(), [(0, 3, 1)], "all of it")
    t.same(one.poll([(0, 3, [ACCEPT, RELEASE, 0, RELEASE])]), [(1, 1, 2), (3, 3, 2)], "released in the same request")
    answer = one.fetch([(0, 0, [ACCEPT]), (7, 9, [ACCEPT])])
    t.same(name_of(answer.responses[0].partitions[0].acknowledge_error_code), "INVALID_REQUEST", "never acquired")


@scenario("C19")
def sessions_have_epochs(t: ScenarioClient) -> None:
    """Epochs of share sessions, and what fails without one."""
    topic, group = t.topic(), group_of(t)
    t.produce(topic, [b"a"])
    one = Member(t, group, "m1", topic).join()
    one.epoch = 3
    t.error(one.fetch(), "SHARE_SESSION_NOT_FOUND")
    t.same(one.acknowledge((0, 0, [ACCEPT])), "SHARE_SESSION_NOT_FOUND", "acknowledge")
    one.epoch = 0
    t.error(one.fetch([(0, 0, [ACCEPT])]), "INVALID_REQUEST")
    t.same(one.acknowledge((0, 0, [ACCEPT])), "INVALID_SHARE_SESSION_EPOCH", "acknowledge opens none")
    t.same(one.poll(), [(0, 0, 1)], "a session")
    one.epoch += 4
    t.error(one.fetch(), "INVALID_SHARE_SESSION_EPOCH")
    one.epoch = -1
    t.error(one.fetch(max_wait_ms=0), NONE, "the session is closed")
    t.error(one.fetch(max_wait_ms=0), "SHARE_SESSION_NOT_FOUND")
    one.epoch = 0
    t.same(one.poll(), [(0, 0, 2)], "what the closed session had")
    for member_id in ("", "m" * 37):
        t.error(one.fetch(member_id=member_id), "INVALID_REQUEST", "member id")


@scenario("C19")
def malformed_acknowledgements_are_refused(t: ScenarioClient) -> None:
    """Each partition's acknowledgements are checked as a whole."""
    topic, group = t.topic(), group_of(t)
    t.produce(topic, [b"a", b"b", b"c"])
    one = Member(t, group, "m1", topic).join()
    one.poll()
    acks: Acks
    for acks in (
        [(2, 1, [ACCEPT])],
        [(0, 1, [])],
        [(0, 2, [ACCEPT, ACCEPT])],
        [(0, 0, [9])],
        [(0, 0, [RENEW])],
        [(2, 2, [ACCEPT]), (0, 0, [ACCEPT])],
        [(0, 9, [ACCEPT])],
    ):
        t.same(one.acknowledge(*acks), "INVALID_REQUEST", str(acks))
    t.same(one.acknowledge((0, 0, [ACCEPT]), (0, 1, [ACCEPT])), "INVALID_RECORD_STATE", "one offset twice")
    t.same(one.acknowledge((0, 2, [ACCEPT])), NONE, "nothing of these was carried out")


@scenario("C19")
def limits_of_one_fetch(t: ScenarioClient) -> None:
    """Acquire modes, record limits and the size of pieces."""
    topic, group = t.topic(), group_of(t)
    for base in range(0, 20, 5):
        t.produce(topic, [b"%d" % (base + number) for number in range(5)])
    one, two = Member(t, group, "m1", topic).join(), Member(t, group, "m2", topic).join()
    t.same(one.poll(max_records=3, share_acquire_mode=1), [(0, 2, 1)], "record limit")
    t.same(two.poll(max_records=3, share_acquire_mode=1), [(3, 4, 1), (5, 5, 1)], "the rest of one, and more")
    t.same(one.poll(max_records=7, batch_size=5), [(6, 9, 1), (10, 14, 1)], "batches, and a stored batch is not cut")
    t.same(two.poll(max_records=2), [(15, 19, 1)], "a whole batch")


@scenario("C19", settings=LOCKS, is_smoke=False)  # its steps have to fit into the time of a lock
def locks_end_and_are_renewed(t: ScenarioClient) -> None:
    """A lock ends after its time, unless its member renews it; each delivery counts."""
    topic, group = t.topic(), group_of(t, share_record_lock_duration_ms="2000")
    t.produce(topic, [b"a", b"b"])
    one, two = Member(t, group, "m1", topic).join(), Member(t, group, "m2", topic).join()
    t.same(one.poll(), [(0, 1, 1)], "all of it")
    t.same(two.poll(), [(0, 1, 2)], "after the locks")
    t.same(two.acknowledge((0, 0, [RENEW]), is_renew_ack=True), NONE, "renewed")
    t.same(one.acknowledge((0, 0, [ACCEPT])), "INVALID_RECORD_STATE", "too late")
    t.same(two.acknowledge((0, 1, [ACCEPT])), NONE, "in time")
    nothing: dict[str, Any] = {"max_bytes": 0, "min_bytes": 0, "max_records": 0}
    t.error(two.fetch(is_renew_ack=True, max_wait_ms=0, **nothing), NONE, "a fetch that renews")
    t.error(two.fetch(is_renew_ack=True, max_wait_ms=7), "INVALID_REQUEST")


@scenario("C19", settings=LOCKS)
def the_delivery_limit_archives(t: ScenarioClient) -> None:
    """A record that is released at its delivery limit is archived."""
    topic, group = t.topic(), group_of(t, share_delivery_count_limit="3")
    t.produce(topic, [b"a"])
    one = Member(t, group, "m1", topic).join()
    for count in (1, 2, 3):
        t.same(one.poll(), [(0, 0, count)], f"delivery {count}")
        t.same(one.acknowledge((0, 0, [RELEASE])), NONE, "released")
    one.has_nothing()


@scenario("C19")
def bad_records_are_delivered_with_few_others(t: ScenarioClient) -> None:
    """From half of the delivery limit on fewer records are delivered together, and at last one alone."""
    topic, group = t.topic(), group_of(t)
    t.produce(topic, [b"%d" % number for number in range(8)])
    one = Member(t, group, "m1", topic).join()
    seen = []
    for _ in range(9):
        got = one.poll()
        seen.append(got)
        t.same(one.acknowledge(*[(first, last, [RELEASE]) for first, last, _ in got]), NONE, "released")
    t.same(seen[:3], [[(0, 7, 1)], [(0, 7, 2)], [(0, 7, 3)]], "together")
    t.note("deliveries", "", t.plain(seen))


@scenario("C19")
def only_committed_records(t: ScenarioClient) -> None:
    """A read_committed group gets nothing of aborted transactions, and waits for open ones."""
    topic, group = t.topic(), group_of(t, share_isolation_level="read_committed")
    p = Producer(t, "x")
    p.send(topic, b"aborted")
    p.end(commit=False)
    p.send(topic, b"committed")
    one = Member(t, group, "m1", topic).join()
    p.end(commit=True)
    t.produce(topic, [b"plain"])
    offsets: list[tuple[int, int, int]] = []
    while not offsets or offsets[-1][1] < 4:
        offsets += one.poll()
    t.note("offsets", "", t.plain(offsets))
    t.same([one for one in offsets if one[0] <= 0 <= one[1]], [], "offset 0 is aborted")


@scenario("C19")
def deleted_records_are_passed(t: ScenarioClient) -> None:
    """When the log begins later, what was available before is archived."""
    topic, group = t.topic(), group_of(t)
    for _ in range(3):
        t.produce(topic, [b"a", b"b"])
    one = Member(t, group, "m1", topic).join()
    t.same(one.poll(max_records=2), [(0, 1, 1)], "the first")
    row = {"name": topic, "partitions": [{"partition_index": 0, "offset": 3}]}
    t.error(t.ask("DeleteRecords", 2, topics=[row], timeout_ms=30_000).topics[0].partitions[0], NONE)
    t.note("after the deletion", "", t.plain(one.poll()))
    t.same(one.acknowledge((0, 1, [RELEASE])), NONE, "what the log does not have")


@scenario("C19", needs=Power.KILL, is_smoke=False)
def what_a_crash_leaves(t: ScenarioClient) -> None:
    """After a SIGKILL acknowledged records stay so, acquired ones come back, released ones keep their count."""
    topic, group = t.topic(), group_of(t)
    t.produce(topic, [b"%d" % number for number in range(6)])
    one = Member(t, group, "m1", topic).join()
    t.same(one.poll(), [(0, 5, 1)], "all of it")
    t.same(one.acknowledge((0, 1, [ACCEPT]), (3, 3, [RELEASE])), NONE, "acknowledged")
    # Killed while the connection is open: its end would end the session, and release what is acquired.
    t.target.kill()
    t.restart(kill=True)
    again = Member(t, group, "m2", topic).join()
    offsets: list[tuple[int, int, int]] = []
    while not offsets or offsets[-1][1] < 5:
        offsets += again.poll()
    t.same(offsets, [(2, 2, 1), (3, 3, 2), (4, 5, 1)], "what comes back")


def _parked(t: ScenarioClient, name: str = "t", wait_ms: int = WOKEN_MS) -> tuple[Member, Parked]:
    """A member whose second ShareFetch waits for records on a connection of its own."""
    topic, group = t.topic(name), group_of(t)
    one = Member(t, group, "m1", topic).join()
    one.has_nothing()
    waiting = t.park(make("ShareFetch", **one.fetch_fields(max_wait_ms=wait_ms)), 2)
    t.same(waiting.is_waiting, True, "the fetch waits")
    return one, waiting


def _acquired(answer: Any) -> list[tuple[int, int, int]]:
    return [
        (one.first_offset, one.last_offset, one.delivery_count)
        for topic in answer.responses
        for part in topic.partitions
        for one in part.acquired_records
    ]


@scenario("C19")
def a_fetch_waits_while_its_topic_is_deleted(t: ScenarioClient) -> None:
    """A ShareFetch that waits hears nothing of its deleted topic until its time is over; then it has no records."""
    one, waiting = _parked(t, wait_ms=ENDED_MS)
    t.quietly("DeleteTopics", 3, topic_names=[one.topic], timeout_ms=30_000)
    answer = waiting.answer()
    t.error(answer, NONE)
    t.same(list(answer.responses), [], "what it hears of the topic")


@scenario("C19")
def a_fetch_waits_while_its_group_is_deleted(t: ScenarioClient) -> None:
    """A ShareFetch that waits gets records although its group was deleted; they cannot be acknowledged."""
    one, waiting = _parked(t)
    leaving = {"group_id": one.group, "member_id": one.name, "member_epoch": -1}
    t.error(t.quietly("ShareGroupHeartbeat", 1, **leaving), NONE)
    t.error(t.quietly("DeleteGroups", 2, groups_names=[one.group]).results[0], NONE)
    t.produce(one.topic, [b"a"])
    answer = waiting.answer()
    t.error(answer, NONE)
    t.same(_acquired(answer), [(0, 0, 1)], "the record")
    one.epoch += 1
    t.note("acknowledged", "", one.acknowledge((0, 0, [ACCEPT])))


@scenario("C19")
def a_fetch_waits_while_its_session_ends(t: ScenarioClient) -> None:
    """A ShareFetch that waits gets records although another connection has ended its session, or opened a new one."""
    for number, epoch in enumerate((-1, 0)):
        one, waiting = _parked(t, f"t{number}")
        t.error(t.quietly("ShareFetch", 2, **one.fetch_fields(share_session_epoch=epoch, max_wait_ms=0)), NONE)
        t.produce(one.topic, [b"a"])
        answer = waiting.answer()
        t.note("error", epoch, name_of(answer.error_code))
        t.note("acquired", epoch, _acquired(answer))
