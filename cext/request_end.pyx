"""What every request passes: its frame is cut off, it gets a context and a reply. Contracts are in request_end.pyi."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_shim.cext.bigendian cimport load_i16, load_i32
from kafka_shim.cext.headers cimport HEADER_KEYS, RequestHeader, RequestHeaderParser
from kafka_shim.cext.held_answers cimport Answering, HeldAnswers
from kafka_shim.cext.late_answers cimport LateAnswer
from kafka_shim.cext.machine_time cimport monotonic_ms, now_ms
from kafka_shim.cext.messages cimport decode_request, encode_response_frame
from kafka_shim.cext.plain_api cimport (
    IN_STEPS_BYTES,
    BrokerEnd,
    FollowUp,
    Frame,
    PlainApi,
    is_armed,
    slice_of,
    start_of,
)

from itertools import islice
from types import GeneratorType

from kafka_shim.cext.messages import EncodeError, LargeRequestError

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
    DEBUG = 10                  # of `logging`
    PRODUCE = 0
    OFFSET_COMMIT = 8
    ADD_PARTITIONS_TO_TXN = 24
    TXN_OFFSET_COMMIT = 28
    OFFSET_DELETE = 47

cdef str RECEIVED = "request.received"
cdef str READY = "response.ready"


cdef class FrameEnd(Answering):
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
        if isinstance(self._dispatcher, DispatcherEnd) and not (<DispatcherEnd>self._dispatcher)._has_own_handle:
            return (<DispatcherEnd>self._dispatcher)._handle(self.session, frame)
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
        cdef DelayedEnd delayed = reply.delayed
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


@cython.final
@cython.freelist(16)
cdef class Reply:
    cdef public object parts
    cdef public object follow_up
    cdef public object waiting
    cdef readonly DelayedEnd delayed
    cdef public bint is_abandonable
    cdef public bint is_delayed
    # The answer of a fast path, after which nothing is left to do.
    cdef public bint is_plain

    def __init__(self, parts, follow_up=None, waiting=None, bint is_abandonable=False, bint is_delayed=False):
        self.parts = parts
        self.follow_up = follow_up
        self.waiting = waiting
        self.is_abandonable = is_abandonable
        self.is_delayed = is_delayed


cdef Reply _reply(object parts, object follow_up):
    cdef Reply reply = Reply.__new__(Reply)
    reply.parts = parts
    reply.follow_up = follow_up
    return reply


@cython.final
@cython.freelist(16)
cdef class Outcome:
    cdef public object response
    cdef public object flushes
    cdef public object follow_up

    def __init__(self, response, flushes=(), follow_up=None):
        self.response = response
        self.flushes = flushes
        self.follow_up = follow_up

    def __class_getitem__(cls, of):
        return cls


cdef class DelayedEnd:
    cdef object _failure
    cdef object _then
    cdef object _soon
    cdef object _error
    cdef dict _purgatory
    cdef Context _context
    cdef ApiEnd _api
    cdef object _request
    cdef public object edit
    cdef public object measured
    cdef readonly Outcome outcome

    def __init__(self, failure):
        self._failure = failure

    def answer(self, response, flushes=()):
        if self.complete(response, flushes):
            self._wake()

    cpdef bint complete(self, response, flushes=()) except -1:
        cdef Outcome outcome
        if self.outcome is not None:
            return False
        outcome = Outcome.__new__(Outcome)
        outcome.response = response
        outcome.flushes = flushes
        self.outcome = outcome
        return True

    def wake(self):
        self._wake()

    cdef int _wake(self) except -1:
        if self._then is not None:
            if self._soon is None:
                self._then()
            else:
                self._soon(self._then)
            self._then = None
        self._leave_purgatory()
        return 0

    cdef int _leave_purgatory(self) except -1:
        # Also of one for whom nobody waits: memory ended before.
        if self._purgatory is not None:
            self._purgatory.pop(self, None)
        return 0

    cdef int _go_on(self) except -1:
        """As `_wake`, on the turn of the loop on which who waits may go on."""
        then, self._then = self._then, None
        self._leave_purgatory()
        if then is not None:
            then()
        return 0

    def fail(self, code):
        self.answer(self._failure(code))

    def fail_unexpectedly(self, error not None):
        if self.outcome is None and self._error is None:
            self._error = error
            self.wake()

    def park(self, dict purgatory not None, group_id):
        purgatory[self] = group_id
        self._purgatory = purgatory

    def then(self, go_on not None, soon=None):
        self._soon = soon
        self._then = go_on
        if self.outcome is not None or self._error is not None:
            self.wake()

    cpdef Outcome result(self):
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self.outcome is None:
            raise RuntimeError("the request still waits")
        if isinstance(self.outcome.response, LateAnswer):
            self.outcome.response = (<LateAnswer>self.outcome.response).message()
        return self.outcome if self.edit is None else self.edit(self.outcome)

    cdef bytes _frame(self, Context context):
        """The frame of an answer that is only to be written, or None."""
        cdef Outcome outcome = self.outcome
        if (
            self._error is not None
            or outcome is None
            or outcome.flushes
            or outcome.follow_up is not None
            or not isinstance(outcome.response, LateAnswer)
        ):
            return None
        return (<LateAnswer>outcome.response).frame(context.correlation_id, context.api_version)


@cython.final
cdef class _Awake:
    """Requests that go on together, on the next turn of the loop: a turn of each costs as much as the answer."""

    cdef list _tokens

    def __call__(self):
        failure = None
        for token in self._tokens:
            try:
                (<DelayedEnd>token)._go_on()
            except Exception as error:
                failure = error     # the others go on all the same
        if failure is not None:
            raise failure


cdef int _wake_all(list tokens) except -1:
    """Have those who wait for these complete requests go on. If memory ends here, none goes on."""
    cdef _Awake awake
    cdef object soon = None
    for token in tokens:
        if (<DelayedEnd>token)._then is not None:
            soon = (<DelayedEnd>token)._soon
            break
    if soon is None or len(tokens) == 1:
        for token in tokens:
            (<DelayedEnd>token)._wake()
        return 0
    awake = _Awake.__new__(_Awake)
    awake._tokens = tokens
    soon(awake)
    return 0


def answer_all(list replies not None, flushes):
    _wake_all(complete_all(replies, flushes))


def complete_all(list replies not None, flushes):
    cdef list completed = []
    for token, response in replies:
        if (<DelayedEnd?>token).complete(response, flushes):
            completed.append(token)
    return completed


def wake_first(completed not None, Py_ssize_t most):
    cdef list tokens = list(islice(completed, most))
    _wake_all(tokens)
    for _ in tokens:
        del completed[0]


@cython.final
@cython.freelist(16)
cdef class Context:
    cdef public object broker
    cdef public object session
    cdef public int32_t api_key
    cdef public int32_t api_version
    cdef public int32_t correlation_id
    cdef public object client_id
    cdef public int64_t received_ms
    cdef public int64_t size_bytes
    cdef public bint is_large
    cdef public object throttle
    cdef public object done

    def __init__(
        self, broker, session, int32_t api_key, int32_t api_version, int32_t correlation_id, client_id,
        int64_t received_ms
    ):
        self.broker = broker
        self.session = session
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.received_ms = received_ms

    def note_member(self, group_id, member_id):
        if self.broker.clock.is_virtual:
            self.session.members.add((group_id, member_id))

    @property
    def node_id(self):
        return self.broker.node_id

    @property
    def listener(self):
        return self.session.listener

    @property
    def principal(self):
        return self.session.principal

    @property
    def peer_host(self):
        return self.session.peer_host


@cython.final
cdef class RequestCounts:
    cdef int64_t _counts[HEADER_KEYS]

    def __getitem__(self, Py_ssize_t api_key):
        if not 0 <= api_key < HEADER_KEYS:
            raise KeyError(api_key)
        return self._counts[api_key]

    def keys(self):
        return [api_key for api_key in range(HEADER_KEYS) if self._counts[api_key]]

    def __iter__(self):
        return iter(self.keys())


cdef class ApiEnd:
    cdef public int32_t key
    cdef public int32_t first
    cdef public int32_t last
    cdef public bint is_loaded
    cdef public tuple cluster_operations
    cdef public PlainApi plain
    cdef public object handle
    cdef public object request
    cdef public object response


cdef class DispatcherEnd:
    cdef readonly object broker
    cdef readonly dict _table
    cdef RequestHeaderParser _headers
    cdef object _shows
    cdef dict _shown
    cdef object _clock
    cdef object _faults
    cdef RequestCounts _requests
    cdef readonly HeldAnswers held_answers
    # Whether a class above this one encodes in its own way, and whether it has its own `handle`.
    cdef bint _has_own_encode
    cdef bint _has_own_handle

    def __init__(
        self, broker, dict table not None, RequestHeaderParser headers not None, shows, dict shown not None
    ):
        self.broker = broker
        self._table = table
        self._headers = headers
        self._shows = shows
        self._shown = shown
        self._clock = broker.clock
        self._faults = broker.faults
        self._requests = <RequestCounts?>broker.metrics.requests
        self.held_answers = HeldAnswers(broker.clock)
        self._has_own_encode = type(self)._encode is not DispatcherEnd._encode
        self._has_own_handle = type(self).handle is not DispatcherEnd.handle

    def handle(self, session, frame):
        cdef Py_buffer view
        cdef Frame whole
        cdef Reply reply
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            whole.whole, whole.at, whole.size_bytes = &view, 0, view.len
            done = self._handle(session, &whole)
        finally:
            PyBuffer_Release(&view)
        if type(done) is not bytes:
            return done
        reply = _reply([done], None)
        reply.is_plain = True
        return reply

    cdef object _handle(self, object session, Frame* request_frame):
        """A Reply, or the answer of a fast path, after which nothing is left to do."""
        cdef RequestHeader header
        cdef ApiEnd api
        cdef Context context
        cdef bint is_admitted = True
        cdef object client_id
        cdef object done = None
        authenticator = session.authenticator
        if authenticator is not None and authenticator.takes_raw_tokens:
            return self._begin_raw_token(authenticator, slice_of(request_frame))
        try:
            client_id = self._headers.read(start_of(request_frame), request_frame.size_bytes, &header)
        except ValueError as error:
            raise self._no_header(error) from error
        api = self._table.get(header.api_key)
        if api is None:
            raise self._not_served(header.api_key)
        if authenticator is not None:
            is_admitted = authenticator.admit(header.api_key)
        if not api.first <= header.api_version <= api.last and not self._serves_unstable(api, header.api_version):
            return self._unsupported(api, header.api_version, header.correlation_id)
        if not api.is_loaded:
            self._load(api)
        if api.plain is not None and is_admitted and self._is_plain():
            done = api.plain.serve(self.broker, session, &header, client_id, request_frame)
            if type(done) is bytes:
                self._count(header.api_key)
                if self._has_own_encode:
                    self._answered(header.api_key, api.plain.answered, api.plain.answered_code)
                return done
            if isinstance(done, DelayedEnd):
                self._count(header.api_key)
                return self._delay(self._context(session, &header, client_id, None), api, None, done)
            if isinstance(done, FollowUp):
                return self._followed(api, header.api_key, done)
        self.held_answers.flush()   # what is handled now may take long
        frame = slice_of(request_frame)
        if is_armed(self._faults) and self._faults.holds(RECEIVED):
            frame = memoryview(bytes(frame))    # a held request outlives the receive buffer
        context = self._context(session, &header, client_id, done)
        try:
            # Kafka reads no further than the last field; librdkafka sends more in Metadata version 13.
            request = decode_request(api.request, header.api_version, frame, header.body_at)
        except ValueError as error:
            raise self._cannot_read(api, header.api_version, error) from error
        except LargeRequestError:
            request = None
        context.received_ms = now_ms(self._clock)
        if request is None:
            return self._begin_large(context, api, frame, header.body_at, is_admitted)
        context.is_large = self._goes_in_steps(header.api_key, len(frame))
        self._note(context, api, request, len(frame))
        if not is_admitted:
            return self._begin_refusal(context, api, request)
        return self._serve(context, api, request)

    cdef Reply _followed(self, ApiEnd api, int32_t api_key, FollowUp done):
        try:
            self._count(api_key)
            if self._has_own_encode:
                self._answered(api_key, api.plain.answered, api.plain.answered_code)
            return _reply([done.answer], done)
        except BaseException:
            self.run(done)          # what has happened has to be finished
            raise

    cdef Context _context(self, object session, RequestHeader* header, object client_id, object done):
        cdef Context context = Context.__new__(Context)
        context.broker = self.broker
        context.session = session
        context.api_key = header.api_key
        context.api_version = header.api_version
        context.correlation_id = header.correlation_id
        context.client_id = client_id
        context.done = done
        return context

    cdef bint _goes_in_steps(self, int32_t api_key, Py_ssize_t frame_bytes) noexcept:
        return frame_bytes > IN_STEPS_BYTES and (
            api_key == OFFSET_COMMIT or api_key == ADD_PARTITIONS_TO_TXN or api_key == TXN_OFFSET_COMMIT
            or api_key == OFFSET_DELETE
        )

    def _note(self, Context context not None, api, request, Py_ssize_t frame_bytes):
        context.size_bytes = frame_bytes
        if self._shows_requests():
            self._log(context, api, request)
        quotas = self.broker.quotas
        if quotas is not None:
            self._meter(context, quotas, frame_bytes)
        self._count(context.api_key)

    cdef inline void _count(self, int32_t api_key) noexcept:
        self._requests._counts[api_key] += 1    # the parser of headers has bounded the key

    cdef bint _is_plain(self) except -1:
        """Whether a request is only to be served: nobody logs it, meters it or arms a fault for it."""
        quotas = (<BrokerEnd>self.broker).quotas if isinstance(self.broker, BrokerEnd) else self.broker.quotas
        return not is_armed(self._faults) and (quotas is None or not quotas.is_enabled) and not self._shows_requests()

    cdef bint _shows_requests(self) except -1:
        shown = self._shown.get(DEBUG)
        return self._shows(DEBUG) if shown is None else shown

    def _answered(self, int32_t api_key, Py_ssize_t codes, int32_t code):
        """A request was served by the fast path of its API; of a class with its own `_encode`."""

    cdef object _serve(self, Context context, ApiEnd api, object request):
        """Have the request handled, and make the reply."""
        try:
            if api.cluster_operations:
                self._require_on_cluster(context, api)
            if is_armed(self._faults):
                if self._faults.holds(RECEIVED):
                    return self._begin_held(context, api, request)
                self._faults.reach(RECEIVED, api_key=context.api_key, client_id=context.client_id)
            response = api.handle(context, request)
            if type(response) is GeneratorType:
                response = self.broker.turns.finish(response, context.throttle)
        except Exception as error:
            response = self._refuse(context, api, request, error)
        if response is None:
            if context.throttle is not None:
                self._charge(context, None)
            return None
        if isinstance(response, api.response):
            return _reply(self._encoded(context, response), None)
        if context.throttle is not None:
            context.throttle.wait()
        if type(response) is Outcome and not (<Outcome>response).flushes:
            return self._answer(context, <Outcome>response)
        if isinstance(response, DelayedEnd):
            return self._delay(context, api, request, response)
        return self._begin_wait(context, api, request, response)

    cdef Reply _delay(self, Context context, ApiEnd api, object request, DelayedEnd delayed):
        cdef Reply reply = _reply(None, None)
        delayed._context = context
        delayed._api = api
        delayed._request = request
        reply.delayed = delayed
        return reply

    def completed(self, DelayedEnd delayed not None):
        cdef Context context = delayed._context
        cdef Outcome outcome = None
        cdef object response
        cdef bytes frame
        if context.throttle is None and self.broker.quotas is not None:
            self._meter(context, self.broker.quotas, 0)     # the first quota was set meanwhile
        if context.throttle is None and not self._has_own_encode and not is_armed(self._faults):
            frame = delayed._frame(context)
            if frame is not None:
                return _reply([frame], None)
        try:
            outcome = delayed.result()
        except Exception as error:
            response = self._refuse(context, delayed._api, delayed._request, error)
        if outcome is None:
            return _reply(self._encoded(context, response), None)
        if outcome.flushes:
            return Reply(None, waiting=self._complete_flushed(context, delayed._api, delayed._request, outcome))
        # Before the next request, which may have been received already.
        if outcome.follow_up is not None:
            self.run(outcome.follow_up)
        return _reply(self._encoded(context, outcome.response), None)

    cdef Reply _answer(self, Context context, Outcome outcome):
        try:
            return _reply(self._encoded(context, outcome.response), outcome.follow_up)
        except BaseException:
            self.run(outcome.follow_up)
            raise

    cdef object _encoded(self, Context context, object response):
        return self._encode(context, response) if self._has_own_encode else self._encode_frame(context, response)

    def _encode(self, Context context not None, response):
        return self._encode_frame(context, response)

    cdef list _encode_frame(self, Context context, object response):
        if context.throttle is not None:
            self._charge(context, response)
        if is_armed(self._faults):
            self._faults.reach(READY, api_key=context.api_key, client_id=context.client_id)
        try:
            parts = encode_response_frame(context.correlation_id, response, context.api_version)
        except EncodeError as error:
            parts = self._encode_shortened(context, response, error)
        return parts
