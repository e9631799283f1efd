"""A layer under all system calls of storage, in which the n-th call fails, and a seeded workload over it with a model.

`run(path, seed, nth, kind)` makes one run: the workload on fresh files, one call failing on the way; then, with the
fault over, everything must work again without a restart; then a kill, and what recovery finds must be what the model
holds: nothing acknowledged lost, nothing refused kept, the directory opens. The calls of the C extension (append, read,
search) count as one each, at the border to Python."""

from __future__ import annotations

import builtins
import errno
import mmap
import os
import pickle
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from kafka_shim.cext import segment as cext_segment
from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.faults import Faults
from kafka_shim.storage import compaction, index, lookup, recovery, segments
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.logs import Logs
from kafka_shim.storage.results import StorageError
from kafka_shim.tests.appends import append_as_client, start_verification
from kafka_shim.tests.storage.conftest import NOW_MS, batch, end, records

KINDS = ("ENOSPC", "EIO", "EMFILE", "ENOMEM", "SHORT")
OS_CALLS = (
    *("open", "write", "pwrite", "ftruncate", "truncate", "rename", "unlink", "mkdir", "makedirs", "rmdir"),
    *("stat", "scandir", "utime", "pread"),
)
C_CALLS = ("append", "read", "find_batch", "Walk")
STEPS = 70


class Injector:
    """Counts the calls that storage makes and lets the `nth` fail. `kind` SHORT writes a part where bytes are written,
    and is ENOSPC elsewhere."""

    def __init__(self) -> None:
        self.count = 0
        self.nth = 0
        self.length = 1
        self.kind = ""
        self.fired = ""
        self.is_active = False

    def reach(self, name: str, where: str) -> bool:
        """Whether a short write is wanted here. Raises the fault."""
        if not self.is_active:
            return False
        self.count += 1
        if not self.nth <= self.count < self.nth + self.length:
            return False
        self.fired = self.fired or f"{name} in {where}"
        if self.kind == "SHORT" and name in ("write", "pwrite", "append"):
            return True
        number = getattr(errno, "ENOSPC" if self.kind == "SHORT" else self.kind)
        raise OSError(number, os.strerror(number))

    def attempt(self, step: Callable[[], Any]) -> tuple[bool, Any]:
        """Whether the step was acknowledged, and its answer. Raises what fails without a fault."""
        try:
            return True, step()
        except (KafkaError, OSError):
            if not self.fired:
                raise
            return False, None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Patch what storage calls; calls of other modules go through uncounted."""
        undo: list[Callable[[], None]] = []

        def patch(owner: Any, name: str, replacement: Any) -> None:
            original = getattr(owner, name)
            undo.append(lambda: setattr(owner, name, original))
            setattr(owner, name, replacement(original))

        for name in OS_CALLS:
            patch(os, name, lambda original, name=name: self._of_storage(name, original))
        # A kill leaves what the kernel has; to wait for the disk would only cost time.
        undo.append(partial(setattr, os, "fsync", os.fsync))
        os.fsync = self._of_storage("fsync", lambda _: None)
        patch(builtins, "open", lambda original: self._of_storage("open", original))
        patch(mmap, "mmap", lambda original: self._of_storage("mmap", original))
        for module in (cext_segment, segments, lookup, compaction, recovery, index):
            for name in C_CALLS:
                if hasattr(module, name):
                    patch(module, name, lambda original, name=name: self._of_c(name, original))
        # In the caller's turn: the n-th call must be the same one in every run.
        patch(Flusher, "_put", lambda _: _run_at_once)
        try:
            yield
        finally:
            for step in reversed(undo):
                step()

    def _of_storage(self, name: str, original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            where = sys._getframe(1).f_globals.get("__name__", "")
            if where.startswith(("kafka_shim.storage", "kafka_shim.metadata")) and self.reach(name, where):
                fd, data, *rest = args
                return original(fd, bytes(data)[: len(data) // 2], *rest)
            return original(*args, **kwargs)

        return call

    def _of_c(self, name: str, original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.reach(name, "cext.segment"):
                fd, (data, *_) = args
                os.write(fd, bytes(data)[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return original(*args, **kwargs)

        return call


def _run_at_once(flusher: Flusher, task: Any, _: int) -> None:
    flusher._clock.begin_work()
    flusher._do(task, next(flusher._numbers), lambda: None)


class Known:
    """What the model holds of one topic with one partition."""

    def __init__(self, topic_id: bytes, config: TopicConfig) -> None:
        self.topic_id = topic_id
        self.config = config
        self.acknowledged: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.refused: set[bytes] = set()
        self.start_offset = 0
        self.sequences: dict[int, int] = {}
        # Of open transactions: producer id -> offsets.
        self.open: dict[int, list[int]] = {}
        self.aborted: set[int] = set()


class Run:
    """One run of the workload."""

    def __init__(self, path: Path, seed: int, injector: Injector) -> None:
        self.path = path
        self.random = random.Random(seed)
        self.injector = injector
        self.clock = VirtualClock(NOW_MS)
        self.config = BrokerConfig(log_dirs=(str(path),))
        self.topics: dict[str, Known] = {}
        self.number = 0
        self.metadata: list[int] = []
        self.logs: Logs = None  # type: ignore[assignment]
        self.kills = 0
        self.ends_at_fault = False

    # --- the life of a broker

    def open(self) -> None:
        """Start; a start that the fault stopped is made again."""
        for attempt in range(self.injector.length + 1):
            logs = Logs(self.config, self.clock, Faults())
            try:
                logs.open_dirs()
                logs.open_metadata_log()
                logs.start(self.lookup)
                self.logs = logs
                break
            except (OSError, StorageError, KafkaError):
                self.logs = logs
                self.crash()
                if attempt == self.injector.length or not self.injector.fired:
                    raise
        for topic, known in self.topics.items():
            if not self.logs.has(topic, 0):
                self.attempt(lambda topic=topic, known=known: self.logs.create(topic, known.topic_id, 0, known.config))

    def lookup(self, topic: str, partition: int) -> tuple[bytes, TopicConfig, int] | None:
        known = self.topics.get(topic)
        return None if known is None else (known.topic_id, known.config, 0)

    def crash(self) -> None:
        """What SIGKILL leaves."""
        logs = self.logs
        logs.services.removals.cancel_all()
        for log in [*logs.partitions.loaded.values(), *([logs.metadata_log] if logs.metadata_log else [])]:
            for segment in log.segments:
                segment.abandon()
        # The process lives on, for tens of thousands of such deaths: what the kernel would close is closed here.
        logs.services.flusher.stop()
        for data_dir in logs.dirs:
            data_dir.unlock()
        self.kills += 1

    def stop(self) -> None:
        """A clean stop."""
        self.logs.stop()

    def attempt(self, step: Callable[[], Any]) -> Any:
        """The step's answer, None when the fault refused it; any other failure is a finding."""
        try:
            return step()
        except KafkaError as err:
            if err.code is not ErrorCode.KAFKA_STORAGE_ERROR or not self.injector.fired:
                raise
        except OSError:
            if not self.injector.fired:
                raise
        return None

    # --- the workload

    def make_topic(self, topic: str, **options: str) -> None:
        """The metadata knows it first; its directory may fail and is made at its next use."""
        self.number += 1
        known = Known(
            self.number.to_bytes(16, "big"), TopicConfig(self.config, {"index.interval.bytes": "1", **options})
        )
        self.topics[topic] = known
        self.attempt(lambda: self.logs.create(topic, known.topic_id, 0, known.config))

    def log(self, topic: str) -> PartitionLog:
        known = self.topics[topic]
        found = self.logs.find(topic, 0) if self.logs.has(topic, 0) else None
        return found or self.logs.create(topic, known.topic_id, 0, known.config)

    def produce(self, topic: str, pid: int = -1, *, txn: bool = False, key: bytes | None = None) -> None:
        """One batch; an idempotent one that was refused is sent again by the next one of its producer."""
        known = self.topics[topic]
        self.number += 1
        value = b"%s %d" % (topic.encode(), self.number)
        sequence = known.sequences.get(pid, 0)
        data = batch(value, pid=pid, seq=sequence if pid >= 0 else -1, txn=txn, key=key, timestamp=self.clock.now_ms())

        def append() -> Any:
            log = self.log(topic)
            guard = start_verification(log, pid, sequence, 0, False) if txn else None
            return append_as_client(log, data, now_ms=self.clock.now_ms(), version=11, verification=guard)

        appended = self.attempt(append)
        if appended is None:
            known.refused.add(value)
            return
        assert appended.base_offset not in known.acknowledged, f"{topic}: offset {appended.base_offset} given twice"
        known.acknowledged[appended.base_offset] = (key, value)
        if pid >= 0:
            known.sequences[pid] = sequence + 1
        if txn:
            known.open.setdefault(pid, []).append(appended.base_offset)

    def end_transaction(self, topic: str, pid: int, commit: bool) -> None:
        """A marker, which the coordinator appends again until it is in."""
        known = self.topics[topic]
        if pid not in known.open:
            return
        if self.attempt(lambda: end(self.log(topic), pid, 0, commit=commit, now_ms=self.clock.now_ms())) is None:
            return
        offsets = known.open.pop(pid)
        if not commit:
            known.aborted.update(offsets)

    def commit_metadata(self) -> None:
        """A record of the metadata log."""
        self.number += 1
        value = b"%d" % self.number
        log = self.logs.metadata_log
        assert log is not None
        if self.attempt(lambda: log.append_batch(batch(value), now_ms=self.clock.now_ms())) is not None:
            self.metadata.append(self.number)

    def delete_records(self, topic: str) -> None:
        known = self.topics[topic]
        if known.config.compact or not known.acknowledged:
            return
        offset = max(known.acknowledged) // 2
        # Refused, it may have happened or not.
        self.attempt(lambda: self.log(topic).delete_records_before(offset))
        known.start_offset = max(known.start_offset, offset)

    def delete_topic(self, topic: str) -> None:
        del self.topics[topic]
        self.attempt(lambda: self.logs.delete(topic, 0))

    def clean(self) -> None:
        for log in self.logs.loaded():
            if log.config.compact:
                self.attempt(lambda log=log: self.logs.cleaner.clean_now(log))

    def roll(self, topic: str) -> None:
        def step() -> None:
            log = self.log(topic)
            if not log.is_offline and log.active.size_bytes:
                try:
                    log.roll(self.clock.now_ms())
                except OSError as err:
                    log.fail(err)

        self.attempt(step)

    def restart(self, *, clean: bool) -> None:
        if clean:
            self.stop()
        else:
            self.crash()
        self.open()

    def step(self) -> None:
        """One random step."""
        topic = self.random.choice(sorted(self.topics))
        pid = self.random.randrange(3)
        known = self.topics[topic]
        key = b"k%d" % self.random.randrange(4) if known.config.compact else None
        steps: list[tuple[int, Callable[[], Any]]] = [
            (8, lambda: self.produce(topic, key=key)),
            (8, lambda: self.produce(topic, pid, key=key)),
            (8, lambda: self.produce("txn", 10 + pid, txn=True)),
            (5, lambda: self.end_transaction("txn", 10 + pid, self.random.random() < 0.5)),
            (4, self.commit_metadata),
            (4, lambda: self.roll(topic)),
            (2, lambda: self.delete_records("plain")),
            (2, lambda: self.logs.retain(self.clock.now_ms())),
            (3, self.clean),
            (2, self.logs.checkpoints.write_aside),
            (2, lambda: self.attempt(lambda: self.log(topic).flush())),
            (2, lambda: self.attempt(lambda: self.log(topic).take_snapshot())),
            (2, lambda: (self.delete_topic("again"), self.make_topic("again"))),
            (3, lambda: self.attempt(lambda: records(self.log(topic)))),
            (1, lambda: self.restart(clean=False)),
            (1, lambda: self.restart(clean=True)),
            (2, lambda: self.clock.advance(1000)),
        ]
        self.random.choices([one for _, one in steps], [weight for weight, _ in steps])[0]()

    def work(self) -> None:
        """The whole workload."""
        self.open()
        self.make_topic("plain")
        self.make_topic("txn")
        self.make_topic("again")
        self.make_topic("compact", **{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
        for _ in range(STEPS):
            if self.ends_at_fault and self.injector.fired:
                return
            self.step()

    # --- what must hold

    def heal(self) -> None:
        """With the fault over all partitions work, without a restart."""
        self.injector.fired = ""  # from here on nothing may be refused
        for topic in sorted(self.topics):
            with suppress(KafkaError):
                self.log(topic).latest()  # a failed fsync is noticed by the next use
        assert self.logs.reopen_offline(), "a partition stays offline"
        for topic in sorted(self.topics):
            key = b"k0" if self.topics[topic].config.compact else None
            self.produce(topic, key=key)
            for pid in range(3):
                if pid in self.topics[topic].sequences:
                    self.produce(topic, pid, key=key)
        known = self.topics["txn"]
        for pid in sorted(known.open):
            self.end_transaction("txn", pid, True)
        assert not known.open
        self.clean()
        self.logs.retain(self.clock.now_ms())
        self.commit_metadata()

    def check(self) -> None:
        """The files hold what the model holds."""
        for topic, known in self.topics.items():
            log = self.log(topic)
            found = records(log)
            values = [value for _, value in found]
            refused = [value for value in values if value in known.refused]
            assert not refused, f"{topic}: refused and kept: {refused}"
            self._check_acknowledged(topic, known, log, dict(found))
            if not known.open:
                visible = {value for _, value in records(log, isolation=1)}
                hidden = {known.acknowledged[offset][1] for offset in known.aborted}
                assert not visible & hidden, f"{topic}: aborted and shown"
        log = self.logs.metadata_log
        assert log is not None
        assert [int(value or b"") for _, value in records(log)] == self.metadata, "the metadata log"

    def _check_acknowledged(self, topic: str, known: Known, log: PartitionLog, found: dict[int, bytes | None]) -> None:
        assert log.log_start_offset <= known.start_offset, f"{topic}: starts at {log.log_start_offset}"
        wanted = {offset: value for offset, (_, value) in known.acknowledged.items() if offset >= known.start_offset}
        if known.config.compact:
            last: dict[bytes | None, int] = {}
            for offset in sorted(known.acknowledged):
                last[known.acknowledged[offset][0]] = offset
            wanted = {offset: known.acknowledged[offset][1] for key, offset in last.items() if key is not None}
        lost = {offset: value for offset, value in wanted.items() if found.get(offset) != value}
        assert not lost, f"{topic}: acknowledged and lost: {lost}"


def run(
    path: Path, seed: int, nth: int, kind: str, *, length: int = 1, kill_at_once: bool = False
) -> tuple[int, str, int]:
    """One run: the calls counted, what failed first, kills. AssertionError, or whatever else escapes, is a finding.
    `length` calls in a row fail; with `kill_at_once` the broker dies right after the step that met the fault."""
    injector = Injector()
    injector.nth, injector.kind, injector.length = nth, kind, length
    with injector.installed():
        one = Run(path, seed, injector)
        one.ends_at_fault = kill_at_once
        injector.is_active = True
        try:
            one.work()
        finally:
            injector.is_active = False
        fired = injector.fired
        if not kill_at_once:
            one.heal()
            one.check()
        for clean in (False, True, False):
            one.restart(clean=clean)
            one.check()
            one.heal()
        one.stop()
    return injector.count, fired, one.kills


def work_and_die(path: str, seed: str, nth: str, kind: str) -> None:
    """In a process of its own: work up to the fault, tell the model on stdout, and be killed."""
    injector = Injector()
    injector.nth, injector.kind = int(nth), kind
    with injector.installed():
        one = Run(Path(path), int(seed), injector)
        one.ends_at_fault = injector.is_active = True
        one.work()
        injector.is_active = False
        sys.stdout.buffer.write(pickle.dumps((one.topics, one.metadata, one.number, one.clock.now_ms())))
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def run_in_child(path: Path, seed: int, nth: int, kind: str) -> None:
    """As `run` with `kill_at_once`, killed by SIGKILL."""
    command = (
        "import sys; from kafka_shim.tests.storage.fault_injection import work_and_die; work_and_die(*sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", command, str(path), str(seed), str(nth), kind], capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    injector = Injector()
    with injector.installed():
        one = Run(path, seed, injector)
        one.topics, one.metadata, one.number, now_ms = pickle.loads(done.stdout)
        one.clock = VirtualClock(now_ms)
        one.open()
        one.check()
        one.heal()
        one.stop()
