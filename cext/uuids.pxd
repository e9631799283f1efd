cpdef bytes version_4(bytes random)
cpdef str java_uuid_text(bytes uuid)
