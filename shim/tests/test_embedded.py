"""An embedded broker: what it is given, what it tells, and what it leaves behind."""

from __future__ import annotations

import _thread
import contextlib
import os
import queue
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from kafka_shim import Broker, embedded_process
from kafka_shim.config import ConfigError
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.security import scram_credentials
from kafka_shim.storage.results import StorageError
from kafka_shim.tests.left_behind import open_files
from kafka_shim.tests.produced import batch, fetch, make_topic, metadata, produce
from kafka_shim.wire_client import Connection


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
    assert set(threading.enumerate()) <= threads
    assert open_files() <= files


def test_the_data_directory_is_told_also_where_metrics_are_served():
    with Broker(kafka_shim_http_listener="127.0.0.1:0") as broker:
        assert broker.data_dir.is_dir()


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


def test_a_user_that_it_does_not_have_is_named():
    broker = Broker(sasl="PLAIN", users={"alice": "secret"})
    with broker, pytest.raises(ValueError, match="'bob' is not one of the users of this broker: alice"):
        broker.client_config("java", "bob")


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


@pytest.mark.parametrize("name, value", [("PYTHONINSPECT", "1"), ("PYTHONIOENCODING", "utf-16")])
def test_what_the_programs_own_python_is_told_is_not_told_the_process(monkeypatch, capfd, name, value):
    """It ended with a traceback of its exit, or its ready line could not be read."""
    monkeypatch.setenv(name, value)
    with Broker(process=True) as broker:
        assert broker.topics() == []
    assert capfd.readouterr().err == ""


def test_the_directory_of_a_process_is_told_in_every_locale(tmp_path: Path):
    """In ASCII, the name in the child's ready line was read as another one."""
    place = tmp_path / "ü"
    place.mkdir()
    code = (
        "import sys\nfrom pathlib import Path\nfrom kafka_shim import Broker, memory_dir\n"
        "memory_dir.RAM_DISK = Path(sys.argv[1])\n"
        "with Broker(process=True) as broker:\n    place = broker.data_dir\n"
        "    print(place.is_dir(), place.parent == memory_dir.RAM_DISK)"
    )
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code, place], capture_output=True, env=ascii_only, check=False)
    assert (done.stdout, done.stderr) == (b"True True\n", b"")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="a file without a disk is of Linux")
def test_a_process_with_passwords_needs_no_folder_of_temporary_files(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with Broker(process=True, sasl="PLAIN", users={"alice": "secret"}) as broker:
        assert broker.topics() == []


def test_a_process_that_cannot_start_says_so():
    with pytest.raises(RuntimeError, match="status 1"):
        Broker(process=True, listen="no..name:0").start()  # which no resolver is asked for


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


def test_a_broker_is_refused_where_its_threads_could_not_hear_of_each_other(monkeypatch: pytest.MonkeyPatch):
    """As after `monkey.patch_all(thread=False)`: nothing was fsynced, and a stop had no end."""
    broker = Broker()
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="gevent has replaced queues"):
        patch.setattr(queue, "SimpleQueue", type("SimpleQueue", (), {"__module__": "gevent._gevent_cqueue"}))
        broker.start()
    with broker:
        assert broker.topics() == []


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


def test_a_process_that_fails_tells_why_in_its_own_words():
    with Broker() as taken, pytest.raises(RuntimeError) as failed:
        address = taken.bootstrap_servers
        Broker(process=True, listen=address).start()
    told = f"status 1: cannot listen on PLAINTEXT://{address}: Address already in use"
    assert told in str(failed.value)
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(process=True, num_partitions="many")
