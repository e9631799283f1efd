"""Plans: what the codec engine knows of one message class in one version. ``plans.pyx`` makes them from ``FIELDS``."""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, uint8_t

cdef extern from *:
    """
    #define SLOT(object, offset) (*(PyObject**)((char*)(object) + (offset)))
    #define put_slot(object, offset, value) (SLOT(object, offset) = (value))
    """
    PyObject* get_slot "SLOT"(PyObject* obj, Py_ssize_t offset)
    void put_slot(PyObject* obj, Py_ssize_t offset, PyObject* value)

cdef extern from "Python.h":
    object PyType_GenericAlloc(PyTypeObject* cls, Py_ssize_t items)
    void PyObject_GC_UnTrack(PyObject* obj)

# Kinds of fields.
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


cdef Plan plan_of(object cls, int version)
cdef Py_ssize_t slot_of(object cls, str name) except -1
cdef object defaults(PlanTable* plan)
cdef object default_of(Operation* op)


cdef inline void untrack(object made) noexcept:
    """Messages are trees of plain values: the garbage collector would find nothing in them, and looking at hundreds of
    thousands would hold the event loop for longer than decoding them."""
    PyObject_GC_UnTrack(<PyObject*>made)


cdef inline void fill(object obj, Py_ssize_t slot, object value) noexcept:
    """Sets a slot that is still empty."""
    Py_INCREF(value)
    put_slot(<PyObject*>obj, slot, <PyObject*>value)


cdef inline object get_field(object message, Py_ssize_t slot):
    cdef PyObject* value = get_slot(<PyObject*>message, slot)
    if value == NULL:
        raise AttributeError(f"a field of {type(message).__name__} is not set")
    return <object>value


cdef inline int set_field(object message, Py_ssize_t slot, object value) except -1:
    cdef PyObject* former = get_slot(<PyObject*>message, slot)
    Py_INCREF(value)
    put_slot(<PyObject*>message, slot, <PyObject*>value)
    Py_XDECREF(former)
    return 0
