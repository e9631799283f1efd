from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import weakref

import click
import pytest

from kafka_shim.cli import (
    AGAIN_S,
    end_first_process,
    hear_interrupts_again,
    let_interrupts_end,
    main,
    open_standard_streams,
    plain_serve,
)
from kafka_shim.commands.examples import EXAMPLES
from kafka_shim.commands.main import NOUNS, Nouns
from kafka_shim.tests.dropped_interrupts import DROPPED
from kafka_shim.tests.waiting import PATIENCE_S


def test_ordinary_forms_of_serve_are_read_without_the_full_parser():
    words = [
        "--listen",
        "127.0.0.1:0",
        "--data-dir=/d",
        "-o",
        "a=b",
        "-o",
        "c=d",
        "--log-level",
        "DEBUG",
        "--config",
        "f",
    ]
    assert plain_serve(words) == {
        "listen": "127.0.0.1:0",
        "data_dir": "/d",
        "options": ["a=b", "c=d"],
        "log_level": "DEBUG",
        "config_file": "f",
    }
    assert plain_serve(["--memory"]) == {"memory": True, "options": []}


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--listen"],
        ["extra"],
        ["--memory=yes"],
        ["--memory", "--data-dir", "x"],
        ["-x", "y"],
        ["--log-format", "xml"],
    ],
)
def test_everything_else_is_left_to_it(words):
    assert plain_serve(words) is None


@pytest.mark.parametrize("noun", NOUNS)
def test_every_noun_explains_itself(noun, capsys):
    assert main([noun, "--help"]) == 0
    out = capsys.readouterr().out
    assert noun in out
    assert re.search(rf"Examples:\n.*kafka-shim {noun}\b", out)
    assert "\b" not in out  # click's mark of lines that stay as they are


def test_the_examples_have_words_that_the_commands_know():
    for noun, lines in EXAMPLES.items():
        for line in lines:
            command, words = Nouns().get_command(None, noun), line.split()[1:]
            if isinstance(command, click.Group):
                command, words = command.commands[words[0]], words[1:]
            known = {name for one in command.params for name in one.opts}
            assert {word for word in words if word.startswith("-")} <= known, line


def test_a_mistake_is_told_with_a_status(capsys):
    assert main(["nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert main(["serve", "--memory", "--data-dir", "x"]) == 2


def test_ctrl_c_while_modules_are_read_ends_without_a_traceback(monkeypatch, capsys):
    def interrupted(words):
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_shim.cli._run", interrupted)
    assert main(["serve", "--memory"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("words", [["serve", "--memory"], ["serve", "--memory", "--log-level", "debug"]])
def test_either_parser_starts_the_broker_and_tells_its_status(monkeypatch, words):
    started = []

    def started_with(**arguments):
        started.append(arguments)
        return 7

    monkeypatch.setattr("kafka_shim.serve.serve", started_with)
    assert main(words) == 7
    assert [arguments["memory"] for arguments in started] == [True]
    assert main(["serve", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:1"]) == 2
    assert len(started) == 1


def test_a_module_that_is_not_compiled_is_told_and_any_other_is_a_fault(monkeypatch, capsys):
    def missing(name):
        def run(words):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        return run

    monkeypatch.setattr("kafka_shim.cli._run", missing("kafka_shim.cext.crc32c"))
    assert main(["topics", "list"]) == 1
    assert "compiled" in capsys.readouterr().err
    monkeypatch.setattr("kafka_shim.cli._run", missing("elsewhere"))
    with pytest.raises(ModuleNotFoundError, match="elsewhere"):
        main(["topics", "list"])


def test_closed_standard_streams_are_opened_and_names_are_printed_as_their_bytes(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="utf-8", errors="strict"))
    monkeypatch.setattr(sys, "stderr", None)
    open_standard_streams()
    opened = (sys.stdin, sys.stderr)
    assert [stream.name for stream in opened] == [os.devnull, os.devnull]
    assert (sys.stdin.read(), sys.stderr.writable()) == ("", True)
    for stream in opened:
        stream.close()
    print(os.fsdecode(b"/data/\xff"), flush=True)
    assert written.getvalue() == b"/data/\xff\n"


def test_only_the_first_process_takes_sigterm_until_a_command_asks_for_it(monkeypatch):
    taken = []
    monkeypatch.setattr(signal, "signal", lambda *arguments: taken.append(arguments))
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)
    end_first_process()
    assert taken == []
    monkeypatch.setattr(os, "getpid", lambda: 1)
    end_first_process()
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
    end_first_process()
    assert [number for number, _ in taken] == [signal.SIGTERM]


@pytest.mark.parametrize("process_id", [1, 2])
def test_sigterm_ends_a_command_that_has_not_asked_for_it_also_as_the_first_process(process_id):
    """The kernel keeps from the first process of a container what it has no handler for: it went on until SIGKILL."""
    code = f"""
import os, signal, sys
os.getpid = lambda: {process_id}
from kafka_shim.cli import main

class Reader:
    def find_spec(self, name, *_):
        if name == "kafka_shim.serve":
            signal.raise_signal(signal.SIGTERM)

sys.meta_path.insert(0, Reader())
sys.argv[1:] = ["serve", "--memory"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    status = 143 if process_id == 1 else -signal.SIGTERM
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


@pytest.mark.parametrize(
    "start",
    [
        "from kafka_shim.cli import main; sys.exit(main())",
        "from kafka_shim.tools.running import leave; leave(read)",
    ],
)
@pytest.mark.parametrize("again_s", [AGAIN_S, 1e-6])
def test_ctrl_c_is_heard_also_where_python_drops_what_is_raised(start, again_s):
    """As in the callback with which each import ends: `consume --follow` went on until it was killed. So it did where
    the next signal came before the hook for what is dropped had ended."""
    code = f"""{DROPPED}
import sys
import kafka_shim.cli

class Reader:
    def find_spec(self, name, *_):
        if name == "kafka_shim.serve":
            print("reading", flush=True)
            interrupt_where_it_is_dropped()

def read(words):
    import kafka_shim.serve

signal.signal(signal.SIGINT, signal.default_int_handler)
kafka_shim.cli.AGAIN_S = {again_s}
sys.meta_path.insert(0, Reader())
sys.argv[1:] = ["serve", "--memory"]
{start}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (130, "reading\n", "")


@pytest.mark.parametrize(
    "start",
    [
        "from kafka_shim.cli import main; sys.exit(main())",
        "from kafka_shim.tools.running import leave; leave(work)",
        "from kafka_shim.tools.running import leave; leave(refuse)",
    ],
)
def test_ctrl_c_after_a_command_ends_it_without_a_traceback(start):
    """A tool died of SIGALRM, which came after Python's handler for it was gone."""
    code = f"""
import atexit, signal, sys

def work(words):
    return 0

def refuse(words):
    raise SystemExit(1)

signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(signal.raise_signal, signal.SIGINT)
sys.argv[1:] = ["--version"]
{start}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def interrupted(_):
    raise KeyboardInterrupt


def test_ctrl_c_that_was_dropped_as_a_command_ended_is_not_sent_again(monkeypatch):
    """Its timer would end the process by SIGALRM."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)}
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    hear_interrupts_again()
    try:
        signal.signal(signal.SIGINT, lambda *_: heard.append(signal.SIGINT))
        monkeypatch.setattr("kafka_shim.cli.AGAIN_S", 3600)
        target = io.BytesIO()
        watched = weakref.ref(target, interrupted)
        del target
        assert watched() is None
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
        let_interrupts_end()
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert heard == []


def test_what_else_python_drops_is_shown_as_before(monkeypatch):
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    hear_interrupts_again()
    target = io.BytesIO()
    watched = weakref.ref(target, int)  # which fails with the reference
    del target
    assert watched() is None
    assert [one.exc_type for one in shown] == [TypeError]


def test_ctrl_c_in_a_command_has_its_own_status_and_no_at_a_question(monkeypatch):
    def asked(_):
        raise click.Abort

    monkeypatch.setattr("kafka_shim.commands.main.main.invoke", asked)
    assert main(["topics", "list"]) == 1

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_shim.commands.main.main.invoke", interrupted)
    assert main(["topics", "list"]) == 130


def test_serve_loads_no_parser_and_no_table_of_options():
    code = (
        "import sys, kafka_shim.cli, kafka_shim.serve; "
        "print([n for n in ('click', 'kafka_shim.config.table', 'argparse', 'inspect', 'uuid', 'random', "
        "'dataclasses') if n in sys.modules and n != 'inspect'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
