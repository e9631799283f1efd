"""Records and aborted transactions of a recording and of its replay, by partition and offset."""

from __future__ import annotations

from kafka_shim.cext.records import build, build_marker
from kafka_shim.protocol.messages.fetch_request import FetchRequest
from kafka_shim.protocol.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafka_shim.wiretap.compare import Pairs
from kafka_shim.wiretap.fetched import Fetched, Question, Seen

READ_COMMITTED = FetchRequest(isolation_level=1)


def answer(*batches: bytes, aborted: tuple[tuple[int, int], ...] = ()) -> FetchResponse:
    rows = [AbortedTransaction(producer_id=producer_id, first_offset=first) for producer_id, first in aborted]
    part = PartitionData(partition_index=0, records=b"".join(batches), aborted_transactions=rows)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])


def batch(base_offset: int, value: bytes, producer_id: int = -1) -> bytes:
    return bytes(build([(b"k", value, 1, ())], base_offset=base_offset, producer_id=producer_id))


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return bytes(build_marker(producer_id, 0, 0, commit, 1, base_offset=offset))


def lines(one: FetchResponse, two: FetchResponse, pairs: Pairs | None = None) -> str:
    fetched = Fetched(pairs or Pairs())
    fetched.add(READ_COMMITTED, one, two)
    return "\n".join(line for found in fetched.compare()[1] for line in found)


def test_equal_records_are_equal_however_they_were_cut() -> None:
    fetched = Fetched(Pairs())
    fetched.add(READ_COMMITTED, answer(batch(0, b"a"), batch(1, b"b")), answer(batch(0, b"a")))
    (question,) = fetched.missing()
    assert question.message is not None
    assert question.message.topics[0].partitions[0].fetch_offset == 1
    question.take(answer(batch(1, b"b")))
    assert question.message is None
    assert fetched.compare() == (2, [])


def test_what_the_broker_does_not_have_is_found() -> None:
    fetched = Fetched(Pairs())
    fetched.add(READ_COMMITTED, answer(batch(0, b"a"), batch(1, b"b")), answer(batch(0, b"a")))
    for question in fetched.missing():
        question.take(answer())
        assert question.message is None
    assert fetched.compare() == (2, [["t-0 offset 1: (b'k', b'b') recorded, 'nothing' now"]])
    assert fetched.compare(is_whole=False) == (1, [])


def test_another_value_and_another_direction_are_found() -> None:
    assert "b'a') recorded" in lines(answer(batch(0, b"a")), answer(batch(0, b"other")))
    told = lines(answer(marker(0, 5, commit=True)), answer(marker(0, 5, commit=False)))
    assert told == "t-0 offset 0: ('commit marker',) recorded, ('abort marker',) now"


def test_aborted_transactions_are_compared_by_their_producers() -> None:
    pairs = Pairs()
    assert pairs.learn("producer_id", 5, 9)
    one, two = batch(0, b"a", 5), batch(0, b"a", 9)
    assert lines(answer(one, aborted=((5, 0),)), answer(two, aborted=((9, 0),)), pairs) == ""
    assert lines(answer(one, aborted=((5, 0),)), answer(two), pairs) == "t-0: aborted from 0 recorded, not now"
    assert lines(answer(one), answer(two, aborted=((9, 0),)), pairs) == "t-0: aborted from 0 now, not recorded"
    # A list may tell of more than the range that was fetched.
    assert lines(answer(one), answer(two, aborted=((9, 7),)), pairs) == ""


def test_offsets_that_one_side_did_not_fetch_are_passed_over_one_by_one() -> None:
    fetched = Fetched(Pairs())
    fetched.add(READ_COMMITTED, answer(batch(0, b"a"), batch(1, b"b")), answer(batch(1, b"other")))
    assert fetched.compare(is_whole=False) == (1, [["t-0 offset 1: (b'k', b'b') recorded, (b'k', b'other') now"]])


def test_a_topic_is_asked_for_by_what_it_was_fetched_by() -> None:
    by_id = Question((b"i" * 16, 2), Seen(), {3}, committed=False).message
    by_name = Question(("t", 2), Seen(), {3}, committed=True).message
    assert by_id is not None
    assert by_name is not None
    assert (by_id.topics[0].topic_id, by_id.topics[0].topic, by_id.isolation_level) == (b"i" * 16, "", 0)
    assert (by_name.topics[0].topic_id, by_name.topics[0].topic, by_name.isolation_level) == (bytes(16), "t", 1)


def test_of_what_is_known_already_nothing_is_asked_for_again_before_the_end() -> None:
    """A recording of a test suite deletes a topic in each of its tests."""
    fetched = Fetched(Pairs())
    one = answer(batch(0, b"a", 5), aborted=((5, 0),))
    fetched.add(READ_COMMITTED, one, one)
    assert [len(list(fetched.missing(again=again))) for again in (False, False, True)] == [1, 0, 1]
    fetched.add(READ_COMMITTED, answer(batch(1, b"b", 5)), answer())
    assert len(list(fetched.missing(again=False))) == 2


def test_a_topic_that_is_made_anew_has_records_of_its_own() -> None:
    fetched = Fetched(Pairs())
    fetched.add(READ_COMMITTED, answer(batch(0, b"a"), batch(1, b"b")), answer(batch(0, b"a"), batch(1, b"b")))
    assert fetched.end("t") == (2, [])
    fetched.add(READ_COMMITTED, answer(batch(0, b"x"), batch(1, b"y")), answer(batch(0, b"x")))
    (question,) = fetched.missing()
    question.take(answer(batch(1, b"y")))
    assert fetched.compare() == (2, [])


def test_what_was_not_there_yet_is_asked_for_again_before_its_topic_is_deleted() -> None:
    fetched = Fetched(Pairs())
    fetched.add(READ_COMMITTED, answer(batch(0, b"a")), answer())
    (question,) = fetched.missing(again=False)  # another topic is deleted
    question.take(answer())
    (question,) = fetched.missing(again=False)
    question.take(answer(batch(0, b"a")))
    assert fetched.end("t") == (1, [])
