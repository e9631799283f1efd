"""A process that is killed with SIGKILL while it appends loses nothing that it acknowledged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.tests.storage.conftest import Disk, put, records
from kafka_shim.tests.storage.restarted import SEGMENT

WRITER = """
import sys
from kafka_shim.clock import RealClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.faults import Faults
from kafka_shim.storage.logs import Logs
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.storage.conftest import TOPIC_ID, batch, NOW_MS
config = BrokerConfig(log_dirs=(sys.argv[1],))
topic = TopicConfig(config, {"segment.bytes": "1048576", "index.interval.bytes": "500"})
logs = Logs(config, RealClock(), Faults.from_environment())
logs.open_dirs()
logs.start(lambda name, partition: (TOPIC_ID, topic, 0))
log = logs.create("t", TOPIC_ID, 0, topic)
sequence = log.log_end_offset
while True:
    append_as_client(log, batch(b"%d" % sequence + b"z" * 3000, pid=1, seq=sequence), now_ms=NOW_MS, version=12)
    print(sequence, flush=True)
    sequence += 1
"""


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("log.before_write", 40),
        ("log.after_write", 1),
        ("log.after_write", 77),
        ("log.after_append", 400),
        ("log.before_roll", 1),
        ("log.after_roll", 1),
        ("log.after_roll", 2),
    ],
)
def test_killed_at_a_point_of_the_append_loses_nothing_acknowledged(
    make_disk: Callable[..., Disk], point: str, nth: int
) -> None:
    disk = make_disk(SEGMENT)
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(disk.path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KAFKA_SHIM_FAULTS": f"{point}=kill@{nth}"},
        cwd=Path(__file__).parents[3],
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    acknowledged = len(done.stdout.splitlines())
    log = disk.open()
    found = records(log)
    # What was being appended may be there or not; what was answered must be.
    assert acknowledged <= log.log_end_offset <= acknowledged + 1
    assert [int((value or b"").split(b"z")[0]) for _, value in found] == list(range(log.log_end_offset))
    assert put(log, b"next", pid=1, seq=log.log_end_offset).base_offset == len(found)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_killed_at_any_moment_loses_nothing_acknowledged(make_disk: Callable[..., Disk]) -> None:
    """30 lives of one directory, each ended by SIGKILL at a random moment, over segments that roll every 0.2 s or
    so."""
    disk = make_disk(SEGMENT)
    dice = random.Random(11)
    acknowledged = 0
    for _ in range(30):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(disk.path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        ) as writer:
            assert writer.stdout is not None
            for _ in range(dice.randrange(1, 1500)):
                acknowledged = int(writer.stdout.readline()) + 1
            writer.kill()
            rest = writer.stdout.read().split("\n")[:-1]
            acknowledged = int(rest[-1]) + 1 if rest else acknowledged
        log = disk.open()
        assert acknowledged <= log.log_end_offset <= acknowledged + 1
        assert log.producers.entries[1].last_sequence == log.log_end_offset - 1
        at = max(0, acknowledged - 2000)
        found = [int((value or b"").split(b"z")[0]) for _, value in records(log, at)]
        assert found == list(range(at, log.log_end_offset))
        disk.crash()
