from libc.stdint cimport int32_t


# `internal_partition`.
cdef int32_t partition_of(str key, Py_ssize_t partition_count) except? -1
