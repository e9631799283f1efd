"""Starts of an embedded broker that are given up, interrupted or fail leave nothing behind. Other calls that Ctrl-C
interrupts do not go on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from kafka_shim import Broker, embedded, embedded_control, embedded_process, memory_dir
from kafka_shim.embedded_records import FirstRecords
from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN
from kafka_shim.tests.left_behind import running
from kafka_shim.tests.produced import metadata
from kafka_shim.wire_client import Connection


def start_too_late(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start a broker that takes too long, and wait until its thread has ended."""
    reached, going_on = threading.Event(), threading.Event()

    def wait(**facts: object) -> None:
        reached.set()
        assert going_on.wait(60)

    broker._faults.arm("log.before_write", wait)  # the record that registers the broker
    with monkeypatch.context() as patch:
        patch.setattr(embedded, "START_SECONDS", 0.2)
        with pytest.raises(TimeoutError, match=r"did not start within 0\.2 s"):
            broker.start()
        assert reached.wait(60)
    (late,) = [thread for thread in threading.enumerate() if thread.name == "kafka-shim"]
    going_on.set()
    late.join(60)
    assert not late.is_alive()
    broker._faults.disarm()


def test_a_start_that_takes_too_long_is_told_and_leaves_no_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broker = Broker(data_dir=tmp_path)
    with broker:
        pass
    start_too_late(broker, monkeypatch)
    with broker, Connection(broker.bootstrap_servers) as client:
        assert metadata(client).topics == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_start_in_memory_that_takes_too_long_leaves_no_directory(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(memory_dir, "RAM_DISK", tmp_path)
    going_on = threading.Event()

    def make() -> asyncio.AbstractEventLoop:
        assert going_on.wait(60)
        return asyncio.new_event_loop()

    async def store(*_: object) -> None:
        raise OSError("the late start fails")

    broker = Broker(loop_factory=make)
    threads = set(threading.enumerate())
    with monkeypatch.context() as patch:
        patch.setattr(embedded, "START_SECONDS", 0.2)
        if fails:
            patch.setattr(broker._first, "store", store)
        with pytest.raises(TimeoutError, match=r"did not start within 0\.2 s"):
            broker.start()
        (late,) = [thread for thread in set(threading.enumerate()) - threads if thread.name == "kafka-shim"]
        going_on.set()
        late.join(60)
    assert not list(tmp_path.iterdir())
    with broker:
        assert len(list(tmp_path.iterdir())) == 1


def interrupted() -> None:
    """What Ctrl-C does to the program that starts the broker."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("process", [False, True])
def test_ctrl_c_when_it_has_just_started_leaves_no_broker(process: bool, monkeypatch: pytest.MonkeyPatch):
    """It ran on, and nobody could stop it."""
    before = running()
    broker = Broker(process=process, acls=[{"principal": "User:ANONYMOUS", "cluster": True}])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(FirstRecords, "end", lambda _: interrupted())
        broker.start()
    assert running() <= before
    with broker:
        assert broker.topics() == []


@pytest.mark.parametrize("is_ready", [False, True])
def test_ctrl_c_while_its_start_is_awaited_leaves_no_broker(
    is_ready: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """It was told as a start that took too long; of one that was ready, 30 s later, and the broker ran on."""

    class Interrupted(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            if is_ready:
                super().result(timeout)
            interrupted()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory_dir, "RAM_DISK", tmp_path)
    before = running()
    broker = Broker()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(embedded, "STOP_SECONDS", 60)
        patch.setattr(embedded, "Future", Interrupted)
        broker.start()
    assert running() <= before
    assert not list(tmp_path.iterdir()), "the start that went on made its directory again"
    with broker:
        assert broker.topics() == []


class Interrupted(subprocess.Popen[str]):
    """A child whose ready line is awaited when Ctrl-C comes."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.stdout = SimpleNamespace(readline=interrupted, close=self.stdout.close)


def no_thread(thread: threading.Thread) -> None:
    """A system that starts no more threads."""
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize(
    ("where", "what", "other", "error"),
    [(subprocess, "Popen", Interrupted, KeyboardInterrupt), (threading.Thread, "start", no_thread, RuntimeError)],
)
def test_a_process_whose_start_is_not_awaited_to_its_end_is_ended(
    where: Any, what: str, other: Any, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
):
    """It ran as long as the program, and nobody could stop it."""
    before = running()
    broker = Broker(process=True, acls=[{"principal": "User:ANONYMOUS", "cluster": True}])
    with monkeypatch.context() as patch, pytest.raises(error):
        patch.setattr(where, what, other)
        broker.start()
    assert running() <= before
    with broker:
        assert broker.topics() == []


def test_a_start_whose_thread_finds_no_memory_is_one_that_failed(monkeypatch: pytest.MonkeyPatch):
    """It waited for the thread, which had ended, for ever."""

    def no_memory(_: threading.Thread) -> None:
        raise MemoryError

    broker = Broker()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "_bootstrap", no_memory)
        patch.setattr(sys, "unraisablehook", lambda _: None)
        with pytest.raises(RuntimeError, match="no memory"):
            broker.start()
    assert not [thread for thread in threading.enumerate() if thread.name == "kafka-shim"]
    with broker:
        assert broker.topics() == []


def test_a_start_after_one_that_took_too_long_has_the_users(monkeypatch: pytest.MonkeyPatch):
    """They were taken for stored, in data that was given up."""
    broker = Broker(sasl="SCRAM-SHA-256", users={"alice": "secret"})
    start_too_late(broker, monkeypatch)
    with broker:
        assert broker.topics() == []


def test_a_process_that_takes_too_long_to_start_is_ended_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    child = tmp_path / "python"
    child.write_text("#!/bin/sh\nexec sleep 600\n")
    child.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(child))
    monkeypatch.setattr(embedded_process, "START_SECONDS", 0.2)
    with pytest.raises(TimeoutError, match=r"did not start within 0\.2 s"):
        Broker(process=True).start()
    assert not [one for one in psutil.Process().children() if one.name() == "sleep"]


class Ended(subprocess.Popen[str]):
    """A child that has ended when its first records are written."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.wait()


def test_a_process_that_ends_before_it_has_read_its_acls_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What it had not read was written again when the pipe was closed, and that error was told instead."""
    child = tmp_path / "python"
    child.write_text("#!/bin/sh\necho 'error: out of order' >&2\nexit 1\n")
    child.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(child))
    monkeypatch.setattr(subprocess, "Popen", Ended)
    with pytest.raises(RuntimeError, match="ended with status 1: out of order"):
        Broker(process=True, acls=[{"principal": "User:a", "cluster": True}]).start()


def test_a_process_takes_its_modules_from_where_this_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It looked in the working directory first, where a program has modules that are named as Python's own; and a Path
    in sys.path, which Python skips, was a TypeError."""
    (tmp_path / "queue.py").write_text("raise AssertionError('of the program')\n")
    monkeypatch.chdir(tmp_path)
    for first in (tmp_path, "", str(tmp_path)):  # as of a notebook, and of a conftest.py there
        monkeypatch.setattr(sys, "path", [first, *(path for path in sys.path if path)])
        with Broker(process=True) as broker:
            assert broker.topics() == []


def test_a_process_finds_what_this_one_finds_in_its_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As of a notebook, or of `python -c`, whose sys.path has an empty word."""
    (tmp_path / "of_a_notebook.py").write_text(
        "from kafka_shim.plugins import PolicyViolation\n\n"
        "class Refusing:\n"
        "    def validate(self, request):\n"
        "        raise PolicyViolation('not here')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    policy = "of_a_notebook.Refusing"
    with (
        Broker(process=True, create_topic_policy_class_name=policy) as broker,
        pytest.raises(Exception, match="not here"),
    ):
        broker.create_topic("orders")


@pytest.mark.parametrize("closed", [(0, 1), (1, 2), (0, 1, 2)])
def test_a_program_that_has_closed_its_standard_streams_embeds_brokers(closed: tuple[int, ...], tmp_path: Path):
    """libuv ended it as the first broker stopped: a part of its loop had the number of stderr."""
    code = (
        "import os, sys\nfrom kafka_shim import Broker\n"
        f"for number in {closed}:\n    os.close(number)\n"
        "for _ in range(2):\n"
        "    with Broker(data_dir=sys.argv[1]) as broker:\n"
        "        broker.produce('orders', 'a')\n"
        "        names = {os.readlink(f'/proc/self/fd/{number}') for number in range(3)}\n"
        "        assert not any(name.startswith((sys.argv[1], 'socket:', 'anon_inode:')) for name in names), names\n"
        "os._exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 7


def test_a_password_reaches_a_process_in_every_locale():
    """It was written in the locale's encoding, and is read as UTF-8. Nor is that an error where warnings of encodings
    are."""
    code = (
        "from kafka_shim import Broker\n"
        "with Broker(process=True, sasl='PLAIN', users={'a': 'p\\xe4ss\\u20ac'}) as broker:\n"
        "    broker.produce('orders', 'a')\n"
    )
    flags = ["-X", "utf8=0", "-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, *flags, "-c", code], env=environment, check=True)


def test_the_words_of_a_process_are_read_as_it_writes_them(tmp_path: Path):
    """They were read in the locale's encoding also where Python's UTF-8 mode has them in another."""
    file = tmp_path / "\u00fc"
    file.touch()
    code = "import sys\nfrom kafka_shim import Broker\nBroker(process=True, data_dir=sys.argv[1]).start()\n"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "1", "PYTHONCOERCECLOCALE": "0"}
    line = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(line, env=environment, check=False, stderr=subprocess.PIPE, encoding="utf-8")
    assert done.stderr.count(str(file)) == 2, done.stderr


def test_a_thread_whose_start_ctrl_c_interrupts_is_not_awaited_in_vain(monkeypatch: pytest.MonkeyPatch):
    """The program went on 30 s later where there was no thread yet."""
    begin = threading._start_new_thread  # type: ignore[attr-defined]
    made: list[Any] = []
    ran: list[int] = []
    thread = embedded_control.thread_of(ran.append, 1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(threading, "_start_new_thread", lambda run, given: (made.append((run, given)), interrupted()))
        thread.start()
    assert not thread.is_alive()
    begin(*made[0])  # it may have been made before, and begins only now
    assert thread._started.wait(60)  # type: ignore[attr-defined]
    thread.join()
    assert not ran


# Code for a program, whose argument is a directory: `ctrl_c()` interrupts its main thread, and `in_use()` says whether
# another broker may have the directory.
INTERRUPTED = """
import os, signal, sys, threading, time
from kafka_shim import Broker, embedded
from kafka_shim.storage.results import StorageError

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)

broker, going_on = Broker(data_dir=sys.argv[1]), threading.Event()

def in_use():
    try:
        with Broker(data_dir=sys.argv[1]):
            return False
    except StorageError:
        return True
"""


def test_a_stop_after_one_that_ctrl_c_interrupts_waits_for_the_end(tmp_path: Path):
    """Python takes a thread for ended whose `join` is interrupted: the second stop did nothing, and the directory was
    in use, or removed beneath the broker."""
    code = INTERRUPTED + (
        "def stopping(**facts):\n    ctrl_c()\n    going_on.wait()\n"
        "broker.start().faults.arm('server.stopping', stopping)\n"
        "try:\n    broker.stop()\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
        "embedded.STOP_SECONDS = 0.2\n"
        "try:\n    broker.stop()\nexcept TimeoutError:\n    print('waits')\n"
        "embedded.STOP_SECONDS = 60\n"
        "going_on.set()\n"
        "broker.stop()\n"
        "print(in_use())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["interrupted", "waits", "False"]


def test_ctrl_c_ends_an_advance_of_the_clock(tmp_path: Path):
    """It went on, and no other one was possible until its end."""
    code = INTERRUPTED + (
        "with Broker(clock='virtual') as broker:\n"
        "    began_ms = broker.clock.now_ms()\n"
        "    broker.call(lambda: broker.state.clock.call_later(86_400_000, ctrl_c))\n"
        "    try:\n        broker.clock.advance('365000d')\n"
        "    except KeyboardInterrupt:\n        print('interrupted')\n"
        "    broker.clock.advance(1)\n"
        "    print(broker.clock.now_ms() < began_ms + 365000 * 86_400_000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["interrupted", "True"]


def test_ctrl_c_as_its_thread_starts_leaves_no_broker(tmp_path: Path):
    """Nobody waited for the thread, which had the directory for some time."""
    code = INTERRUPTED + (
        "from kafka_shim import threads\n"
        "def wait(self, timeout=None):\n    raise KeyboardInterrupt\n"
        "begun = threading.Event()\n"
        "def make():\n    begun.set()\n    going_on.wait()\n    return embedded.asyncio.new_event_loop()\n"
        "make_thread = embedded.thread_of\n"
        "def thread_of(*arguments):\n"
        "    threads._Begun.wait = wait\n"
        "    threading.Timer(0.5, going_on.set).start()\n"
        "    return make_thread(*arguments)\n"
        "embedded.thread_of = thread_of\n"
        "broker = Broker(data_dir=sys.argv[1], loop_factory=make)\n"
        "try:\n    broker.start()\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
        "def left():\n    return [one.name for one in threading.enumerate() if one.name == 'kafka-shim']\n"
        # One that was made and does nothing may be there for a moment.
        "while left() and not begun.is_set():\n    time.sleep(0.01)\n"
        "print(left())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["interrupted", "[]"]


def test_a_broker_that_is_stopped_at_the_end_of_the_interpreter_does_not_hold_it_up(tmp_path: Path):
    """The stop waited 30 s for a thread that Python no longer let run, and failed."""
    code = (
        "import sys\nfrom kafka_shim import Broker\n"
        "class Owner:\n"
        "    broker = Broker(data_dir=sys.argv[1]).start()\n"
        "    def __del__(self):\n"
        "        self.broker.stop()\n"
        "        print('stopped')\n"
        "owner = Owner()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "stopped\n"


def test_the_passwords_of_a_process_are_in_no_file_that_a_killed_program_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A program that was killed, or that Ctrl-C ended, as its broker started left them in the temporary folder. A file
    without a name is on the disk as long as somebody has it open."""
    seen: list[Path] = []
    pids: list[int] = []

    class Looking(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            seen.extend(tmp_path.iterdir())
            pids.append(self.pid)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", Looking)
    with Broker(process=True, data_dir=tmp_path / "data", sasl="PLAIN", users={"alice": "secret"}) as broker:
        broker.produce("orders", "a")
        opened: list[str] = []
        for path in Path(f"/proc/{pids[0]}/fd").iterdir():
            with suppress(FileNotFoundError):  # the broker closed it meanwhile
                opened.append(str(path.readlink()))
        assert opened
        assert [one for one in opened if str(tmp_path) in one and str(tmp_path / "data") not in one] == []
    assert [path for path in seen if path.name != "data"] == []


def test_a_process_of_a_program_that_blocks_signals_is_stopped_cleanly(tmp_path: Path):
    """A process has the mask of who started it: SIGTERM did not come, and the stop killed it after 30 s."""
    code = (
        "import signal, sys\nfrom kafka_shim import Broker\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})\n"
        "with Broker(process=True, data_dir=sys.argv[1]) as broker:\n"
        "    broker.produce('orders', 'a')\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert (tmp_path / CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize(("name", "value"), [("frozen", True), ("executable", "")])
def test_a_process_is_refused_where_no_python_can_run_it(name: str, value: object, monkeypatch: pytest.MonkeyPatch):
    """An executable that PyInstaller has made ran itself, which began with a broker in a process, and so on."""
    monkeypatch.setattr(sys, name, value, raising=False)
    with pytest.raises(RuntimeError, match=r"take one in a thread, Broker\(\)"):
        Broker(process=True).start()


def test_ctrl_c_in_a_terminal_leaves_the_process_to_the_program():
    """A terminal sends it to its whole group: the broker was gone before a program that handles it had written its last
    records."""
    with Broker(process=True) as broker:
        assert broker._process is not None
        assert os.getpgid(broker._process.popen.pid) != os.getpgrp()
