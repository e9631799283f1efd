"""What a handler gets and returns, and what the connection sends. Contracts are in replies.pyi."""

cimport cython

from kafka_shim.cext.late_answers cimport LateAnswer

from itertools import islice


@cython.final
@cython.freelist(16)
cdef class Context:
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
@cython.freelist(16)
cdef class Outcome:
    def __init__(self, response, flushes=(), follow_up=None):
        self.response = response
        self.flushes = flushes
        self.follow_up = follow_up

    def __class_getitem__(cls, of):
        return cls


cdef class DelayedBase:
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

    cdef bytes frame(self, Context context):
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
                (<DelayedBase>token)._go_on()
            except Exception as error:
                failure = error     # the others go on all the same
        if failure is not None:
            raise failure


cdef int _wake_all(list tokens) except -1:
    """Have those who wait for these complete requests go on. If memory ends here, none goes on."""
    cdef _Awake awake
    cdef object soon = None
    for token in tokens:
        if (<DelayedBase>token)._then is not None:
            soon = (<DelayedBase>token)._soon
            break
    if soon is None or len(tokens) == 1:
        for token in tokens:
            (<DelayedBase>token)._wake()
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
        if (<DelayedBase?>token).complete(response, flushes):
            completed.append(token)
    return completed


def wake_first(completed not None, Py_ssize_t most):
    cdef list tokens = list(islice(completed, most))
    _wake_all(tokens)
    for _ in tokens:
        del completed[0]


@cython.final
@cython.freelist(16)
cdef class Reply:
    def __init__(self, parts, follow_up=None, waiting=None, bint is_abandonable=False, bint is_delayed=False):
        self.parts = parts
        self.follow_up = follow_up
        self.waiting = waiting
        self.is_abandonable = is_abandonable
        self.is_delayed = is_delayed
