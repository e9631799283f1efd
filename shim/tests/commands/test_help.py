"""What `--help` of every command says."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kafka_shim.commands.examples import EXAMPLES
from kafka_shim.commands.main import NOUNS, main, run
from kafka_shim.tools import TOOLS
from kafka_shim.tools.__main__ import main as tools_main


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that lead to it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from commands(found, (*words, name))


ALL = dict(commands(main))


def test_the_brokers_address_has_the_same_names_everywhere() -> None:
    names = [set(one.opts) for command in ALL.values() for one in command.params if "--bootstrap-server" in one.opts]
    assert len(names) > 20
    assert all(one == {"--bootstrap-server", "--bootstrap"} for one in names)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["topics", "list", "--bootstrap-server", "127.0.0.1:70000"], "'--bootstrap-server' / '--bootstrap'"),
        (["top", "--once", "--bootstrap", "127.0.0.1:1,127.0.0.1:x"], "'--bootstrap-server' / '--bootstrap'"),
        (["console", "--http", "127.0.0.1:70000"], "--http"),
        (["record", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:70000", "capture"], "--listen"),
        (["record", "--upstream", "127.0.0.1:1", "--twin", "127.0.0.1:70000", "capture"], "--twin"),
    ],
)
def test_an_address_that_is_none_is_a_wrong_option(
    words: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, and the option that has it is named; 1 is for brokers that are not reached."""
    assert run(words) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: Invalid value for {option}")


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_a_summary_and_an_example(words: tuple[str, ...]) -> None:
    command = ALL[words]
    assert command.help
    assert f"kafka-shim {' '.join(words)}" in (command.epilog or "")
    assert "`" * 2 not in command.help + (command.epilog or "")


def test_every_example_is_one_that_the_command_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("kafka.capture", "shim.capture", "app.capture", "certs/ca.pem"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    for noun, lines in EXAMPLES.items():
        for line in lines:
            words = shlex.split(line)
            assert words[0] == noun
            depth = 2 if tuple(words[:2]) in ALL else 1
            command = ALL[tuple(words[:depth])]
            # Raises for an option that is not there.
            command.make_context("kafka-shim", words[depth:], resilient_parsing=False)
    assert set(EXAMPLES) <= set(NOUNS)


# What streams, serves, or has files as its result.
WITHOUT_JSON = {"console", "diff", "dump-log", "record", "replay", "serve"}
SILENT = {("storage", "format"), ("storage", "mend"), ("transactions", "abort"), ("transactions", "force-terminate")}


def test_every_command_that_prints_an_answer_has_json() -> None:
    without = {words for words, one in ALL.items() if not any("--json" in each.opts for each in one.params)}
    assert without == {(noun,) for noun in WITHOUT_JSON} | SILENT


def test_a_mistyped_command_has_the_nearest_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topcs", "list"]) == 2
    assert "No such command 'topcs'. Did you mean 'topics'?" in capsys.readouterr().err
    assert run(["zzz"]) == 2
    assert "No such command 'zzz'.\n" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["topics"]])
def test_without_a_command_the_help_alone_is_shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"Usage: {' '.join(['kafka-shim', *words])} [OPTIONS] COMMAND")
    assert shown.err.count("Usage:") == 1
    assert "error:" not in shown.err


@pytest.mark.parametrize("words", [[], ["topics"], ["topics", "list"], ["serve"]])
def test_help_has_a_short_name_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "-h"]) == 0
    short = capsys.readouterr().out
    assert run([*words, "--help"]) == 0
    assert short == capsys.readouterr().out
    assert short.startswith("Usage: kafka-shim")


def test_an_option_before_its_command_is_shown_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topics", "--bootstrap-server", "127.0.0.1:1", "list"]) == 2
    said = capsys.readouterr().err
    assert "Options stand behind the command: kafka-shim topics COMMAND --bootstrap-server ...\n" in said
    assert run(["--json", "topics", "list"]) == 2
    assert "Options stand behind the command: kafka-shim COMMAND --json ...\n" in capsys.readouterr().err
    assert run(["topics", "--nonsense", "list"]) == 2
    assert "Options stand behind" not in capsys.readouterr().err


def test_the_tools_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert tools_main([]) == 0
    out = capsys.readouterr().out
    assert [line.partition("\tas kafka-")[2] for line in out.splitlines()] == [f"{name}.sh" for name in TOOLS]
    assert "python -m kafka_shim.tools.console_producer\t" in out
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert tools_main(["topcs"]) == 1
    assert "topcs is none of the tools" in sys.stderr.getvalue()  # type: ignore[attr-defined]


def test_lists_of_commands_say_whole_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["acls"], ["certs"], ["transactions"]):
        assert run([*words, "--help"]) == 0
        assert "...\n" not in capsys.readouterr().out.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("acls", "add"), ["--topic", "--group", "--resource-pattern-type", "--allow-principal", "--operation"]),
        (("quotas", "set"), ["--user", "--user-default", "--client-id", "--ip"]),
    ],
)
def test_options_stand_in_the_order_in_which_one_thinks_of_them(words: tuple[str, ...], names: list[str]) -> None:
    known = [one.opts[0] for one in ALL[words].params]
    assert [name for name in known if name in names] == names


@pytest.mark.parametrize(
    ("words", "said_here"),
    [
        ("topics --create --topic orders", "kafka-shim topics create"),
        ("topics create --topic orders", "kafka-shim topics create TOPIC"),
        ("consume --topic orders", "kafka-shim consume TOPIC"),
        ("consume orders --from-beginning", "kafka-shim consume --from beginning"),
        ("consume orders --max-messages 1", "kafka-shim consume --count"),
        ("produce --topic orders", "kafka-shim produce TOPIC"),
        ("groups --list", "kafka-shim groups list"),
        ("produce orders --from-beginning", None),
    ],
)
def test_words_of_kafkas_tools_are_answered_with_those_of_here(words, said_here, capsys):
    assert run(words.split()) == 2
    err = capsys.readouterr().err
    assert "error: No such option" in err
    assert ("Here it is: " in err) == (said_here is not None)
    assert said_here is None or err.endswith(f"Here it is: {said_here} ...\n")
