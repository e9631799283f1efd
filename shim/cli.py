"""The command line. `serve` is parsed here by hand, because importing a command-line library takes a tenth of the
start-up time. Every other command, every usage error and `--help` go to `shim/commands/`, which is imported only
then.
"""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any


# What shells say of a command that SIGINT ended.
INTERRUPTED = 130
# And of one that SIGTERM ended.
TERMINATED = 143
# Between a SIGINT that was dropped and the next.
AGAIN_S = 0.001


def open_standard_streams() -> None:
    """Replace each that who started this process has closed: its number would go to the next file. Names of files are
    printed as the bytes that they are, in every locale."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 until the process ends; pathlib costs a start
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="surrogateescape")


def end_first_process() -> None:
    """Let SIGTERM end a container's first process too, until a command asks for the signal: the kernel keeps from it
    what it has no handler for."""
    if os.getpid() == 1:
        import signal

        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: os._exit(TERMINATED))


def hear_interrupts_again() -> None:
    """Send SIGINT again if it came where Python drops what is raised, as in the callback of a weak reference with which
    each import ends: a command that waits for Ctrl-C would wait for ever."""
    show = sys.unraisablehook

    def on_dropped(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            show(dropped)
            return
        send_in(AGAIN_S)

    def send_in(wait_s: float) -> None:
        import signal

        def send(_: int, frame: FrameType | None) -> None:
            while frame is not None:
                if frame.f_code is on_dropped.__code__:
                    send_in(2 * wait_s)  # what is raised in a hook is dropped, too
                    return
                frame = frame.f_back
            # Whoever takes SIGINT by then gets it: `serve` does not have it raise.
            signal.raise_signal(signal.SIGINT)

        signal.signal(signal.SIGALRM, send)
        signal.setitimer(signal.ITIMER_REAL, wait_s)

    sys.unraisablehook = on_dropped


def let_interrupts_end() -> None:
    """Have SIGINT end the process at once, now that its work is done: it would raise in what Python does at the end,
    which shows a traceback and goes on."""
    import signal
    from contextlib import suppress

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # what runs in the background ignores it
        with suppress(OSError, ValueError):  # Python tries again, and tells what it meets
            sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Python forgets its handlers before it ends: one that was dropped just now would end it by SIGALRM.
    signal.setitimer(signal.ITIMER_REAL, 0)


def ended_by_interrupts(work: Callable[[], int]) -> int:
    """Do the work of this process, which Ctrl-C ends whenever it comes, unless the work has taken SIGINT for good, as
    PySpark does. Returns the exit status."""
    try:
        hear_interrupts_again()
        open_standard_streams()
        try:
            return work()
        finally:  # also where `work` exits itself, as for wrong words
            let_interrupts_end()
    except KeyboardInterrupt:
        return INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kafka-shim ARGUMENTS...` (default: this process's arguments). Returns the exit status."""
    if arguments is not None:
        open_standard_streams()
        return _run_well(list(arguments))
    return ended_by_interrupts(_run_own_words)


def _run_own_words() -> int:
    end_first_process()
    return _run_well(sys.argv[1:])


def _run_well(words: list[str]) -> int:
    try:
        return _run(words)
    except KeyboardInterrupt:  # also before `serve` takes the signal
        return INTERRUPTED
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("kafka_shim.cext."):
            raise
        from kafka_shim.errors import not_compiled

        folder = __file__.rpartition("/")[0]
        sys.stderr.write(f"error: {not_compiled(folder)}\n")
        return 1


def _run(words: list[str]) -> int:
    if words[:1] == ["serve"]:
        options = plain_serve(words[1:])
        if options is not None:
            from kafka_shim.serve import serve

            return serve(**options)
    from kafka_shim.commands.main import run

    return run(words)


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
FORMATS = ("text", "json")
# option -> keyword of `serve`; a flag has no value.
_VALUES = {
    "--listen": "listen",
    "--data-dir": "data_dir",
    "--config": "config_file",
    "-o": "options",
    "--log-level": "log_level",
    "--log-format": "log_format",
}
_FLAGS = {"--memory": "memory", "--strict-security": "strict_security"}


def plain_serve(words: list[str]) -> dict[str, Any] | None:
    """Returns the keyword arguments of `serve`, or None for anything unusual, which the full parser then handles and
    explains."""
    found: dict[str, Any] = {}
    options: list[str] = []
    at = 0
    while at < len(words):
        word, equals, value = words[at].partition("=")
        if word in _FLAGS and not equals:
            found[_FLAGS[word]] = True
            at += 1
            continue
        keyword = _VALUES.get(word if word.startswith("--") else words[at])
        if keyword is None:
            return None
        if not (equals and word.startswith("--")):
            at += 1
            if at == len(words):
                return None
            value = words[at]
        if keyword == "options":
            options.append(value)
        elif keyword in found:
            return None
        else:
            found[keyword] = value
        at += 1
    if "memory" in found and "data_dir" in found:
        return None
    if found.get("log_level", "INFO") not in LEVELS or found.get("log_format", "text") not in FORMATS:
        return None
    found["options"] = options
    return found
