"""The way of a request on which nothing is out of the ordinary. Contracts are in dispatcher_base.pyi."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t

from kafka_shim.cext.headers cimport HEADER_KEYS, RequestHeader, RequestHeaderParser
from kafka_shim.cext.held_answers cimport HeldAnswers
from kafka_shim.cext.machine_time cimport now_ms
from kafka_shim.cext.messages cimport decode_request, encode_response_frame
from kafka_shim.cext.plain_api cimport IN_STEPS_BYTES, BrokerBase, FollowUp, Frame, is_armed, slice_of, start_of
from kafka_shim.cext.replies cimport Context, DelayedBase, Outcome, Reply

from types import GeneratorType

from kafka_shim.cext.messages import EncodeError, LargeRequestError

cdef enum:
    DEBUG = 10                  # of `logging`
    OFFSET_COMMIT = 8
    ADD_PARTITIONS_TO_TXN = 24
    TXN_OFFSET_COMMIT = 28
    OFFSET_DELETE = 47

cdef str RECEIVED = "request.received"
cdef str READY = "response.ready"


cdef class RequestCounts:
    def __getitem__(self, Py_ssize_t api_key):
        if not 0 <= api_key < HEADER_KEYS:
            raise KeyError(api_key)
        return self._counts[api_key]

    def keys(self):
        return [api_key for api_key in range(HEADER_KEYS) if self._counts[api_key]]

    def __iter__(self):
        return iter(self.keys())


cdef inline void count(RequestCounts counts, int32_t api_key) noexcept:
    counts._counts[api_key] += 1    # the parser of headers has bounded the key


cdef class ApiBase:
    pass


cdef class DispatcherBase:
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
        self.has_own_encode = type(self)._encode is not DispatcherBase._encode
        self.has_own_handle = type(self).handle is not DispatcherBase.handle

    def handle(self, session, frame):
        cdef Py_buffer view
        cdef Frame whole
        cdef Reply reply
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            whole.whole, whole.at, whole.size_bytes = &view, 0, view.len
            done = self.handle_frame(session, &whole)
        finally:
            PyBuffer_Release(&view)
        if type(done) is not bytes:
            return done
        reply = _reply([done], None)
        reply.is_plain = True
        return reply

    cdef object handle_frame(self, object session, Frame* request_frame):
        cdef RequestHeader header
        cdef ApiBase api
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
                count(self._requests, header.api_key)
                if self.has_own_encode:
                    self._answered(header.api_key, api.plain.answered, api.plain.answered_code)
                return done
            if isinstance(done, DelayedBase):
                count(self._requests, header.api_key)
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

    cdef Reply _followed(self, ApiBase api, int32_t api_key, FollowUp done):
        try:
            count(self._requests, api_key)
            if self.has_own_encode:
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
        count(self._requests, context.api_key)

    cdef bint _is_plain(self) except -1:
        """Whether a request is only to be served: nobody logs it, meters it or arms a fault for it."""
        quotas = (<BrokerBase>self.broker).quotas if isinstance(self.broker, BrokerBase) else self.broker.quotas
        return not is_armed(self._faults) and (quotas is None or not quotas.is_enabled) and not self._shows_requests()

    cdef bint _shows_requests(self) except -1:
        shown = self._shown.get(DEBUG)
        return self._shows(DEBUG) if shown is None else shown

    def _answered(self, int32_t api_key, Py_ssize_t codes, int32_t code):
        """A request was served by the fast path of its API; of a class with its own `_encode`."""

    cdef object _serve(self, Context context, ApiBase api, object request):
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
        if isinstance(response, DelayedBase):
            return self._delay(context, api, request, response)
        return self._begin_wait(context, api, request, response)

    cdef Reply _delay(self, Context context, ApiBase api, object request, DelayedBase delayed):
        cdef Reply reply = _reply(None, None)
        delayed.context = context
        delayed.api = api
        delayed.request = request
        reply.delayed = delayed
        return reply

    def completed(self, DelayedBase delayed not None):
        cdef Context context = delayed.context
        cdef Outcome outcome = None
        cdef object response
        cdef bytes frame
        if context.throttle is None and self.broker.quotas is not None:
            self._meter(context, self.broker.quotas, 0)     # the first quota was set meanwhile
        if context.throttle is None and not self.has_own_encode and not is_armed(self._faults):
            frame = delayed.frame(context)
            if frame is not None:
                return _reply([frame], None)
        try:
            outcome = delayed.result()
        except Exception as error:
            response = self._refuse(context, delayed.api, delayed.request, error)
        if outcome is None:
            return _reply(self._encoded(context, response), None)
        if outcome.flushes:
            return Reply(None, waiting=self._complete_flushed(context, delayed.api, delayed.request, outcome))
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
        return self._encode(context, response) if self.has_own_encode else self._encode_frame(context, response)

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


cdef Reply _reply(object parts, object follow_up):
    cdef Reply reply = Reply.__new__(Reply)
    reply.parts = parts
    reply.follow_up = follow_up
    return reply
