"""Replays a metadata log as a start does, without a broker, and says which record is the first that stops it."""

from __future__ import annotations

import os

from kafka_shim.cext.records import iterate
from kafka_shim.cext.segment import Walk, read
from kafka_shim.metadata.image import Image
from kafka_shim.metadata.log import UNREADABLE, snapshots
from kafka_shim.metadata.replay import Replayer
from kafka_shim.metadata.replay_topics import ReplayError, check_whole
from kafka_shim.protocol.record_frames import decode_control, decode_metadata
from kafka_shim.storage import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


def first_bad_record(folder: Path) -> tuple[Path, str] | None:
    """Return (file, what is wrong) of the first record that cannot be read or applied, or None. Changes nothing. What
    follows bytes that are no batch is not read: that is another finding. Raises OSError."""
    replayer = Replayer(Image())
    start = 0
    snapshot = max(snapshots(folder), default=None)
    if snapshot is not None:
        start, _, path = snapshot
        if (fault := _replay(replayer, path, 0)) is not None:
            return path, fault
        if (lacking := _lacking(replayer, [path])) is not None:
            return lacking
    logs = sorted(path for path in folder.iterdir() if path.name.endswith(names.LOG))
    if logs and names.offset_of(logs[0].name) > start:
        return logs[0], f"is the first of the log, and no snapshot reaches it: the newest ends at offset {start}"
    for path in logs:
        if (fault := _replay(replayer, path, start)) is not None:
            return path, fault
    return _lacking(replayer, logs)


def _lacking(replayer: Replayer, files: list[Path]) -> tuple[Path, str] | None:
    """Return the file of these, in order, with the record of a partition that lacks one before it, and what is wrong
    with the record."""
    try:
        check_whole(replayer.image)
    except ReplayError as err:
        holding = [path for path in files if names.offset_of(path.name) <= err.offset]
        return (holding or files)[-1], f"the record at offset {err.offset} stops a start: {err}"
    return None


def _replay(replayer: Replayer, path: Path, start: int) -> str | None:
    """Apply the records of a file from offset `start` on. Returns what is wrong with the first bad one."""
    with path.open("rb") as file:
        walk = Walk(file.fileno(), 0, os.fstat(file.fileno()).st_size, True)
        for batch in walk:
            content = read(file.fileno(), batch.position, batch.size_bytes)
            where = f"offset {batch.base_offset}, position {batch.position}"
            try:
                for record in iterate(content, 0, batch.size_bytes):
                    where = f"offset {record.offset}, position {batch.position}"
                    if record.offset >= start:
                        _apply(replayer, record, batch.is_control)
                        replayer.image.last_offset = record.offset
            except UNREADABLE as err:
                return f"the record at {where} stops a start: {err or type(err).__name__}"
    return None


def _apply(replayer: Replayer, record: Any, is_control: bool) -> None:
    if is_control:
        decode_control(record.key or b"", record.value or b"")
    else:
        replayer.apply(decode_metadata(record.value or b"")[0])
