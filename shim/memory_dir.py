"""The temporary data directory of a broker that keeps no data. It is on a memory file system if that has enough room.

The owning process holds a lock on the file `.owner` in the directory. The lock ends with the process, however it ends,
and the next start removes directories that nobody locks. A process that embeds a broker and does not handle SIGTERM
removes its own directories first.
"""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

logger = logging.getLogger(__name__)

RAM_DISK = Path("/dev/shm")
PREFIX = "kafka-shim-"
OWNER = ".owner"
# A container has 64 MB there by default. That fills up quickly, and then every append fails.
MIN_FREE_BYTES = 256 << 20
# After all that a program has multiprocessing do at a child's end: some of it may stop the broker.
LAST = -sys.maxsize

# Directories of this process -> the descriptor that holds the lock of each.
_owned: dict[Path, int] = {}
# The children of multiprocessing, this one and those it was forked from, that remove their directories at their end.
_children: set[int] = set()


def make() -> Path:
    """Create an empty directory, which this process owns until `remove` or until it ends."""
    _remove_with_child()
    parent = _parent()
    for place in {RAM_DISK, parent, _temporary() or parent}:
        remove_abandoned(place)
    # The directory is locked before it gets its final name, so nobody takes it for an abandoned one.
    directory = parent / f"{PREFIX}{os.urandom(8).hex()}"
    making = directory.with_name(f".{directory.name}")
    try:
        making.mkdir(0o700)
        owner = os.open(making / OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _owned[directory] = owner
        fcntl.flock(owner, fcntl.LOCK_EX)
        making.rename(directory)
    except BaseException:  # Ctrl-C too
        shutil.rmtree(making, ignore_errors=True)
        remove(directory)
        raise
    return directory


def remove(directory: Path) -> None:
    """Remove the directory and its contents, if it is this process's: a forked child has its parent's name of it."""
    if directory in _owned:
        shutil.rmtree(directory, ignore_errors=True)
        if (owner := _owned.pop(directory, None)) is not None:  # after Ctrl-C before this, it is removed once more
            os.close(owner)


def remove_abandoned(place: Path) -> None:
    """Remove the directories that killed processes of this user left in `place`."""
    for directory in place.glob(f"{PREFIX}*"):
        try:
            owner = os.open(directory / OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # not such a directory, another user's, or already removed
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(owner).st_uid == os.geteuid():
                shutil.rmtree(directory, ignore_errors=True)
                logger.info("removed %s, which a killed broker left", directory)
        except BlockingIOError:
            pass  # its owner is alive
        finally:
            os.close(owner)


def _temporary() -> Path | None:
    """The folder of temporary files. None where there is none, as in a container with a read-only disk."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        return None


def _parent() -> Path:
    if not RAM_DISK.is_dir() or not os.access(RAM_DISK, os.W_OK):
        return Path(tempfile.gettempdir())
    free_bytes = _free_bytes(RAM_DISK)
    if free_bytes < MIN_FREE_BYTES:
        other = _temporary()
        logger.warning(
            "%s has only %d MB free, %s: give %s at least %d MB (docker run --shm-size)",
            RAM_DISK,
            free_bytes >> 20,
            "and no other place can be written" if other is None else f"so data goes to {other}",
            RAM_DISK,
            MIN_FREE_BYTES >> 20,
        )
        return other or RAM_DISK
    return RAM_DISK


def _free_bytes(place: Path) -> int:
    stat = os.statvfs(place)
    return stat.f_bavail * stat.f_frsize


# --- the end of a process that embeds brokers


def _forget() -> None:
    """In a forked child: the directories and their locks belong to the parent, which outlives a child's SIGTERM. That
    ends the child at once, as without a broker: a handler in Python waits for as long as a child waits that began to
    just when the signal came."""
    for owner in _owned.values():
        os.close(owner)
    _owned.clear()
    if signal.getsignal(signal.SIGTERM) is _terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_sigterm()


def _hold_sigterm() -> None:
    """Before a fork: a SIGTERM that reaches the child before `_forget` waits for it. Python forgets in a new child what
    its handlers have still to be told."""
    if signal.getsignal(signal.SIGTERM) is _terminated:
        _mask.former = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # known before anything changes, whatever comes
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))


def _let_sigterm() -> None:
    if _mask.former is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _mask.former)
        _mask.former = None


class _Mask(threading.local):
    """The mask of signals of a thread that forks, as it was."""

    former: set[int] | set[signal.Signals] | None = None


_mask = _Mask()
os.register_at_fork(before=_hold_sigterm, after_in_parent=_let_sigterm, after_in_child=_forget)
# Once more: a handler of another signal, as that of Ctrl-C, may raise as soon as the first of them begins.
os.register_at_fork(after_in_parent=_let_sigterm, after_in_child=_let_sigterm)


def remove_at_end() -> None:
    """Remove the directories of this process also on a SIGTERM that the program does not handle."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)


def _remove_all() -> None:
    for directory in list(_owned):
        remove(directory)


# From now on, not from the first start: what a program has had `atexit` do with a broker comes before.
atexit.register(_remove_all)


def _remove_with_child() -> None:
    """Remove the directories of a child of multiprocessing at its end: `atexit` hears only of that of a spawned one."""
    if "multiprocessing.util" in sys.modules and os.getpid() not in _children:
        from multiprocessing import parent_process, util

        if parent_process() is not None:
            _children.add(os.getpid())
            util.Finalize(None, _remove_all, exitpriority=LAST)


def _terminated(number: int, frame: FrameType | None) -> None:
    _remove_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
