"""fsync on systems that have more than one kind of it."""

from __future__ import annotations

import errno
import fcntl
import os

import pytest

from kafka_shim.storage.durable import fsync

FULL = 51


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the system is asked for."""
    made: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: made.append(f"fsync {fd}"))
    return made


def as_on_macos(monkeypatch: pytest.MonkeyPatch, calls: list[str], error: int = 0) -> None:
    def control(fd: int, command: int) -> int:
        calls.append(f"fcntl {fd} {command}")
        if error:
            raise OSError(error, os.strerror(error))
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)


def test_linux_is_asked_once(monkeypatch: pytest.MonkeyPatch, calls: list[str]) -> None:
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    fsync(7)
    assert calls == ["fsync 7"]


def test_macos_empties_the_cache_of_the_disk(monkeypatch: pytest.MonkeyPatch, calls: list[str]) -> None:
    as_on_macos(monkeypatch, calls)
    fsync(7)
    assert calls == [f"fcntl 7 {FULL}"]


@pytest.mark.parametrize("error", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_a_file_system_without_it_is_asked_for_what_it_has(
    monkeypatch: pytest.MonkeyPatch, calls: list[str], error: int
) -> None:
    as_on_macos(monkeypatch, calls, error)
    fsync(7)
    assert calls == [f"fcntl 7 {FULL}", "fsync 7"]


def test_a_broken_disk_is_told(monkeypatch: pytest.MonkeyPatch, calls: list[str]) -> None:
    as_on_macos(monkeypatch, calls, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        fsync(7)
    assert calls == [f"fcntl 7 {FULL}"]  # fsync after a failed one succeeds, and proves nothing
