"""Makes the stored directories `kafka_clean.tar.xz` and `kafka_crashed.tar.xz` with a real Apache Kafka; run by hand:

    python -m kafka_shim.tests.storage.make_kafka_directory

One life of a broker: idempotent, compressed, LogAppendTime and transactional data over several segments, the last
transaction left open. `crashed` is a copy made while it ran (preallocated indexes, no clean-shutdown mark), `clean` one
after its stop. Beside the files lies what Kafka's DumpLogSegments says about them.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_shim import targets
from kafka_shim.targets import jvm

HERE = Path(__file__).parent
DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOPICS = {
    "plain": {"segment.bytes": "1048576"},
    "txn": {"segment.bytes": "1048576"},
    "compacted": {"cleanup.policy": "compact", "segment.bytes": "1048576"},
    "lat": {"message.timestamp.type": "LogAppendTime", "compression.type": "gzip"},
    "empty": {},
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def fill(bootstrap: str) -> Producer:
    """Answers the producer whose transaction is open; it must live as long as the broker."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics(
        [NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()]
    ).values():
        future.result()
    plain = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.size": 20000})
    for number in range(6000):
        plain.produce("plain", value=b"v" * 500, key=b"k%d" % number, headers=[("h", b"x")])
        if number % 97 == 0:
            plain.flush()
    for number in range(500):
        plain.produce("lat", value=b"lat%d" % number)
    plain.flush()
    for codec in CODECS:
        packed = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for number in range(2000):
            packed.produce("compacted", key=b"key%d" % (number % 50), value=b"%s %d" % (codec.encode(), number))
        packed.flush()
    several = [
        Producer({"bootstrap.servers": bootstrap, "transactional.id": f"t{n}", "linger.ms": 0}) for n in range(3)
    ]
    for producer in several:
        producer.init_transactions()
    for turn in range(40):
        for producer in several:
            producer.begin_transaction()
        for number, producer in enumerate(several):
            for record in range(20):
                producer.produce("txn", value=b"turn %d producer %d record %d " % (turn, number, record) + b"z" * 1000)
            producer.flush()
        for number in ((2, 0, 1), (0, 1, 2), (1, 2, 0))[turn % 3]:
            if (turn + number) % 3 == 0:
                several[number].abort_transaction()
            else:
                several[number].commit_transaction()
    several[0].begin_transaction()
    several[0].produce("txn", value=b"open")
    several[0].flush()
    return several[0]


def pack(data_dir: Path, name: str, suffixes: tuple[str, ...]) -> None:
    """Store the topics' folders, the checkpoints, and the dump of the files with these suffixes."""
    kept = [path for path in sorted(data_dir.iterdir()) if path.name.rpartition("-")[0] in TOPICS or path.is_file()]
    files = [file for folder in kept if folder.is_dir() for file in sorted(folder.iterdir()) if file.suffix]
    logs = [str(file.relative_to(data_dir)) for file in files if file.suffix in suffixes]
    done = jvm.run(DUMP, "--deep-iteration", "--files", ",".join(str(data_dir / log) for log in logs))
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(HERE / f"{name}.tar.xz", "w:xz") as archive:
        for path in kept:
            if path.name not in (".lock", "bootstrap.checkpoint"):
                archive.add(path, f"data/{path.name}")
        for stored, text in (
            ("dump.txt", done.stdout.decode().replace(f"{data_dir}/", "")),
            ("files.txt", "\n".join(logs)),
        ):
            file = Path(scratch) / stored
            file.write_text(text)
            archive.add(file, stored)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "crashed"
        with targets.make("kafka-native", {"log.cleaner.enable": "false"}, Path(scratch) / "data") as broker:
            producer = fill(broker.bootstrap)
            shutil.copytree(broker.data_dir, copy)
            broker.stop()
            del producer
            pack(broker.data_dir, "kafka_clean", (".index", ".log", ".snapshot", ".timeindex", ".txnindex"))
        # Kafka's tool fails on the preallocated index of an empty segment.
        pack(copy, "kafka_crashed", (".log", ".snapshot", ".txnindex"))


if __name__ == "__main__":
    main()
