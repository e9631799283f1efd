"""Something else in the place of a file of a data directory: the start ends with the file's name, and soon."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage.regular_files import open_regular, read_file
from kafka_shim.storage.results import StorageError
from kafka_shim.tests.metadata.opened import Opened
from kafka_shim.tests.waiting import PATIENCE_S

METADATA = "__cluster_metadata-0"


def make_socket(path: Path) -> None:
    # The address of a socket is short.
    directory = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{directory}/{path.name}")
    os.close(directory)


KINDS: dict[str, Callable[[Path], object]] = {"pipe": os.mkfifo, "socket": make_socket, "directory": Path.mkdir}


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Whoever waits for the other end of a pipe is interrupted."""

    def too_late(*_: object) -> None:
        raise TimeoutError("the start does not end")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(int(PATIENCE_S))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def replace(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    KINDS[kind](path)


def start(directory: Path) -> Opened:
    broker = Opened(directory)
    try:
        return broker.start()
    except BaseException:
        broker.crash()
        raise


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    [
        "meta.properties",
        ".lock",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
        f"{METADATA}/quorum-state",
        f"{METADATA}/leader-epoch-checkpoint",
        f"{METADATA}/00000000000000000003-0000000001.checkpoint",
        f"{METADATA}/00000000000000000000.log",
        f"{METADATA}/00000000000000000000.index",
        f"{METADATA}/00000000000000000000.timeindex",
        f"{METADATA}/00000000000000000003.snapshot",
    ],
)
def test_a_start_refuses_what_is_no_file_by_its_name(tmp_path: Path, name: str, kind: str) -> None:
    Opened(tmp_path).start().stop()
    replace(tmp_path / name, kind)
    with pytest.raises((OSError, StorageError)) as refused:
        start(tmp_path)
    assert not isinstance(refused.value, TimeoutError)
    assert Path(name).name in str(refused.value)


@pytest.mark.parametrize("name", ["00000000000000000000.log", "partition.metadata", "leader-epoch-checkpoint"])
def test_a_partition_with_a_pipe_in_the_place_of_a_file_is_offline(tmp_path: Path, name: str) -> None:
    broker = Opened(tmp_path).start()
    broker.store.create_topic("t")
    broker.stop()
    replace(tmp_path / "t-0" / name, "pipe")
    broker = start(tmp_path)
    with pytest.raises(KafkaError, match=name) as refused:
        broker.logs.get("t", 0)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    broker.stop()


def test_a_device_is_no_file() -> None:
    with pytest.raises(OSError, match="not a regular file"):
        read_file("/dev/zero")


def test_a_link_to_a_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    assert read_file(str(tmp_path / "link")) == b"x"
    os.close(open_regular(str(tmp_path / "link"), os.O_RDWR))


@pytest.mark.parametrize("kind", [OSError, MemoryError])
@pytest.mark.parametrize(("module", "name"), [("os", "fstat"), ("builtins", "open")])
def test_a_file_that_cannot_be_read_leaves_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, kind: type[Exception]
) -> None:
    """A broker that has met this some thousand times still has descriptors."""
    (tmp_path / "file").write_bytes(b"x")

    def fail(*_: object, **__: object) -> object:
        raise kind

    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as failing:
        failing.setattr(f"{module}.{name}", fail)
        with pytest.raises(kind):
            read_file(str(tmp_path / "file"))
    assert len(os.listdir("/proc/self/fd")) == before
