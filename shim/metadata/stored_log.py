"""A metadata log as it lies on the disk, for commands that look at a directory without a broker."""

from __future__ import annotations

import os

from kafka_shim.cext.batch import Verdict
from kafka_shim.cext.segment import Walk, read
from kafka_shim.metadata.log import MetadataLogError
from kafka_shim.storage.names import LOG, offset_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_shim.cext.batch import Batch


class StoredLog:
    """Reads the segments of `__cluster_metadata-0` and changes nothing: no recovery, which cuts a log at its first bad
    batch. `is_whole`: the last stop was clean, so that bytes that are no batch are a damage. After another stop the
    log ends there, as a start would end it."""

    def __init__(self, path: Path, *, is_whole: bool) -> None:
        """Raises OSError."""
        self.path = path
        self._is_whole = is_whole
        self._files = sorted(file for file in path.iterdir() if file.name.endswith(LOG))
        self.log_start_offset = offset_of(self._files[0].name) if self._files else 0
        # After the last batch that `batches` has yielded.
        self.log_end_offset = self.log_start_offset
        for _ in self.batches():
            pass

    def batches(self, start: int | None = None) -> Iterator[tuple[bytes, Batch]]:
        """Yields (bytes, batch) of those that end at or after `start`. Raises MetadataLogError, OSError."""
        for path in self._files:
            base_offset = offset_of(path.name)
            with path.open("rb") as file:
                walk = Walk(file.fileno(), 0, os.fstat(file.fileno()).st_size, True, base_offset)
                for batch in walk:
                    if start is None or batch.last_offset >= start:
                        yield read(file.fileno(), batch.position, batch.size_bytes), batch
            self.log_end_offset = walk.next_offset
            if walk.verdict is not Verdict.OK:
                if self._is_whole:
                    raise MetadataLogError(
                        f"{path}: what is at position {walk.position} is no whole batch; nothing was changed: "
                        "`kafka-shim storage check` tells more"
                    )
                return
