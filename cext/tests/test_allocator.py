"""The allocator's setting is the whole process's, so each case runs in a child."""

import os
import platform
import subprocess
import sys

CHILD = """
import resource, sys
from kafka_shim.cext.allocator import keep
if sys.argv[1] == "keep":
    assert keep(16 << 20)
for _ in range(50):
    bytearray(4 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    block = b"x" * (4 << 20)
    del block
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(mode: str) -> int:
    ran = subprocess.run([sys.executable, "-c", CHILD, mode], capture_output=True, text=True, check=True)
    return int(ran.stdout)


# The setting is glibc's. AddressSanitizer brings an allocator of its own.
HAS_SETTING = platform.libc_ver()[0] == "glibc" and "asan" not in os.environ.get("LD_PRELOAD", "")


def test_memory_that_is_kept_is_not_faulted_in_again() -> None:
    if not HAS_SETTING:
        answer = "from kafka_shim.cext.allocator import keep; print(keep(16 << 20))"
        assert subprocess.run([sys.executable, "-c", answer], capture_output=True, check=True).stdout == b"False\n"
        return
    pages_of_one_block = (4 << 20) // 4096
    assert page_faults("keep") < 3 * pages_of_one_block
