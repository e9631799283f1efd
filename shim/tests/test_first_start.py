"""What goes wrong in somebody's first hour with `kafka-shim serve`: one line says what, where and what to do."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.metadata
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import kafka_shim
from kafka_shim.cli import main
from kafka_shim.embedded import Broker
from kafka_shim.tests.unknown_host import UNKNOWN_HOST
from kafka_shim.tests.waiting import PATIENCE_S
from kafka_shim.wire_client import Connection

COMMAND = (sys.executable, "-m", "kafka_shim")
NOBODY = 65534


def error_of(*words: str | Path, is_warned: bool = False, status: int = 1, **options: object) -> str:
    """The only line of a start that fails that is not of the log. `status`: 2 where the words have not their form."""
    done = subprocess.run(
        [*COMMAND, "serve", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == status, done
    assert not done.stdout
    told = " kafka_shim." if is_warned else " INFO kafka_shim"
    (line,) = [one for one in done.stderr.splitlines() if told not in one]
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def test_a_port_in_use_is_named_with_what_shows_its_user() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = error_of("--memory", "--listen", f"127.0.0.1:{port}")
        assert said.startswith(f"cannot listen on PLAINTEXT://127.0.0.1:{port}: Address already in use; ")
        assert f":{port}" in said.split(";")[1]
        assert "--listen HOST:0" in said
        http = error_of("--memory", "--listen", "127.0.0.1:0", "-o", f"kafka.shim.http.listener=127.0.0.1:{port}")
        assert http.endswith("in use; give kafka.shim.http.listener another address, port 0 for a free one")


@pytest.mark.parametrize(
    ("listen", "advice"),
    [
        ("192.0.2.1:9092", "no interface of this machine"),
        (f"{UNKNOWN_HOST}:9092", "the host is not known here"),
        ("no..name:9092", "the host is not known here"),
    ],
)
def test_an_address_of_another_machine_is_told(listen: str, advice: str) -> None:
    assert advice in error_of("--memory", "--listen", listen)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small"
    path.mkdir()
    mount = shutil.which("mount")
    words = [str(mount), "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)]
    if mount is None or os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


def test_a_full_disk_is_told_at_the_start_and_while_producing_until_it_has_room(
    small_disk: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    filler = fill(small_disk)
    # The directory itself needs no room on this file system; what is in it does.
    data = small_disk / "data"
    said = error_of("--data-dir", data, "--listen", "127.0.0.1:0")
    assert said.startswith(f"the data directory {data} cannot be used: No space left on device; free some space there")
    filler.unlink()
    with Broker(data_dir=data) as broker:
        caplog.set_level(logging.INFO)
        broker.produce("t", "before")
        filler = fill(small_disk)
        lines = small_disk.parent / "lines"
        lines.write_text("x" * 100_000 + "\n")
        words = ["produce", "t", "--bootstrap-server", broker.bootstrap_servers, "--file", str(lines)]
        assert main(words) == 1
        assert "KAFKA_STORAGE_ERROR (a full disk, mostly: the broker's log" in capsys.readouterr().err
        assert f"t-0 refuses what is written: No space left on device ({data}/t-0)" in caplog.text
        filler.unlink()
        broker.produce("t", "after")
        assert [one.text for one in broker.consume("t", count=2)] == ["before", "after"]
        fill(small_disk)
    # What could not be written at the end is not said to be.
    assert [one.getMessage() for one in caplog.records][-1].endswith("ms, the next start recovers the logs named above")
    said = error_of("--data-dir", data, "--listen", "127.0.0.1:0", is_warned=True)
    assert said.startswith(f"the data directory {data} cannot be used: No space left on device; free some space there")
    filler.unlink()
    with Broker(data_dir=data) as broker:
        assert [one.text for one in broker.consume("t", count=2)] == ["before", "after"]


def test_a_working_directory_that_was_removed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    why = "cannot be used: the working directory does not exist any more; start in another, or name"
    script = 'rmdir "$0"; exec "$@"'
    # Python itself does not start with -m there.
    code = "import sys; from kafka_shim.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["sh", "-c", script, str(gone), sys.executable, "-c", code, "serve", "--listen", "127.0.0.1:0"]
    done = subprocess.run(words, cwd=gone, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: the data directory ./kafka-shim-data {why}")
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["storage", "format", "data"]) == 1
    assert capsys.readouterr().err.startswith(f"error: the data directory data {why}")


def test_a_directory_that_may_not_be_written_names_the_user_and_a_way_out(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir(0o500)
        said = error_of("--data-dir", closed, "--listen", "127.0.0.1:0")
        assert "Permission denied; let user" in said
        return
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert f"{tmp_path}/data cannot be used: Permission denied; let user {NOBODY} write there, or name" in done.stderr


# Imported before the user changes, who may not be allowed to read a checkout.
AS_NOBODY = f"""
import os, sys
import kafka_shim.serve, kafka_shim.server, kafka_shim.embedded
from kafka_shim import Broker
os.chmod(sys.argv[1], 0o555)
with Broker(): pass
os.chdir("/")
os.setgid({NOBODY}); os.setuid({NOBODY})
sys.exit(kafka_shim.serve.serve(listen="127.0.0.1:0", data_dir=sys.argv[1] + "/data"))
"""


def test_a_file_in_the_place_of_the_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert error_of("--data-dir", tmp_path / "file", "--listen", "127.0.0.1:0").endswith(
        "Not a directory; name a folder with --data-dir or log.dirs"
    )


def test_data_of_another_kafka_is_told(tmp_path: Path) -> None:
    older = tmp_path / "older"
    older.mkdir()
    (older / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=abc\n")
    said = error_of("--data-dir", older, "--listen", "127.0.0.1:0")
    assert "has version 0, expected 1: it is not of Kafka 4.3.1 in KRaft mode; name another directory" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("num.partitions=many\n", "Invalid value many for configuration num.partitions: Not a number of type INT"),
        ("num.partitions=\n", "Invalid value  for configuration num.partitions: Not a number of type INT"),
        ("num.partitions=0\n", "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
    ],
)
def test_a_bad_value_of_a_file_is_told_with_the_file(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "server.properties"
    path.write_text(text)
    assert error_of("--memory", "--listen", "127.0.0.1:0", "--config", path) == f"{path}: {said}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfen\x00", "it is not a text in UTF-8 (it has a byte 0)"),
        ("folder", "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | str | None, said: str) -> None:
    path = tmp_path / "server.properties"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.mkdir()
    assert error_of("--memory", "--config", path) == f"cannot read {path}: {said}"


@pytest.mark.parametrize("option", ["num.partitions", "=3"])
def test_an_option_without_name_or_value_is_told(option: str) -> None:
    assert error_of("--memory", "-o", option, status=2) == f"-o takes key=value, not {option!r}"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("num.partitions=0", "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        ("num.partition=1", "num.partition is not an option of Kafka; did you mean num.partitions?"),
    ],
)
def test_a_wrong_option_of_the_command_line_is_a_wrong_call(tmp_path: Path, option: str, said: str) -> None:
    """It ended as a start that failed does."""
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=3\n")
    assert error_of("--memory", "-o", option, status=2) == said
    assert error_of("--memory", "--config", path, "-o", option, status=2) == said
    path.write_text("num.io.threads=0\n")
    assert error_of("--memory", "--config", path, "-o", option).startswith(("Invalid value 0", said))


def test_a_directory_without_a_name_is_not_the_working_one(tmp_path: Path) -> None:
    """As of a variable of the shell that is not set."""
    assert error_of("--data-dir", "", status=2, cwd=tmp_path) == "--data-dir takes a directory, not ''"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        ("nonsense", "--listen: 'nonsense' is not HOST:PORT"),
        ("127.0.0.1:many", "--listen: '127.0.0.1:many' is not HOST:PORT"),
        ("127.0.0.1:70000", "--listen: '127.0.0.1:70000': a port is a number from 0 to 65535"),
        ("::1:9092", "--listen: an IPv6 address must be in brackets: '::1:9092'"),
        ("PLAINTEXT://127.0.0.1", "--listen: 'PLAINTEXT://127.0.0.1' is not NAME://HOST:PORT"),
    ],
)
def test_an_address_without_its_form_is_a_wrong_option(listen: str, said: str) -> None:
    """Status 2, as of every other command; what is of its form and fails is 1."""
    assert error_of("--memory", "--listen", listen, status=2) == said


def test_a_python_without_the_compiled_modules_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As another Python finds a wheel or a checkout: the sources alone."""
    package = tmp_path / "kafka_shim"
    compiled = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    own = Path(kafka_shim.__path__[0]).resolve()
    left_out = shutil.ignore_patterns("tests", "__pycache__", *(f"*{one}" for one in compiled))
    shutil.copytree(own, package, ignore=left_out)
    cext = tmp_path / "kafka_shim" / "cext"
    if not cext.exists():
        cext.mkdir()
        (cext / "__init__.py").touch()
    serves = "from kafka_shim.cli import main; raise SystemExit(main(['serve', '--memory']))"
    for code in (serves, "from kafka_shim import Broker"):
        done = subprocess.run(
            [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=tmp_path,
        )
        assert done.returncode == 1
        assert f"kafka_shim in {package} has no compiled modules for this Python (cpython 3." in done.stderr
        assert sys.executable in done.stderr


def test_the_package_has_its_names_and_hides_no_other_missing_module(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kafka_shim.__version__ == importlib.metadata.version("kafka-shim")
    with pytest.raises(AttributeError, match="has no attribute 'Borker'"):
        _ = kafka_shim.Borker  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kafka_shim.embedded", None)
    with pytest.raises(ModuleNotFoundError, match=r"kafka_shim\.embedded"):
        _ = kafka_shim.Broker


def test_standard_streams_that_are_closed_end_no_start() -> None:
    closing = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *COMMAND, "serve", "--memory", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(closing) as child:
        try:
            deadline = time.monotonic() + PATIENCE_S
            ports: list[int] = []
            while not ports:
                assert child.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
                found = psutil.Process(child.pid).net_connections("tcp")
                ports = [one.laddr.port for one in found if one.status == psutil.CONN_LISTEN]
            with Connection(f"127.0.0.1:{ports[0]}") as client:
                assert client.ranges()
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == 0
        finally:
            child.kill()
