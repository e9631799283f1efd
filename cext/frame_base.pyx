"""What every request passes: its frame is cut off, and its answer sent. Contracts are in frame_base.pyi."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t

from kafka_shim.cext.bigendian cimport load_i16, load_i32
from kafka_shim.cext.dispatcher_base cimport DispatcherBase
from kafka_shim.cext.held_answers cimport Answering, HeldAnswers
from kafka_shim.cext.machine_time cimport monotonic_ms
from kafka_shim.cext.plain_api cimport Frame, is_armed, slice_of
from kafka_shim.cext.replies cimport DelayedBase, Reply

cpdef enum:
    PROBE_BYTES = 65536
    WIDE_PROBE_BYTES = 4 * PROBE_BYTES

cdef enum:
    LENGTH_BYTES = 4
    API_KEY_BYTES = 2
    # The most requests of a connection that are served before the others have their turn.
    MOST_REQUESTS = 32
    # The bytes of the answers that wait for the next one.
    MOST_ANSWERS_BYTES = 16 * 1024
    PRODUCE = 0


cdef class FrameBase(Answering):
    cdef public object session
    cdef public object _dispatcher
    cdef public object _clock
    cdef public object _transport
    cdef public object _probe
    cdef public object _wide_probe
    cdef public object _frame
    cdef public object _held
    cdef public object _task
    cdef public int64_t _max_frame_bytes
    cdef public int64_t last_active_ms
    cdef public bint _must_log_in
    cdef public bint _write_paused
    cdef public bint is_closing
    cdef public bint _is_wide
    cdef public bint _is_paused
    cdef public bint _is_abandonable
    cdef public bint _is_delayed
    cdef public object _closing_reason
    # An answer that leaves with those of other connections.
    cdef object _held_answer
    # Answers that leave together with the next one.
    cdef list _answers
    cdef Py_ssize_t _answers_bytes
    cdef public HeldAnswers _held_answers
    # Those of the dispatcher's broker, once they were asked for.
    cdef object _faults
    # What calls on the next turn of the loop, once a request waited.
    cdef object _soon

    def get_buffer(self, sizehint):
        if self._frame is not None or self._held is not None:
            return self._get_rest()
        if self._is_wide and self._task is None and not self._write_paused:
            return self._wide_probe
        return self._probe

    def buffer_updated(self, Py_ssize_t nbytes):
        cdef bint is_full
        self.last_active_ms = <int64_t>monotonic_ms(self._clock)
        if self._frame is None and self._held is None:
            is_full = nbytes == (WIDE_PROBE_BYTES if self._is_wide else PROBE_BYTES)
            self._is_wide = False
            if self._cut(self._wide_probe, nbytes) and is_full:
                self._let_others()  # libuv would read again at once
        else:
            self._rest_updated(nbytes)

    def _handle_now(self, frame):
        cdef Py_buffer view
        cdef Frame whole
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            whole.whole, whole.at, whole.size_bytes = &view, 0, view.len
            self._serve(&whole, False, False)
        finally:
            PyBuffer_Release(&view)

    cdef object _handled(self, Frame* frame):
        """A Reply, or the answer of a fast path, after which nothing is left to do."""
        cdef Reply reply
        if isinstance(self._dispatcher, DispatcherBase) and not (<DispatcherBase>self._dispatcher).has_own_handle:
            return (<DispatcherBase>self._dispatcher).handle_frame(self.session, frame)
        reply = self._dispatcher.handle(self.session, slice_of(frame))
        if reply is None or not reply.is_plain or reply.follow_up is not None:
            return reply
        return (<list?>reply.parts)[0]

    cdef int _serve(self, Frame* frame, bint has_successor, bint may_hold) except -1:
        """With a successor, a request that is surely handled next, the answer may wait for that one's. `may_hold`: that
        of a fast path may wait for those of other connections."""
        cdef Reply reply
        cdef object done = None
        cdef bint has_failed = False
        self._send_held()
        try:
            done = self._handled(frame)
        except Exception as error:
            has_failed = True
            self._send_answers()
            self._failed(error)
        if has_failed:
            return 0
        if type(done) is bytes:
            # One that is held may leave at once: not before those of its client that wait for it.
            if may_hold and self._answers is None:
                self._hold(done)
            else:
                self._answer(done, has_successor)
            return 0
        reply = done
        if reply is not None:
            if reply.parts is None:
                self._send_answers()
                self._await(reply)
                return 0
            try:
                if len(<list?>reply.parts) == 1:
                    self._answer((<list>reply.parts)[0], has_successor and reply.follow_up is None)
                else:
                    self._send_answers()
                    self._send(reply.parts)
            finally:
                if reply.follow_up is not None:
                    self._dispatcher.run(reply.follow_up)
        elif not has_successor:
            self._send_answers()
        if self.session.muted_ms:
            self._send_answers()
            self._mute()
        return 0

    cdef int _await(self, Reply reply) except -1:
        cdef DelayedBase delayed = reply.delayed
        if delayed is None:
            self._wait_for(reply)
            return 0
        if self._soon is None:
            self._soon = self._clock.soon()
        delayed.then(self._complete, self._soon)
        # Memory may end before.
        self._is_abandonable = False
        self._is_delayed = True
        self._task = delayed
        return 0

    def _complete(self):
        cdef Reply reply = None
        delayed = self._task
        self._task = None
        try:
            reply = self._dispatcher.completed(delayed)
            if reply.parts is None:
                self._wait_for(reply)
            else:
                self._finished(reply.parts)
        except Exception as error:
            # The answer is lost: another request's must not stand in its place.
            if reply is not None and reply.waiting is not None and self._task is None:
                reply.waiting.close()
            self._failed(error)

    def _finished(self, list parts):
        self.last_active_ms = <int64_t>monotonic_ms(self._clock)
        if self.is_closing:
            return
        if parts is not None:
            if len(parts) == 1:
                has_more = self._held is not None or self._frame is not None
                if self._may_hold(has_more, is_armed(self._known_faults())):
                    self._hold(parts[0])
                else:
                    self._transport.write(parts[0])
            else:
                self._send(parts)
        session = self.session
        if self._closing_reason is not None:
            self.close(self._closing_reason or None)
        elif session.authenticator is not None and session.authenticator.is_refused:
            self.close()
        if session.muted_ms:
            self._send_held()
            self._mute()
        elif self._is_paused:
            self.proceed()

    cdef bint _may_hold(self, bint has_more, bint are_armed) except -1:
        """Count a request. Returns whether its answer may wait for those of other connections: not if the client has
        sent more, which is handled next, nor where a fault may end the process."""
        return (
            self._held_answers is not None and self._held_answers.count(self) and not has_more and not are_armed
        )

    cdef object _known_faults(self):
        if self._faults is None:
            self._faults = self._dispatcher.broker.faults
        return self._faults

    cdef int _hold(self, object answer) except -1:
        self._held_answer = answer
        self._held_answers.hold(self)
        return 0

    cdef int _send_held(self) except -1:
        cdef object answer = self._held_answer
        if answer is None:
            return 0
        self._held_answer = None
        if not self.is_closing:
            try:
                self._transport.write(answer)
            except Exception as error:
                self._failed(error)
        return 0

    cdef int _answer(self, object answer, bint may_wait) except -1:
        cdef Py_ssize_t size_bytes = len(answer)
        cdef bint is_kept = False
        if self._answers is None:
            if not may_wait or size_bytes > MOST_ANSWERS_BYTES:
                self._transport.write(answer)
                return 0
            self._answers_bytes = 0
        try:
            if self._answers is None:
                self._answers = []
            self._answers.append(answer)
            is_kept = True
        except MemoryError:
            self._send_answers()
            self._transport.write(answer)
        if not is_kept:
            return 0
        self._answers_bytes += size_bytes
        if not may_wait or self._answers_bytes >= MOST_ANSWERS_BYTES:
            self._send_answers()
        return 0

    cdef int _send_answers(self) except -1:
        cdef list answers = self._answers
        cdef bytes joined = None
        if answers is None:
            return 0
        self._answers = None
        try:
            joined = b"".join(answers)
        except MemoryError:
            for answer in answers:
                self._transport.write(answer)
        if joined is not None:
            self._transport.write(joined)
        return 0

    def send_held(self):
        self._send_held()

    def _consume(self, data, Py_ssize_t size_bytes):
        self._cut(data, size_bytes)

    cdef int _cut(self, object data, Py_ssize_t size_bytes) except -1:
        """Returns how many frames were handled."""
        cdef int served = 0
        cdef Py_buffer view
        cdef Frame frame
        cdef Py_ssize_t at = 0
        cdef int64_t length
        cdef bint may_hold, are_armed
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if size_bytes > view.len:
                raise ValueError(f"{size_bytes} bytes are not inside a buffer of {view.len}")
            while (
                size_bytes - at >= LENGTH_BYTES
                and self._task is None
                and not self._write_paused
                and not self.is_closing
            ):
                if served == MOST_REQUESTS:
                    self._let_others()
                    break
                length = load_i32(<const uint8_t*>view.buf + at)
                if not 0 <= length <= self._max_frame_bytes:
                    self.close(self._frame_refusal(data, at))
                    return served
                if length > size_bytes - at - LENGTH_BYTES:
                    break
                frame.whole, frame.at, frame.size_bytes = &view, at + LENGTH_BYTES, length
                at += LENGTH_BYTES + length
                served += 1
                if length > PROBE_BYTES:
                    self._is_wide = at == size_bytes
                if self._must_log_in:
                    self._handle(slice_of(&frame))
                else:
                    # Nothing is held where a fault may end the process: Kafka handles no request before the answer to
                    # the one before is sent.
                    are_armed = is_armed(self._known_faults())
                    may_hold = self._may_hold(at < size_bytes, are_armed)
                    self._serve(
                        &frame,
                        not are_armed and self._is_produce_next(<const uint8_t*>view.buf + at, size_bytes - at),
                        may_hold,
                    )
            self._send_answers()
            if at < size_bytes and not self.is_closing:
                self._keep(data[at:size_bytes])
            return served
        finally:
            PyBuffer_Release(&view)

    cdef bint _is_produce_next(self, const uint8_t* data, Py_ssize_t size_bytes) noexcept nogil:
        """Whether a whole request to produce follows, of a client that does not wait for one answer before it sends the
        next: a write for each would wake it for each. A Produce closes no connection before it has an answer."""
        cdef int64_t length
        if size_bytes < LENGTH_BYTES + API_KEY_BYTES:
            return False
        length = load_i32(data)
        return (
            API_KEY_BYTES <= length <= self._max_frame_bytes
            and length <= size_bytes - LENGTH_BYTES
            and load_i16(data + LENGTH_BYTES) == PRODUCE
        )
