"""kafka_shim.wiretap.capture"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.wiretap.capture import CaptureError, CaptureWriter, Kind, read_capture


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    with CaptureWriter(path) as writer:
        wrote = [
            writer.write(Kind.OPENED, 1),
            writer.write(Kind.REQUEST, 1, b"asked"),
            writer.write(Kind.RESPONSE, 1, b"told"),
            writer.write(Kind.CLOSED, 1),
        ]
    assert list(read_capture(path)) == wrote
    assert [entry.time_us for entry in wrote] == sorted(entry.time_us for entry in wrote)


def test_a_new_capture_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It has the passwords that clients log in with. So has one that takes the place of another file."""
    path = tmp_path / "capture"
    path.write_bytes(b"")
    path.chmod(0o644)
    with CaptureWriter(path):
        assert path.stat().st_mode & 0o777 == 0o600
    with CaptureWriter(path) as writer:
        writer.write(Kind.OPENED, 1)
    assert len(list(read_capture(path))) == 1


def test_a_torn_tail_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    with CaptureWriter(path) as writer:
        first = writer.write(Kind.REQUEST, 1, b"whole")
        writer.write(Kind.REQUEST, 1, b"torn")
    path.write_bytes(path.read_bytes()[:-2])
    assert list(read_capture(path)) == [first]


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(b"something else")
    with pytest.raises(CaptureError):
        list(read_capture(path))
