"""Rows of which the view of stock clients matters: each scenario runs once for each client."""

from __future__ import annotations

from kafka_shim.compat.apps import App, Reader, Refused
from kafka_shim.compat.apps.base import read
from kafka_shim.compat.scenarios import client_scenario
from kafka_shim.targets import Power
from kafka_shim.targets.recording import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.compat.scenarios.scenario_client import ScenarioClient
    from kafka_shim.wiretap.frames import Request

PRODUCE, ADD_PARTITIONS, END_TXN = 0, 24, 26


def refused(act: Callable[[], None]) -> str:
    """What the client calls its refusal; empty when it did what it was told."""
    try:
        act()
    except Refused as error:
        return error.name
    return ""


def sees(t: ScenarioClient, app: App, found: object, wanted: object, what: str) -> None:
    """What the application saw is what it should have seen; noted."""
    t.note(app.name, what, found)
    t.same(found, wanted, what)


@client_scenario("B10", "B14", "B24")
def a_client_commits_and_aborts(t: ScenarioClient, app: App) -> None:
    """Its readers see what was committed under read_committed, and all under read_uncommitted; each end takes one
    offset."""
    topic = t.topic()
    producer = app.producer(t.name("x"))
    for value, commit in (("a", True), ("aborted", False), ("b", True)):
        producer.begin()
        producer.send(topic, value)
        if commit:
            producer.commit()
        else:
            producer.abort()
    t.settle(t.name("x"))
    sees(t, app, app.values(topic, 2), ["a", "b"], "committed")
    sees(t, app, app.values(topic, 3, committed=False), ["a", "aborted", "b"], "uncommitted")
    t.same(t.end_offset(topic, committed=True), 6, "offsets taken")
    t.fetch(topic, committed=True)


@client_scenario("B10", "B23")
def a_client_ends_empty_transactions(t: ScenarioClient, app: App) -> None:
    """Begin and end with nothing between, both ways, and the next transaction works."""
    topic = t.topic()
    producer = app.producer(t.name("x"))
    for commit in (True, False, True):
        producer.begin()
        if commit:
            producer.commit()
        else:
            producer.abort()
    producer.begin()
    producer.send(topic, "after")
    producer.commit()
    t.settle(t.name("x"))
    sees(t, app, app.values(topic, 1), ["after"], "committed")


@client_scenario("B2", "B3", "B22")
def a_second_instance_fences_the_first(t: ScenarioClient, app: App) -> None:
    """The second instance aborts what the first has open; the first can neither commit nor begin again."""
    topic = t.topic()
    first = app.producer(t.name("x"))
    first.begin()
    first.send(topic, "lost")
    second = app.producer(t.name("x"))
    t.same(bool(refused(first.commit)), True, "the first's commit is refused")
    second.begin()
    second.send(topic, "kept")
    second.commit()
    t.settle(t.name("x"))
    sees(t, app, app.values(topic, 1), ["kept"], "committed")
    t.fetch(topic)


@client_scenario("B14", "B15", "D5")
def a_reader_stops_before_an_open_transaction(t: ScenarioClient, app: App) -> None:
    """Under read_committed nothing behind an open transaction is seen until it ends, and then nothing is missing."""
    topic = t.topic()
    opened, other = app.producer(t.name("opened")), app.producer(t.name("other"))
    other.begin()
    other.send(topic, "before")
    other.commit()
    opened.begin()
    opened.send(topic, "held")
    other.begin()
    other.send(topic, "behind")
    other.commit()
    t.settle(t.name("other"))
    reader = app.reader(topic)
    sees(t, app, read(reader, 1), ["before"], "before the open transaction")
    sees(t, app, reader.poll(600), [], "behind it")
    opened.abort()
    sees(t, app, read(reader, 1), ["behind"], "after its abort")
    sees(t, app, reader.poll(300), [], "and no more")


@client_scenario("D7", "B14")
def a_reader_leaves_out_aborted_batches_of_every_codec(t: ScenarioClient, app: App) -> None:
    """Each codec: one transaction aborted, one committed."""
    topic = t.topic()
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        producer = app.producer(t.name(codec), codec=codec)
        for value, commit in ((f"{codec} aborted", False), (f"{codec} committed", True)):
            producer.begin()
            producer.send(topic, value * 20)
            if commit:
                producer.commit()
            else:
                producer.abort()
        t.settle(t.name(codec))
        app.drop(producer)
    wanted = [f"{codec} committed" * 20 for codec in ("gzip", "snappy", "lz4", "zstd")]
    sees(t, app, app.values(topic, 4), wanted, "committed")


@client_scenario("B8", "B16", "B21")
def offsets_of_a_client_follow_its_transaction(t: ScenarioClient, app: App) -> None:
    """sendOffsetsToTransaction for a group without members: the position moves with a commit, not with an abort."""
    topic, group = t.topic(), t.name("g")
    producer = app.producer(t.name("x"))
    sees(t, app, app.committed(group, topic), None, "before")
    for offset, commit, wanted in ((3, True, 3), (9, False, 3), (5, True, 5)):
        producer.begin()
        producer.send(topic, f"at {offset}")
        producer.offset(group, topic, offset)
        if commit:
            producer.commit()
        else:
            producer.abort()
        t.settle(t.name("x"))
        sees(t, app, app.committed(group, topic), wanted, f"after {offset}")
    asked = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    t.ask("OffsetFetch", 9, groups=[asked], require_stable=True)


@client_scenario("B21", "C15")
def a_client_consumes_transforms_and_produces(t: ScenarioClient, app: App) -> None:
    """A member of a group passes records on in transactions with its positions. What was aborted is read again by the
    next member, and each record arrives once."""
    source, sink, group = t.topic("source"), t.topic("sink"), t.name("g")
    feeder, worker = app.producer(t.name("feeder")), app.producer(t.name("worker"))
    feeder.begin()
    for number in range(4):
        feeder.send(source, str(number))
    feeder.commit()
    t.settle(t.name("feeder"))
    for commit in (False, True):
        member = app.reader(source, group=group)
        values = read(member, 4)
        sees(t, app, values, [str(number) for number in range(4)], "read")
        worker.begin()
        for value in values:
            worker.send(sink, f"done {value}")
        worker.positions(member)
        if commit:
            worker.commit()
        else:
            worker.abort()
        app.drop(member)
        t.settle(t.name("worker"))
    sees(t, app, app.values(sink, 4), [f"done {number}" for number in range(4)], "the sink")
    sees(t, app, app.committed(group, source), 5, "the group's position, behind the feeder's marker")


@client_scenario("B13", "B22")
def a_client_whose_transaction_is_too_old(t: ScenarioClient, app: App) -> None:
    """The broker aborts it; the client learns it at its commit, and a new instance goes on."""
    topic = t.topic()
    producer = app.producer(t.name("x"), timeout_ms=5_000)
    producer.begin()
    producer.send(topic, "late")

    def is_aborted() -> bool:
        answer = t.quietly("DescribeTransactions", 0, transactional_ids=[t.name("x")])
        return bool(answer.transaction_states[0].transaction_state == "CompleteAbort")

    t.wait(is_aborted, "the broker's abort")
    t.same(bool(refused(producer.commit)), True, "the commit is refused")
    again = app.producer(t.name("x"))
    again.begin()
    again.send(topic, "again")
    again.commit()
    t.settle(t.name("x"))
    sees(t, app, app.values(topic, 1), ["again"], "committed")


@client_scenario("A8", "B10", needs=Power.PROXY)
def every_request_of_a_transaction_arrives_twice(t: ScenarioClient, app: App) -> None:
    """The client's Produce, AddPartitionsToTxn and EndTxn are each delivered twice: every record is there once, each
    transaction ends once in its direction."""
    topic = t.topic()
    counts = {PRODUCE: 0, ADD_PARTITIONS: 0, END_TXN: 0}

    async def twice(request: Request, frame: bytes) -> list[bytes]:
        if request.api_key not in counts:
            return [frame]
        counts[request.api_key] += 1
        return [frame, frame]

    with recorder(t.target.bootstrap, on_request=twice) as app.bootstrap:
        producer = app.producer(t.name("twice"))
        for number in range(4):
            producer.begin()
            for part in range(3):
                producer.send(topic, f"{number}.{part}")
            if number % 2:
                producer.abort()
            else:
                producer.commit()
        app.drop(producer)
    app.bootstrap = t.target.bootstrap
    t.settle(t.name("twice"))
    # With TV2 the Produce adds the partition.
    t.same(counts[PRODUCE] >= 12 and counts[END_TXN] >= 4, True, "each kind was repeated")
    sees(t, app, app.values(topic, 6), [f"{number}.{part}" for number in (0, 2) for part in range(3)], "committed")
    everything = [f"{number}.{part}" for number in range(4) for part in range(3)]
    sees(t, app, app.values(topic, 12, committed=False), everything, "all that was written")


@client_scenario("D2", "B20", needs=Power.PROXY)
def a_produce_is_held_across_the_abort(t: ScenarioClient, app: App) -> None:
    """A copy of a transaction's Produce arrives when its transaction is aborted and the next is open: nothing of it is
    seen, and nothing hangs."""
    topic = t.topic()
    held: list[bytes] = []
    released: list[int] = []

    async def late(request: Request, frame: bytes) -> list[bytes]:
        if request.api_key == PRODUCE and not held:
            held.append(frame)
        elif request.api_key == PRODUCE and not released:
            released.append(1)
            return [frame, held[0]]
        return [frame]

    with recorder(t.target.bootstrap, on_request=late) as app.bootstrap:
        producer = app.producer(t.name("late"))
        producer.begin()
        producer.send(topic, "aborted")
        producer.abort()
        producer.begin()
        producer.send(topic, "committed")
        producer.commit()
        app.drop(producer)
    app.bootstrap = t.target.bootstrap
    t.settle(t.name("late"))
    t.same(released, [1], "the copy was delivered")
    sees(t, app, app.values(topic, 1), ["committed"], "committed")
    t.same(t.end_offset(topic, committed=True), t.end_offset(topic), "nothing hangs")


def share(members: list[Reader], done: Callable[[], bool], t: ScenarioClient, what: str) -> list[str]:
    """Polls all members in turn until it holds; what they read."""
    found: list[str] = []

    def turn() -> bool:
        for member in members:
            found.extend(value for _, value in member.poll(100))
        return done()

    t.wait(turn, what)
    return found


@client_scenario("C3", "D16")
def members_share_and_take_over(t: ScenarioClient, app: App) -> None:
    """Two members of a group have one partition of two each; when one leaves the other has both and goes on where it
    committed."""
    topic, group = t.topic(partitions=2), t.name("g")
    for partition in range(2):
        t.quietly_produce(topic, [b"%d.%d" % (partition, number) for number in range(3)], partition)
    first = app.reader(topic, group=group)
    found = share([first], lambda: len(first.assigned()) == 2, t, "the first has both")
    found += read(first, 6 - len(found))
    sees(
        t,
        app,
        sorted(found),
        [f"{partition}.{number}" for partition in range(2) for number in range(3)],
        "the first reads",
    )
    first.commit()
    second = app.reader(topic, group=group)
    both = [first, second]
    found = share(both, lambda: [len(each.assigned()) for each in both] == [1, 1], t, "each has one")
    sees(t, app, sorted([*first.assigned(), *second.assigned()]), [0, 1], "together they have both")
    t.same(found, [], "what was committed is not read again")
    app.drop(first)
    found = share([second], lambda: len(second.assigned()) == 2, t, "the second has both")
    for partition in range(2):
        t.quietly_produce(topic, [b"%d.later" % partition], partition)
    found += read(second, 2 - len(found))
    sees(t, app, sorted(found), ["0.later", "1.later"], "the second reads what is new")
    second.commit()
    app.drop(second)
    asked = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0, 1]}]}
    answer = t.ask("OffsetFetch", 9, groups=[asked])
    t.same([part.committed_offset for part in answer.groups[0].topics[0].partitions], [4, 4], "committed")
