"""Parsing for those of Kafka's tools that have subcommands (there: argparse4j): wrong words end with status 1."""

from __future__ import annotations

import argparse
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


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
