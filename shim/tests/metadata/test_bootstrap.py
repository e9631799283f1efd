from __future__ import annotations

from kafka_shim.metadata.bootstrap import activation_records, default_records, read_checkpoint, write_checkpoint
from kafka_shim.metadata.log import snapshot_bytes
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.tests.metadata.opened import opened


def test_the_checkpoint_is_written_once_and_read_back(tmp_path):
    write_checkpoint(tmp_path, 5)
    content = (tmp_path / "bootstrap.checkpoint").read_bytes()
    # The size that Kafka's storage tool gives it.
    assert len(content) == 411
    write_checkpoint(tmp_path, 6)
    assert (tmp_path / "bootstrap.checkpoint").read_bytes() == content
    assert read_checkpoint(tmp_path) == default_records()


def test_an_empty_log_begins_with_what_the_checkpoint_says(tmp_path):
    levels = [FeatureLevelRecord(name="metadata.version", feature_level=26)]
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "bootstrap.checkpoint").write_bytes(snapshot_bytes([(record, 0) for record in levels], 5))
    with opened(tmp_path) as store:
        assert store.image.features == {"metadata.version": 26}
        assert store.image.configs == {}


def test_the_first_records_are_one_transaction_where_the_level_knows_transactions():
    names = [type(record).__name__ for record in activation_records(default_records(), 2)]
    assert names[0] == "BeginTransactionRecord"
    assert names[-2:] == ["ConfigRecord", "EndTransactionRecord"]
    old = activation_records([FeatureLevelRecord(name="metadata.version", feature_level=12)], 1)
    assert [type(record).__name__ for record in old] == ["FeatureLevelRecord"]
