"""Every implementation against the others, a table in Python, and the PyPI package."""

import platform
import random
import re
import sys
import threading
from pathlib import Path

import crc32c as pypi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.cext.crc32c import IMPLEMENTATIONS, crc32c, crc32c_with
from kafka_shim.cext.tests import oracle
from kafka_shim.cext.tests.exact import exact

# Around every size at which an implementation changes its way: registers of 16 and 64 bytes, loops of 64 and 256,
# blocks of 4352.
EDGES = sorted(
    {base + near for base in (0, 16, 64, 128, 192, 256, 512, 768, 1024, 4096, 4352, 8704) for near in range(-17, 18)}
)


def test_check_value_of_the_catalogue():
    for name in IMPLEMENTATIONS:
        assert crc32c_with(name, b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


def test_table_is_always_there_and_last():
    assert IMPLEMENTATIONS[-1] == "table"


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="Linux tells what an x86 has")
def test_what_the_cpu_has_is_used_whichever_compiler_built_it():
    """Zig's __builtin_cpu_supports says no to everything."""
    flags = set(re.findall(r"\w+", Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0]))
    expected = ["table"]
    if {"sse4_2", "pclmulqdq"} <= flags:
        expected.insert(0, "pclmul")
        if {"avx2", "vpclmulqdq"} <= flags:
            expected.insert(0, "avx2")
        if {"avx512f", "avx512vl", "avx512dq", "vpclmulqdq"} <= flags:
            expected.insert(0, "avx512")
    assert list(IMPLEMENTATIONS) == expected


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_every_size_and_alignment_near_an_edge(name):
    data = random.Random(1).randbytes(EDGES[-1] + 64)
    for size in EDGES:
        if size < 0:
            continue
        for start in (0, 1, 7, 15, 63):
            part = data[start : start + size]
            with exact(part) as buffer:
                assert crc32c_with(name, buffer) == pypi.crc32c(part), (size, start)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\x80"])
def test_runs_of_one_byte_have_the_crc_of_the_library(name, fill):
    for size in (1, 127, 128, 511, 512, 513, 65536, 65537):
        assert crc32c_with(name, fill * size) == pypi.crc32c(fill * size)


@given(st.binary(max_size=2000), st.integers(0, 2**32 - 1))
def test_implementations_agree_with_the_oracle(data, value):
    expected = oracle.crc32c(data, value)
    assert pypi.crc32c(data, value) == expected
    for name in IMPLEMENTATIONS:
        assert crc32c_with(name, data, value) == expected


@given(st.binary(max_size=3000), st.integers(0, 3000))
def test_in_two_parts_is_the_same(data, cut):
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)


def test_large_buffers_without_the_gil_in_many_threads():
    data = random.Random(2).randbytes(3 << 20)
    expected = pypi.crc32c(data)
    results = []
    threads = [threading.Thread(target=lambda: results.append(crc32c(data))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_views_are_taken_and_other_things_refused():
    assert crc32c(memoryview(b"xx123456789")[2:]) == 0xE3069283
    with pytest.raises(TypeError):
        crc32c("123456789")
    with pytest.raises(ValueError, match="no CRC-32C implementation"):
        crc32c_with("abacus", b"")
