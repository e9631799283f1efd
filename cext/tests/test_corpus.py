"""What real clients and Apache Kafka wrote, see corpus/README.md."""

from pathlib import Path

import pytest

from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.compression import NAMES
from kafka_shim.cext.records import build_marker, iterate, parse_marker, recompress, validate
from kafka_shim.cext.tests import oracle
from kafka_shim.cext.tests.exact import exact

CORPUS = Path(__file__).parent / "corpus"
FIRST_MS = 1_700_000_000_000
CODECS = range(len(NAMES))
PYTHON_CLIENTS = ("librdkafka", "kafka-python", "aiokafka")


def read(client, codec):
    return (CORPUS / f"{client}-{NAMES[codec]}.log").read_bytes()


def expected():
    """What the generating script sent through every client but Java's."""
    for i in range(20):
        value = None if i == 7 else b"value %d " % i * (i * 3)
        headers = () if i % 3 else ((f"h{i}", b"x" * i), ("empty", b""))
        yield i, FIRST_MS + i, b"key-%d" % i, value, headers


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_client_and_codec(client, codec):
    data = read(client, codec)
    with exact(data) as buffer:
        batches = scan_all(buffer)
        assert {batch.compression for batch in batches} == {codec}
        for batch in batches:
            summary = validate(buffer, batch)
            assert summary.max_timestamp == batch.max_timestamp
        found = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in iterate(buffer, check_crc=True)]
    assert found == list(expected())


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_the_java_client(codec):
    data = read("java", codec)
    assert [batch.compression for batch in scan_all(data)] == [codec]
    with exact(data) as buffer:
        found = [(r.key, r.value) for r in iterate(buffer, check_crc=True)]
    assert found == [(b"key-%d" % i, b"value %d " % i + b"x" * (3 * i)) for i in range(20)]


@pytest.mark.parametrize("client", [*PYTHON_CLIENTS, "java"])
@pytest.mark.parametrize("codec", CODECS)
def test_the_oracle_reads_the_same_once_it_is_decompressed(client, codec):
    data = read(client, codec)
    for batch in scan_all(data):
        plain = bytes(recompress(data, batch, 0))
        records = oracle.read_records(plain[oracle.HEADER_SIZE :], oracle.scan(plain), consecutive=True)
        found = [(r.offset, r.timestamp, r.key, r.value) for r in iterate(data, batch.position, batch.end_position)]
        assert found == [record[:4] for record in records]


def test_markers_are_kafkas_to_the_byte():
    data = (CORPUS / "librdkafka-transactions.log").read_bytes()
    batches = scan_all(data)
    assert [batch.is_control for batch in batches] == [False, True] * 4
    assert {batch.is_transactional for batch in batches} == {True}
    commits = []
    for batch in batches[1::2]:
        (record,) = iterate(data, batch.position, batch.end_position)
        commit, coordinator_epoch = parse_marker(record.key, record.value)
        commits.append(commit)
        ours = build_marker(
            batch.producer_id,
            batch.producer_epoch,
            coordinator_epoch,
            commit,
            record.timestamp,
            base_offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
        )
        assert ours == data[batch.position : batch.end_position]
    assert commits == [True, False, True, False]
