"""The short way of one API, from the frame of a request to that of its answer. Contracts are in plain_api.pyi."""

from kafka_shim.cext.headers cimport RequestHeader


cdef class PlainApi:
    cdef object serve(
        self, object broker, object session, RequestHeader* header, object client_id, object frame, object now_ms
    ):
        """Returns the whole frame of the answer as bytes; or None if there is anything to decide, and then nothing has
        happened; or what has happened already, for `Context.done` of the handler, which does the rest; or a DelayedEnd,
        which has the answer later."""
        raise NotImplementedError("abstract: a short way serves here")
