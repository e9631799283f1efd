"""Requests with very many entries: what one turn of the loop does of them is bounded, and their answers are whole."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import pytest

from kafka_shim import workers
from kafka_shim.api import APIS, k03_metadata
from kafka_shim.cext.messages import (
    LargeRequestError,
    decode,
    decode_patiently,
    decode_request,
    dismantle,
    encode,
    encode_response_frame,
)
from kafka_shim.clock import VirtualClock
from kafka_shim.context import Context
from kafka_shim.embedded import Broker
from kafka_shim.large_requests import MOST_AT_A_TIME, LargeRequests
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kafka_shim.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kafka_shim.protocol.messages.fetch_request import FetchRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_shim.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.session import Session
from kafka_shim.targets.requests import make
from kafka_shim.tests.produced import batch, make_topic
from kafka_shim.tests.waiting import PATIENCE_S
from kafka_shim.turns import MOST_LOOKS, SHARE_US, STEPS_BETWEEN_LOOKS, Turns, at_once
from kafka_shim.wire_client import Connection

MANY = 20_000
NAMES = [f"n{number}" for number in range(MANY)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(auto_create_topics_enable=False) as running:
        with Connection(running.bootstrap_servers) as client:
            make_topic(client, "t", partitions=2)
            client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        yield running


def ask(broker: Broker, request: Any, version: int) -> Any:
    with Connection(broker.bootstrap_servers, timeout_s=120) as client:
        return client.request(request, version)


def unknown_partitions() -> list[ListOffsetsPartition]:
    return [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(MANY)]


def test_metadata_of_very_many_names(broker: Broker) -> None:
    names = [*NAMES, "t", *reversed(NAMES)]
    topics = [MetadataRequestTopic(name=name) for name in names]
    answer = ask(broker, MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
    assert [topic.name for topic in answer.topics] == ["t", *NAMES]
    assert {topic.error_code for topic in answer.topics[1:]} == {3}
    assert [part.partition_index for part in answer.topics[0].partitions] == [0, 1]


def test_operations_of_one_answer_are_in_no_other(broker: Broker) -> None:
    topics = [MetadataRequestTopic(name="t")]
    for shows in (True, False, True):
        request = MetadataRequest(topics=topics, include_topic_authorized_operations=shows)
        assert (ask(broker, request, 12).topics[0].topic_authorized_operations > 0) is shows


def test_groups_and_keys_in_order(broker: Broker) -> None:
    assert [each.group_id for each in ask(broker, DescribeGroupsRequest(groups=NAMES), 5).groups] == NAMES
    found = ask(broker, FindCoordinatorRequest(key_type=0, coordinator_keys=NAMES), 4).coordinators
    assert [each.key for each in found] == NAMES
    assert {each.error_code for each in found} == {0}


def test_offsets_of_repeated_and_of_very_many_partitions(broker: Broker) -> None:
    twice = ListOffsetsTopic(name="t", partitions=[*unknown_partitions(), *unknown_partitions()[:1]])
    (topic,) = ask(broker, ListOffsetsRequest(replica_id=-1, topics=[twice]), 7).topics
    assert [part.partition_index for part in topic.partitions] == list(range(MANY))
    assert [part.error_code for part in topic.partitions[:3]] == [42, 0, 3]
    assert {part.error_code for part in topic.partitions[2:]} == {3}


def test_configs_of_very_many_resources(broker: Broker) -> None:
    resources = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in [*NAMES, "t"]]
    results = ask(broker, DescribeConfigsRequest(resources=resources), 4).results
    assert [result.resource_name for result in results] == [*NAMES, "t"]
    assert [result.error_code for result in results] == [3] * MANY + [0]


def commit(topics: dict[str, list[int]]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=one, committed_offset=7) for one in partitions
                ],
            )
            for name, partitions in topics.items()
        ],
    )


def test_commit_of_very_many_names_commits_those_that_exist(broker: Broker) -> None:
    answer = ask(broker, commit({**{name: [0] for name in NAMES}, "t": [0, *range(2, MANY), 1]}), 8)
    codes = {topic.name: topic for topic in answer.topics}
    assert len(codes) == len(answer.topics) == MANY + 1
    assert {codes[name].partitions[0].error_code for name in NAMES} == {3}
    known = {part.partition_index: part.error_code for part in codes["t"].partitions}
    assert known == {0: 0, 1: 0, **dict.fromkeys(range(2, MANY), 3)}
    asked = OffsetFetchRequestTopics(name="t", partition_indexes=list(range(MANY)))
    fetched = ask(broker, OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[asked])]), 8)
    offsets = [part.committed_offset for part in fetched.groups[0].topics[0].partitions]
    assert offsets == [7, 7] + [-1] * (MANY - 2)


@pytest.mark.parametrize("metadata_bytes", [5000, 17_000], ids=["small", "large"])
def test_metadata_of_a_commit_is_looked_at_before_the_epoch_whatever_its_size(
    broker: Broker, metadata_bytes: int
) -> None:
    with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["epochs"]), 4)
        beat = {"subscribed_topic_names": ["t"], "topic_partitions": [], "rebalance_timeout_ms": 60_000}
        asked = make("ConsumerGroupHeartbeat", group_id="epochs", member_id="m", member_epoch=0, **beat)
        assert client.request(asked, 1).error_code == 0

        def codes(first_bytes: int) -> list[int]:
            partitions = [
                {"partition_index": index, "committed_offset": 1, "committed_metadata": "y" * size}
                for index, size in enumerate((first_bytes, metadata_bytes))
            ]
            topics = [{"name": "t", "partitions": partitions}]
            stale = make(
                "OffsetCommit", group_id="epochs", member_id="m", generation_id_or_member_epoch=-1, topics=topics
            )
            return [one.error_code for one in client.request(stale, 9).topics[0].partitions]

        assert codes(metadata_bytes) == [12, 12]
        assert codes(1) == [113, 113]


def test_commit_that_no_batch_holds_is_refused_before_it_is_built(broker: Broker) -> None:
    answer = ask(broker, commit({"t": [0] * 30_000}), 8)
    assert {part.error_code for part in answer.topics[0].partitions} == {-1}


def test_produce_to_the_same_partitions_again_and_again(broker: Broker) -> None:
    """The last entry of a partition counts; looking for the one before took hours."""
    data = [PartitionProduceData(index=index, records=b"x") for index in [*range(MANY), *reversed(range(2, MANY))]]
    data.append(PartitionProduceData(index=1, records=batch(b"a")))
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])
    (topic,) = ask(broker, request, 9).responses
    assert [part.index for part in topic.partition_responses] == [0, *reversed(range(2, MANY)), 1]
    assert topic.partition_responses[-1].error_code == 0
    assert {part.error_code for part in topic.partition_responses[1:-1]} == {3}


def test_steps_that_change_nothing_end_with_their_client() -> None:
    """Nobody would get the answer, and the rest of the steps would take turns from others."""
    modules = {api.name: import_module(api.module_name) for api in APIS}
    in_steps = {name: module for name, module in modules.items() if inspect.isgeneratorfunction(module.handle)}
    go_on = {name for name, module in in_steps.items() if not getattr(module, "ABANDONABLE", False)}
    assert go_on == {
        "delete_records",
        "alter_replica_log_dirs",
        "write_txn_markers",
        "alter_client_quotas",
        "alter_user_scram_credentials",
        "share_acknowledge",
        "initialize_share_group_state",
        "read_share_group_state",  # it fences older leaders
        "write_share_group_state",
        "delete_share_group_state",
    }


# --- how long others wait


def refused_as_a_whole() -> ProduceRequest:
    """It has a transactional batch, and no transactional id."""
    data = [PartitionProduceData(index=number + 10, records=b"") for number in range(MANY)]
    records = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    data.append(PartitionProduceData(index=0, records=records))
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=data)])


def turns_s(work: Callable[[Broker], object], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The CPU time of each turn of a broker's loop, in this process, while `work` is done in another."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    turns: list[float] = []
    with Broker(auto_create_topics_enable=False) as running:
        loop: Any = running.call(asyncio.get_running_loop)
        once = loop._run_once

        def measured() -> None:
            began = time.thread_time()
            once()
            turns.append(time.thread_time() - began)

        with Connection(running.bootstrap_servers) as client:
            client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        work(running)  # the first use of an API imports its modules
        running.call(setattr, loop, "_run_once", measured)
        # A full collection of what the test runner holds, which is none of the broker's, takes over 30 ms.
        gc.disable()
        try:
            work(running)
        finally:
            gc.enable()
        running.call(setattr, loop, "_run_once", once)
    return turns


@pytest.mark.alone
@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (
            MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in NAMES], allow_auto_topic_creation=False
            ),
            12,
        ),
        (FindCoordinatorRequest(key_type=0, coordinator_keys=NAMES), 4),
        (ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=unknown_partitions())]), 7),
        (commit({name: [0] for name in NAMES}), 8),
        (refused_as_a_whole(), 9),
    ],
    ids=["metadata", "coordinators", "offsets", "commit", "refused"],
)
def test_no_turn_is_long(request_: Any, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each took one turn of 60 to 150 ms of CPU. How long a turn is, the machine decides; its share of all is ours."""
    turns = turns_s(lambda broker: ask(broker, request_, version), monkeypatch)
    print(f"the longest turn took {1000 * max(turns):.1f} ms of {1000 * sum(turns):.1f}")
    assert max(turns) < sum(turns) / 4


@pytest.mark.alone
def test_no_turn_is_long_where_one_partition_is_named_a_million_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """All were put into a table in one turn."""
    topics = [{"topic_name": "t", "partitions": [0] * 1_000_000}]
    request = make("DescribeShareGroupOffsets", groups=[{"group_id": "g", "topics": topics}])

    def work(running: Broker) -> None:
        with Connection(running.bootstrap_servers, timeout_s=120) as client:
            if not running.topics():
                make_topic(client, "t")
            (topic,) = client.request(request, 0).groups[0].topics
            assert len(topic.partitions) == 1

    turns = turns_s(work, monkeypatch)
    print(f"the longest turn took {1000 * max(turns):.1f} ms of {1000 * sum(turns):.1f}")
    assert max(turns) < sum(turns) / 4


# --- turns


def steps_of(count: int, done: list[int], result: str = "done") -> Generator[None, None, str]:
    for number in range(count):
        done.append(number)
        yield
    return result


@pytest.mark.parametrize("count", [0, 1, STEPS_BETWEEN_LOOKS * 3])
def test_few_steps_are_taken_at_once(count: int) -> None:
    done: list[int] = []
    assert Turns(VirtualClock()).finish(steps_of(count, done)) == "done"
    assert len(done) == count


def test_requests_take_turns() -> None:
    """One share a turn, whatever the number of requests, and other work in between."""
    share = 1 + 1 + 2 + 4 + (MOST_LOOKS - 3) * STEPS_BETWEEN_LOOKS

    async def run() -> None:
        clock = VirtualClock()
        turns = Turns(clock)
        logs: list[list[int]] = [[], []]
        tasks = [asyncio.ensure_future(turns.finish(steps_of(4 * share, log))) for log in logs]  # type: ignore[arg-type]
        assert [len(log) for log in logs] == [share, share]
        most = 0
        for _ in range(100):
            before = sum(map(len, logs))
            await asyncio.sleep(0)
            most = max(most, sum(map(len, logs)) - before)
            assert abs(len(logs[0]) - len(logs[1])) <= share
        assert 0 < most <= share
        assert [await task for task in tasks] == ["done", "done"]

    asyncio.run(run())


@pytest.mark.parametrize(("quick", "slow_us"), [(0, 5000), (1, 5000), (0, 200), (40, 5000), (40, 200)])
def test_slow_steps_are_not_taken_many_at_a_time(quick: int, slow_us: int) -> None:
    """The first append to each of 10,000 partitions makes its files: 16 of them held the loop for 46 ms."""

    class Clock(VirtualClock):
        now_us = 0

        def monotonic_us(self) -> int:
            return self.now_us

    async def run() -> None:
        clock = Clock()
        shares: list[int] = []

        def steps() -> Generator[None, None, None]:
            for number in range(quick + 200):
                clock.now_us += 1 if number < quick else slow_us
                shares[-1] += number >= quick
                yield

        class Counted(Turns):
            __slots__ = ()

            def _take_share(self, steps: Any) -> None:
                shares.append(0)
                super()._take_share(steps)

        finished = Counted(clock).finish(steps())
        assert finished is not None
        await finished
        # One that nobody looks at, and those in whose middle or at whose end the share is over.
        most = 1 + -(-SHARE_US // slow_us)
        assert max(shares[1:]) <= most
        # Those that follow quick ones come as many at a time as these did.
        assert shares[0] <= max(STEPS_BETWEEN_LOOKS, most) if quick > 1 else shares[0] <= most

    asyncio.run(run())


def test_errors_and_cancelled_requests_leave_the_others_alone() -> None:
    closed: list[str] = []

    def failing() -> Generator[None, None, None]:
        for _ in range(STEPS_BETWEEN_LOOKS * (MOST_LOOKS + 2)):
            yield
        raise ValueError("in a later turn")

    def endless() -> Generator[None, None, None]:
        try:
            while True:
                yield
        finally:
            closed.append("endless")

    async def run() -> None:
        turns = Turns(VirtualClock())
        gone, wrong, right = (
            asyncio.ensure_future(turns.finish(steps))  # type: ignore[arg-type]
            for steps in (endless(), failing(), steps_of(STEPS_BETWEEN_LOOKS * MOST_LOOKS * 3, []))
        )
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(ValueError, match="later turn"):
            await wrong
        assert await right == "done"
        assert closed == ["endless"]

    asyncio.run(run())


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_requests_go_on_although_memory_ended_when_their_next_turn_was_asked_for(failing: int) -> None:
    """Two that are under way, and a later one; the first turn is asked for by a request, which is then refused."""
    steps = STEPS_BETWEEN_LOOKS * MOST_LOOKS * 3

    async def run() -> list[Any]:
        clock = VirtualClock()
        turns = Turns(clock)
        asked: list[object] = []
        call_later = clock.call_later

        def find_memory(*arguments: Any) -> Any:
            asked.append(arguments)
            if len(asked) == failing:
                raise MemoryError
            return call_later(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clock, "call_later", find_memory)
            first = [asyncio.ensure_future(turns.finish(steps_of(steps, []))) for _ in range(2)]  # type: ignore[arg-type]
            ended = await asyncio.wait_for(asyncio.gather(*first, return_exceptions=True), PATIENCE_S)
            return [*ended, await asyncio.wait_for(turns.finish(steps_of(steps, [])), PATIENCE_S)]  # type: ignore[arg-type]

    ended = asyncio.run(run())
    assert [type(one) for one in ended if one != "done"] == ([MemoryError] if failing == 1 else [])


# --- the codec


def test_decoding_patiently_is_decoding() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in NAMES])
    data = encode(request, 12)
    with pytest.raises(LargeRequestError):
        decode_request(MetadataRequest, 12, data, 0)
    assert decode_patiently(MetadataRequest, 12, data, 0) == decode(MetadataRequest, 12, data) == request
    assert encode_response_frame(1, request, 12, True) == encode_response_frame(1, request, 12)
    few = encode(MetadataRequest(topics=request.topics[:100]), 12)
    assert decode_request(MetadataRequest, 12, few, 0) == decode(MetadataRequest, 12, few)


def test_dismantled_message_is_empty() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in NAMES])
    dismantle(request)
    assert request.topics == []


def test_patient_work_lets_other_threads_in() -> None:
    """A thread that wants the GIL waited for the whole of the work: a turn of the loop."""
    assert turns_beside(DescribeGroupsRequest, 5, encode(DescribeGroupsRequest(groups=NAMES * 50), 5)) > 50


def turns_beside(kind: type, version: int, data: bytes) -> int:
    """How often another thread has the GIL while such a request is decoded patiently."""
    worker = threading.Thread(target=decode_patiently, args=(kind, version, data, 0))
    worker.start()
    turns = 0
    while worker.is_alive():
        turns += 1
        time.sleep(0)  # only asks for the GIL
    return turns


def with_tags(tag: bytes, count: int) -> bytes:
    """A Fetch, version 12, with this tagged field so many times."""
    data = encode(FetchRequest(), 12)
    assert data[-1] == 0
    number = bytes([count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14])
    return data[:-1] + number + tag * count


NO_CLUSTER_ID, UNKNOWN_TAG = b"\x00\x01\x00", b"\x05\x00"


@pytest.mark.parametrize("tag", [NO_CLUSTER_ID, UNKNOWN_TAG])
def test_a_request_of_many_tagged_fields_is_large(tag: bytes) -> None:
    """One that came again and again took the loop half a second for 100 MB; the last one counts."""
    assert decode_request(FetchRequest, 12, with_tags(tag, 1000), 0) == decode(FetchRequest, 12, with_tags(tag, 1))
    data = with_tags(tag, MANY)
    with pytest.raises(LargeRequestError):
        decode_request(FetchRequest, 12, data, 0)
    assert decode_patiently(FetchRequest, 12, data, 0) == decode(FetchRequest, 12, with_tags(tag, 1))


@pytest.mark.parametrize("tag", [NO_CLUSTER_ID, UNKNOWN_TAG])
def test_patient_work_on_tagged_fields_lets_other_threads_in(tag: bytes) -> None:
    assert turns_beside(FetchRequest, 12, with_tags(tag, 400_000)) > 50


def test_dismantling_leaves_lists_that_others_hold() -> None:
    """The answers of ApiVersions share their list of APIs."""
    shared = NAMES[:3]
    dismantle(DescribeGroupsRequest(groups=shared))
    assert shared == NAMES[:3]


def test_a_large_request_takes_nothing_from_later_answers(broker: Broker) -> None:
    plain = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    large = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    large.unknown_tags = dict.fromkeys(range(100, 10_000), b"")
    with pytest.raises(LargeRequestError):
        decode_request(ApiVersionsRequest, 4, encode(large, 4), 0)
    before = ask(broker, plain, 4).api_keys
    assert ask(broker, large, 4).api_keys == before != []
    assert ask(broker, plain, 4).api_keys == before


def test_the_thread_of_a_client_that_is_gone_ends_before_the_next_begins() -> None:
    """Else clients that do not wait have as many large requests decoded at a time as there are threads."""
    data = encode(DescribeGroupsRequest(groups=NAMES), 5)
    began, may_end, most = threading.Event(), threading.Event(), [0, 0]

    def slow(*args: Any) -> Any:
        most[0] += 1
        most[1] = max(most)
        began.set()
        may_end.wait(60)
        most[0] -= 1
        return decode_patiently(*args)

    async def run() -> None:
        large = LargeRequests(VirtualClock())
        gone = asyncio.ensure_future(large._in_thread(slow, DescribeGroupsRequest, 5, data, 0))
        await asyncio.to_thread(began.wait, 60)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        began.clear()
        stays = asyncio.ensure_future(large._in_thread(slow, DescribeGroupsRequest, 5, data, 0))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not stays.done()
        may_end.set()
        assert (await stays).groups == NAMES
        assert most == [0, 1]

    asyncio.run(run())


def test_topic_that_is_deleted_between_two_steps_is_not_created_on_demand() -> None:
    """Whether the client may create it was asked for those names alone that were not there."""

    def run(state: Any) -> list[int]:
        session = Session(state.listeners[0], ("127.0.0.1", 1), ("127.0.0.1", 2))
        context = Context(state, session, MetadataRequest.API_KEY, 12, 1, "c", state.clock.now_ms())
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True)
        steps = k03_metadata.handle(context, request)
        for _ in range(2):  # the name is checked; it exists
            next(steps)
        state.metadata.delete_topic("t")
        answer = at_once(steps)
        assert "t" not in state.metadata.image.topics
        return [topic.error_code for topic in answer.topics]

    with Broker(auto_create_topics_enable=True) as running:
        with Connection(running.bootstrap_servers) as client:
            make_topic(client, "t", partitions=1)
        assert running.call(run, running.state) == [3]


def test_few_large_requests_are_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each the objects take many times its bytes, and there may be as many as connections."""
    held, most = [0], [0]
    decode_one, dismantle_both = LargeRequests.decode, LargeRequests.dismantle

    async def decode_counted(self: LargeRequests, *args: Any) -> Any:
        held[0] += 1
        most[0] = max(most[0], held[0])
        return await decode_one(self, *args)

    async def dismantle_counted(self: LargeRequests, *messages: Any) -> None:
        await dismantle_both(self, *messages)
        held[0] -= 1

    monkeypatch.setattr(LargeRequests, "decode", decode_counted)
    monkeypatch.setattr(LargeRequests, "dismantle", dismantle_counted)
    request = DescribeGroupsRequest(groups=NAMES)
    with Broker() as running, ExitStack() as stack:
        clients = [stack.enter_context(Connection(running.bootstrap_servers, timeout_s=120)) for _ in range(12)]
        for client in clients:
            client.send(request, 5)
        answers = [client.receive(request.API_KEY, 5)[1] for client in clients]
        held_at_last = running.call(lambda: held[0])
    assert all(len(answer.groups) == MANY for answer in answers)
    assert held_at_last == 0
    assert 1 < most[0] <= MOST_AT_A_TIME


@pytest.mark.parametrize("where", ["start", "_bootstrap"], ids=["none made", "ends before it runs"])
def test_where_no_thread_can_be_started_the_loop_does_the_work(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """A thread that found no memory to begin held the loop for ever."""
    response = make("ApiVersions")

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread") if where == "start" else MemoryError

    async def run() -> None:
        clock = VirtualClock()
        large = LargeRequests(clock)
        wanted = encode_response_frame(7, response, 3)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, where, refuse)
            patched.setattr(sys, "unraisablehook", lambda found: None)
            for _ in range(2):
                assert await large.encode(7, response, 3) == wanted
        await clock.advance_and_drain(1000)  # it waits for no work that nobody does
        assert await large.encode(7, response, 3) == wanted

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_result_that_no_memory_is_left_to_pass_on_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    """No large request was served any more."""
    response = make("ApiVersions")

    async def run() -> None:
        loop, clock = asyncio.get_running_loop(), VirtualClock()
        large, passed, failures = LargeRequests(clock), loop.call_soon_threadsafe, [MemoryError(), MemoryError()]

        def pass_on(*given: Any, **how: Any) -> asyncio.Handle:
            if failures:
                raise failures.pop()
            return passed(*given, **how)

        with monkeypatch.context() as patched:
            patched.setattr(workers, "NO_MEMORY_PAUSE_S", 0.001)
            patched.setattr(loop, "call_soon_threadsafe", pass_on)
            first = asyncio.ensure_future(large.encode(7, response, 3))
            while failures:
                await asyncio.sleep(0.001)
                if is_gone:
                    first.cancel()
            wanted = encode_response_frame(7, response, 3)
            assert await large.encode(7, response, 3) == wanted
            if not is_gone:
                assert await first == wanted
        await clock.advance_and_drain(1000)  # it waits for no work any more

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


@pytest.mark.parametrize("ends", ["as the thread is to start", "as the loop is to be woken"])
def test_the_clock_is_told_once_of_the_end_although_memory_ends_behind_the_work(
    monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """A virtual clock waited for ever."""
    response = make("ApiVersions")

    async def run() -> None:
        loop, clock, failures = asyncio.get_running_loop(), VirtualClock(), [MemoryError()]
        large, passed = LargeRequests(clock), loop.call_soon_threadsafe

        def start(*_: Any) -> None:
            raise failures.pop()

        def pass_on(*given: Any, **how: Any) -> asyncio.Handle:
            handle = passed(*given, **how)
            if failures and threading.current_thread() is not threading.main_thread():
                raise failures.pop()
            return handle

        with monkeypatch.context() as patched:
            if "thread" in ends:
                patched.setattr(threading.Thread, "start", start)
                with pytest.raises(MemoryError):
                    await large.encode(7, response, 3)
            else:
                patched.setattr(workers, "NO_MEMORY_PAUSE_S", 0.001)
                patched.setattr(loop, "call_soon_threadsafe", pass_on)
                await large.encode(7, response, 3)
        wanted = encode_response_frame(7, response, 3)
        assert await large.encode(7, response, 3) == wanted
        assert await large.encode(7, response, 3) == wanted  # the thread has passed all before on
        assert not failures
        await clock.advance_and_drain(1000)

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_request_that_fails_in_the_thread_is_not_kept(is_gone: bool) -> None:
    """A frame of 100 MB was, until the next full collection."""

    class Frame:
        pass

    may_fail = threading.Event()

    def fail(frame: Frame) -> None:
        may_fail.wait(PATIENCE_S)
        raise ValueError("a count that lies")

    async def run() -> weakref.ref[Frame]:
        large, frame = LargeRequests(VirtualClock()), Frame()
        kept = weakref.ref(frame)
        task = asyncio.ensure_future(large._in_thread(fail, frame))
        del frame
        await asyncio.sleep(0)
        if is_gone:
            task.cancel()
        may_fail.set()
        with pytest.raises(asyncio.CancelledError if is_gone else ValueError):
            await task
        del task
        await large._in_thread(int)  # after the thread has ended the first one
        return kept

    gc.disable()
    try:
        assert asyncio.run(run())() is None
    finally:
        gc.enable()
