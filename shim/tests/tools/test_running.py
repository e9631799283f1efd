"""How tools run: what their options are, and how they end."""

from __future__ import annotations

import errno
import io
import re
import signal
import subprocess
import sys

import pytest

from kafka_shim.tools.options import FLAG, NUMBER, OPTIONAL, VALUE, Options, UsageError
from kafka_shim.tools.running import leave
from kafka_shim.wire_client import WireClientError


@pytest.fixture
def hooks_restored(monkeypatch):
    """What `leave` changes for the rest of its process."""
    monkeypatch.setattr("sys.unraisablehook", sys.unraisablehook)
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("raised", "status"),
    [(None, 3), (KeyboardInterrupt, 130), (WireClientError("no broker"), 1), (FileNotFoundError("no file"), 1)],
)
def test_how_a_tool_ends_is_its_status(raised, status, monkeypatch, hooks_restored, capsys):
    def main(words):
        if raised is not None:
            raise raised
        return 3

    monkeypatch.setattr("sys.argv", ["tool"])
    with pytest.raises(SystemExit) as ended:
        leave(main)
    assert ended.value.code == status
    if isinstance(raised, Exception):
        assert capsys.readouterr().err == f"{raised}\n"


def test_ctrl_c_at_the_end_of_a_tool_has_its_status(monkeypatch, hooks_restored):
    class Interrupted(io.StringIO):
        flushes = 0

        def flush(self):
            self.flushes += 1
            if self.flushes == 2:
                signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("sys.argv", ["tool"])
    monkeypatch.setattr("sys.stdout", Interrupted())
    with pytest.raises(SystemExit, match="130"):
        leave(lambda _: 0)


def test_a_word_that_is_no_utf_8_is_told(monkeypatch, hooks_restored, capsys):
    monkeypatch.setattr("sys.argv", ["tool", "na\udcefve"])
    with pytest.raises(SystemExit, match="1"):
        leave(lambda words: words[0].encode())
    assert capsys.readouterr().err.startswith(r"'\udcef', character 3 of a text, is not of UTF-8: ")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "cannot write the output: No space left on device\n"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x"), "x: No such file or directory\n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), ""),
    ],
)
@pytest.mark.parametrize("with_commands", [False, True])
def test_errors_of_the_system_are_told_without_their_number(raised, said, with_commands):
    """And a reader of the output that left is no error to tell."""
    code = f"""
import argparse
from kafka_shim.tools.running import leave
from kafka_shim.tools.subcommands import run_command
def fail(words):
    raise {raised.__class__.__name__}({", ".join(repr(one) for one in (*raised.args, raised.filename) if one)})
def main(words):
    if not {with_commands}:
        fail(words)
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    return run_command(parser, {{"go": fail}}, words)
leave(main)
"""
    done = subprocess.run([sys.executable, "-c", code, "go"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, said)


def test_options_are_read_as_there():
    options = Options("about", {"flag": FLAG, "number": NUMBER, "optional": OPTIONAL, "value": VALUE})
    given = options.parse(["--val=a=b", "stray", "-number", "3", "--optional", "--flag", "--value", "-1"])
    assert (given.all("value"), given.number("number"), given.one("optional")) == (["a=b", "-1"], 3, None)
    assert given.has("flag")
    for wrong in (["--other"], ["--value"], ["--number", "x"], [], ["--help"]):
        with pytest.raises(UsageError):
            options.parse(wrong)
    with pytest.raises(SystemExit) as ended:
        options.parse(["--version"])
    assert ended.value.code == 0


@pytest.mark.parametrize(
    "line",
    [
        "topics --create --topic a --topic b",
        "topics --create --topic a --partitions 1 --partitions 2",
        "console-consumer --topic a --topic b --from-beginning --timeout-ms 0",
        "console-producer --topic a --topic b",
        "configs --alter --topic a --add-config retention.ms=5 --add-config max.message.bytes=1000",
        "get-offsets --topic a --topic b",
        "groups --list --bootstrap-server 127.0.0.1:1",
    ],
)
def test_an_option_given_twice_is_refused(line, run, capfd):
    """The last one won."""
    assert run(line) == (1, "")
    said = "Found multiple arguments for option [a-z-]+, but you asked for only one\n"
    assert re.match(said, capfd.readouterr().err)
