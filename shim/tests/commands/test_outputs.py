"""An output that cannot be written is told as that, and not as an error of what the command reads or connects to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.wiretap.capture import CaptureWriter


def told(words: list[str], stdout: str) -> tuple[int, str]:
    """The status and the errors of a command whose output is a full disk, or has lost its reader."""
    with (
        Path("/dev/full").open("wb") as full,
        subprocess.Popen(
            [sys.executable, "-m", "kafka_shim", *words],
            stdout=full if stdout == "full" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as child,
    ):
        if child.stdout is not None:
            child.stdout.close()
            child.stdout = None
        _, errors = child.communicate(timeout=60)
    return child.returncode, errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize(
    ("stdout", "said"), [("full", "error: cannot write the output: No space left on device\n"), ("closed", "")]
)
@pytest.mark.parametrize("command", ["dump-log", "format", "record", "replay"])
def test_an_output_that_cannot_be_written_is_no_error_of_the_files_or_of_the_broker(
    tmp_path: Path, command: str, stdout: str, said: str
) -> None:
    """`dump-log --files ... | head` said "[Errno 32] Broken pipe", `replay` the broker's address before it."""
    capture, segment = tmp_path / "capture", tmp_path / "00000000000000000000.log"
    with CaptureWriter(str(capture)):
        pass
    segment.write_bytes(b"")
    with Broker() as broker:
        where = broker.bootstrap_servers
        words = {
            "dump-log": ["dump-log", "--files", str(segment)],
            "format": ["storage", "format", str(tmp_path / "new")],
            "record": ["record", "--upstream", where, str(tmp_path / "recorded")],
            "replay": ["replay", "--target", where, str(capture)],
        }
        assert told(words[command], stdout) == (1, said)
    assert not (tmp_path / "recorded").exists()
