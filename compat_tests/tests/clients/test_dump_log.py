"""Kafka's own DumpLogSegments reads every file that the shim wrote, and has nothing to complain of."""

from __future__ import annotations

from collections.abc import Callable

from kafka_shim.compat.clients import Client, Message
from kafka_shim.compat.clients.base import CODECS
from kafka_shim.targets import jvm, make

RECORDS = 4000


def test_files_of_every_codec_pass_kafkas_deep_check(client_of: Callable[[str], Client]) -> None:
    client = client_of("confluent-kafka")
    # Small segments and a dense index, so that there are many of both.
    settings = {"log.segment.bytes": "1048576", "log.index.interval.bytes": "1000", "num.partitions": "2"}
    with make("shim", settings=settings) as target:
        for codec in CODECS:
            messages = [
                Message(b"%d " % n * 200, b"key %d" % n, partition=n % 2, headers=(("n", b"%d" % n),))
                for n in range(RECORDS)
            ]
            for part in range(0, RECORDS, 400):
                client.write(target.bootstrap, f"dump-{codec}", messages[part : part + 400], acks="all", codec=codec)
        target.stop()
        folders = sorted(path for path in target.data_dir.glob("dump-*") if path.is_dir())
        logs = [path for folder in folders for path in sorted(folder.glob("*.log"))]
        indexes = [
            path for folder in folders for path in sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])
        ]
        snapshots = [path for folder in folders for path in sorted(folder.glob("*.snapshot"))]
        assert len(logs) > 2 * len(CODECS), "no segment was rolled"
        files = ",".join(str(path) for path in [*logs, *indexes, *snapshots])
        done = jvm.run(jvm.TOOLS["kafka-dump-log"], "--deep-iteration", "--files", files, timeout_s=120)
        output = done.stdout.decode() + done.stderr.decode()
        sane = jvm.run(jvm.TOOLS["kafka-dump-log"], "--index-sanity-check", "--files", ",".join(map(str, indexes)))
        output += sane.stdout.decode() + sane.stderr.decode()
    for complaint in (
        "Mismatches",
        "mismatch",
        "Could not",
        "not valid",
        "invalid",
        "corrupt",
        "Exception",
        "Found timestamp",
    ):
        assert complaint not in output.replace("isvalid: true", ""), output[output.find(complaint) - 500 :][:1500]
    assert output.count("isvalid: true") >= RECORDS * len(CODECS) // 400
    assert output.count("| offset: ") == RECORDS * len(CODECS)
    print(f"{len(logs)} segments, {len(indexes)} indexes, {len(snapshots)} snapshots read by DumpLogSegments")
