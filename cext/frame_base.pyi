"""What every request passes: its frame is cut off, and its answer sent."""

from typing import Any

from kafka_shim.cext.held_answers import Answering, HeldAnswers

PROBE_BYTES: int
"""The size of the buffer that all connections share for their reads."""
WIDE_PROBE_BYTES: int
"""For a client whose last frame was larger than the probe and smaller than this: the next one is read and handled in
the shared buffer too, instead of copied out of it and read on. Of a frame beyond it too much would be copied."""

class FrameBase(Answering):
    """The base of `frame_receiver.FrameReceiver`, which explains the fields: what nearly every read is, one frame or
    some whole ones."""

    session: Any
    _dispatcher: Any
    _clock: Any
    _transport: Any
    _probe: memoryview
    _wide_probe: memoryview
    _frame: memoryview | None
    _held: bytes | bytearray | None
    _task: Any
    _max_frame_bytes: int
    last_active_ms: int
    _is_abandonable: bool
    _is_delayed: bool
    _closing_reason: str | None
    _must_log_in: bool
    _write_paused: bool
    _held_answers: HeldAnswers | None
    is_closing: bool
    _is_wide: bool
    _is_paused: bool

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns where the next read goes: the buffer that all connections share, more of it if the client's last
        frame was larger than PROBE_BYTES, nothing came behind it and nothing of it waits, or what
        `_get_rest` says while a frame is incomplete."""

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes were read into it: `_consume`, or `_rest_updated` while a frame is incomplete. Calls
        `_let_others` if a read was filled by frames of which some are whole."""

    def _handle_now(self, frame: memoryview) -> None:
        """Have the dispatcher handle one frame, and send its answer. Calls `_failed` with what it raises, `_wait_for`
        with a reply that is not there yet, `_send` with an answer of several parts, and `_mute` if the session is to
        be muted."""

    def _finished(self, parts: list[Any] | None) -> None:
        """Send the answer to a request that waited, which may be None, or hold it with those of other connections, and
        go on with the next request."""

    def _consume(self, data: memoryview, size_bytes: int) -> None:
        """Handle every complete frame of `data` and keep the rest: as `_handle_now` with each frame (`_handle` until
        the client has authenticated), `close` with what `_frame_refusal` says of a length that is refused, and `_keep`
        with what is left, also while a request waits or a response is not sent. Behind 32 frames `_let_others` is
        called, and the others are left. An answer that a whole request to produce follows leaves with the answer to
        that one, up to 16 KB of them: a write for each would wake the client for each. That of a fast path may
        leave with those of other connections (`HeldAnswers`)."""

    def send_held(self) -> None:
        """Send the answer that waits for those of others, unless the connection is closing. Calls `_failed` with what
        that raises."""
