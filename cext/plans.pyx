"""Plans of messages: each message class and version is compiled once into a table of operations. Also the constructors
of message classes.

A class has its table in ``FIELDS`` (``shim/protocol/message.py`` describes a row). The plan of a version is a C array
with one operation for each field: its kind, the position of its slot in the object, and the plan of a nested struct.
``messages.pyx`` runs plans.
"""

import sys

from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdlib cimport calloc, free

from kafka_shim.cext.wire import UnsupportedVersionError

cdef extern from *:
    """
    #include <structmember.h>
    /* Where a __slots__ entry lies in its object, or -1 when `descriptor` is no plain slot. */
    static Py_ssize_t slot_offset(PyObject* descriptor) {
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return -1;
        PyMemberDef* member = ((PyMemberDescrObject*)descriptor)->d_member;
        return member->type == T_OBJECT_EX ? member->offset : -1;
    }
    /* A call of `cls` comes here and not through type.__call__: no tuple, no dict, no Python frame. */
    typedef PyObject* (*constructor)(PyObject*, PyObject* const*, size_t, PyObject*);
    static void set_constructor(PyObject* cls, constructor made) { ((PyTypeObject*)cls)->tp_vectorcall = made; }
    """
    Py_ssize_t slot_offset(object descriptor)
    ctypedef PyObject* const_objects "PyObject* const"
    ctypedef object (*constructor)(object, const_objects*, size_t, PyObject*)
    void set_constructor(object cls, constructor made)

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t flags)
    Py_ssize_t PyTuple_GET_SIZE(PyObject* obj)
    PyObject* PyTuple_GET_ITEM(PyObject* obj, Py_ssize_t index)

cdef enum:
    MAX_DEPTH = 32

cdef dict KINDS = {
    "bool": BOOL, "int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64, "uint16": UINT16, "uint32": UINT32,
    "float64": FLOAT64, "uuid": UUID, "string": STRING, "string16": STRING16, "bytes": BYTES, "records": RECORDS,
}
cdef dict FIXED_SIZES = {
    BOOL: 1, INT8: 1, INT16: 2, INT32: 4, INT64: 8, UINT16: 2, UINT32: 4, FLOAT64: 8, UUID: 16,
}


cdef class Plan:
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
    plan = compile_plan(cls, version, version >= cls.FLEXIBLE_FROM, {}, 0)
    # Another thread may have been first, and may be running its plan without a reference: plans are never replaced.
    if plans[version] is None:
        plans[version] = plan
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
    """Return the minimum size of a value on the wire in bytes."""
    if op.kind == STRUCT:
        return 1 if op.nullable else op.child.least_bytes
    if op.kind in FIXED_SIZES:
        return FIXED_SIZES[op.kind]
    if op.compact:
        return 1
    return 2 if op.kind == STRING else 4


cdef Py_ssize_t object_bytes(Operation* op) except -1:
    """Return the approximate size of a value's Python object, apart from the bytes that it copies from the frame."""
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


cdef object default_of(Operation* op):
    if op.default != NULL:
        return <object>op.default
    if op.kind == ARRAY:
        empty = []
        untrack(empty)
        return empty
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
    untrack(made)
    return made


# --- construction ---

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
        layout = LAYOUTS.setdefault(cls, compile_plan(cls, 0, False, {}, 0))
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
    untrack(made)
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
    return slot_spelled(<object><PyObject*>plan.cls, <object>name)


cdef Py_ssize_t slot_spelled(object cls, str name) except -1:
    # Not inside the other: a function with a generator in it makes an object for it at each call.
    if name == "unknown_tags" or any(row[0] == name for row in cls.FIELDS):
        return slot_of(cls, name)
    raise TypeError(f"{cls.__name__} has no field {name}")


def give_constructor(cls):
    """Makes ``cls(name=value, ...)`` set slots directly. The class has FIELDS; no base has a ``__new__``."""
    set_constructor(cls, construct)
