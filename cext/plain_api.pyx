"""The fast path of one API, from the frame of a request to that of its answer. Contracts are in plain_api.pyi."""

from libc.stdint cimport int64_t

from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.machine_time cimport MachineTime
from kafka_shim.cext.machine_time cimport now_ms as now_ms_of
from kafka_shim.cext.wire cimport Out, out_free, out_init


cdef class BrokerBase:
    pass


cdef class FaultsBase:
    pass


cdef class FollowUp:
    pass


cdef class PlainApi:
    cdef object serve(self, object broker, object session, RequestHeader* header, object client_id, Frame* frame):
        """Returns one of these:

        - bytes: the whole frame of the answer;
        - None: nothing was changed, and the handler serves the request;
        - a DelayedBase: it has the answer later;
        - a FollowUp: it has the answer, and is called after the answer is sent;
        - anything else: what was changed, for `Context.done`, from which the handler does the rest."""
        raise NotImplementedError("abstract: a fast path serves here")


cdef class PlainMember(PlainApi):
    cdef object serve(self, object broker, object session, RequestHeader* header, object client_id, Frame* frame):
        cdef Reader c
        cdef BrokerBase known
        cdef object clock
        if isinstance(broker, BrokerBase):
            known = <BrokerBase>broker
            authorizer, clock = known.authorizer, known.clock
        else:
            authorizer, clock = broker.authorizer, broker.clock
        if authorizer is not None or (not isinstance(clock, MachineTime) and clock.is_virtual):
            return None
        read_body(&c, frame, header)
        try:
            return self._answer(broker, session, header, client_id, &c)
        except Exception:
            return None         # the handler meets it again, and answers

    cdef object _answer(self, object broker, object session, RequestHeader* header, object client_id, Reader* c):
        raise NotImplementedError("abstract: a request is read and answered here")


cdef class PlainLookup(PlainApi):
    cdef object serve(self, object broker, object session, RequestHeader* header, object client_id, Frame* frame):
        cdef Reader c
        cdef Out out
        if authorizer_of(broker) is not None or frame.size_bytes > IN_STEPS_BYTES:
            return None
        read_body(&c, frame, header)
        out_init(&out)
        try:
            return self._answer(broker, header, &c, &out)
        except Exception:
            return None         # nothing has happened: the handler meets it again, and answers
        finally:
            out_free(&out)

    cdef object _answer(self, object broker, RequestHeader* header, Reader* c, Out* out):
        raise NotImplementedError("abstract: a request is read and answered here")


cdef class PlainAppend(PlainApi):
    cdef object serve(self, object broker, object session, RequestHeader* header, object client_id, Frame* frame):
        cdef Reader c
        if authorizer_of(broker) is not None:
            return None
        read_body(&c, frame, header)
        return self._answer(broker, header, frame, &c, now_ms_of(clock_of(broker)))

    cdef object _answer(self, object broker, RequestHeader* header, Frame* frame, Reader* c, int64_t now_ms):
        raise NotImplementedError("abstract: a request is read and answered here")
