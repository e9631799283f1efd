"""What a message class gives to those who use it."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys

import pytest

from kafka_shim.protocol.message import ZERO_UUID, Message
from kafka_shim.protocol.messages.fetch_response import EpochEndOffset, FetchResponse, PartitionData
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.tests.protocol.values import CLASSES, Highest, make, structs_of


def test_fields_not_given_have_their_defaults() -> None:
    partition = PartitionData(partition_index=3)
    assert partition.partition_index == 3
    assert (partition.error_code, partition.log_start_offset, partition.records) == (0, -1, None)
    assert partition.diverging_epoch == EpochEndOffset(epoch=-1, end_offset=-1)
    assert TopicProduceData().topic_id == ZERO_UUID
    assert partition.unknown_tags is None


def test_defaults_that_can_change_are_new_for_every_message() -> None:
    first, second = FetchResponse(), FetchResponse()
    first.responses.append(FetchResponse())  # type: ignore[arg-type]
    assert second.responses == []
    assert PartitionData().current_leader is not PartitionData().current_leader


def test_values_are_kept_as_they_were_given() -> None:
    topics: list[TopicProduceData] = []
    assert ProduceRequest(topic_data=topics).topic_data is topics
    assert PartitionData(aborted_transactions=[]).aborted_transactions == []
    assert PartitionData(aborted_transactions=None).aborted_transactions is None
    assert ProduceRequest(unknown_tags={9: b"x"}).unknown_tags == {9: b"x"}
    # A name that was made at run time is not interned.
    assert ProduceRequest(**{"".join(["ac", "ks"]): -1}).acks == -1


def test_only_fields_are_taken_and_only_by_name() -> None:
    with pytest.raises(TypeError, match="no field wrong"):
        ProduceRequest(wrong=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="keywords only"):
        ProduceRequest(1)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ProduceRequest().wrong = 1  # type: ignore[attr-defined]


def test_messages_are_equal_when_their_fields_are() -> None:
    assert PartitionProduceData(index=1) == PartitionProduceData(index=1)
    assert PartitionProduceData(index=1) != PartitionProduceData(index=2)
    assert PartitionProduceData(records=b"ab") == PartitionProduceData(records=memoryview(b"ab"))
    assert PartitionProduceData(unknown_tags={1: b""}) != PartitionProduceData()
    assert PartitionProduceData(unknown_tags={}) == PartitionProduceData()
    assert PartitionProduceData() != TopicProduceData()
    with pytest.raises(TypeError):
        hash(PartitionProduceData())


def test_a_message_prints_its_fields() -> None:
    assert repr(PartitionProduceData(index=1, records=b"x")) == "PartitionProduceData(index=1, records=b'x')"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_says_what_its_annotations_promise(cls: type[Message]) -> None:
    """The annotations are for type checkers; what really happens comes from FIELDS."""
    message = make(cls, cls.MAX_VERSION, Highest())
    for struct in structs_of(message, cls.MAX_VERSION):
        names = {row[0] for row in struct.FIELDS}
        assert names == set(type(struct).__slots__)
        assert type(struct)(**{name: getattr(struct, name) for name in names}) == struct
        assert "__dict__" not in dir(struct)


def test_messages_are_copied_and_pickled() -> None:
    message = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t")])
    for other in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert other == message
        assert other is not message


def test_construction_leaves_nothing_behind() -> None:
    def work() -> None:
        for _ in range(1000):
            PartitionData(partition_index=2**20, records=b"x")
            with pytest.raises(TypeError):
                PartitionData(partition_index=2**20, wrong=1)  # type: ignore[call-arg]

    work()
    gc.collect()
    before = len(gc.get_objects()), sys.getrefcount(PartitionData), sys.getrefcount(None)
    work()
    gc.collect()
    after = len(gc.get_objects()), sys.getrefcount(PartitionData), sys.getrefcount(None)
    assert all(abs(now - then) < 500 for now, then in zip(after, before, strict=True))


NO_MEMORY = """
import resource
from kafka_shim.cext.messages import encode
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
request = FindCoordinatorRequest(key="\\u00e9" * (64 << 20))
with open("/proc/self/statm") as file:
    taken = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (16 << 20), resource.RLIM_INFINITY))
try:
    encode(request, 3)
except MemoryError:
    print("no memory")
"""


def test_a_string_for_which_memory_is_missing_is_not_told_as_a_wrong_one() -> None:
    ran = subprocess.run([sys.executable, "-c", NO_MEMORY], check=False, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("no memory\n", "", 0)
