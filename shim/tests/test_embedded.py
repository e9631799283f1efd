from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from kafka_shim import Broker
from kafka_shim.config import ConfigError
from kafka_shim.embedded import milliseconds
from kafka_shim.storage.results import StorageError
from kafka_shim.tests.produced import batch, fetch, make_topic, metadata, produce
from kafka_shim.wire_client import Connection


def open_files() -> set[str]:
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(entry.readlink()))
    return found


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


def test_a_directory_in_use_is_refused_and_the_broker_can_be_started_later(tmp_path: Path):
    late = Broker(data_dir=tmp_path)
    with Broker(data_dir=tmp_path), pytest.raises(StorageError):
        late.start()
    with late, Connection(late.bootstrap_servers) as client:
        assert metadata(client).topics == []


def test_options_are_kafkas_with_underscores_and_plain_values():
    with Broker(auto_create_topics_enable=False, log_cleanup_policy=["compact", "delete"]) as broker:
        with Connection(broker.bootstrap_servers) as client:
            assert metadata(client, "t").topics[0].error_code == 3
        assert broker.state.config.log_cleanup_policy == ("compact", "delete")
        assert broker.state.config.group_initial_rebalance_delay_ms == 0
    with pytest.raises(ConfigError, match="did you mean"):
        Broker(num_partitons=1)


def test_its_clock_moves_when_the_test_moves_it():
    with Broker(clock="virtual") as broker:
        before = broker.clock.now_ms()
        broker.clock.advance("61s")
        broker.clock.advance(5)
        assert broker.clock.now_ms() - before == 61_005
        with pytest.raises(ValueError, match="'7x' is no duration like 250ms"):
            broker.clock.advance("7x")
        with pytest.raises(ValueError, match="does not go back"):
            broker.clock.advance("-7s")
        assert broker.clock.now_ms() - before == 61_005
    with Broker() as broker, pytest.raises(TypeError):
        broker.clock.advance(1)


def test_a_user_that_it_does_not_have_is_named():
    broker = Broker(sasl="PLAIN", users={"alice": "secret"})
    with broker, pytest.raises(ValueError, match="'bob' is none of the users of this broker: alice"):
        broker.client_config("java", "bob")


def test_faults_are_armed_from_the_test():
    with Broker(faults="txn.after_prepare=error") as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        broker.faults.arm("log.before_write", "error", "INVALID_RECORD", nth=1)
        assert produce(client, "t", 0, batch(b"a")).error_code == 87
        assert produce(client, "t", 0, batch(b"a")).error_code == 0
        assert broker.faults.reached("log.before_write") == 2


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
        "print(broker._child.pid, broker.data_dir, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    pid, directory = done.stdout.split()
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(pid)).wait(20)
    assert not Path(directory).exists()
