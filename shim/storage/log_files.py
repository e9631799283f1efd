"""The files in a partition's directory at a start, and what a crash left there unfinished."""

from __future__ import annotations

import logging
import os

from kafka_shim.storage import names
from kafka_shim.storage.open_files import OpenFiles
from kafka_shim.storage.regular_files import not_regular
from kafka_shim.storage.segments import Segment

logger = logging.getLogger(__name__)

# The names of files that are loaded end with these.
LOADED = (*names.SEGMENT_SUFFIXES, names.SNAPSHOT)


def list_files(directory: str) -> dict[str, int]:
    """Return a map from file name to size. Only .log files have their size; it is 0 for all others. Raises OSError,
    also if something else is in the place of one: the log would lose its records or producers without a word."""
    files = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_file():
                files[entry.name] = entry.stat().st_size if entry.name.endswith(names.LOG) else 0
            elif entry.name.endswith(LOADED):
                raise not_regular(entry.path)
    return files


def finish_swaps(directory: str, files: dict[str, int]) -> dict[str, int]:
    """Complete or undo a compaction swap that a crash interrupted. Returns the files of the directory afterwards.

    A `.cleaned` file means that its swap had not started: it is removed, and so are all `.swap` files at or above it.
    The remaining `.swap` files are complete: the segments that they replace are removed, and they lose the suffix."""
    cleaned = [name for name in files if name.endswith(names.CLEANED)]
    first_undecided = min(map(names.offset_of, cleaned), default=None)
    undone = [
        name
        for name in files
        if first_undecided is not None and name.endswith(names.SWAP) and names.offset_of(name) >= first_undecided
    ]
    # `.checkpoint.deleted` is a snapshot of the metadata log, not a segment file, and stays.
    deleted = [name for name in files if name.endswith(names.DELETED) and names.METADATA_SNAPSHOT not in name]
    # In this order: after a kill that left no `.cleaned` file the next start would take the `.swap` files for complete.
    for name in [*undone, *cleaned, *deleted]:
        os.unlink(f"{directory}/{name}")
        del files[name]
    swapped = [name for name in files if name.endswith(names.LOG + names.SWAP)]
    if swapped:
        first = min(names.offset_of(name) for name in swapped)
        end = max(_end_of_swap(directory, name) for name in swapped)
        for name in list(files):
            replaced = name.endswith((*names.SEGMENT_SUFFIXES, names.SNAPSHOT)) and first <= names.offset_of(name) < end
            if replaced:
                os.unlink(f"{directory}/{name}")
        logger.info("%s: finished the swap of compacted segments from offset %d to %d", directory, first, end)
    for name in files:
        if name.endswith(names.SWAP):
            os.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP)}")
    return list_files(directory)


def _end_of_swap(directory: str, name: str) -> int:
    size_bytes = os.stat(f"{directory}/{name}").st_size
    if not size_bytes:  # nothing was kept; to open it would make index files beside it
        return names.offset_of(name) + 1
    segment = Segment(directory, names.offset_of(name), OpenFiles(), 0, names.SWAP)
    segment.attach(size_bytes)
    try:
        return max(segment.read_end()[0], segment.base_offset + 1)
    finally:
        segment.abandon()


def remove_orphans(directory: str, files: dict[str, int], sizes: dict[int, int]) -> None:
    """Remove the index files without a log; `sizes` has the logs by base offset. Raises OSError."""
    for name in files:
        if name.endswith((names.INDEX, names.TIME_INDEX, names.TXN_INDEX)) and names.offset_of(name) not in sizes:
            logger.warning("%s/%s has no .log file and is removed", directory, name)
            os.unlink(f"{directory}/{name}")
