"""Instructions that the broker executes for one request of each kind: ``python -m bench.instructions``.

Counted by callgrind, so the figures hardly depend on the machine or on what else it does. The broker runs twice under
valgrind for each kind, with FEW and with MANY requests; the difference is divided by the requests between. ``--python``
counts a broker of another environment with the same requests, for a comparison of two versions. The table is that of
docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from kafka_shim.cext.records import build
from kafka_shim.targets import requests
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Without the garbage collector: one collection more or less among the requests is a tenth of the figure.
BROKER = "import gc, sys; gc.disable(); from kafka_shim.cli import main; sys.exit(main(sys.argv[1:]))"
FEW, MANY = 50, 450
COLLECTED = re.compile(r"Collected *: *(\d+)")
READY = re.compile(rb"ready PLAINTEXT://(\S+) ")
SMALL = [(b"key", b"x" * 100, 1, ())]
LARGE = [(b"key", b"x" * 1000, 1, ())] * 1000


class Workload:
    """One connection to the broker, a topic of one partition, and an idempotent producer's next sequence."""

    def __init__(self, client: Connection) -> None:
        self.client = client
        self._sequence = 0
        self._session_id = self._session_epoch = 0
        requests.create_topic(client, "counted", 1, {"max.message.bytes": "2000000"})
        answer = client.request(
            requests.make("InitProducerId", transactional_id=None, transaction_timeout_ms=60_000), 4
        )
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    def _produce(self, records: list[tuple[bytes, bytes, int, tuple[()]]]) -> None:
        batch = build(records, producer_id=self._producer_id, producer_epoch=self._epoch, base_sequence=self._sequence)
        self._sequence += len(records)
        answer = self.client.request(requests.produce("counted", 0, batch), 11)
        error_code = answer.responses[0].partition_responses[0].error_code
        if error_code:
            raise SystemExit(f"a produce was refused: error code {error_code}")

    def small_produce(self) -> None:
        """One record of 100 bytes, acks=all, idempotent."""
        self._produce(SMALL)

    def large_produce(self) -> None:
        """1,000 records of 1,000 bytes in one batch."""
        self._produce(LARGE)

    def fetch(self) -> None:
        """The first record of the partition, without a session."""
        self.client.request(requests.fetch("counted", 0, 0, max_bytes=1), 12)

    def fetch_few(self) -> None:
        """An incremental fetch of 10 partitions, of which one has a new record, with the produce of it."""
        self._fetch_session(10)

    def fetch_many(self) -> None:
        """The same of 4,000 partitions."""
        self._fetch_session(4_000)

    def _fetch_session(self, partition_count: int) -> None:
        if not self._session_id:
            requests.create_topic(self.client, "watched", partition_count, {})
            self._session_id = self._fetch({number: 0 for number in range(partition_count)})
        self.client.request(requests.produce("watched", 0, build(SMALL)), 11)
        self._fetch({0: self._session_epoch - 1})

    def _fetch(self, offsets: dict[int, int]) -> int:
        parts = [
            {"partition": number, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
            for number, offset in offsets.items()
        ]
        session = {"session_id": self._session_id, "session_epoch": self._session_epoch}
        topics = [{"topic": "watched", "partitions": parts}]
        answer = self.client.request(
            requests.make("Fetch", max_wait_ms=0, min_bytes=1, max_bytes=1 << 24, topics=topics, **session), 12
        )
        if answer.error_code:
            raise SystemExit(f"a fetch was refused: error code {answer.error_code}")
        self._session_epoch += 1
        return answer.session_id

    def heartbeat(self) -> None:
        """A heartbeat of a group that does not exist: the cost of an answer from the coordinator."""
        self.client.request(requests.make("Heartbeat", group_id="g", generation_id=1, member_id="m"), 4)

    def offset_commit(self) -> None:
        """A simple consumer commits the offset of one partition."""
        part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        topics = [{"name": "counted", "partitions": [part]}]
        self.client.request(
            requests.make("OffsetCommit", group_id="s", generation_id_or_member_epoch=-1, member_id="", topics=topics),
            8,
        )


KINDS: dict[str, Callable[[Workload], None]] = {
    "small produce": Workload.small_produce,
    "1 MB produce": Workload.large_produce,
    "fetch of one record": Workload.fetch,
    "produce and incremental fetch, 10 partitions": Workload.fetch_few,
    "produce and incremental fetch, 4,000 partitions": Workload.fetch_many,
    "heartbeat": Workload.heartbeat,
    "offset commit": Workload.offset_commit,
}


@contextmanager
def counted(python: str, counts: list[int]) -> Iterator[str]:
    """A broker under callgrind; gives its address, and adds its instructions to `counts` when it has ended."""
    with tempfile.TemporaryDirectory(prefix="kafka-shim-instructions-") as folder:
        line = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/out",
            python,
            "-m",
            "kafka_shim",
            "serve",
        ]
        line += ["--listen", "127.0.0.1:0", "--data-dir", f"{folder}/data", "-o", "log.cleaner.enable=false"]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        errors = Path(folder, "stderr")
        with (
            errors.open("wb") as stderr,
            subprocess.Popen(line, stdout=subprocess.PIPE, stderr=stderr, env=environment) as broker,
        ):
            assert broker.stdout is not None
            ready = READY.match(broker.stdout.readline())
            try:
                if ready is None:
                    broker.kill()
                    raise SystemExit(f"the broker did not get ready:\n{errors.read_text()[-2000:]}")
                yield ready[1].decode()
            finally:
                broker.send_signal(signal.SIGTERM)
                broker.wait()
        found = COLLECTED.search(errors.read_text())
        if found is None:
            raise SystemExit(f"callgrind gave no count:\n{errors.read_text()[-2000:]}")
        counts.append(int(found[1]))


def instructions(python: str, kind: str) -> float:
    """Instructions a request."""
    counts: list[int] = []
    for number in (FEW, MANY):
        with counted(python, counts) as address, Connection(address, timeout_s=900) as client:
            workload = Workload(client)
            for _ in range(number):
                KINDS[kind](workload)
    return (counts[1] - counts[0]) / (MANY - FEW)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the broker's environment")
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help=f"of: {', '.join(KINDS)}")
    given = parser.parse_args()
    print("| one request | instructions |\n| --- | ---: |")
    for kind in given.kinds:
        print(f"| {kind} | {instructions(given.python, kind):,.0f} |", flush=True)


if __name__ == "__main__":
    main()
