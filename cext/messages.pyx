"""The codec engine: encode and decode run the plan of a message class and version (``plans.pyx``).

Values are copied directly between the frame and the slots of the objects, so no Python code runs for a field. For the
choice of plans over generated code see docs/adr, "Message codec".

Invalid input from a peer raises WireError before memory is allocated for it. Every read checks its bounds. A count of
elements must fit into the rest of the frame at the minimum size of an element. The objects of one message may take at
most a fixed multiple of its frame. Structs nest only as deep as the tables do.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.long cimport PyLong_FromLong, PyLong_FromLongLong
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memmove
from posix.unistd cimport usleep

from kafka_shim.cext.bigendian cimport load_u16, load_u32, load_u64, store_u32
from kafka_shim.cext.plans cimport (
    ARRAY, BOOL, BYTES, INT8, INT16, INT32, INT64, RECORDS, STRING, STRUCT, TAGGED_STRUCT, UINT16, UINT32, UUID,
    Operation, PlanTable, PyType_GenericAlloc, default_of, fill, get_slot, plan_of, untrack,
)
from kafka_shim.cext.wire cimport (
    Cursor, Out, need, out_free, out_init, read_bytes, read_i8, read_long_length, read_string, read_uvarint, reserve,
    write_bytes, write_i8, write_i16, write_i32, write_i64, write_long_length, write_raw, write_string, write_uvarint,
)

from kafka_shim.cext.wire import EncodeError, UnsupportedVersionError, WireError

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* obj)
    bint PyObject_TypeCheck(PyObject* obj, PyTypeObject* cls)
    bint PyLong_Check(PyObject* obj)
    bint PyUnicode_Check(PyObject* obj)
    bint PyFloat_Check(PyObject* obj)
    bint PyList_Check(PyObject* obj)
    bint PyTuple_Check(PyObject* obj)
    bint PyObject_CheckBuffer(PyObject* obj)
    Py_ssize_t PyTuple_GET_SIZE(PyObject* obj)
    PyObject* PyTuple_GET_ITEM(PyObject* obj, Py_ssize_t index)
    long long PyLong_AsLongLongAndOverflow(PyObject* obj, int* overflow) except? -1
    double PyFloat_AsDouble(PyObject* obj) except? -1.0
    double load_double "PyFloat_Unpack8"(const char* p, int little_endian) except? -1.0
    int store_double "PyFloat_Pack8"(double value, char* p, int little_endian) except -1
    object PyMemoryView_FromObject(object obj)
    Py_buffer* PyMemoryView_GET_BUFFER(object memory)
    PyObject* None_ "Py_None"
    PyObject* True_ "Py_True"
    PyObject* False_ "Py_False"

cdef enum:
    API_VERSIONS_KEY = 18
    # Records shorter than this are copied into the response, because a memcpy costs less than one more buffer to send.
    SMALL_RECORDS_BYTES = 1024
    # What the Python objects of one message may take: OBJECT_BYTES_FREE, and OBJECT_BYTES_RATIO times the frame.
    # The densest ordinary requests (a list of partition numbers) reach a ratio of 10.
    OBJECT_BYTES_FREE = 64 << 20
    OBJECT_BYTES_RATIO = 16
    # What an unknown tag takes. A known one counts as much: of many the last one stays, but each takes its time.
    TAG_OBJECT_BYTES = 150
    # The objects of a request that is decoded in one go: some milliseconds of work.
    SMALL_REQUEST_OBJECT_BYTES = 1 << 20
    # Work in a thread pauses after so many elements and tags, so long that a thread which waits for the GIL gets it.
    ELEMENTS_WITHOUT_PAUSE = 512
    PAUSE_US = 50
    MAX_FRAME_BYTES = 0x7FFFFFFF


# --- decode ---

cdef struct Frame:
    Cursor c
    PyObject* buffer            # borrowed
    const uint8_t* base
    PyObject* memory            # a memoryview of the whole buffer, made when the first records are met; owned
    Py_ssize_t object_bytes_left
    bint is_limited             # object_bytes_left is that of a small request
    int until_pause             # elements and tags; negative: without pauses


class LargeRequestError(Exception):
    """A request has so many elements that it should be decoded by `decode_patiently`."""


cdef int let_others_work() except -1:
    with nogil:
        usleep(PAUSE_US)
    return 0


cdef inline int count_work(int* until_pause) except -1:
    """Count an element or a tag."""
    if until_pause[0] >= 0:
        until_pause[0] -= 1
        if until_pause[0] < 0:
            until_pause[0] = ELEMENTS_WITHOUT_PAUSE
            let_others_work()
    return 0


cdef object read_struct(PlanTable* plan, Frame* f):
    cdef object made = PyType_GenericAlloc(plan.cls, 0)
    cdef Operation* op
    cdef int i
    for i in range(plan.present_count):
        op = &plan.present[i]
        fill(made, op.slot, read_value(op, op.kind, f))
    for i in range(plan.absent_count):
        op = &plan.absent[i]
        fill(made, op.slot, default_of(op))
    fill(made, plan.unknown_slot, None)
    if plan.flexible:
        read_tags(plan, made, f)
    untrack(made)
    return made


cdef int read_tags(PlanTable* plan, object made, Frame* f) except -1:
    """Kafka's readers take tags in any order and let a later one win; its writers only write them in order."""
    cdef uint32_t count = 0, tag = 0, size_bytes = 0, left
    cdef Operation* op
    cdef PyObject* old
    cdef dict unknown = None
    cdef int i
    read_uvarint(&f.c, &count)
    left = count
    while left > 0:
        left -= 1
        charge(f, TAG_OBJECT_BYTES)
        count_work(&f.until_pause)
        read_uvarint(&f.c, &tag)
        read_uvarint(&f.c, &size_bytes)
        for i in range(plan.tagged_count):
            op = &plan.tagged[i]
            if op.tag == tag:
                # Kafka's readers do not look at the size of a tag they know.
                value = read_value(op, op.kind, f)
                old = get_slot(<PyObject*>made, op.slot)
                fill(made, op.slot, value)
                Py_XDECREF(old)
                break
        else:
            for i in range(plan.absent_count):
                if plan.absent[i].tag == tag:
                    raise WireError(f"tag {tag} is not valid for this version")
            need(&f.c, size_bytes)
            if unknown is None:
                unknown = {}
                old = get_slot(<PyObject*>made, plan.unknown_slot)
                fill(made, plan.unknown_slot, unknown)
                Py_XDECREF(old)
            unknown[tag] = PyBytes_FromStringAndSize(<const char*>f.c.at, size_bytes)
            f.c.at += size_bytes
    for i in range(plan.tagged_count):
        op = &plan.tagged[i]
        if get_slot(<PyObject*>made, op.slot) == NULL:
            fill(made, op.slot, default_of(op))
    return 0


cdef inline int charge(Frame* f, Py_ssize_t size_bytes) except -1:
    f.object_bytes_left -= size_bytes
    if f.object_bytes_left < 0:
        if f.is_limited:
            raise LargeRequestError
        raise WireError("the message asks for more memory than its size allows")
    return 0


cdef object read_value(Operation* op, uint8_t kind, Frame* f):
    cdef Cursor* c = &f.c
    cdef object value
    cdef double number
    cdef uint32_t mark = 0
    cdef int8_t byte = 0
    if kind == INT32:
        need(c, 4)
        value = PyLong_FromLong(<int32_t>load_u32(c.at))
        c.at += 4
        return value
    if kind == STRING:
        value = read_string(c, op.compact)
        return value if value is not None else null(op)
    if kind == INT64:
        need(c, 8)
        value = PyLong_FromLongLong(<int64_t>load_u64(c.at))
        c.at += 8
        return value
    if kind == INT16:
        need(c, 2)
        value = PyLong_FromLong(<int16_t>load_u16(c.at))
        c.at += 2
        return value
    if kind == ARRAY:
        return read_array(op, f)
    if kind == STRUCT:
        if op.nullable:
            read_i8(c, &byte)
            if byte < 0:
                return None
        return read_struct(op.child, f)
    if kind == RECORDS:
        return read_records(op, f)
    if kind == INT8:
        read_i8(c, &byte)
        return PyLong_FromLong(byte)
    if kind == BOOL:
        read_i8(c, &byte)
        return byte != 0
    if kind == UUID:
        need(c, 16)
        value = PyBytes_FromStringAndSize(<const char*>c.at, 16)
        c.at += 16
        return value
    if kind == TAGGED_STRUCT:
        read_uvarint(c, &mark)
        return read_struct(op.child, f) if <int32_t>mark > 0 else None
    if kind == BYTES:
        value = read_bytes(c, op.compact)
        return value if value is not None else null(op)
    if kind == UINT16:
        need(c, 2)
        value = PyLong_FromLong(load_u16(c.at))
        c.at += 2
        return value
    if kind == UINT32:
        need(c, 4)
        value = PyLong_FromLongLong(load_u32(c.at))
        c.at += 4
        return value
    need(c, 8)
    number = load_double(<const char*>c.at, 0)
    c.at += 8
    return number


cdef object null(Operation* op):
    if not op.nullable:
        raise WireError(f"{<object>op.name} is null, which it must not be")
    return None


cdef object read_array(Operation* op, Frame* f):
    cdef int32_t count = 0
    cdef Py_ssize_t i
    cdef list made
    cdef object value
    read_long_length(&f.c, op.compact, &count)
    if count < 0:
        return null(op)
    if count > (f.c.end - f.c.at) // op.element_least_bytes:
        raise WireError(f"{<object>op.name} claims {count} elements in {f.c.end - f.c.at} bytes")
    charge(f, count * op.element_object_bytes)
    made = PyList_New(count)
    for i in range(count):
        if op.element == STRUCT:
            value = read_struct(op.child, f)
        else:
            value = read_element(op, f)
        Py_INCREF(value)
        PyList_SET_ITEM(made, i, value)
        count_work(&f.until_pause)
    untrack(made)
    return made


cdef object read_element(Operation* op, Frame* f):
    value = read_value(op, op.element, f)
    if value is None:
        raise WireError(f"{<object>op.name} has a null element")
    return value


cdef object read_records(Operation* op, Frame* f):
    cdef int32_t length = 0
    cdef Py_ssize_t start
    cdef object memory
    read_long_length(&f.c, op.compact, &length)
    if length < 0:
        return null(op)
    need(&f.c, length)
    if f.memory == NULL:
        memory = PyMemoryView_FromObject(<object>f.buffer)
        if PyMemoryView_GET_BUFFER(memory).ndim != 1 or PyMemoryView_GET_BUFFER(memory).itemsize != 1:
            memory = memory.cast("B")
        Py_INCREF(memory)
        f.memory = <PyObject*>memory
    start = f.c.at - f.base
    f.c.at += length
    return (<object>f.memory)[start:start + length]


cdef enum:
    AT_ONCE
    AT_ONCE_IF_SMALL
    PATIENTLY


cdef object run_decode(
    object cls, int version, object buffer, Py_ssize_t start, object end, Py_ssize_t* left, int manner=AT_ONCE
):
    cdef PlanTable* plan = &plan_of(cls, version).table
    cdef Py_buffer view
    cdef Frame f
    cdef Py_ssize_t stop
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    f.memory = NULL
    try:
        stop = view.len if end is None else end
        if start < 0 or stop < start or stop > view.len:
            raise ValueError(f"[{start}, {stop}) is not inside a buffer of {view.len} bytes")
        f.buffer = <PyObject*>buffer
        f.base = <const uint8_t*>view.buf
        f.c.at = f.base + start
        f.c.end = f.base + stop
        f.object_bytes_left = OBJECT_BYTES_FREE + OBJECT_BYTES_RATIO * (stop - start)
        f.is_limited = manner == AT_ONCE_IF_SMALL
        if f.is_limited:
            f.object_bytes_left = SMALL_REQUEST_OBJECT_BYTES
        f.until_pause = ELEMENTS_WITHOUT_PAUSE if manner == PATIENTLY else -1
        message = read_struct(plan, &f)
        left[0] = f.c.end - f.c.at
        return message
    finally:
        Py_XDECREF(f.memory)
        PyBuffer_Release(&view)


def decode(cls, int version, buffer, Py_ssize_t start=0, end=None):
    """The message in ``buffer[start:end]``, which it must fill.

    ``records`` is a memoryview of the buffer: it is valid as long as the owner leaves those bytes alone. Raises
    WireError for bytes that do not fit the message, UnsupportedVersionError for a version that it does not have.
    """
    cdef Py_ssize_t left = 0
    message = run_decode(cls, version, buffer, start, end, &left)
    if left > 0:
        raise WireError(f"{left} bytes after the end of {cls.__name__} version {version}")
    return message


def decode_prefix(cls, int version, buffer, Py_ssize_t start=0, end=None):
    """Return (message, position after it). Like ``decode``, but bytes may follow, as Kafka allows after a request."""
    cdef Py_ssize_t left = 0
    message = run_decode(cls, version, buffer, start, end, &left)
    stop = memoryview(buffer).nbytes if end is None else end
    return message, stop - left


cpdef decode_request(cls, int version, buffer, Py_ssize_t start):
    """Return the message that begins at ``start``; bytes may follow it. Raises LargeRequestError where that would take
    more than some milliseconds, and the errors of ``decode``."""
    cdef Py_ssize_t left = 0
    return run_decode(cls, version, buffer, start, None, &left, AT_ONCE_IF_SMALL)


def decode_patiently(cls, int version, buffer, Py_ssize_t start):
    """Like ``decode_request``, of any size, for a thread: other threads get the GIL in between. The buffer must not
    change meanwhile."""
    cdef Py_ssize_t left = 0
    return run_decode(cls, version, buffer, start, None, &left, PATIENTLY)


def dismantle(message):
    """Empty the lists that only the message holds, for a thread: nobody uses it any more. Freeing hundreds of thousands
    of objects at once takes as long as making them."""
    cdef PlanTable* plan = &plan_of(type(message), type(message).MAX_VERSION).table
    dismantle_fields(plan.present, plan.present_count, <PyObject*>message)
    dismantle_fields(plan.tagged, plan.tagged_count, <PyObject*>message)
    dismantle_fields(plan.absent, plan.absent_count, <PyObject*>message)


cdef int dismantle_fields(Operation* operations, int count, PyObject* message) except -1:
    cdef PyObject* value
    cdef list elements
    cdef int i
    for i in range(count):
        value = get_slot(message, operations[i].slot)
        if operations[i].kind == ARRAY and value != NULL and PyList_Check(value) and Py_REFCNT(value) == 1:
            elements = <list>value
            while elements:
                del elements[-ELEMENTS_WITHOUT_PAUSE:]
                let_others_work()
    return 0


# --- encode ---

cdef struct Target:
    Out out
    int until_pause             # elements; negative: without pauses
    PyObject* parts             # list of (position, buffer) of records kept by reference, or NULL to copy all; borrowed
    Py_ssize_t parts_bytes


cdef int write_struct(PlanTable* plan, PyObject* message, Target* t) except -1:
    cdef Operation* op
    cdef int i
    for i in range(plan.present_count):
        op = &plan.present[i]
        write_value(op, op.kind, slot_value(message, op), t)
    for i in range(plan.absent_count):
        op = &plan.absent[i]
        if not op.ignorable and not is_default(op, slot_value(message, op)):
            raise UnsupportedVersionError(f"{<object>op.name} is set, which this version cannot carry")
    if plan.flexible:
        write_tags(plan, message, t)
    elif has_unknown_tags(plan, message):
        raise UnsupportedVersionError("tagged fields are set, which this version cannot carry")
    return 0


cdef inline PyObject* slot_value(PyObject* message, Operation* op) except NULL:
    cdef PyObject* value = get_slot(message, op.slot)
    if value == NULL:
        raise EncodeError(f"{<object>op.name} is not set")
    return value


cdef inline bint has_unknown_tags(PlanTable* plan, PyObject* message) except -1:
    cdef PyObject* tags = get_slot(message, plan.unknown_slot)
    return tags != NULL and tags != None_ and len(<dict?>tags) > 0


cdef int write_tags(PlanTable* plan, PyObject* message, Target* t) except -1:
    cdef uint32_t count = 0
    cdef int i
    cdef dict unknown = None
    cdef Operation* op
    cdef list order
    cdef Py_ssize_t next_unknown = 0
    for i in range(plan.tagged_count):
        op = &plan.tagged[i]
        if not is_default(op, slot_value(message, op)):
            count += 1
    if not has_unknown_tags(plan, message):
        write_uvarint(&t.out, count)
        if count > 0:
            for i in range(plan.tagged_count):
                op = &plan.tagged[i]
                if not is_default(op, slot_value(message, op)):
                    write_tag(op, slot_value(message, op), t)
        return 0
    unknown = <dict>get_slot(message, plan.unknown_slot)
    order = sorted(unknown)
    write_uvarint(&t.out, count + <uint32_t>len(order))
    for i in range(plan.tagged_count):
        op = &plan.tagged[i]
        while next_unknown < len(order) and order[next_unknown] <= op.tag:
            if order[next_unknown] == op.tag:
                raise EncodeError(f"tag {op.tag} is {<object>op.name}, not an unknown tag")
            write_unknown_tag(order[next_unknown], unknown, t)
            next_unknown += 1
        if not is_default(op, slot_value(message, op)):
            write_tag(op, slot_value(message, op), t)
    while next_unknown < len(order):
        write_unknown_tag(order[next_unknown], unknown, t)
        next_unknown += 1
    return 0


cdef int write_unknown_tag(uint32_t tag, dict unknown, Target* t) except -1:
    cdef bytes value = unknown[tag]
    write_uvarint(&t.out, tag)
    write_uvarint(&t.out, <uint32_t>PyBytes_GET_SIZE(value))
    return write_raw(&t.out, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))


cdef int write_tag(Operation* op, PyObject* value, Target* t) except -1:
    """Write a tagged field: first the value, which is then moved behind its size, because the size is known only
    then."""
    cdef Py_ssize_t start, size_bytes, prefix_bytes
    cdef PyObject* parts = t.parts
    write_uvarint(&t.out, <uint32_t>op.tag)
    start = t.out.size_bytes
    t.parts = NULL
    write_value(op, op.kind, value, t)
    t.parts = parts
    size_bytes = t.out.size_bytes - start
    write_uvarint(&t.out, <uint32_t>size_bytes)
    prefix_bytes = t.out.size_bytes - start - size_bytes
    memmove(t.out.data + start + prefix_bytes, t.out.data + start, <size_t>size_bytes)
    t.out.size_bytes = start
    write_uvarint(&t.out, <uint32_t>size_bytes)
    t.out.size_bytes += size_bytes
    return 0


cdef bint is_default(Operation* op, PyObject* value) except -1:
    cdef uint8_t kind = op.kind
    if value == op.default:
        return True
    if value == None_ or op.default == None_:
        return False
    if kind == ARRAY:
        return len(<object>value) == 0
    if kind == STRUCT or kind == TAGGED_STRUCT:
        check_struct(op, value)
        return all_default(op.child, value)
    return <object>value == <object>op.default


cdef bint all_default(PlanTable* plan, PyObject* message) except -1:
    cdef int i
    for i in range(plan.present_count):
        if not is_default(&plan.present[i], slot_value(message, &plan.present[i])):
            return False
    for i in range(plan.tagged_count):
        if not is_default(&plan.tagged[i], slot_value(message, &plan.tagged[i])):
            return False
    for i in range(plan.absent_count):
        if not is_default(&plan.absent[i], slot_value(message, &plan.absent[i])):
            return False
    return not has_unknown_tags(plan, message)


cdef inline int check_struct(Operation* op, PyObject* value) except -1:
    if not PyObject_TypeCheck(value, op.child.cls):
        raise wrong_type(op, value)
    return 0


cdef object wrong_type(Operation* op, PyObject* value):
    if value == None_:
        return EncodeError(f"{<object>op.name} is null, which it must not be")
    return EncodeError(f"{<object>op.name} cannot be a {type(<object>value).__name__}")


cdef inline long long integer(Operation* op, PyObject* value, long long low, long long high) except? -1:
    cdef int overflow = 0
    cdef long long number
    if not PyLong_Check(value):
        raise wrong_type(op, value)
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow != 0 or number < low or number > high:
        raise EncodeError(f"{<object>op.name} is {<object>value}, outside [{low}, {high}]")
    return number


cdef int write_value(Operation* op, uint8_t kind, PyObject* value, Target* t) except -1:
    cdef Out* out = &t.out
    if kind == INT32:
        return write_i32(out, <int32_t>integer(op, value, -0x80000000LL, 0x7FFFFFFFLL))
    if kind == STRING:
        if value == None_ and op.nullable:
            return write_string(out, op.compact, None)
        if not PyUnicode_Check(value):
            raise wrong_type(op, value)
        return write_string(out, op.compact, <str>value)
    if kind == INT64:
        return write_i64(out, integer(op, value, INT64_MIN, INT64_MAX))
    if kind == INT16:
        return write_i16(out, <int16_t>integer(op, value, -0x8000, 0x7FFF))
    if kind == ARRAY:
        return write_array(op, value, t)
    if kind == STRUCT:
        if op.nullable:
            if value == None_:
                return write_i8(out, -1)
            write_i8(out, 1)
        check_struct(op, value)
        return write_struct(op.child, value, t)
    if kind == RECORDS:
        return write_records(op, value, t)
    if kind == INT8:
        return write_i8(out, <int8_t>integer(op, value, -0x80, 0x7F))
    if kind == BOOL:
        if value == True_:
            return write_i8(out, 1)
        if value == False_:
            return write_i8(out, 0)
        raise wrong_type(op, value)
    if kind == UUID:
        return write_uuid(op, value, t)
    if kind == TAGGED_STRUCT:
        if value == None_:
            return write_uvarint(out, 0)
        write_uvarint(out, 1)
        check_struct(op, value)
        return write_struct(op.child, value, t)
    if kind == BYTES:
        if value == None_ and op.nullable:
            return write_bytes(out, op.compact, None)
        if not PyObject_CheckBuffer(value):
            raise wrong_type(op, value)
        return write_bytes(out, op.compact, <object>value)
    if kind == UINT16:
        return write_i16(out, <int16_t><uint16_t>integer(op, value, 0, 0xFFFF))
    if kind == UINT32:
        return write_i32(out, <int32_t><uint32_t>integer(op, value, 0, 0xFFFFFFFFLL))
    if not PyFloat_Check(value) and not PyLong_Check(value):
        raise wrong_type(op, value)
    reserve(out, 8)
    store_double(PyFloat_AsDouble(value), <char*>out.data + out.size_bytes, 0)
    out.size_bytes += 8
    return 0


cdef int write_uuid(Operation* op, PyObject* value, Target* t) except -1:
    cdef bytes uuid
    if not isinstance(<object>value, bytes):
        raise wrong_type(op, value)
    uuid = <bytes>value
    if PyBytes_GET_SIZE(uuid) != 16:
        raise EncodeError(f"{<object>op.name} has {PyBytes_GET_SIZE(uuid)} bytes; a uuid has 16")
    return write_raw(&t.out, PyBytes_AS_STRING(uuid), 16)


cdef int write_array(Operation* op, PyObject* value, Target* t) except -1:
    cdef Py_ssize_t count, i
    cdef PyObject* item
    cdef bint is_list = PyList_Check(value)
    if value == None_ and op.nullable:
        return write_long_length(&t.out, op.compact, -1)
    if not is_list and not PyTuple_Check(value):
        raise wrong_type(op, value)
    count = PyList_GET_SIZE(<object>value) if is_list else PyTuple_GET_SIZE(value)
    write_long_length(&t.out, op.compact, count)
    for i in range(count):
        if is_list and i >= PyList_GET_SIZE(<object>value):
            raise EncodeError(f"{<object>op.name} changed while it was written")
        item = PyList_GET_ITEM(<object>value, i) if is_list else PyTuple_GET_ITEM(value, i)
        if op.element == STRUCT:
            check_struct(op, item)
            write_struct(op.child, item, t)
        elif item == None_:
            raise EncodeError(f"{<object>op.name} has a null element")
        else:
            write_value(op, op.element, item, t)
        count_work(&t.until_pause)
    return 0


cdef int write_records(Operation* op, PyObject* value, Target* t) except -1:
    """One buffer, or a list of buffers and parts of files (`append_file`) that follow each other."""
    cdef Py_ssize_t total_bytes = 0
    if value == None_:
        if not op.nullable:
            raise wrong_type(op, value)
        return write_long_length(&t.out, op.compact, -1)
    if PyObject_CheckBuffer(value):
        buffers = (<object>value,)
    elif PyList_Check(value) or PyTuple_Check(value):
        buffers = <object>value
    else:
        raise wrong_type(op, value)
    for buffer in buffers:
        total_bytes += size_of(op, buffer)
    if total_bytes > MAX_FRAME_BYTES - 1:
        raise EncodeError(f"{<object>op.name} has {total_bytes} bytes, more than a frame")
    write_long_length(&t.out, op.compact, total_bytes)
    for buffer in buffers:
        if PyObject_CheckBuffer(<PyObject*>buffer):
            append_buffer(buffer, t)
        else:
            append_file(op, buffer, t)
    return 0


cdef Py_ssize_t size_of(Operation* op, object buffer) except -1:
    cdef Py_buffer view
    cdef Py_ssize_t size_bytes
    if not PyObject_CheckBuffer(<PyObject*>buffer):
        return size_in_file(op, buffer)
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    size_bytes = view.len
    PyBuffer_Release(&view)
    return size_bytes


cdef int append_buffer(object buffer, Target* t) except -1:
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if t.parts == NULL or view.len < SMALL_RECORDS_BYTES:
            write_raw(&t.out, view.buf, view.len)
        else:
            (<list>t.parts).append((t.out.size_bytes, buffer))
            t.parts_bytes += view.len
    finally:
        PyBuffer_Release(&view)
    return 0


cdef Py_ssize_t size_in_file(Operation* op, object part) except -1:
    """Return the ``size_bytes`` of a part of a file: stored bytes that are read, or sent by the kernel, later."""
    cdef object size_bytes = getattr(part, "size_bytes", None)
    if size_bytes is None:
        raise wrong_type(op, <PyObject*>part)
    return size_bytes


cdef int append_file(Operation* op, object part, Target* t) except -1:
    if t.parts == NULL:
        raise wrong_type(op, <PyObject*>part)
    (<list>t.parts).append((t.out.size_bytes, part))
    t.parts_bytes += size_in_file(op, part)
    return 0


cdef PlanTable* encode_plan(object message, int version) except NULL:
    return &plan_of(type(message), version).table


def encode(message, int version):
    """Return the bytes of the message in this version.

    Raises UnsupportedVersionError if a field is set that the version does not have and that is not ignorable, and
    EncodeError for a value that is invalid for its field.
    """
    cdef PlanTable* plan = encode_plan(message, version)
    cdef Target t
    out_init(&t.out)
    t.until_pause = -1
    t.parts = NULL
    t.parts_bytes = 0
    try:
        write_struct(plan, <PyObject*>message, &t)
        return PyBytes_FromStringAndSize(<char*>t.out.data, t.out.size_bytes)
    finally:
        out_free(&t.out)


cdef list split(Target* t, list references):
    """The bytes written, with the buffers kept by reference between them."""
    cdef Py_ssize_t start = 0, position
    if not references:
        return [PyBytes_FromStringAndSize(<char*>t.out.data, t.out.size_bytes)]
    parts = []
    for position, buffer in references:
        if position > start:
            parts.append(PyBytes_FromStringAndSize(<char*>t.out.data + start, position - start))
        parts.append(buffer)
        start = position
    if t.out.size_bytes > start:
        parts.append(PyBytes_FromStringAndSize(<char*>t.out.data + start, t.out.size_bytes - start))
    return parts


def encode_parts(message, int version, head=b""):
    """Return ``head`` and the message as a list of buffers, to be joined.

    Records of 1 KiB and more are put into the list without a copy. Their owner must not change them until they are
    sent. The same holds for an object that is not a buffer but has ``size_bytes``, which is a part of a file. Raises
    the errors of ``encode``.
    """
    cdef PlanTable* plan = encode_plan(message, version)
    cdef Target t
    cdef list references = []
    out_init(&t.out)
    t.until_pause = -1
    t.parts = NULL
    t.parts_bytes = 0
    try:
        append_buffer(head, &t)
        t.parts = <PyObject*>references
        write_struct(plan, <PyObject*>message, &t)
        return split(&t, references)
    finally:
        out_free(&t.out)


cpdef list encode_response_frame(int32_t correlation_id, message, int version, bint patiently=False):
    """Return a whole response as a list of buffers: four bytes of length, the response header, the message.

    The header is version 1 (tagged fields after the correlation id) from the first flexible version of the message on.
    For ApiVersions it is always version 0, because the client does not know the supported versions yet (KIP-511).
    Records are kept by reference, and errors are raised, as in ``encode_parts``. ``patiently`` is for a thread, as in
    ``decode_patiently``.
    """
    cdef PlanTable* plan = encode_plan(message, version)
    cdef Target t
    cdef list references = []
    cdef Py_ssize_t size_bytes
    out_init(&t.out)
    t.until_pause = ELEMENTS_WITHOUT_PAUSE if patiently else -1
    t.parts = <PyObject*>references
    t.parts_bytes = 0
    try:
        write_i32(&t.out, 0)
        write_i32(&t.out, correlation_id)
        if plan.flexible and message.API_KEY != API_VERSIONS_KEY:
            write_i8(&t.out, 0)
        write_struct(plan, <PyObject*>message, &t)
        size_bytes = t.out.size_bytes - 4 + t.parts_bytes
        if size_bytes > MAX_FRAME_BYTES:
            raise EncodeError(f"a frame of {size_bytes} bytes; the protocol allows {MAX_FRAME_BYTES}")
        store_u32(t.out.data, <uint32_t>size_bytes)
        return split(&t, references)
    finally:
        out_free(&t.out)
