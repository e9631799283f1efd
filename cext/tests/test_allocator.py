"""The allocator's setting is the whole process's, so each case runs in a child."""

import os
import platform
import subprocess
import sys

import pytest

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's; elsewhere keep() answers False")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer has an allocator of its own")
def test_memory_that_is_kept_is_not_faulted_in_again() -> None:
    pages_of_one_block = (4 << 20) // 4096
    assert page_faults("keep") < 3 * pages_of_one_block
