"""The imports after a start: each is small, and the first requests import nothing more."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import cast

import pytest

from kafka_shim import first_uses
from kafka_shim.broker import Broker
from kafka_shim.clock import VirtualClock
from kafka_shim.tests.waiting import PATIENCE_S

# The most modules that one step brings: they take a few milliseconds together.
MOST_MODULES = 8
# Started from here on, each process has imported what `kafka-shim serve` has at its ready line.
PRELUDE = """
import json, sys
from kafka_shim import Broker
from kafka_shim.first_uses import MODULES, imports

def loaded():
    return {name for name in sys.modules if name.startswith("kafka_shim.")}
"""
# Another process: the client imports what the broker must have imported by itself.
CLIENT = """
import sys
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

servers = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(servers)
admin.create_topics([NewTopic("made", 2)])["made"].result()
for kind in ("classic", "consumer"):
    producer = Producer({**servers, "transactional.id": kind})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("made", b"x")
    producer.commit_transaction()
    group = {"group.id": kind, "auto.offset.reset": "earliest", "group.protocol": kind}
    consumer = Consumer({**servers, **group, "enable.auto.commit": False})
    consumer.subscribe(["made"])
    while (found := consumer.poll(1)) is None or found.error():
        pass
    producer.begin_transaction()
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
    producer.commit_transaction()
    consumer.commit(asynchronous=False)
    consumer.close()
"""


def run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", PRELUDE + program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_step_imports_few_modules() -> None:
    program = """
with Broker():
    counts, before = {}, loaded()
    for name, _ in zip(MODULES, imports(MODULES)):
        counts[name], before = len(loaded() - before), loaded()
print(json.dumps(counts))
"""
    counts: dict[str, int] = json.loads(run(program))
    assert list(counts) == list(first_uses.MODULES)
    assert {name: count for name, count in counts.items() if not 0 < count <= MOST_MODULES} == {}


def test_clients_find_everything_imported() -> None:
    program = """
import subprocess
for _ in imports(MODULES):
    pass
with Broker() as broker:
    before = loaded()
    subprocess.run([sys.executable, "-c", sys.argv[1], broker.bootstrap_servers], check=True)
    print(json.dumps(sorted(loaded() - before)))
"""
    assert json.loads(run(program, CLIENT)) == []


def test_serve_imports_after_its_ready_line() -> None:
    program = """
import os, signal
from kafka_shim import first_uses
from kafka_shim.serve import serve

def import_module(name):
    print(name, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

first_uses.AFTER_MS = 0
first_uses.import_module = import_module
sys.exit(serve(memory=True, listen="127.0.0.1:0"))
"""
    ready, first, *_ = run(program).splitlines()
    assert ready.startswith("ready PLAINTEXT://127.0.0.1:")
    assert first == f"kafka_shim.{first_uses.MODULES[0]}"


def test_nothing_is_imported_before_its_time_nor_after_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(first_uses, "import_module", asked.append)
    clock = VirtualClock(start_ms=0)
    scheduler = first_uses.import_in_slices(cast("Broker", SimpleNamespace(clock=clock)))
    clock.advance(first_uses.AFTER_MS - 1)
    assert asked == []
    clock.advance(1)
    assert asked == [f"kafka_shim.{first_uses.MODULES[0]}"]
    clock.advance(first_uses.PAUSE_MS)
    assert len(asked) == 2
    scheduler.stop()
    clock.advance(100 * first_uses.PAUSE_MS)
    assert len(asked) == 2


@pytest.mark.parametrize("error", [ImportError("no such"), OSError(24, "Too many open files"), MemoryError()])
def test_what_cannot_be_imported_is_left_to_its_first_use(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(first_uses, "import_module", fail)
    assert list(first_uses.imports(["a", "b"])) == []
