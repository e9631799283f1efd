from __future__ import annotations

import logging
from pathlib import Path

from kafka_shim.embedded import Broker
from kafka_shim.plurals import counted


def test_one_has_no_plural():
    assert [counted(number, "broker") for number in (0, 1, 2)] == ["0 brokers", "1 broker", "2 brokers"]
    assert [counted(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]


def test_a_start_after_a_crash_says_how_many_partitions_it_recovers(tmp_path, caplog):
    """It recovered `1 partitions`."""
    caplog.set_level(logging.INFO)
    for topic, said in (("a", 1), ("b", 2)):
        with Broker(data_dir=tmp_path) as broker:
            broker.produce(topic, "x")
        Path(tmp_path, ".kafka_cleanshutdown").unlink()
        caplog.clear()
        with Broker(data_dir=tmp_path):
            pass
        lines = [one.getMessage() for one in caplog.records if "no clean stop" in one.getMessage()]
        assert lines == [f"{tmp_path}: no clean stop, partitions to recover: {said}"]
