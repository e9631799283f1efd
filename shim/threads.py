"""Threads whose start fails where the new thread finds no memory to begin. `threading.Thread.start` waits for ever
then, and with it the event loop that called it."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHECK_S = 0.05


class Thread(threading.Thread):
    """As `threading.Thread`. `start` raises RuntimeError also for a thread that was made and ended before it ran."""

    def start(self) -> None:
        """Start the thread. Raises RuntimeError; then nothing of it runs, now or later."""
        boot = partial(threading.Thread._bootstrap, self)  # type: ignore[attr-defined]
        self._started = _Begun(self, ref(boot))
        self._bootstrap = boot
        del boot  # from here on the new thread alone holds it
        super().start()


class _Begun(threading.Event):
    """Set by the new thread once it runs. What holds `boot` until the thread ends is the thread."""

    def __init__(self, thread: Any, boot: ref[Any]) -> None:
        super().__init__()
        self._thread = thread
        self._boot = boot

    def wait(self, timeout: float | None = None) -> bool:
        thread, self._thread = self._thread, None
        if thread is not None:
            del thread._bootstrap
            while not self.is_set():
                if self._boot() is None and not self.is_set():
                    with threading._active_limbo_lock:  # type: ignore[attr-defined]
                        threading._limbo.pop(thread, None)  # type: ignore[attr-defined]
                    raise RuntimeError("can't start new thread: it found no memory")
                with suppress(MemoryError):
                    super().wait(CHECK_S)
        return super().wait(timeout)
