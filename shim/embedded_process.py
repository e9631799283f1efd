"""The child process of an embedded broker: started, stopped, killed, with its words when it fails."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from contextlib import contextmanager, suppress

from kafka_shim.embedded_control import STDERR, fill_standard_descriptors
from kafka_shim.faults import ENVIRONMENT
from kafka_shim.memory_files import memory_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

START_SECONDS = 30.0
STOP_SECONDS = 30.0
# How long a child may take to end that closed its output without being ready.
END_SECONDS = 10.0
# Lines of the child's stderr that are kept for the message of a failed start.
KEPT_LINES = 50
# What the user tells the program's own Python. The child would go on after its end, with a traceback of its exit, or
# write its ready line in another encoding than that in which it is read here.
FOR_PROGRAM = ("PYTHONINSPECT", "PYTHONIOENCODING")


class BrokerProcess:
    """`kafka-shim serve` in a child process, which ends with this one. Its stderr goes to this process's."""

    def __init__(
        self,
        arguments: Sequence[str],
        options: Mapping[str, str],
        *,
        records: str,
        faults: str | None,
        removes_data: bool,
    ) -> None:
        """Start it and wait until it accepts connections. `options` are the broker's; no process list shows those that
        are passwords. `records` is the line that the child reads. `removes_data`: it removes its data directory when
        this process dies.
        Raises RuntimeError with the child's words, and in a program that is not run by a Python of its own;
        TimeoutError if it takes over 30 s."""
        if not sys.executable or getattr(sys, "frozen", False):  # this command would run the program once more
            raise RuntimeError("no Python can run a broker in a process here: take one in a thread, Broker()")
        from kafka_shim.config import is_password
        from kafka_shim.serve import DESCRIPTORS

        secrets = {name: text for name, text in options.items() if is_password(name)}
        # -P: `-m` would look in the working directory first, where a program may have a queue.py of its own.
        command = [sys.executable, "-P", "-m", "kafka_shim", "serve", *arguments]
        for name, text in options.items():
            if name not in secrets:
                command += ["-o", f"{name}={text}"]
        environment = _environment(faults, has_records=bool(records), removes_data=removes_data)
        self._said: deque[str] = deque(maxlen=KEPT_LINES)
        fill_standard_descriptors()
        with _properties_file(secrets) as number:
            if secrets:
                command += ["--config", f"{DESCRIPTORS}{number}"]
            self._parent = os.getpid()
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8" if sys.flags.utf8_mode else "locale",  # as without it, but for EncodingWarning
                errors="backslashreplace",
                env=environment,
                pass_fds=(number,) if secrets else (),
                process_group=0,  # Ctrl-C in a terminal is for the program, which may have records to write yet
            )
            self._listener = threading.Thread(target=self._listen, name="kafka-shim-stderr", daemon=True)
            is_late = threading.Event()
            watch = threading.Timer(START_SECONDS, self._give_up, (is_late,))
            watch.daemon = True
            try:
                watch.start()
                self.ready = self._first_line(records)
            except BaseException:
                self.kill()  # nobody else knows of it: it would run as long as this process
                raise
            finally:
                watch.cancel()
        if is_late.is_set():
            self.kill()
            raise TimeoutError(f"the broker did not start within {START_SECONDS:g} s")
        if not self.ready.startswith("ready "):
            how = self._end_of_unready()
            raise RuntimeError(f"the broker's process {how}: {self._last_words()}")

    def _end_of_unready(self) -> str:
        """Wait for the end of a child that closed its output without being ready. Returns how it ended."""
        try:
            how = f"ended with status {self.popen.wait(END_SECONDS)}"
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            how = f"closed its output before it was ready, and was killed {END_SECONDS:g} s later"
        self._close()
        return how

    def _give_up(self, is_late: threading.Event) -> None:
        """End a child that is not ready: who waits for its first line reads the end of its output."""
        is_late.set()
        self.popen.kill()

    def _first_line(self, records: str) -> str:
        """Tell the child its first records, and return the line that it writes once it accepts connections."""
        child = self.popen
        self._listener.start()
        assert child.stdout is not None
        assert child.stdin is not None
        if records:
            with suppress(OSError):  # a child that ended already says why by its status
                child.stdin.write(records)
                child.stdin.flush()
        return child.stdout.readline().rstrip("\n")

    def _listen(self) -> None:
        stderr = self.popen.stderr
        assert stderr is not None
        for line in stderr:
            self._said.append(line.rstrip("\n"))
            STDERR.acquire()
            try:
                sys.stderr.write(line)
            except (OSError, ValueError):
                pass  # the program, or pytest, has closed it
            finally:
                STDERR.release()

    def _last_words(self) -> str:
        """The line that says why the child ended: its own, or the last one."""
        lines = [line for line in self._said if line.strip()]
        own = [line.partition(": ")[2] for line in lines if line.startswith("error: ")]
        return own[-1] if own else lines[-1] if lines else "it said nothing"

    def wait(self, timeout_s: float) -> int:
        """Wait until the child has ended by itself. Returns its status, -9 after SIGKILL. Raises TimeoutError."""
        try:
            return self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the broker's process {self.popen.pid} still runs after {timeout_s} s") from None

    @property
    def is_of_parent(self) -> bool:
        """Whether it is a child of the process from which this one was forked."""
        return os.getpid() != self._parent

    def stop(self) -> None:
        """End the child cleanly, or by SIGKILL if it does not. It is not that of a process forked from this one."""
        if self.is_of_parent:
            return
        self.popen.terminate()
        try:
            self.popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self._close()

    def kill(self) -> None:
        """End the child by SIGKILL."""
        self.popen.kill()
        self.popen.wait()
        self._close()

    def _close(self) -> None:
        if self._listener.is_alive():
            self._listener.join(STOP_SECONDS)
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if pipe is not None:
                with suppress(OSError):  # what a child that ended has not read cannot be written
                    pipe.close()


def _environment(faults: str | None, *, has_records: bool, removes_data: bool) -> dict[str, str]:
    """The variables of the child: those of this process, but for what concerns this process alone."""
    from kafka_shim.serve import RECORDS_ON_STDIN, REMOVE, STOP_WITH_STDIN

    found = dict(os.environ)
    found["PYTHONPATH"] = os.pathsep.join(_module_path())
    for name in (ENVIRONMENT, *FOR_PROGRAM):
        found.pop(name, None)
    found[STOP_WITH_STDIN] = REMOVE if removes_data else "1"
    if faults:
        found[ENVIRONMENT] = faults
    if has_records:
        found[RECORDS_ON_STDIN] = "1"
    return found


def _module_path() -> list[str]:
    """Where this process finds its modules, and Python's own first: it may have those already where a program, or
    pytest, has put a folder with a queue.py before them."""
    # Programs put Path objects there, too, at which Python does not look.
    paths = [path or os.curdir for path in sys.path if isinstance(path, str)]
    library = os.__file__.rpartition(os.sep)[0]
    return sorted(paths, key=lambda path: path not in (library, f"{library}/lib-dynload"))


@contextmanager
def _properties_file(options: Mapping[str, str]) -> Iterator[int]:
    """The descriptor of a file without a name: nothing is left of it, also where this process is killed. On Linux it is
    on no disk, which may be read-only."""
    number = memory_file("options")
    with (
        tempfile.TemporaryFile("w", encoding="utf-8") if number is None else os.fdopen(number, "w", encoding="utf-8")
    ) as file:
        for name, text in options.items():
            escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
            file.write(f"{name}={escaped}\n")
        file.seek(0)
        yield file.fileno()
