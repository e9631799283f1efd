"""What the build of the image adds to its file system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim.compat.tests.containers.test_entrypoint import load

prepare = load("prepare")


@pytest.mark.parametrize(("process_id", "status"), [(1, 143), (2, -15)])
def test_sigterm_ends_python_without_a_word_also_as_the_first_process(
    tmp_path: Path, process_id: int, status: int
) -> None:
    """-15 is the signal itself, which the kernel keeps from the first process."""
    prepare.end_first_process(tmp_path)
    code = f"""
import os, signal, site
os.getpid = lambda: {process_id}
site.addsitedir({str(tmp_path)!r})
signal.raise_signal(signal.SIGTERM)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
