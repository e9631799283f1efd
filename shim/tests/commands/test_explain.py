"""`kafka-shim transactions explain`: what an open transaction holds back, and who waits there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kafka_shim import Broker
from kafka_shim.cli import main
from kafka_shim.client.requests import make
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection, check


def test_what_an_open_transaction_holds_back_is_told(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["transactions", "explain", "x", "--bootstrap-server", broker.bootstrap_servers]
    with Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 1)
        produce(client, "t", 0, batch(b"before"))
        writer = Producer(client, "x")
        writer.write(b"held back")
        produce(client, "t", 0, batch(b"behind it"))
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["stuck"]))
        for group, offset in (("at the end", 3), ("stuck", 1), ("slow", 0)):
            parts = [{"partition_index": 0, "committed_offset": offset}]
            commit = make(
                "OffsetCommit",
                group_id=group,
                generation_id_or_member_epoch=-1,
                topics=[{"name": "t", "partitions": parts}],
            )
            check(client.request(commit, 8).topics[0].partitions[0].error_code)
        assert main(words) == 0
        told = "holds back t-0: read_committed ends at offset 1, 2 offsets follow (records and markers)"
        told += "; waiting there, if they read so: stuck"
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1] == told
        assert re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z -> Ongoing producer id ", lines[-2])
        assert main([*words, "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert rows[-1] == {"time": None, "event": told}
        assert f"{rows[-2]['time']} {rows[-2]['event']}" == lines[-2]
        writer.end(commit=True)
    assert main(words) == 0
    assert "holds back" not in capsys.readouterr().out


def test_an_id_without_a_history_is_told_with_its_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(data_dir=tmp_path / "data") as broker:
        with Connection(broker.bootstrap_servers) as client:
            make_topic(client, "t", 1)
            Producer(client, "x").write(b"held back")
        broker.restart()
        told = []
        for words in (("explain", "x"), ("explain", "nobody"), ("force-terminate", "x"), ("explain", "x")):
            assert main(["transactions", *words, "--bootstrap-server", broker.bootstrap_servers]) == 0
            told.append(capsys.readouterr())
    known, unknown, ended, after = told
    assert known.err == "nothing has happened to x since the broker's start; it is Ongoing\n"
    assert known.out.endswith("offset 0, 1 offset follows (records and markers)\n")
    assert (unknown.out, "nobody since the broker's start; no coordinator knows it" in unknown.err) == ("", True)
    assert ended.out == "Ended what x had open, and fenced its producer.\n"
    assert "-> CompleteAbort" in after.out
    assert "holds back" not in after.out
