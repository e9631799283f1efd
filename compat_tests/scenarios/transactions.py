"""Rows B1-B9: coordinators, fencing, timeouts, and how partitions and offsets join a transaction."""

from __future__ import annotations

from kafka_shim.cext.records import build
from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, Producer, ScenarioClient, name_of, records_of
from kafka_shim.targets import Power
from kafka_shim.targets.requests import fetch, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FENCED, OLD_EPOCH, MAPPING = "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING"


def state_of(t: ScenarioClient, transactional_id: str | None) -> str:
    """The state of a transaction, noted."""
    answer = t.ask("DescribeTransactions", 0, transactional_ids=[transactional_id])
    return str(answer.transaction_states[0].transaction_state)


@scenario("B1")
def find_coordinator_in_every_version(t: ScenarioClient) -> None:
    """FindCoordinator v0-6, one key or a batch; an unknown key type is INVALID_REQUEST."""
    t.coordinator(t.name("x"))
    for version in range(1, 4):
        t.error(t.ask("FindCoordinator", version, key=t.name("x"), key_type=1), NONE)
    for version in range(4, 7):
        answer = t.ask("FindCoordinator", version, key_type=1, coordinator_keys=[t.name("x"), t.name("y")])
        t.same([name_of(row.error_code) for row in answer.coordinators], [NONE, NONE], "errors")
    t.ask("FindCoordinator", 3, key=t.name("x"), key_type=7)
    t.ask("FindCoordinator", 4, key_type=7, coordinator_keys=[t.name("x")])
    t.ask("FindCoordinator", 4, key_type=1, coordinator_keys=[])
    t.ask("FindCoordinator", 4, key_type=1, coordinator_keys=[""])


@scenario("B2")
def a_second_producer_fences_the_first(t: ScenarioClient) -> None:
    """The same id at epoch + 1; the first is told by each API in the words of its version."""
    topic = t.topic()
    old = Producer(t, "x")
    new = Producer(t, "x")
    t.same((new.id, new.epoch), (old.id, old.epoch + 1), "id and epoch")
    for version in range(6):
        old.end(commit=True, version=version, expect=FENCED if version >= 2 else OLD_EPOCH)
    for version in range(4):
        old.add(topic, version=version, expect=FENCED if version >= 2 else OLD_EPOCH)
    for version in range(5):
        fields = {**old.who, "group_id": t.name("g")}
        t.error(t.ask("AddOffsetsToTxn", version, **fields), FENCED if version >= 2 else OLD_EPOCH)
    for version in (3, 5):
        wanted = FENCED if version >= 4 else OLD_EPOCH
        t.error(t.init(old.transactional_id, version, producer_id=old.id, producer_epoch=77), wanted)
    new.send(topic, b"new")
    for version in (3, 11, 12, 13):
        old.send(topic, b"old", version=version, expect=OLD_EPOCH)
    new.end(commit=True)


@scenario("B2")
def unknown_and_wrong_ids(t: ScenarioClient) -> None:
    """An unknown transactional id or a wrong producer id is INVALID_PRODUCER_ID_MAPPING; InitProducerId says fenced."""
    topic = t.topic()
    p = Producer(t, "x")
    right = p.id
    p.id = right + 1_000_000
    for version in (0, 2, 5):
        p.end(commit=True, version=version, expect=MAPPING)
    p.add(topic, expect=MAPPING)
    t.error(t.ask("AddOffsetsToTxn", 4, **p.who, group_id=t.name("g")), MAPPING)
    t.error(t.init(p.transactional_id, 5, producer_id=p.id, producer_epoch=0), FENCED)
    p.id, p.transactional_id = right, t.name("never seen")
    p.end(commit=True, expect=MAPPING)
    p.add(topic, expect=MAPPING)


@scenario("B3")
def init_while_ongoing_aborts(t: ScenarioClient) -> None:
    """CONCURRENT_TRANSACTIONS while the abort goes out at epoch + 1; the retry gets epoch + 2."""
    topic = t.topic()
    old = Producer(t, "x")
    old.send(topic, b"dangling")
    first = t.quietly("InitProducerId", 5, transactional_id=old.transactional_id, transaction_timeout_ms=60_000)
    t.error(first, "CONCURRENT_TRANSACTIONS", "first InitProducerId")
    new = Producer(t, "x")
    t.same((new.id, new.epoch), (old.id, old.epoch + 2), "id and epoch")
    old.end(commit=True, expect=FENCED)
    old.end(commit=False, expect=FENCED)
    t.settle(old.transactional_id or "")
    t.fetch(topic)
    t.same(t.values(topic, committed=True), [], "committed")


@scenario("B3")
def expected_epochs_of_kip_360(t: ScenarioClient) -> None:
    """Expected = current gives + 1; expected = the previous gives the same answer again."""
    p = Producer(t, "x")
    mine = {"producer_id": p.id, "producer_epoch": p.epoch}
    first = t.init(p.transactional_id, 5, **mine)
    t.same(first.producer_epoch, p.epoch + 1, "bumped")
    again = t.init(p.transactional_id, 5, **mine)
    t.same((again.error_code, again.producer_epoch), (0, p.epoch + 1), "the retry")
    third = t.init(p.transactional_id, 5, producer_id=p.id, producer_epoch=p.epoch + 1)
    t.same(third.producer_epoch, p.epoch + 2, "bumped again")
    t.error(t.init(p.transactional_id, 5, **mine), FENCED, "two behind")


@scenario("B3", needs=Power.KILL, is_smoke=False)
def previous_epoch_is_forgotten_by_a_restart(t: ScenarioClient) -> None:
    """The answer to a retry with the previous epoch is in memory only: after a restart it is PRODUCER_FENCED."""
    p = Producer(t, "x")
    mine = {"producer_id": p.id, "producer_epoch": p.epoch}
    t.error(t.init(p.transactional_id, 5, **mine), NONE)
    t.restart()
    t.error(t.init(p.transactional_id, 5, **mine), FENCED)


def at_the_last_epoch(t: ScenarioClient, name: str) -> Producer:
    """A producer at epoch 32766, brought there by InitProducerId, many in flight."""
    p = Producer(t, name)
    request = make("InitProducerId", transactional_id=p.transactional_id, transaction_timeout_ms=60_000)
    left = 32766 - p.epoch
    while left:
        count = min(left, 500)
        for _ in range(count):
            t.connection.send(request, 5)
        for _ in range(count):
            answer = t.connection.receive(request.API_KEY, 5)[1]
            t.error(answer, NONE)
        left -= count
    t.same((answer.producer_id, answer.producer_epoch), (p.id, 32766), "the last epoch")
    p.epoch = 32766
    return p


@scenario("B4", is_long=True)
def the_epoch_runs_out(t: ScenarioClient) -> None:
    """InitProducerId at epoch 32766 gives a new id at epoch 0."""
    p = at_the_last_epoch(t, "x")
    fresh = t.init(p.transactional_id)
    t.same((fresh.producer_id != p.id, fresh.producer_epoch), (True, 0), "a new id")


@scenario("B4", "B23", "B24", is_long=True)
def a_transaction_ends_at_the_last_epoch(t: ScenarioClient) -> None:
    """EndTxn v5 at 32766 answers (new id, 0), its marker is (old id, 32767), a retry answers the same; the old id is
    fenced."""
    topic = t.topic()
    p = at_the_last_epoch(t, "x")
    p.send(topic, b"last")
    first = p.end(commit=True, adopt=False)
    t.same((first.producer_id != p.id, first.producer_epoch), (True, 0), "a new id")
    again = p.end(commit=True, adopt=False)
    t.same((again.producer_id, again.producer_epoch), (first.producer_id, 0), "the retry")
    p.end(commit=False, expect="INVALID_TXN_STATE")
    p.send(topic, b"late", expect=OLD_EPOCH)
    t.fetch(topic)
    p.id, p.epoch = first.producer_id, 0
    p.sequences.clear()
    p.send(topic, b"first")
    p.end(commit=True)
    t.same(t.values(topic, committed=True), [b"last", b"first"], "committed")


@scenario("B5")
def timeouts_out_of_range(t: ScenarioClient) -> None:
    """A timeout <= 0 or above transaction.max.timeout.ms is INVALID_TRANSACTION_TIMEOUT."""
    t.coordinator(t.name("x"))
    for timeout in (0, -1, 900_001, 2_147_483_647):
        for version in (0, 3, 5):
            answer = t.init(t.name("x"), version, transaction_timeout_ms=timeout)
            t.error(answer, "INVALID_TRANSACTION_TIMEOUT")
    t.error(t.init(t.name("x"), transaction_timeout_ms=900_000), NONE)
    t.error(t.init(t.name("x"), transaction_timeout_ms=1), NONE)


@scenario("B6", "B23")
def states_a_transaction_goes_through(t: ScenarioClient) -> None:
    """Empty, Ongoing, CompleteCommit, Ongoing, CompleteAbort, and Empty again after InitProducerId."""
    topic = t.topic()
    p = Producer(t, "x")
    seen = [state_of(t, p.transactional_id)]
    p.send(topic, b"one")
    seen.append(state_of(t, p.transactional_id))
    p.end(commit=True)
    seen.append(state_of(t, p.transactional_id))
    p.send(topic, b"two")
    seen.append(state_of(t, p.transactional_id))
    p.end(commit=False)
    seen.append(state_of(t, p.transactional_id))
    Producer(t, "x")
    seen.append(state_of(t, p.transactional_id))
    wanted = ["Empty", "Ongoing", "CompleteCommit", "Ongoing", "CompleteAbort", "Empty"]
    t.same(seen, wanted, "states")


@scenario("B7")
def the_log_of_transactions_reads_the_same(t: ScenarioClient) -> None:
    """__transaction_state holds the state's records in Kafka's versions and fields; here of one id, at TV1 and TV2."""
    topic = t.topic()
    p = Producer(t, "x")
    p.add(topic)
    p.send(topic, b"classic", version=11)
    p.end(commit=True, version=4)
    p.send(topic, b"newer")
    p.end(commit=False, version=5)
    t.same(state_of(t, p.transactional_id), "CompleteAbort", "state")
    written = [row for row in log_of_transactions(t, p.transactional_id) if row is not None]
    for number, row in enumerate(written):
        t.note(f"record {number}", "__transaction_state", row)
    t.same(len(written) >= 6, True, "number of records")


def log_of_transactions(t: ScenarioClient, transactional_id: str | None) -> list[dict[str, Any] | None]:
    """What __transaction_state holds of an id: version and value of each record, None for a tombstone."""
    from kafka_shim.protocol.record_frames import TRANSACTION

    written: list[dict[str, Any] | None] = []
    for partition in range(50):
        answer = t.send(fetch("__transaction_state", partition, 0, max_bytes=1 << 24), 12).responses[0].partitions[0]
        for record, _ in records_of(answer.records or b""):
            key = TRANSACTION.decode_key(record.key)
            if getattr(key, "transactional_id", None) != transactional_id:
                continue
            if record.value is None:
                written.append(None)
            else:
                value = TRANSACTION.decode_value(key.API_KEY, record.value)
                written.append({"version": int.from_bytes(record.value[:2], "big"), "value": t.plain(value)})
    return written


@scenario("B8")
def one_bad_partition_fails_all(t: ScenarioClient) -> None:
    """The bad one has its own error, the others OPERATION_NOT_ATTEMPTED, and none is added."""
    topic = t.topic(partitions=2)
    p = Producer(t, "x")
    fields = {f"v3_and_below_{name}": value for name, value in p.who.items()}
    rows = [{"name": topic, "partitions": [0, 1, 9]}, {"name": t.name("absent"), "partitions": [0]}]
    for version in range(4):
        answer = t.ask("AddPartitionsToTxn", version, v3_and_below_topics=rows, **fields)
        errors = {
            (row.name == topic, part.partition_index): name_of(part.partition_error_code)
            for row in answer.results_by_topic_v3_and_below
            for part in row.results_by_partition
        }
        wrong, other = "UNKNOWN_TOPIC_OR_PARTITION", "OPERATION_NOT_ATTEMPTED"
        wanted = {(True, 0): other, (True, 1): other, (True, 9): wrong, (False, 0): wrong}
        t.same(errors, wanted, f"AddPartitionsToTxn v{version}")
    t.same(state_of(t, p.transactional_id), "Empty", "state")


@scenario("B8")
def brokers_add_and_verify_in_batches(t: ScenarioClient) -> None:
    """AddPartitionsToTxn v4-5 carries several transactions; verifyOnly on a missing one is TRANSACTION_ABORTABLE
    at v5.
    """
    topic = t.topic(partitions=3)
    p, q = Producer(t, "x"), Producer(t, "y")
    for version in (4, 5):
        for only in (True, False, True):
            rows = [
                {**each.who, "verify_only": only, "topics": [{"name": topic, "partitions": [version - 4]}]}
                for each in (p, q)
            ]
            t.ask("AddPartitionsToTxn", version, transactions=rows)
        # Of a transactional id that comes twice the last partitions count, and one code for all is listed as the first.
        twice = [
            {**p.who, "verify_only": only, "topics": [{"name": topic, "partitions": [number]}]}
            for only, number in ((False, 0), (True, 2), (False, version - 3))
        ]
        t.ask("AddPartitionsToTxn", version, transactions=twice)
    for each in (p, q):
        each.end(commit=False, version=4)


@scenario("B8")
def offsets_join_by_version(t: ScenarioClient) -> None:
    """TxnOffsetCommit to a group that was not added: v0-3 INVALID_TXN_STATE, v4 TRANSACTION_ABORTABLE, v5 adds."""
    topic = t.topic()
    group = t.name("g")
    p = Producer(t, "x")
    t.wait(lambda: not t.quietly("FindCoordinator", 3, key=group, key_type=0).error_code, "group coordinator")
    row = {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 3, "committed_metadata": "m"}]}
    for version in range(6):
        fields = {**p.who, "group_id": group, "topics": [row]}
        if version < 3:
            answer = t.ask("TxnOffsetCommit", version, **fields)
        else:
            answer = t.ask("TxnOffsetCommit", version, **fields, generation_id=-1, member_id="")
        found = name_of(answer.topics[0].partitions[0].error_code)
        wanted = "INVALID_TXN_STATE" if version < 4 else "TRANSACTION_ABORTABLE" if version == 4 else NONE
        t.same(found, wanted, f"TxnOffsetCommit v{version}")
    t.same(state_of(t, p.transactional_id), "Ongoing", "state")
    committed = {"groups": [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}]}
    before = t.ask("OffsetFetch", 9, **committed, require_stable=False)
    t.same(before.groups[0].topics[0].partitions[0].committed_offset, -1, "before the commit")
    p.end(commit=True)
    after = t.ask_until(
        lambda found: found.groups[0].topics[0].partitions[0].committed_offset >= 0,
        "OffsetFetch",
        9,
        **committed,
        require_stable=True,
    )
    t.same(after.groups[0].topics[0].partitions[0].committed_offset, 3, "after the commit")


@scenario("B8")
def generation_of_no_group(t: ScenarioClient) -> None:
    """Without a group generation >= 0 is ILLEGAL_GENERATION, and the transaction is Ongoing all the same at v5."""
    topic = t.topic()
    p = Producer(t, "x")
    t.wait(lambda: not t.quietly("FindCoordinator", 3, key=t.name("g"), key_type=0).error_code, "group coordinator")
    row = {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
    fields = {**p.who, "group_id": t.name("g"), "topics": [row], "generation_id": 3, "member_id": "m"}
    answer = t.ask("TxnOffsetCommit", 5, **fields)
    t.same(name_of(answer.topics[0].partitions[0].error_code), "ILLEGAL_GENERATION", "error")
    t.same(state_of(t, p.transactional_id), "Ongoing", "state")
    p.end(commit=False)


@scenario("B9")
def produce_to_what_was_not_added(t: ScenarioClient) -> None:
    """v3-10 INVALID_TXN_STATE, v11 TRANSACTION_ABORTABLE, v12+ adds: by the request's version."""
    topic = t.topic()
    p = Producer(t, "x")
    for version in range(3, 14):
        wanted = "INVALID_TXN_STATE" if version <= 10 else "TRANSACTION_ABORTABLE" if version == 11 else NONE
        p.send(topic, b"v%d" % version, version=version, expect=wanted)
    t.same(state_of(t, p.transactional_id), "Ongoing", "state")
    p.end(commit=True)
    t.same(t.values(topic, committed=True), [b"v12", b"v13"], "committed")
    # Before the coordinator is asked: what is not one batch. After it: an internal topic, whose partition is in the
    # transaction then.
    internal = "__transaction_state"
    q = Producer(t, "y")
    batch = build([(b"k", b"v", t.epoch_ms, ())], transactional=True, producer_id=q.id, producer_epoch=q.epoch)
    answer = t.produce(topic, batch + batch, version=12, transactional_id=q.transactional_id)
    t.error(answer, "INVALID_RECORD", "two batches")
    for version in (10, 11):
        q.send(internal, b"", version=version, expect="INVALID_TXN_STATE" if version == 10 else "TRANSACTION_ABORTABLE")
    t.same(state_of(t, q.transactional_id), "Empty", "state")
    q.send(internal, b"", producer_epoch=q.epoch + 1, expect=OLD_EPOCH)
    q.send(internal, b"", expect="INVALID_TOPIC_EXCEPTION")
    t.same(state_of(t, q.transactional_id), "Ongoing", "state")
    q.end(commit=True)


@scenario("B9", settings={"transaction.partition.verification.enable": "false"}, needs=Power.SETTINGS)
def verification_switched_off(t: ScenarioClient) -> None:
    """Without verification v11 writes what was not added; v12 still adds."""
    topic = t.topic()
    p = Producer(t, "x")
    p.send(topic, b"unverified", version=11)
    t.same(state_of(t, p.transactional_id), "Empty", "state")
    t.same(t.end_offset(topic, committed=True), 0, "last stable offset")
    other = t.topic("other")
    p.send(other, b"added", version=12)
    t.same(state_of(t, p.transactional_id), "Ongoing", "state after v12")
    p.end(commit=True)
