from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile

import pytest

from kafka_shim import memory_dir


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A RAM disk of the test's own."""
    monkeypatch.setattr(memory_dir, "RAM_DISK", tmp_path)
    return tmp_path


# Code for `python`: a stream whose writer holds its buffer's lock until `free` is set.
STUCK = """
import io, threading
writing, free = threading.Event(), threading.Event()
class Stuck(io.RawIOBase):
    def writable(self):
        return True
    def write(self, data):
        writing.set()
        free.wait()
        return len(data)
"""


def python(code, place, **options):
    """A process whose RAM disk is `place`; it prints when it is ready."""
    head = "from pathlib import Path\nfrom kafka_shim import memory_dir, Broker\n"
    head += f"memory_dir.RAM_DISK = Path({str(place)!r})\n"
    child = subprocess.Popen([sys.executable, "-c", head + code], stdout=subprocess.PIPE, text=True, **options)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.stdout.close()
    return child


def test_the_next_start_removes_the_directory_of_a_killed_owner_and_no_other(place):
    living = memory_dir.make()
    (place / "kafka-shim-of-a-user").mkdir()
    child = python("memory_dir.make()\nprint('ready', flush=True)\ninput()", place, stdin=subprocess.PIPE)
    assert len(list(place.iterdir())) == 3
    child.kill()
    child.communicate()
    fresh = memory_dir.make()
    assert {path.name for path in place.iterdir()} == {living.name, fresh.name, "kafka-shim-of-a-user"}
    memory_dir.remove(living)
    memory_dir.remove(fresh)
    assert [path.name for path in place.iterdir()] == ["kafka-shim-of-a-user"]


def test_a_killed_child_that_served_in_memory_leaves_what_the_next_start_removes(place):
    child = python("broker = Broker().start()\nprint('ready', flush=True)\ninput()", place, stdin=subprocess.PIPE)
    assert any(place.glob("kafka-shim-*/__cluster_metadata-0"))
    child.kill()
    child.communicate()
    fresh = memory_dir.make()
    assert list(place.iterdir()) == [fresh]
    memory_dir.remove(fresh)


@pytest.mark.parametrize("module, name", [(os, "mkdir"), (memory_dir.fcntl, "flock")])
def test_ctrl_c_while_a_directory_is_made_leaves_none(place, monkeypatch, module, name):
    former = getattr(module, name)

    def interrupted(*arguments, **named):
        former(*arguments, **named)
        raise KeyboardInterrupt

    owned = dict(memory_dir._owned)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, name, interrupted)
        memory_dir.make()
    assert list(place.iterdir()) == []
    assert memory_dir._owned == owned


def test_a_directory_whose_removal_ctrl_c_interrupts_is_removed_later(place, monkeypatch):
    """Nobody had its name any more, and its descriptor stayed open."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    directory = memory_dir.make()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(memory_dir.shutil, "rmtree", interrupted)
        memory_dir.remove(directory)
    memory_dir.remove(directory)
    assert list(place.iterdir()) == []
    assert directory not in memory_dir._owned


@pytest.mark.parametrize("end", ["SIGTERM", "exit"])
def test_a_process_that_embeds_a_broker_removes_its_directory_at_its_end(place, end):
    wait = "input()" if end == "SIGTERM" else "pass"
    child = python(f"broker = Broker().start()\nprint('ready', flush=True)\n{wait}", place, stdin=subprocess.PIPE)
    if end == "SIGTERM":
        child.terminate()
    child.communicate()
    assert child.returncode == (-signal.SIGTERM if end == "SIGTERM" else 0)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_of_multiprocessing_removes_its_directory_at_its_end(place, tmp_path_factory, method):
    """One that is forked ends by `os._exit`, and its directory stayed until the next start."""
    program = tmp_path_factory.mktemp("program") / "program.py"
    program.write_text(
        "import multiprocessing, sys\nfrom pathlib import Path\nfrom kafka_shim import memory_dir, Broker\n"
        "def serve(place):\n    memory_dir.RAM_DISK = Path(place)\n    broker = Broker().start()\n"
        "    broker.produce('orders', 'a')\n    sys.exit(0 if broker.data_dir.parent == memory_dir.RAM_DISK else 1)\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context(sys.argv[1]).Process(target=serve, args=sys.argv[2:])\n"
        "    child.start()\n    child.join()\n    sys.exit(child.exitcode)\n"
    )
    done = subprocess.run([sys.executable, program, method, place], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(place.iterdir()) == []


def test_a_broker_that_atexit_stops_has_its_directory_until_then(place):
    """The directory went first where the program had told `atexit` of the stop before the start, and the stop failed
    in the log."""
    code = "import atexit\nbroker = Broker()\natexit.register(broker.stop)\nbroker.start().produce('orders', 'a')\n"
    child = python(f"{code}print('ready', flush=True)", place, stderr=subprocess.PIPE)
    assert child.communicate()[1] == ""
    assert child.returncode == 0
    assert list(place.iterdir()) == []


def test_a_program_that_handles_sigterm_keeps_its_handler(place):
    code = (
        "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "broker = Broker().start()\nprint('ready', flush=True)\ninput()"
    )
    child = python(code, place, stdin=subprocess.PIPE)
    child.terminate()
    child.communicate()
    assert child.returncode == 7
    assert list(place.iterdir()) == []


def test_a_small_ram_disk_is_noticed_and_said(place, tmp_path_factory, monkeypatch, caplog):
    """A container has 64 MB of /dev/shm."""
    other = tmp_path_factory.mktemp("disk")
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    statvfs = os.statvfs

    def small(path):
        found = list(statvfs(path))
        found[4] = (64 << 20) // found[1]
        return os.statvfs_result(found)

    monkeypatch.setattr(os, "statvfs", small)
    made = memory_dir.make()
    assert made.parent == other
    assert f"{place} has only 64 MB free, so data goes to {other}" in caplog.text
    memory_dir.remove(made)


def test_no_folder_of_temporary_files_is_needed(place, monkeypatch, caplog):
    """A container with a read-only disk has a `/dev/shm`, of 64 MB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(tempfile, "tempdir", None)
    for small in (False, True):
        monkeypatch.setattr(memory_dir, "MIN_FREE_BYTES", 1 << 60 if small else 0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            with pytest.raises(FileNotFoundError):
                tempfile.gettempdir()
            made = memory_dir.make()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert made.parent == place
        memory_dir.remove(made)
    assert f"and no other place can be written: give {place} at least" in caplog.text


def test_a_forked_child_that_is_terminated_leaves_the_directory_of_its_parent(place):
    code = """
import os, signal, time
directory = memory_dir.make()
memory_dir.remove_at_end()
told, tell = os.pipe()
child = os.fork()
if child == 0:
    os.write(tell, b"x")
    time.sleep(60)
os.read(told, 1)
os.kill(child, signal.SIGTERM)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
assert directory.is_dir()
print("ready", flush=True)
"""
    child = python(code, place)
    assert child.wait(60) == 0
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("thread", ["main", "other"])
def test_sigterm_ends_a_forked_child_also_while_it_runs_no_python(place, thread):
    code = f"""{STUCK}
import os, signal
stream = io.BufferedWriter(Stuck())
writer = threading.Thread(target=lambda: (stream.write(b"x"), stream.flush()), daemon=True)
def fork():
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # as it would wait for ever
        os.write(tell, b"x")
        stream.flush()  # a wait that no signal interrupts
    os.read(told, 1)
    os.kill(child, signal.SIGTERM)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
ends = []
with Broker() as broker:
    assert signal.getsignal(signal.SIGTERM) is memory_dir._terminated
    writer.start()
    writing.wait()
    if "{thread}" == "main":
        fork()
    else:
        other = threading.Thread(target=fork)
        other.start()
        other.join()
    assert ends == [-signal.SIGTERM], ends
    assert signal.getsignal(signal.SIGTERM) is memory_dir._terminated
    assert broker.topics() == []
    free.set()
    writer.join()
print("ready", flush=True)
"""
    assert python(code, place).wait(120) == 0


def test_a_sigterm_that_comes_as_a_child_is_made_ends_it_and_leaves_the_broker_its_data():
    """The handler of the parent ran in the child, before it had forgotten the directories; or Python forgot the signal,
    for which a `multiprocessing.Pool` then waited."""
    code = """
import os, signal
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))  # runs before the broker's own
from kafka_shim import Broker
with Broker() as broker:
    broker.produce("t", "a")
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
    assert broker.data_dir.is_dir()
    broker.restart()
    assert [one.text for one in broker.consume("t")] == ["a"]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("first", ["memory_dir", "embedded_control"])
@pytest.mark.parametrize("when", ["as SIGTERM is held", "as it is let"])
def test_ctrl_c_that_comes_as_a_child_is_made_leaves_no_signal_blocked_and_no_lock_held(first, when):
    """SIGTERM stayed blocked for good, in the child too, or other threads stood still at their next log line."""
    code = f"""
import _thread, logging, os, signal, sys, threading
if "{when}" == "as it is let":
    os.register_at_fork(after_in_parent=_thread.interrupt_main)  # the broker's own come next
sys.unraisablehook = lambda _: None
from kafka_shim import {first}, memory_dir, embedded_control
from kafka_shim import Broker
memory_dir.remove_at_end()
broker = Broker()
mask = signal.pthread_sigmask
def interrupted(how, signals):
    found = mask(how, signals)
    if how == signal.SIG_BLOCK and signals and "{when}" == "as SIGTERM is held":
        raise KeyboardInterrupt
    return found
signal.pthread_sigmask = interrupted
child = os.fork()
if child == 0:
    os._exit(bool(mask(signal.SIG_BLOCK, ())))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert mask(signal.SIG_BLOCK, ()) == set()
free = []
def take():
    free.append(embedded_control.STDERR.lock.acquire(timeout=60))
    embedded_control.STDERR.lock.release()
other = threading.Thread(target=take)
other.start()
other.join()
assert free == [True]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("process", [False, True])
def test_a_forked_child_that_leaves_the_block_of_a_broker_leaves_the_broker_to_its_parent(place, process):
    code = f"""
import os, sys
with Broker(process={process}) as broker:
    broker.produce("orders", "one")
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert broker.restart().consume("orders")[0].text == "one"
print("ready", flush=True)
"""
    child = python(code, place)
    assert child.wait(60) == 0
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("tls", [False, True])
def test_clients_are_disconnected_also_while_a_forked_child_lives(place, tls):
    code = f"""
import os, socket, time
with Broker(tls={tls}) as broker:
    client = socket.create_connection(("127.0.0.1", broker.port), timeout=30)
    assert broker.topics() == []  # so that the first one is accepted
    child = os.fork()
    if child == 0:
        time.sleep(120)  # until it is killed, below
        os._exit(0)
    try:
        broker.reset()
        assert client.recv(1) == b""
    finally:
        os.kill(child, 9)
print("ready", flush=True)
"""
    assert python(code, place).wait(60) == 0


def test_a_child_forked_while_another_thread_restarts_a_broker_can_leave_its_block(place):
    code = """
import os, signal, sys, threading
with Broker() as broker:
    held, free = threading.Event(), threading.Event()
    def restart():
        with broker._life:
            held.set()
            free.wait()
    thread = threading.Thread(target=restart)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # who waits for that thread waits for ever
        broker.stop()
        os._exit(0)
    free.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("ready", flush=True)
"""
    assert python(code, place).wait(60) == 0


def test_a_child_forked_while_a_broker_writes_a_log_line_can_write_its_own(place):
    code = (
        STUCK
        + """
import logging, os, signal
from kafka_shim import embedded_control
embedded_control.LOG_SECONDS = 60
stream = io.TextIOWrapper(io.BufferedWriter(Stuck()))
logger = logging.getLogger("kafka_shim.test")
logger.addHandler(logging.StreamHandler(stream))
logger.propagate = False
os.register_at_fork(before=free.set)
with Broker() as broker:
    thread = threading.Thread(target=broker.call, args=(logger.warning, "of the broker"))
    thread.start()
    writing.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # who waits for that thread waits for ever
        logger.warning("of the child")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    logger.warning("of the parent")
    assert broker.topics() == []
print("ready", flush=True)
"""
    )
    assert python(code, place).wait(120) == 0


def test_a_fork_beside_a_thread_that_configures_logging_goes_on():
    """The fork held the handlers' locks and waited for logging's own, which that thread held while it waited for one of
    theirs."""
    code = """
import logging, os, threading
handled, configuring = threading.Event(), threading.Event()
os.register_at_fork(before=handled.set)  # runs between the broker's and logging's own
from kafka_shim import Broker
from kafka_shim.embedded_control import STDERR
def configure():
    with logging._lock:
        configuring.set()
        handled.wait()
        with STDERR.lock:
            pass
broker = Broker()
thread = threading.Thread(target=configure, daemon=True)
thread.start()
configuring.wait()
child = os.fork()
if child == 0:
    logging.warning("of the child")
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
thread.join()
logging.warning("of the parent")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_forked_child_is_told_that_the_thread_of_the_broker_is_not_here(place):
    code = """
import os, traceback
from kafka_shim import embedded_control
embedded_control.CALL_SECONDS = 1
def is_refused(ask):
    try:
        ask()
    except RuntimeError as error:
        return str(error) == embedded_control.OF_PARENT
with Broker(clock="virtual") as broker:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert is_refused(lambda: broker.call(os.getpid))
            assert is_refused(lambda: broker.clock.advance("1s"))
            assert is_refused(broker.faults.disarm)
            broker.produce("orders", "of the child")
            with Broker() as own:
                assert own.call(os.getpid) == os.getpid()
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert broker.call(os.getpid) == os.getpid()
    assert broker.consume("orders")[0].text == "of the child"
print("ready", flush=True)
"""
    assert python(code, place).wait(120) == 0


@pytest.mark.parametrize("process", [False, True])
def test_a_forked_child_neither_ends_nor_restarts_the_broker_of_its_parent(place, process):
    """It was told that the directory, or the port, was taken; `kill` killed the broker, and did not return."""
    code = f"""
import os, traceback
from kafka_shim import embedded_control
with Broker(process={process}) as broker:
    broker.produce("orders", "one")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for ask in (broker.restart, broker.reset, *([broker.kill] if {process} else ())):
                try:
                    ask()
                except RuntimeError as error:
                    assert str(error) == embedded_control.OF_PARENT
                else:
                    raise AssertionError(ask)
            broker.stop()  # as at the end of its block
            assert broker.start().topics() == []
            broker.restart()
            broker.reset()
            broker.stop()
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert broker.restart().consume("orders")[0].text == "one"
print("ready", flush=True)
"""
    child = python(code, place)
    assert child.wait(120) == 0
    assert list(place.iterdir()) == []


def test_where_there_is_no_ram_disk_data_goes_to_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_dir, "RAM_DISK", tmp_path / "no such folder")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = memory_dir.make()
    assert made.parent == tmp_path
    memory_dir.remove(made)
