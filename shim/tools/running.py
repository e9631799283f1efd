"""How a tool runs: wrong words, errors of the broker and interrupts as exit statuses."""

from __future__ import annotations

import errno
import os
import sys
from functools import partial

from kafka_shim.errors import not_in_encoding
from kafka_shim.tools.options import Options, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_shim.tools.options import Given


def flat_main(options: Options, run: Callable[[Given], int | None]) -> Callable[[Sequence[str]], int]:
    """`main(words) -> status` of a tool with flat options. `run` raises UsageError for options that do not fit."""

    def main(words: Sequence[str]) -> int:
        try:
            return run(options.parse(words)) or 0
        except UsageError as err:
            options.fail(err)

    return main


def leave(main: Callable[[Sequence[str]], int]) -> None:
    """Run `main` with this process's words, and exit with its status. A reader of stdout that left is no error."""
    from kafka_shim.cli import ended_by_interrupts

    sys.exit(ended_by_interrupts(partial(_status_of, main)))


def _status_of(main: Callable[[Sequence[str]], int]) -> int:
    from kafka_shim.cli import INTERRUPTED
    from kafka_shim.config import ConfigError
    from kafka_shim.wire_client import WireClientError

    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except KeyboardInterrupt:
        status = INTERRUPTED
    except (ConfigError, WireClientError, OSError, UnicodeError) as err:
        sys.stderr.write(f"{said(err)}\n")
        status = 1
    return status


def said(error: Exception) -> str:
    """The text of an error, without the number of one of the system."""
    if isinstance(error, UnicodeError):
        return not_in_encoding(error)
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"cannot write the output: {error.strerror}" if error.errno == errno.ENOSPC else error.strerror
