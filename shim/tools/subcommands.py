"""Parsing for those of Kafka's tools that have subcommands (there: argparse4j): wrong words end with status 1."""

from __future__ import annotations

import argparse
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    Command = Callable[[argparse.Namespace], None]


class ToolError(Exception):
    """The tool failed. The message is for stderr, the exit status is 1."""


class Parser(argparse.ArgumentParser):
    """argparse with the exit status of Kafka's tools."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")


def feature_level(text: str) -> tuple[str, int]:
    """(name, level) of NAME=LEVEL. Raises ToolError with Kafka's message."""
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return name.strip(), int(level)
    except ValueError:
        raise ToolError(
            f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short."
        ) from None


def print_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as their widest cell, each with a tab behind it (Kafka: ToolsUtils.prettyPrintTable)."""
    table = [headers, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(headers))]
    for row in table:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)))


def run_command(parser: argparse.ArgumentParser, commands: Mapping[str, Command], words: Sequence[str]) -> int:
    """Run the command that `words` name. Returns the exit status; wrong words raise SystemExit."""
    from kafka_shim.config import ConfigError
    from kafka_shim.tools.errors import message_of
    from kafka_shim.wire_client import WireClientError

    given = parser.parse_args(words)
    try:
        commands[given.command](given)
    except (ToolError, ConfigError, WireClientError) as err:
        print(message_of(err), file=sys.stderr)
        return 1
    return 0
