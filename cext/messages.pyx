"""The codec engine: a message class and a version become a plan once, and every encode and decode runs that plan.

A class gives its table in ``FIELDS`` (``shim/protocol/message.py`` says how a row reads). The plan of a version is a C array
with one operation for each field: its kind, where its slot lies in the object, and the plan of the struct it holds. Values
go between the frame and the slots directly, so no Python code runs for a field. Why plans and not generated code:
docs/adr, "Message codec".

What a peer can do wrong ends in WireError before memory is taken for it: bounds are proved on every read, a count of
elements must fit what is left of the frame at the least size of an element, and the objects of one message may
not take more than a fixed multiple of its frame. Structs nest as deep as the tables do, never deeper.
"""

import sys

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.long cimport PyLong_FromLong, PyLong_FromLongLong
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memmove

from cext.bigendian cimport load_u16, load_u32, load_u64, store_u32
from cext.wire cimport (
    Cursor, Out, need, out_free, out_init, read_bytes, read_i8, read_i16, read_i32, read_long_length, read_string,
    read_uvarint, reserve, write_bytes, write_i8, write_i16, write_i32, write_i64, write_long_length, write_raw,
    write_string, write_uvarint,
)

from cext.wire import EncodeError, UnsupportedVersionError, WireError

cdef extern from *:
    """
    #include <structmember.h>
    /* Where a __slots__ entry lies in its object, or -1 when `descriptor` is no plain slot. */
    static Py_ssize_t slot_offset(PyObject* descriptor) {
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return -1;
        PyMemberDef* member = ((PyMemberDescrObject*)descriptor)->d_member;
        return member->type == T_OBJECT_EX ? member->offset : -1;
    }
    #define SLOT(object, offset) (*(PyObject**)((char*)(object) + (offset)))
    #define put_slot(object, offset, value) (SLOT(object, offset) = (value))
    """
    Py_ssize_t slot_offset(object descriptor)
    PyObject* get_slot "SLOT"(PyObject* obj, Py_ssize_t offset)
    void put_slot(PyObject* obj, Py_ssize_t offset, PyObject* value)

cdef extern from "Python.h":
    object PyType_GenericAlloc(PyTypeObject* cls, Py_ssize_t items)
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
    BOOL
    INT8
    INT16
    INT32
    INT64
    UINT16
    UINT32
    FLOAT64
    UUID
    STRING
    STRING16
    BYTES
    RECORDS
    STRUCT
    TAGGED_STRUCT               # a nullable struct with a tag: its mark of presence is a varint, elsewhere it is a byte
    ARRAY

cdef enum:
    # Records shorter than this are copied into the answer: a memcpy costs less than one more buffer to send.
    SMALL_RECORDS_BYTES = 1024
    # What the Python objects of one message may take: OBJECT_BYTES_FREE, and OBJECT_BYTES_RATIO times the frame.
    # The densest ordinary requests (a list of partition numbers) reach a ratio of 10.
    OBJECT_BYTES_FREE = 64 << 20
    OBJECT_BYTES_RATIO = 16
    UNKNOWN_TAG_OBJECT_BYTES = 150
    MAX_DEPTH = 32
    MAX_FRAME_BYTES = 0x7FFFFFFF

cdef dict KINDS = {
    "bool": BOOL, "int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64, "uint16": UINT16, "uint32": UINT32,
    "float64": FLOAT64, "uuid": UUID, "string": STRING, "string16": STRING16, "bytes": BYTES, "records": RECORDS,
}
cdef dict FIXED_SIZES = {
    BOOL: 1, INT8: 1, INT16: 2, INT32: 4, INT64: 8, UINT16: 2, UINT32: 4, FLOAT64: 8, UUID: 16,
}


# --- plans ---

cdef struct Operation:
    uint8_t kind
    uint8_t element             # kind of the elements of an ARRAY
    bint nullable
    bint ignorable
    bint compact
    int64_t tag                 # -1: none
    Py_ssize_t slot
    Py_ssize_t element_least_bytes
    Py_ssize_t element_object_bytes
    PlanTable* child            # of a STRUCT, or of an ARRAY of them
    PyObject* default           # NULL: a new empty list, or a new struct of defaults
    PyObject* name

cdef struct PlanTable:
    PyTypeObject* cls
    bint flexible
    Py_ssize_t unknown_slot
    Py_ssize_t least_bytes
    Py_ssize_t object_bytes
    int present_count
    int tagged_count
    int absent_count
    Operation* present          # on the wire in this order
    Operation* tagged           # by ascending tag
    Operation* absent           # not in this version


cdef class Plan:
    """Owns the table of one (class, version), and every Python object and child plan that the table points to."""

    cdef PlanTable table
    cdef list kept

    def __dealloc__(self):
        free(self.table.present)
        free(self.table.tagged)
        free(self.table.absent)


# class -> list of Plan or None, by version
cdef dict PLANS = {}


cdef Plan plan_of(object cls, int version):
    cdef PyObject* found = PyDict_GetItem(PLANS, cls)
    if found != NULL and 0 <= version < PyList_GET_SIZE(<list>found):
        plan = <object>PyList_GET_ITEM(<list>found, version)
        if plan is not None:
            return <Plan>plan
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise UnsupportedVersionError(f"{cls.__name__} has no version {version}")
    plans = PLANS.setdefault(cls, [None] * (cls.MAX_VERSION + 1))
    plans[version] = compile_plan(cls, version, version >= cls.FLEXIBLE_FROM, {}, 0)
    return <Plan>plans[version]


cdef bint in_range(str versions, int version) except -1:
    """Whether ``"3+"``, ``"0-2"``, ``"5"`` or ``""`` (none) holds the version."""
    if not versions:
        return False
    if versions.endswith("+"):
        return version >= int(versions.removesuffix("+"))
    low, _, high = versions.partition("-")
    return int(low) <= version <= int(high or low)


cdef Plan compile_plan(object cls, int version, bint flexible, dict children, int depth):
    cdef Plan plan = Plan.__new__(Plan)
    cdef Operation op
    if depth > MAX_DEPTH:
        raise ValueError(f"{cls.__name__} is nested deeper than {MAX_DEPTH}")
    plan.kept = [cls]
    plan.table.cls = <PyTypeObject*>cls
    plan.table.flexible = flexible
    plan.table.unknown_slot = slot_of(cls, "unknown_tags")
    plan.table.least_bytes = 1 if flexible else 0
    plan.table.object_bytes = cls.__basicsize__ + 16
    size = max(len(cls.FIELDS), 1)
    plan.table.present = <Operation*>calloc(size, sizeof(Operation))
    plan.table.tagged = <Operation*>calloc(size, sizeof(Operation))
    plan.table.absent = <Operation*>calloc(size, sizeof(Operation))
    if plan.table.present == NULL or plan.table.tagged == NULL or plan.table.absent == NULL:
        raise MemoryError
    for row in sorted(cls.FIELDS, key=tag_of):
        op = compile_operation(plan, cls, row, version, flexible, children, depth)
        if not in_range(row[2], version):
            plan.table.absent[plan.table.absent_count] = op
            plan.table.absent_count += 1
        elif len(row) > 7 and in_range(row[7], version):
            if op.kind == STRUCT and op.nullable:
                op.kind = TAGGED_STRUCT
            plan.table.tagged[plan.table.tagged_count] = op
            plan.table.tagged_count += 1
        else:
            plan.table.present[plan.table.present_count] = op
            plan.table.present_count += 1
            plan.table.least_bytes += least_bytes(&op)
        plan.table.object_bytes += object_bytes(&op)
    return plan


def tag_of(row):
    """Fields without a tag come first, in the order of the table."""
    return row[6] if len(row) > 6 else -1


cdef Operation compile_operation(
    Plan plan, object cls, tuple row, int version, bint flexible, dict children, int depth
) except *:
    cdef Operation op
    cdef Operation element
    name, word, _, default = row[:4]
    op.slot = slot_of(cls, name)
    op.nullable = in_range(row[4] if len(row) > 4 else "", version)
    op.ignorable = len(row) > 5 and row[5]
    op.compact = flexible
    op.tag = tag_of(row)
    op.child = NULL
    op.element = 0
    op.element_least_bytes = 1
    op.element_object_bytes = 0
    plan.kept += [name, default]
    op.name = <PyObject*>name
    op.default = NULL if default == () else <PyObject*>default
    is_array = word.startswith("[]")
    word = word.removeprefix("[]")
    kind = KINDS.get(word, STRUCT)
    if kind == STRUCT:
        struct = getattr(sys.modules[cls.__module__], word)
        if struct not in children:
            children[struct] = compile_plan(struct, version, flexible, children, depth + 1)
        child = children[struct]
        plan.kept.append(child)
        op.child = &(<Plan>child).table
    if kind == STRING16:
        kind = STRING
        op.compact = False
    op.kind = kind
    if is_array:
        element = op
        element.nullable = False
        op.element_least_bytes = max(least_bytes(&element), 1)
        op.element_object_bytes = object_bytes(&element) + sizeof(PyObject*)
        op.kind = ARRAY
        op.element = kind
    return op


cdef Py_ssize_t least_bytes(Operation* op) except -1:
    """The fewest bytes that a value takes on the wire."""
    if op.kind == STRUCT:
        return 1 if op.nullable else op.child.least_bytes
    if op.kind in FIXED_SIZES:
        return FIXED_SIZES[op.kind]
    if op.compact:
        return 1
    return 2 if op.kind == STRING else 4


cdef Py_ssize_t object_bytes(Operation* op) except -1:
    """About what the Python object of a value takes, beyond the bytes it copies from the frame."""
    if op.kind == STRUCT or op.kind == TAGGED_STRUCT:
        return op.child.object_bytes
    if op.kind in (BOOL, INT8):
        return 0
    if op.kind in FIXED_SIZES:
        return 32
    return 64


cdef Py_ssize_t slot_of(object cls, str name) except -1:
    cdef Py_ssize_t offset = slot_offset(getattr(cls, name))
    if offset < 0:
        raise TypeError(f"{cls.__name__}.{name} is not a slot")
    return offset


cdef inline object default_of(Operation* op):
    if op.default != NULL:
        return <object>op.default
    if op.kind == ARRAY:
        return []
    return defaults(op.child)


cdef object defaults(PlanTable* plan):
    """A struct whose fields all have their defaults."""
    cdef object made = PyType_GenericAlloc(plan.cls, 0)
    cdef int i
    for i in range(plan.present_count):
        fill(made, plan.present[i].slot, default_of(&plan.present[i]))
    for i in range(plan.tagged_count):
        fill(made, plan.tagged[i].slot, default_of(&plan.tagged[i]))
    for i in range(plan.absent_count):
        fill(made, plan.absent[i].slot, default_of(&plan.absent[i]))
    fill(made, plan.unknown_slot, None)
    return made


cdef inline void fill(object obj, Py_ssize_t slot, object value) noexcept:
    """Sets a slot that is still empty."""
    Py_INCREF(value)
    put_slot(<PyObject*>obj, slot, <PyObject*>value)


# --- construction ---

cdef extern from *:
    """
    /* A call of `cls` comes here and not through type.__call__: no tuple, no dict, no Python frame. */
    typedef PyObject* (*constructor)(PyObject*, PyObject* const*, size_t, PyObject*);
    static void set_constructor(PyObject* cls, constructor made) { ((PyTypeObject*)cls)->tp_vectorcall = made; }
    """
    ctypedef PyObject* const_objects "PyObject* const"
    ctypedef object (*constructor)(object, const_objects*, size_t, PyObject*)
    void set_constructor(object cls, constructor made)
    Py_ssize_t PyVectorcall_NARGS(size_t flags)

# class -> Plan of any version: its defaults and slots are those of all versions
cdef dict LAYOUTS = {}


cdef object construct(object cls, const_objects* args, size_t flags, PyObject* names):
    """``cls(name=value, ...)``: the values given, defaults for the rest."""
    cdef PyObject* found = PyDict_GetItem(LAYOUTS, cls)
    cdef PlanTable* plan
    cdef Py_ssize_t i, slot
    cdef object made
    if PyVectorcall_NARGS(flags) > 0:
        raise TypeError(f"{cls.__name__} takes keywords only")
    if found == NULL:
        layout = compile_plan(cls, 0, False, {}, 0)
        LAYOUTS[cls] = layout
        plan = &(<Plan>layout).table
    else:
        plan = &(<Plan>found).table
    made = PyType_GenericAlloc(plan.cls, 0)
    if names != NULL:
        for i in range(PyTuple_GET_SIZE(names)):
            slot = slot_named(plan, PyTuple_GET_ITEM(names, i))
            fill(made, slot, <object>args[i])
    fill_empty(made, plan.present, plan.present_count)
    fill_empty(made, plan.tagged, plan.tagged_count)
    fill_empty(made, plan.absent, plan.absent_count)
    if get_slot(<PyObject*>made, plan.unknown_slot) == NULL:
        fill(made, plan.unknown_slot, None)
    return made


cdef int fill_empty(object made, Operation* operations, int count) except -1:
    cdef int i
    for i in range(count):
        if get_slot(<PyObject*>made, operations[i].slot) == NULL:
            fill(made, operations[i].slot, default_of(&operations[i]))
    return 0


cdef Py_ssize_t slot_named(PlanTable* plan, PyObject* name) except -1:
    """Names in tables and in calls are interned, so the pointers are enough for all but names made at run time."""
    cdef int i
    for i in range(plan.present_count):
        if plan.present[i].name == name:
            return plan.present[i].slot
    for i in range(plan.tagged_count):
        if plan.tagged[i].name == name:
            return plan.tagged[i].slot
    for i in range(plan.absent_count):
        if plan.absent[i].name == name:
            return plan.absent[i].slot
    cls = <object><PyObject*>plan.cls
    text = <object>name
    if text == "unknown_tags" or any(row[0] == text for row in cls.FIELDS):
        return slot_of(cls, text)
    raise TypeError(f"{cls.__name__} has no field {text}")


def give_constructor(cls):
    """Makes ``cls(name=value, ...)`` set slots directly. For a class with FIELDS whose bases have no ``__new__`` to call."""
    set_constructor(cls, construct)


# --- decode ---

cdef struct Frame:
    Cursor c
    PyObject* buffer            # borrowed
    const uint8_t* base
    PyObject* memory            # a memoryview of the whole buffer, made when the first records are met; owned
    Py_ssize_t object_bytes_left


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
            charge(f, UNKNOWN_TAG_OBJECT_BYTES)
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


cdef object run_decode(object cls, int version, object buffer, Py_ssize_t start, object end, Py_ssize_t* left):
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
        message = read_struct(plan, &f)
        left[0] = f.c.end - f.c.at
        return message
    finally:
        Py_XDECREF(f.memory)
        PyBuffer_Release(&view)


def decode(cls, int version, buffer, Py_ssize_t start=0, end=None):
    """The message in ``buffer[start:end]``, which it must fill.

    ``records`` is a memoryview of the buffer: it is valid as long as the owner leaves those bytes alone. Raises WireError
    for bytes that do not fit the message, UnsupportedVersionError for a version that it does not have.
    """
    cdef Py_ssize_t left = 0
    message = run_decode(cls, version, buffer, start, end, &left)
    if left > 0:
        raise WireError(f"{left} bytes after the end of {cls.__name__} version {version}")
    return message


def decode_prefix(cls, int version, buffer, Py_ssize_t start=0, end=None):
    """(message, position behind it): as ``decode``, but bytes may follow, as Kafka allows behind a request."""
    cdef Py_ssize_t left = 0
    message = run_decode(cls, version, buffer, start, end, &left)
    stop = memoryview(buffer).nbytes if end is None else end
    return message, stop - left


# --- encode ---

cdef struct Target:
    Out out
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
    """The value is written first and then moved behind its size, which is known only then."""
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
    return 0


cdef int write_records(Operation* op, PyObject* value, Target* t) except -1:
    """One buffer, or a list of buffers that follow each other."""
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
        append_buffer(buffer, t)
    return 0


cdef Py_ssize_t size_of(Operation* op, object buffer) except -1:
    cdef Py_buffer view
    cdef Py_ssize_t size_bytes
    if not PyObject_CheckBuffer(<PyObject*>buffer):
        raise wrong_type(op, <PyObject*>buffer)
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


cdef PlanTable* encode_plan(object message, int version) except NULL:
    return &plan_of(type(message), version).table


def encode(message, int version):
    """The bytes of the message in this version.

    Raises UnsupportedVersionError when a field is set that the version cannot carry and that may not be ignored, and
    EncodeError for a value that the field cannot hold.
    """
    cdef PlanTable* plan = encode_plan(message, version)
    cdef Target t
    out_init(&t.out)
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
    """``head`` and the message as a list of buffers whose join is the whole.

    Records of 1 KiB and more are in the list as they were given, not copied; their owner keeps them unchanged until they
    are sent. Errors as ``encode``.
    """
    cdef PlanTable* plan = encode_plan(message, version)
    cdef Target t
    cdef list references = []
    out_init(&t.out)
    t.parts = NULL
    t.parts_bytes = 0
    try:
        append_buffer(head, &t)
        t.parts = <PyObject*>references
        write_struct(plan, <PyObject*>message, &t)
        return split(&t, references)
    finally:
        out_free(&t.out)


def encode_response_frame(int32_t correlation_id, message, int version):
    """A whole response as a list of buffers: four bytes of length, the response header, the message.

    The header is version 1 (a section of tags behind the correlation id) from the first flexible version of the message
    on, but always 0 for ApiVersions, because its reader cannot know yet what this broker speaks (KIP-511). Records are
    kept by reference and errors raised as in ``encode_parts``.
    """
    cdef PlanTable* plan = encode_plan(message, version)
    cdef Target t
    cdef list references = []
    cdef Py_ssize_t size_bytes
    out_init(&t.out)
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


# --- request headers ---

cdef enum:
    API_VERSIONS_KEY = 18
    HEADER_KEYS = 256


cdef class RequestHeaderParser:
    """Reads request headers. Made from a dict of api key to the first flexible version of that request."""

    cdef int32_t flexible_from[HEADER_KEYS]

    def __cinit__(self, dict flexible_from):
        cdef int key
        for key in range(HEADER_KEYS):
            self.flexible_from[key] = flexible_from.get(key, -1)

    def parse(self, buffer, Py_ssize_t start=0, end=None):
        """(api key, api version, correlation id, client id, where the body starts) of ``buffer[start:end]``.

        The client id of None is "" (as Kafka's ``RequestHeader.parse`` has it), tags of the header are skipped. The version
        may be any; whether it is served is the caller's question. Raises WireError for a header that is cut short and
        for a key that no request has: the layout of its header is unknown.
        """
        cdef Py_buffer view
        cdef Cursor c
        cdef const uint8_t* base
        cdef Py_ssize_t stop
        cdef int16_t api_key = 0, api_version = 0
        cdef int32_t correlation_id = 0
        cdef uint32_t count = 0, tag = 0, size_bytes = 0
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            stop = view.len if end is None else end
            if start < 0 or stop < start or stop > view.len:
                raise ValueError(f"[{start}, {stop}) is not inside a buffer of {view.len} bytes")
            base = <const uint8_t*>view.buf
            c.at = base + start
            c.end = base + stop
            read_i16(&c, &api_key)
            read_i16(&c, &api_version)
            if api_key < 0 or api_key >= HEADER_KEYS or self.flexible_from[api_key] < 0:
                raise WireError(f"no request has the api key {api_key}")
            read_i32(&c, &correlation_id)
            client_id = read_string(&c, False)
            if api_version >= self.flexible_from[api_key]:
                read_uvarint(&c, &count)
                while count > 0:
                    count -= 1
                    read_uvarint(&c, &tag)
                    read_uvarint(&c, &size_bytes)
                    need(&c, size_bytes)
                    c.at += size_bytes
            return api_key, api_version, correlation_id, client_id or "", c.at - base
        finally:
            PyBuffer_Release(&view)
