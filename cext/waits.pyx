"""What the task of a request awaits. Contracts are in waits.pyi."""


cdef class PauseBase:
    def __init__(self, loop):
        self._loop = loop
        self._is_woken = NOT_OVER

    cpdef end(self, bint is_woken):
        if self._is_woken == NOT_OVER:
            self._is_woken = is_woken
        self._go_on()

    cdef int _go_on(self) except -1:
        if self._call is not None:
            try:
                self._loop.call_soon(self._call, self, context=self._context)
            except MemoryError:
                return 0  # what comes next tries again, at last the timer
            self._call = None
        return 0

    def go_on_now(self):
        call = self._call
        if call is not None:
            self._call = None
            self._context.run(call, self)

    # --- what a task calls, and a virtual clock

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        if self._is_woken == NOT_OVER and not self._is_cancelled:
            self._asyncio_future_blocking = True
            return self
        raise StopIteration(self.result())

    def get_loop(self):
        return self._loop

    def done(self):
        return self._call is None and (self._is_woken != NOT_OVER or self._is_cancelled)

    def add_done_callback(self, call, *, context):
        self._call = call
        self._context = context

    def cancel(self, msg=None):
        if self._call is None:
            return False
        self._is_cancelled = True
        self._go_on()
        return True

    def result(self):
        if self._is_cancelled:
            raise self.CANCELLED
        return self._is_woken == 1
