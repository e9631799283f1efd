"""A recorder in front of a broker, in its own thread, and the replay of its capture."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager

from kafka_shim.wire_client import parse_address
from kafka_shim.wiretap.capture import CaptureWriter, read_capture
from kafka_shim.wiretap.recorder import OnRequest, Recorder
from kafka_shim.wiretap.replay import Outcome, Replayer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 60


@contextmanager
def recorder(bootstrap: str, capture: Path | None = None, on_request: OnRequest | None = None) -> Iterator[str]:
    """Yields the address for clients. With `capture` every frame is recorded there; `on_request` may act
    on requests.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    writer = CaptureWriter(capture) if capture is not None else None
    made = Recorder(parse_address(bootstrap), writer=writer, on_request=on_request)
    try:
        asyncio.run_coroutine_threadsafe(made.start(), loop).result(PATIENCE_S)
        yield made.bootstrap
    finally:
        asyncio.run_coroutine_threadsafe(made.stop(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()
        if writer is not None:
            writer.close()


def replay(capture: Path, bootstrap: str, patience_s: float = 30.0) -> Outcome:
    """Sends the capture's requests to a broker and compares its responses with the recorded ones."""
    return asyncio.run(Replayer(parse_address(bootstrap), patience_s=patience_s).run(read_capture(capture)))
