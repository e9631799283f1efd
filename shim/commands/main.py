"""`kafka-shim`: the group of all subcommands. The file of each noun is imported when it is used, and
defines `group`.
"""

from __future__ import annotations

import errno
from difflib import get_close_matches
from importlib import import_module

import click

from kafka_shim.commands.examples import epilog_of
from kafka_shim.errors import not_in_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Noun -> module. A new subcommand is a line here and a file.
NOUNS = {
    "acls": "kafka_shim.commands.acls",
    "certs": "kafka_shim.commands.certs",
    "cluster": "kafka_shim.commands.cluster",
    "configs": "kafka_shim.commands.configs",
    "console": "kafka_shim.commands.console",
    "consume": "kafka_shim.commands.consume",
    "diff": "kafka_shim.commands.diff",
    "dump-log": "kafka_shim.commands.dump_log",
    "groups": "kafka_shim.commands.groups",
    "produce": "kafka_shim.commands.produce",
    "quotas": "kafka_shim.commands.quotas",
    "record": "kafka_shim.commands.record",
    "replay": "kafka_shim.commands.replay",
    "serve": "kafka_shim.commands.serve",
    "storage": "kafka_shim.commands.storage",
    "top": "kafka_shim.commands.top",
    "topics": "kafka_shim.commands.topics",
    "transactions": "kafka_shim.commands.transactions",
    "users": "kafka_shim.commands.users",
}


# The exit status of words that the command cannot use.
USAGE = click.UsageError.exit_code
HELP = {"help_option_names": ["-h", "--help"]}


class Nouns(click.Group):
    """Imports subcommands by their names in `NOUNS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(NOUNS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = NOUNS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = import_module(module).group
        command.epilog = command.epilog or epilog_of(cmd_name)
        command.context_settings = {**HELP, **command.context_settings}
        _say_in_lists(command)
        if isinstance(command, click.Group):
            for verb, each in command.commands.items():
                each.epilog = each.epilog or epilog_of(cmd_name, verb)
                each.context_settings = {**HELP, **each.context_settings}
                _say_in_lists(each)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Names the nearest noun for one that is mistyped."""
        if args[0] not in NOUNS and (near := get_close_matches(args[0], NOUNS, n=1)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


def _say_in_lists(command: click.Command) -> None:
    """Show the first sentence of its help, over several lines: click cuts it where a line of 80 columns ends."""
    sentence, dot, _ = (command.help or "").partition(". ")
    command.short_help = command.short_help or sentence + dot.rstrip()


@click.group(
    cls=Nouns,
    name="kafka-shim",
    help="A Kafka broker that unmodified clients cannot tell from Apache Kafka.",
    context_settings=HELP,
)
@click.version_option(package_name="kafka-shim", prog_name="kafka-shim")
def main() -> None:
    pass


def _is_of_a_command(context: click.Context, option: str) -> bool:
    """Whether a command below that of `context` has the option, which was said too early."""
    if not isinstance(context.command, click.Group):
        return False
    names = context.command.list_commands(context)
    below = [one for name in names if (one := context.command.get_command(context, name)) is not None]
    return any(
        option in (*parameter.opts, *parameter.secondary_opts) for one in below for parameter in one.params
    ) or any(_is_of_a_command(click.Context(one, context), option) for one in below)


# Options of Kafka's console tools -> those of this one.
SAID_HERE = {
    "--from-beginning": "--from beginning",
    "--max-messages": "--count",
    "--isolation-level": "--read-committed",
}


def _as_said_here(context: click.Context, option: str) -> str | None:
    """What somebody who knows Kafka's tools meant by an option that the command does not have."""
    name = option.lstrip("-")
    command = context.command
    if isinstance(command, click.Group):
        return f"{context.command_path} {name}" if name in command.list_commands(context) else None
    # The arguments of `topics create` are NAMES.
    is_noun = context.parent is not None and context.parent.info_name == f"{name}s"
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and (is_noun or parameter.name in (name, f"{name}s")):
            return f"{context.command_path} {name.upper()}"
        if SAID_HERE.get(option, "").partition(" ")[0] in parameter.opts:
            return f"{context.command_path} {SAID_HERE[option]}"
    return None


def _show(error: click.ClickException) -> None:
    """What click found, in the words in which all commands say errors."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return
    context = getattr(error, "ctx", None)
    if context is not None:
        click.echo(context.get_usage(), err=True)
        click.echo(f"Try '{context.command_path} --help' for help.", err=True)
    click.echo(f"error: {error.format_message()}", err=True)
    if context is None or not isinstance(error, click.NoSuchOption):
        return
    if said_here := _as_said_here(context, error.option_name):
        click.echo(f"Here it is: {said_here} ...", err=True)
    elif _is_of_a_command(context, error.option_name):
        click.echo(
            f"Options stand behind the command: {context.command_path} COMMAND {error.option_name} ...", err=True
        )


def run(words: Sequence[str]) -> int:
    """Runs the command line and returns the exit status. Raises KeyboardInterrupt."""
    try:
        answer = main.main(list(words), prog_name="kafka-shim", standalone_mode=False)
    except click.exceptions.Exit as finished:
        return finished.exit_code
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except click.Abort as aborted:
        if isinstance(aborted.__cause__, KeyboardInterrupt):
            raise aborted.__cause__ from None
        return 1
    except UnicodeError as error:
        click.echo(f"error: {not_in_encoding(error)}", err=True)
        return USAGE
    except OSError as error:
        if error.filename is not None:
            from kafka_shim.commands.directories import reason_of

            click.echo(f"error: {reason_of(error)}", err=True)
            return 1
        if error.errno != errno.ENOSPC:
            raise
        click.echo(f"error: cannot write the output: {error.strerror}", err=True)
        return 1
    return answer if isinstance(answer, int) else 0
