"""What the build of the image adds to its file system."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim.compat.tests.containers.test_entrypoint import DOCKER, load
from kafka_shim.targets import jvm

prepare = load("prepare")
ROOTFS = DOCKER / "rootfs"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The file system of the image, completed."""
    shutil.copytree(ROOTFS, tmp_path / "root")
    prepare.prepare(tmp_path / "root")
    return tmp_path / "root"


def test_every_tool_of_kafka_is_there_or_says_what_to_use(root: Path) -> None:
    programs = root / "opt/kafka/bin"
    assert {f"{name}.sh" for name in jvm.TOOLS} <= {script.name for script in programs.iterdir()}
    done = subprocess.run([programs / "kafka-share-groups.sh", "--list"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "kafka-share-groups.sh is not in this image: use kafka-shim groups\n"
    for name in prepare.ELSEWHERE:
        done = subprocess.run([programs / f"{name}.sh"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_the_dump_of_a_log_is_the_command(root: Path) -> None:
    line = (root / "opt/kafka/bin/kafka-dump-log.sh").read_text().splitlines()[-1]
    words = shlex.split(line.removeprefix("exec /opt/kafka-shim/bin/python").replace('"$@"', "--help"))
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, timeout=60)
    assert "--print-data-log" in done.stdout
    assert (root / "usr/bin/kafka-dump-log").readlink() == Path("/opt/kafka/bin/kafka-dump-log.sh")


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
