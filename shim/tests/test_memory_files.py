"""Files that are on no disk, and what is done where the system has none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim import memory_files
from kafka_shim.embedded import Broker
from kafka_shim.security.tls.context import private_file

# Refuses memfd_create to this process and its children by a filter of system calls, then starts a broker in a child
# process, whose passwords and keys are in such files.
REFUSED = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | 1), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, program, 0, 0):
    sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
try:
    os.memfd_create("x")
except PermissionError:
    print("refused")
from kafka_shim import Broker
with Broker(process=True, tls=True, sasl="PLAIN", users={"alice": "secret"}) as broker:
    print(broker.topics())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="filters of system calls are of Linux")
def test_a_filter_that_refuses_them_keeps_no_broker_from_its_start():
    """As some sandboxes have; it was a PermissionError of `Broker.start`."""
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n[]\n"), done.stderr


@pytest.mark.parametrize("number", sorted(memory_files.REFUSALS))
def test_where_they_are_refused_a_private_file_is_on_the_disk(monkeypatch: pytest.MonkeyPatch, number: int):
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    assert memory_files.memory_file("x") is None
    with private_file(b"key") as path:
        file = Path(path)
        assert (file.stat().st_mode & 0o777, file.read_bytes()) == (0o600, b"key")
    assert not file.exists()
    with Broker(process=True, sasl="PLAIN", users={"alice": "secret"}) as broker:
        assert broker.topics() == []


def test_the_lack_of_a_descriptor_is_an_error(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    with pytest.raises(OSError, match="Too many open files"):
        memory_files.memory_file("x")
