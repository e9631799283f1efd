from __future__ import annotations

import _thread
import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from kafka_shim import Broker, embedded, embedded_control, embedded_process, server
from kafka_shim.client.groups import list_groups
from kafka_shim.client.offsets import commit_offsets
from kafka_shim.client.requests import make
from kafka_shim.client.writing import Producer
from kafka_shim.clock import VirtualClock
from kafka_shim.config import ConfigError
from kafka_shim.embedded_control import milliseconds
from kafka_shim.embedded_records import FirstRecords
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.coordinator import GroupCoordinator
from kafka_shim.metadata.store import MetadataStore
from kafka_shim.security import scram_credentials
from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN, DataDir
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.moves import Moves
from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
from kafka_shim.storage.removals import Removals
from kafka_shim.storage.results import StorageError
from kafka_shim.targets.waiting import right_answer, wait_until
from kafka_shim.tests.descriptors import none_left
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import batch, fetch, make_topic, metadata, produce
from kafka_shim.txn.coordinator import TransactionCoordinator
from kafka_shim.wire_client import Connection, RequestError, WireClientError

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def open_files() -> set[str]:
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(entry.readlink()))
    return found


def running() -> set[object]:
    """The threads and children of brokers. Those that other tests share run all the time."""
    children = psutil.Process().children(recursive=True)
    brokers = {child.pid for child in children if "kafka_shim" in child.as_dict(["cmdline"], [])["cmdline"]}
    return brokers | {thread for thread in threading.enumerate() if thread.name.startswith("kafka-shim")}


def test_it_serves_and_leaves_no_thread_file_or_directory_behind(loop_factory):
    with Broker(loop_factory=loop_factory):
        pass  # what the first one imports and opens for good is not counted
    threads, files = set(threading.enumerate()), open_files()
    with Broker(num_partitions=3, loop_factory=loop_factory) as broker:
        with Connection(broker.bootstrap_servers) as client:
            metadata(client, "t")  # makes it
            assert len(metadata(client, "t").topics[0].partitions) == 3
            assert produce(client, "t", 0, batch(b"a")).base_offset == 0
        directory = broker.data_dir
        assert directory.is_dir()
    assert not directory.exists()
    assert set(threading.enumerate()) == threads
    assert open_files() <= files


def test_the_data_directory_is_told_also_where_metrics_are_served():
    with Broker(kafka_shim_http_listener="127.0.0.1:0") as broker:
        assert broker.data_dir.is_dir()


@pytest.mark.parametrize("process", [False, True])
def test_the_address_of_metrics_is_told_and_kept(process):
    with Broker(kafka_shim_http_listener=":0", process=process) as broker:
        address = broker.http_address
        assert address.startswith("http://127.0.0.1:")
        for again in (broker.restart, broker.reset):
            again()
            assert broker.http_address == address
            with urllib.request.urlopen(f"{address}/health/ready", timeout=60) as answer:
                assert answer.status == 200
        broker.stop()
        with pytest.raises(RuntimeError, match="not running"):
            _ = broker.http_address
    with Broker() as broker:
        assert broker.http_address == ""


def test_the_port_of_metrics_is_held_from_a_kill_to_the_next_start():
    """Of a listener on loopback IPv6 was held too, or nothing, where somebody had the port there."""
    has_ipv6 = socket.has_dualstack_ipv6()
    with Broker(kafka_shim_http_listener=":0", process=True) as broker:
        address = broker.http_address
        host, port = address.removeprefix("http://").split(":")
        with socket.socket(socket.AF_INET6 if has_ipv6 else socket.AF_INET) as others:
            others.bind(("::1" if has_ipv6 else "127.0.0.2", int(port)))
            others.listen()
            broker.kill()
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind((host, int(port)))
            broker.start()
        assert broker.http_address == address


def test_several_brokers_live_beside_each_other():
    with Broker() as one, Broker() as two, Connection(one.bootstrap_servers) as first:
        make_topic(first, "only-here")
        with Connection(two.bootstrap_servers) as second:
            assert [topic.name for topic in metadata(second).topics] == []
        assert one.cluster_id != two.cluster_id
        assert one.port != two.port


def test_a_directory_that_was_given_is_kept_and_comes_back(tmp_path: Path):
    broker = Broker(data_dir=tmp_path)
    for offset in range(3):
        with broker, Connection(broker.bootstrap_servers) as client:
            metadata(client, "t")
            assert produce(client, "t", 0, batch(b"a")).base_offset == offset
            cluster_id = broker.cluster_id
    with Broker(data_dir=tmp_path) as again:
        assert again.cluster_id == cluster_id


@pytest.mark.parametrize("process", [False, True])
def test_directories_given_as_the_option_are_used_and_kept(tmp_path: Path, process: bool):
    first, second = tmp_path / "a", tmp_path / "b"
    both = Broker(log_dirs=f"{first},{second}", process=process)
    with both as broker, Connection(broker.bootstrap_servers) as client:
        assert broker.data_dir == first
        make_topic(client, "t", 2)
    assert ((first / "t-0").is_dir(), (second / "t-1").is_dir()) == (True, True)
    with Broker(log_dir=tmp_path / "c", process=process) as broker:
        assert broker.data_dir == tmp_path / "c"
    with pytest.raises(TypeError, match="give one of them"):
        Broker(data_dir=first, log_dirs=str(second))


@pytest.mark.parametrize("process", [False, True])
@pytest.mark.parametrize("given", [{"data_dir": "a"}, {"log_dirs": "a, b", "cordoned_log_dirs": "b"}])
def test_a_relative_directory_is_the_same_one_wherever_the_program_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: bool, given: dict[str, str]
):
    """A restart elsewhere had another directory, without the records."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    with Broker(process=process, **given) as broker:
        broker.produce("t", "kept")
        monkeypatch.chdir(elsewhere)
        assert broker.data_dir == tmp_path / "a"
        broker.restart()
        assert [one.text for one in broker.consume("t")] == ["kept"]
    assert list(elsewhere.iterdir()) == []


def test_a_directory_in_use_is_refused_and_the_broker_can_be_started_later(tmp_path: Path):
    late = Broker(data_dir=tmp_path)
    with Broker(data_dir=tmp_path), pytest.raises(StorageError):
        late.start()
    with late, Connection(late.bootstrap_servers) as client:
        assert metadata(client).topics == []


def test_a_broker_whose_users_cannot_be_stored_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A full disk may refuse them. The directory must not stay locked by a broker that nobody can reach."""
    broker = Broker(data_dir=tmp_path, sasl="SCRAM-SHA-256", users={"alice": "secret"})

    def refuse(*_: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space is left")

    with monkeypatch.context() as patch, pytest.raises(KafkaError, match="no space is left"):
        patch.setattr(scram_credentials, "records_of_users", refuse)
        broker.start()
    with broker:
        assert broker.topics() == []


def test_options_are_kafkas_with_underscores_and_plain_values():
    with Broker(auto_create_topics_enable=False, log_cleanup_policy=["compact", "delete"]) as broker:
        with Connection(broker.bootstrap_servers) as client:
            assert metadata(client, "t").topics[0].error_code == 3
        assert broker.state.config.log_cleanup_policy == ("compact", "delete")
        assert broker.state.config.group_initial_rebalance_delay_ms == 0
    with pytest.raises(ConfigError, match="did you mean"):
        Broker(num_partitons=1)


@pytest.mark.parametrize("value", ["soon", 10**30])
def test_the_option_with_a_default_of_its_own_is_checked_as_every_other(value: object):
    with pytest.raises(ConfigError, match=r"group\.initial\.rebalance\.delay\.ms"):
        Broker(group_initial_rebalance_delay_ms=value)
    with Broker(group_initial_rebalance_delay_ms=5) as broker:
        assert broker.state.config.group_initial_rebalance_delay_ms == 5
        assert broker.state.config.given["group.initial.rebalance.delay.ms"] == "5"


def test_an_empty_name_of_a_directory_is_not_the_working_directory():
    with pytest.raises(ConfigError, match="data_dir is the name of a directory, not ''"):
        Broker(data_dir="")


def test_its_clock_moves_when_the_test_moves_it():
    with Broker(clock="virtual") as broker:
        before = broker.clock.now_ms()
        broker.clock.advance("61s")
        broker.clock.advance(5)
        assert broker.clock.now_ms() - before == 61_005
        with pytest.raises(ValueError, match="'7x' is not a duration such as 250ms"):
            broker.clock.advance("7x")
        with pytest.raises(ValueError, match="cannot go back"):
            broker.clock.advance("-7s")
        assert broker.clock.now_ms() - before == 61_005
    with Broker() as broker, pytest.raises(TypeError):
        broker.clock.advance(1)


def test_its_clock_may_be_moved_for_longer_than_a_call_may_take(monkeypatch: pytest.MonkeyPatch):
    """Fourteen months took 30 s, and then failed."""
    with Broker(clock="virtual") as broker:
        clock, caller = broker.state.clock, threading.get_ident()
        assert isinstance(clock, VirtualClock)
        half_way, seen = threading.Event(), threading.Event()
        looks = 0

        def monotonic_ms() -> int:
            """The second look of the caller, after its patience has ended, is while the clock stands half-way."""
            nonlocal looks
            if threading.get_ident() == caller:
                looks += 1
                if looks == 2:
                    assert half_way.wait(60)
                    monkeypatch.setattr(embedded_control, "CALL_SECONDS", 60)
                    seen.set()
            return VirtualClock.monotonic_ms(clock)

        def stand() -> None:
            half_way.set()
            assert seen.wait(60)

        broker.call(lambda: clock.call_later(432_000_000, stand))
        before = broker.clock.now_ms()
        monkeypatch.setattr(embedded_control, "CALL_SECONDS", 0.02)
        monkeypatch.setattr(clock, "monotonic_ms", monotonic_ms)
        broker.clock.advance("10d")
        assert broker.clock.now_ms() - before == 864_000_000
        assert looks >= 2


def test_the_clock_of_a_stopped_broker_moves_too(tmp_path: Path):
    """It stood still, without a word."""
    broker = Broker(clock="virtual", data_dir=tmp_path, log_retention_check_interval_ms=1000)
    with broker:
        broker.create_topic("t", retention_ms=60_000, segment_ms=60_000)
        broker.produce("t", "old")
        before = broker.clock.now_ms()
    broker.clock.advance("7d")
    assert broker.clock.now_ms() - before == 604_800_000
    with broker:
        broker.produce("t", "new")
        broker.clock.advance("40s")  # the first check comes after 30 s
        assert [one.text for one in broker.consume("t")] == ["new"]


def test_consumers_do_not_hold_the_clock_up_at_each_end_of_their_waits(broker):
    """A consumer asks again at once, on the machine's time: the clock would go with it, from 500 ms to 500 ms."""
    asked, is_over = [], threading.Event()

    def poll():
        with Connection(broker.bootstrap_servers, timeout_s=60) as client:
            make_topic(client, "t")
            while not is_over.is_set():
                asked.append(fetch(client, "t", 0, 0, max_wait_ms=500))

    with ThreadPoolExecutor() as pool:
        polling = pool.submit(poll)
        wait_until(lambda: broker.call(lambda: len(broker.state.parked)) == 1, "the consumer waits")
        try:
            broker.clock.advance("10h")
            count = len(asked)
            broker.produce("t", "a")
            wait_until(lambda: asked[-1].records, "the consumer has the record")
        finally:
            is_over.set()
        polling.result()
    assert count <= 12


def test_a_user_that_it_does_not_have_is_named():
    broker = Broker(sasl="PLAIN", users={"alice": "secret"})
    with broker, pytest.raises(ValueError, match="'bob' is not one of the users of this broker: alice"):
        broker.client_config("java", "bob")


def test_faults_are_armed_from_the_test():
    with Broker(faults="txn.after_prepare=error") as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        broker.faults.arm("log.before_write", "error", "INVALID_RECORD", nth=1)
        assert produce(client, "t", 0, batch(b"a")).error_code == 87
        assert produce(client, "t", 0, batch(b"a")).error_code == 0
        assert broker.faults.reached("log.before_write") == 2


@pytest.mark.parametrize("action", ["error", "oserror", "drop"])
def test_a_fault_at_a_stop_leaves_nothing_behind(action: str, tmp_path: Path):
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        assert produce(client, "t", 0, batch(b"a")).error_code == 0
        threads = threading.active_count()
        broker.faults.arm("server.stopping", action)
        broker.restart()
        assert [record.text for record in broker.consume("t")] == ["a"]
        assert threading.active_count() <= threads


@pytest.mark.parametrize(
    ("part", "step"),
    [(GroupCoordinator, "stop"), (TransactionCoordinator, "stop"), (MetadataStore, "stop"), (MetadataStore, "_depart")],
)
def test_a_step_of_a_stop_that_finds_no_memory_ends_none_of_the_rest(
    part: type, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The directories stayed locked, and the next start recovered all partitions."""
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        assert produce(client, "t", 0, batch(b"a")).error_code == 0
        with monkeypatch.context() as patch:
            patch.setattr(part, step, no_memory_left)
            broker.stop()
        assert (tmp_path / CLEAN_SHUTDOWN).exists()
        broker.start()
        assert [record.text for record in broker.consume("t")] == ["a"]


@pytest.mark.parametrize(
    ("part", "step"),
    [
        (OffsetCheckpoints, "write"),
        (DataDir, "mark_clean"),
        (Moves, "stop"),
        (Flusher, "sync_all"),
        (Removals, "cancel_all"),
    ],
)
def test_a_step_of_the_stop_of_the_logs_that_finds_no_memory_leaves_no_directory_locked(
    part: type, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with Broker(data_dir=tmp_path) as broker:
        broker.produce("t", "a")
        with monkeypatch.context() as patch:
            patch.setattr(part, step, no_memory_left)
            broker.stop()
        assert (tmp_path / CLEAN_SHUTDOWN).exists() == (part in (Moves, Removals))
        broker.start()
        assert [record.text for record in broker.consume("t")] == ["a"]


def test_a_start_that_fails_frees_the_directory_although_a_step_back_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    broker = Broker(data_dir=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(TransactionCoordinator, "start", no_start)
        patch.setattr(GroupCoordinator, "stop", no_memory_left)
        with pytest.raises(OSError, match="it cannot start"):
            broker.start()
    with broker:
        assert broker.topics() == []


def no_start(_: object) -> None:
    raise OSError("it cannot start")


def test_a_function_at_a_fault_point_may_change_the_faults_and_may_not_wait_for_its_own_thread():
    """It was held up for 30 s, and the broker with it."""
    with Broker(clock="virtual") as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        refused: list[str] = []

        def act(**_: object) -> None:
            broker.faults.disarm("log.before_write")
            with pytest.raises(RuntimeError) as told:
                broker.clock.advance("1s")
            refused.append(str(told.value))

        broker.faults.arm("log.before_write", act, where={"topic": "t"})
        assert [produce(client, "t", 0, batch(b"a")).error_code for _ in range(2)] == [0, 0]
        assert refused == ["the broker's own thread cannot wait for itself: call this on another one"]
        broker.clock.advance("1s")


def test_a_broker_in_a_process_is_killed_and_recovers(tmp_path: Path):
    broker = Broker(data_dir=tmp_path, process=True)
    with broker, Connection(broker.bootstrap_servers) as client:
        metadata(client, "t")
        assert produce(client, "t", 0, batch(b"a")).base_offset == 0
        broker.kill()
        with pytest.raises(RuntimeError):
            _ = broker.bootstrap_servers
    with broker, Connection(broker.bootstrap_servers) as client:
        assert fetch(client, "t", 0, 0).high_watermark == 1


def test_a_process_that_cannot_start_says_so():
    with pytest.raises(RuntimeError, match="status 1"):
        Broker(process=True, listen="no.such.host.invalid:0").start()


def test_a_process_that_closes_its_output_before_it_is_ready_is_ended_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    child = tmp_path / "python"
    child.write_text("#!/bin/sh\necho 'out of order' >&2\nexec >&-\nexec sleep 600 2>&-\n")
    child.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(child))
    monkeypatch.setattr(embedded_process, "END_SECONDS", 0.2)
    expected = r"closed its output before it was ready, and was killed 0\.2 s later: out of order"
    with pytest.raises(RuntimeError, match=expected):
        Broker(process=True).start()
    assert not [one for one in psutil.Process().children() if one.name() == "sleep"]


def test_a_stop_that_takes_too_long_is_told_and_can_be_waited_for(monkeypatch: pytest.MonkeyPatch):
    """The directory must not be removed, nor a second broker started on it, while the first still writes."""
    monkeypatch.setattr(embedded, "STOP_SECONDS", 0.2)
    going_on = threading.Event()

    def wait(**facts: object) -> None:
        assert going_on.wait(60)

    broker = Broker().start()
    with Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        produce(client, "t", 0, batch(b"a"))
    directory = broker.data_dir
    broker.faults.arm("log.before_fsync", wait)
    for end in (broker.stop, broker.stop, broker.restart, broker.reset):
        with pytest.raises(TimeoutError, match=r"still runs 0\.2 s after it was told to stop"):
            end()
        assert directory.is_dir()
    going_on.set()
    monkeypatch.setattr(embedded, "STOP_SECONDS", 60)
    broker.stop()
    assert not directory.exists()


def test_several_threads_may_start_and_end_a_broker():
    """Each of two restarts started one, of which the first ran on with nobody to stop it."""
    before = running()
    broker = Broker().start()
    failed: list[BaseException] = []

    def life(method: Callable[[], object]) -> None:
        try:
            method()
        except BaseException as error:
            failed.append(error)

    for methods in ([broker.restart, broker.restart, broker.reset], [broker.stop, broker.stop]):
        threads = [threading.Thread(target=life, args=(method,)) for method in methods]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
    assert not failed
    assert running() <= before


def test_a_kill_does_not_wait_for_a_stop_of_another_thread(monkeypatch: pytest.MonkeyPatch):
    broker = Broker(process=True).start()
    child = broker._process.popen
    child.send_signal(signal.SIGSTOP)  # the stop alone would never end it
    waits = threading.Event()

    def terminate() -> None:
        waits.set()

    monkeypatch.setattr(child, "terminate", terminate)
    monkeypatch.setattr(embedded_process, "STOP_SECONDS", 600)
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(broker.stop)
        assert waits.wait(60)
        broker.kill()
        stopping.result(60)
    assert child.returncode == -signal.SIGKILL


def test_who_waits_for_a_broker_that_is_stopped_is_told():
    broker = Broker().start()
    waits = threading.Event()

    async def wait() -> None:
        waits.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(broker.call, wait)
        assert waits.wait(60)
        broker.stop()
        with pytest.raises(RuntimeError, match="the broker was stopped meanwhile"):
            waiting.result(60)


def test_a_broker_is_refused_where_threads_are_none(monkeypatch: pytest.MonkeyPatch):
    """Its loop held the only thread there is, and whoever asked it waited for ever."""
    broker = Broker()

    def of_python() -> int:
        return _thread.get_ident()

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match=r"gevent .* Broker\(process=True\)"):
        patch.setattr(threading, "get_ident", of_python)
        broker.start()
    with broker:
        assert broker.topics() == []


@pytest.mark.parametrize("method", ["restart", "reset", "stop", "topics"])
def test_what_would_wait_for_the_brokers_own_thread_is_refused_there(method: str):
    """A broker that was told to end by its own thread ended, and was taken for running."""
    with Broker() as broker:
        with pytest.raises(RuntimeError, match="own thread cannot wait for itself"):
            broker.call(getattr(broker, method))
        assert broker.topics() == []


@pytest.mark.parametrize("process", [False, True])
def test_a_directory_that_was_emptied_gets_the_users_again(tmp_path: Path, process: bool):
    broker = Broker(data_dir=tmp_path / "data", sasl="SCRAM-SHA-256", users={"alice": "secret"}, process=process)
    for _ in range(2):
        with broker:
            assert broker.topics() == []
        shutil.rmtree(tmp_path / "data")


def test_what_makes_no_sense_is_refused():
    with pytest.raises(TypeError):
        Broker(process=True, clock="virtual")
    with pytest.raises(TypeError):
        Broker(clock="sundial")
    broker = Broker()
    with pytest.raises(RuntimeError):
        _ = broker.port
    with broker, pytest.raises(RuntimeError):
        broker.start()
    with Broker() as threaded, pytest.raises(RuntimeError):
        threaded.kill()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("250ms", 250), ("61s", 61_000), ("1.5m", 90_000), ("2h", 7_200_000), ("7d", 604_800_000), (3, 3)],
)
def test_durations_are_read_with_their_units(text, wanted):
    assert milliseconds(text) == wanted


def test_a_duration_without_sense_is_refused():
    for text in ("5 weeks", "s", "1dm"):
        with pytest.raises(ValueError):
            milliseconds(text)


def test_a_child_does_not_outlive_its_parent():
    code = (
        "import os, signal\nfrom shim import Broker\nbroker = Broker(process=True).start()\n"
        "print(broker._process.popen.pid, broker.data_dir, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    pid, directory = done.stdout.split()
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(pid)).wait(60)
    assert not Path(directory).exists()


# --- reset, restart, crash


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def each_broker(request):
    """A broker in a thread, and in a process."""
    with Broker(process=request.param) as broker:
        yield broker


def test_a_restart_keeps_port_and_data_in_memory(each_broker):
    broker = each_broker
    address, cluster_id, directory = broker.bootstrap_servers, broker.cluster_id, broker.data_dir
    broker.produce("t", "a")
    assert broker.restart() is broker
    assert (broker.bootstrap_servers, broker.cluster_id, broker.data_dir) == (address, cluster_id, directory)
    assert [one.text for one in broker.consume("t")] == ["a"]
    broker.stop()
    assert not directory.exists()


def test_a_killed_broker_comes_back_with_port_and_data_in_memory():
    with Broker(process=True) as broker:
        address, directory = broker.bootstrap_servers, broker.data_dir
        broker.produce("t", "a")
        broker.kill()
        host, port = address.split(":")
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((host, int(port)))
        broker.start()
        assert broker.bootstrap_servers == address
        assert [one.text for one in broker.consume("t")] == ["a"]
        broker.kill()
    assert not directory.exists()


@pytest.mark.parametrize("way", ["restart", "reset"])
def test_no_other_program_gets_the_port_between_two_starts(monkeypatch, way):
    with Broker() as broker:
        port, start = broker.port, broker.start

        def start_later():
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))
            start()

        monkeypatch.setattr(broker, "start", start_later)
        getattr(broker, way)()
        assert broker.port == port
        broker.stop()
        monkeypatch.undo()
        broker.restart()  # has no address to keep


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the system has no IPv6")
@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_the_port_of_every_address_is_held_for_both_families(host):
    """That of IPv6 was anybody's: the next start found its port in use."""
    with Broker(listen=f"PLAINTEXT://{host}:0", process=True) as broker:
        port = broker.port
        broker.kill()
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as other, pytest.raises(OSError, match="in use"):
                other.bind((address, port))
        broker.start()
        assert broker.port == port


@pytest.mark.parametrize("process", [False, True])
def test_several_listeners_keep_their_ports(process):
    options = {
        "process": process,
        "listeners": "CLIENT://127.0.0.1:0,INNER://127.0.0.1:0",
        "listener_security_protocol_map": "CLIENT:PLAINTEXT,INNER:PLAINTEXT",
        "inter_broker_listener_name": "INNER",
    }
    with Broker(**options) as broker:
        ready = broker._ready.split(" ")[1]
        broker.restart()
        assert broker._ready.split(" ")[1] == ready


def test_a_broker_that_crashes_by_itself_is_waited_for_and_recovers():
    with Broker(process=True, faults="log.after_append=kill@20") as broker:
        with pytest.raises(WireClientError):
            for number in range(30):
                broker.produce("t", str(number))
        assert broker.wait_for_crash() == -9
        broker.restart()  # no fault is armed any more
        assert broker.consume("t")[0].text == "0"
        with pytest.raises(TimeoutError, match="still runs"):
            broker.wait_for_crash(0.01)


def test_a_reset_leaves_nothing_and_keeps_the_port(each_broker):
    broker = each_broker
    address = broker.bootstrap_servers
    broker.produce("t", "a")
    with broker.cluster() as cluster:
        commit_offsets(cluster, "g", {("t", 0): 1})
        Producer(cluster, transactional_id="x").begin()
        topic = {"resource_type": 4, "resource_name": "", "configs": [{"name": "log.retention.ms", "value": "7"}]}
        assert not cluster.any().request(make("IncrementalAlterConfigs", resources=[topic])).responses[0].error_code
    broker.reset()
    assert (broker.bootstrap_servers, broker.topics()) == (address, [])
    with broker.cluster() as cluster:
        assert list_groups(cluster) == []
        listed = cluster.any().request(make("ListTransactions"))
        assert listed.transaction_states == []
        resource = {"resource_type": 4, "resource_name": "", "configuration_keys": None}
        (found,) = cluster.any().request(make("DescribeConfigs", resources=[resource])).results
        assert "log.retention.ms" not in [one.name for one in found.configs]
        assert [topic.name for topic in cluster.metadata().topics] == []
    broker.produce("t", "b")
    assert [one.text for one in broker.consume("t")] == ["b"]


def test_a_reset_sets_faults_and_the_clock_back():
    with Broker(clock="virtual", faults="txn.after_prepare=error") as broker:
        before_ms = broker.clock.now_ms()
        faults = broker.faults
        broker.clock.advance("1d")
        faults.disarm()
        faults.arm("log.before_write", "error", where={"topic": "t"})
        broker.reset()
        assert broker.clock.now_ms() == before_ms
        broker.produce("t", "a")
        assert broker.faults.is_armed_besides("log.before_write")
        assert not broker.faults.is_armed_besides("txn.after_prepare")


def test_a_reset_takes_milliseconds():
    with Broker() as broker:
        broker.reset()

        def reset_s() -> float:
            broker.produce("t", "a")
            started = time.perf_counter()
            broker.reset()
            return time.perf_counter() - started

        right_answer(reset_s, lambda seconds: seconds < 0.25, "some 5 ms; a start of a process is 300")


@pytest.mark.parametrize("end", [Broker.stop, Broker.restart, Broker.reset])
def test_the_end_lets_held_callers_go(end: Callable[[Broker], object], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "DRAIN_SECONDS", 600)  # for a request that is held; the end gives up before
    with Broker() as broker:
        broker.produce("t", "a")
        broker.faults.arm("request.received", "hold", where={"api_key": 0})
        with Connection(broker.bootstrap_servers) as client:
            for _ in range(2):  # the second is received once the first one is answered
                client.send(make("Produce", acks=-1, timeout_ms=1, topic_data=[]), 9)
            wait_until(lambda: broker.faults.reached("request.received"), "the request is held")
            end(broker)


def test_a_directory_that_was_given_is_not_reset(tmp_path: Path):
    with Broker(data_dir=tmp_path) as broker:
        broker.produce("t", "a")
        with pytest.raises(TypeError, match="given a directory"):
            broker.reset()
        assert len(broker.consume("t")) == 1


def test_faults_of_a_process_are_told_at_its_start():
    with pytest.raises(TypeError, match=r"Broker\(faults=\.\.\.\)"):
        _ = Broker(process=True).faults


def test_a_process_that_fails_tells_why_in_its_own_words():
    with Broker() as taken, pytest.raises(RuntimeError) as failed:
        address = taken.bootstrap_servers
        Broker(process=True, listen=address).start()
    told = f"status 1: cannot listen on PLAINTEXT://{address}: Address already in use"
    assert told in str(failed.value)
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(process=True, num_partitions="many")


# --- records without a client library


def test_records_are_written_and_read(broker):
    broker.create_topic("t", 1, cleanup_policy="compact")
    broker.produce("t", "a", b"b", {"c": [1]}, None, key="k", headers={"h": "x"})
    found = broker.consume("t", count=4)
    assert [one.text for one in found] == ["a", "b", '{"c": [1]}', None]
    assert found[2].json() == {"c": [1]}
    with pytest.raises(TypeError, match="tombstone"):
        found[3].json()
    assert {(one.key, one.headers) for one in found} == {(b"k", (("h", b"x"),))}
    assert {one.timestamp_ms for one in found} == {broker.clock.now_ms()}
    broker.delete_topic("t")
    assert broker.topics() == []


def test_too_few_records_are_told(broker):
    broker.produce("t", "a")
    with pytest.raises(TimeoutError, match=r"t has 1 committed records after 0.01 s, not 2: \[b'a'\]"):
        broker.consume("t", count=2, timeout_s=0.01)
    assert broker.consume("t", partition=1) == []


def test_records_of_a_topic_that_is_not_made_yet_are_awaited(broker):
    with pytest.raises(RequestError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        broker.consume("t")
    with pytest.raises(TimeoutError, match=r"there is no topic t after 0.01 s"):
        broker.consume("t", count=1, timeout_s=0.01)
    application = threading.Timer(0.05, broker.produce, ("t", "a"))
    application.start()
    assert [one.text for one in broker.consume("t", count=1)] == ["a"]
    application.join()


def test_a_topic_is_made_once(broker):
    broker.ensure_topic("t", 3)
    broker.ensure_topic("t", 3)
    with pytest.raises(ValueError, match="t has 3 partitions, not 2"):
        broker.ensure_topic("t", 2)


def test_records_of_a_secured_broker_are_written_and_read():
    with Broker(tls=True, sasl="SCRAM-SHA-256", users={"alice": "secret"}) as broker:
        broker.produce("t", "a")
        broker.restart()
        assert [one.text for one in broker.consume("t")] == ["a"]


@pytest.mark.parametrize("process", [False, True])
def test_clients_are_told_the_listener_that_is_as_they_are(process: bool):
    """They were told the first one with the protocol of another."""
    listen = "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
    protocols = "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT"
    users = {"alice": "secret"}
    with Broker(
        listen=listen,
        listener_security_protocol_map=protocols,
        inter_broker_listener_name="INSIDE",
        sasl="SCRAM-SHA-256",
        users=users,
        process=process,
        **{"listener.name.outside.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;"},
    ) as broker:
        assert broker.client_config("java")["bootstrap.servers"] != broker.bootstrap_servers
        broker.produce("t", "a")
        with Connection(broker.bootstrap_servers) as client:
            assert len(metadata(client, "t").topics[0].partitions) == 1


@pytest.mark.parametrize("process", [False, True])
def test_what_was_removed_of_the_first_acls_is_not_back_after_a_restart(process):
    """The users and ACLs of the constructor were stored at every start. A reset begins with them again."""
    with Broker(process=process, acls=ACLS) as broker:
        assert of_topics(broker) == ["t"]
        broker.restart()
        assert of_topics(broker) == ["t"]
        with broker.cluster() as cluster:
            cluster.any().request(make("DeleteAcls", filters=[OF_TOPICS]))
        broker.restart()
        assert of_topics(broker) == []
        broker.reset()
        assert of_topics(broker) == ["t"]


@pytest.mark.parametrize("step", ["begin", "end"])
@pytest.mark.parametrize("process", [False, True])
def test_what_was_removed_is_not_back_after_a_restart_without_a_descriptor(
    process: bool, step: str, monkeypatch: pytest.MonkeyPatch
):
    """Data that could not be read was taken for new."""
    with Broker(process=process, acls=ACLS) as broker:
        with broker.cluster() as cluster:
            cluster.any().request(make("DeleteAcls", filters=[OF_TOPICS]))
        with monkeypatch.context() as patch, contextlib.suppress(OSError):
            without_descriptor(patch, step)
            broker.restart()
        broker.restart()
        assert of_topics(broker) == []


@pytest.mark.parametrize("process", [False, True])
def test_a_first_start_whose_data_cannot_be_known_again_is_told(process: bool, monkeypatch: pytest.MonkeyPatch):
    """The next one would store again what was removed meanwhile."""
    before = running()
    broker = Broker(process=process, acls=ACLS)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="Too many open files"):
        without_descriptor(patch, "end")
        broker.start()
    assert running() <= before
    with broker:
        assert of_topics(broker) == ["t"]


def without_descriptor(patch: pytest.MonkeyPatch, step: str) -> None:
    """Let this process have none left in a step of `FirstRecords`."""
    real = getattr(FirstRecords, step)

    def take(*arguments: object) -> None:
        with none_left():
            real(*arguments)

    patch.setattr(FirstRecords, step, take)


ACLS = [{"principal": "User:ANONYMOUS", "cluster": True}, {"principal": "User:a", "topic": "t"}]
OF_TOPICS: dict[str, int | None] = {
    **dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter")),
    **{"resource_type_filter": 2, "pattern_type_filter": 1, "operation": 1, "permission_type": 1},
}


def of_topics(broker: Broker) -> list[str]:
    with broker.cluster() as cluster:
        return [each.resource_name for each in cluster.any().request(make("DescribeAcls", **OF_TOPICS)).resources]


@pytest.mark.parametrize("duration", ["nan", float("nan"), "inf", "1e400d", float("inf")])
def test_a_clock_is_not_moved_for_ever(duration: float | str):
    with Broker(clock="virtual") as broker, pytest.raises(ValueError, match="has no end"):
        broker.clock.advance(duration)
