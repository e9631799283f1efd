"""Replays a metadata log as a start does, without a broker, and says which record is the first that stops it."""

from __future__ import annotations

import os

from kafka_shim.cext.batch import BatchError
from kafka_shim.cext.records import iterate
from kafka_shim.cext.segment import Walk, read
from kafka_shim.metadata.image import Image
from kafka_shim.metadata.log import snapshots
from kafka_shim.metadata.replay import Replayer
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
    logs = sorted(path for path in folder.iterdir() if path.name.endswith(names.LOG))
    if logs and names.offset_of(logs[0].name) > start:
        return logs[0], f"is the first of the log, and no snapshot reaches it: the newest ends at offset {start}"
    for path in logs:
        if (fault := _replay(replayer, path, start)) is not None:
            return path, fault
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
            except (BatchError, ValueError, LookupError, TypeError) as err:
                return f"the record at {where} stops a start: {err or type(err).__name__}"
    return None


def _apply(replayer: Replayer, record: Any, is_control: bool) -> None:
    if is_control:
        decode_control(record.key or b"", record.value or b"")
    else:
        replayer.apply(decode_metadata(record.value or b"")[0])
