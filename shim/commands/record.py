"""`kafka-shim record`, `replay` and `diff`: the wiretap. `record --twin` compares a second broker while it records."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from pathlib import Path

import click

from kafka_shim.commands.options import config_option, given_security, security_option
from kafka_shim.plurals import counted
from kafka_shim.wire_client import WireClientError, parse_address
from kafka_shim.wiretap.capture import MAGIC, CaptureError, CaptureWriter, Entry, Kind, read_capture
from kafka_shim.wiretap.recorder import Dial, Recorder, dial_plain
from kafka_shim.wiretap.replay import Outcome, Replayer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kafka_shim.client_security import ClientSecurity


class _OutputError(Exception):
    """The output cannot be written. The `error` is none of a socket or of the capture."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def _say(line: str) -> None:
    try:
        click.echo(line)
    except OSError as error:
        raise _OutputError(error) from error


def address(text: str, option: str) -> tuple[str, int]:
    try:
        return parse_address(text)
    except WireClientError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def reason_of(error: OSError) -> str:
    """The one line for a connection or a file that failed: asyncio adds addresses and numbers that say nothing."""
    if isinstance(error, socket.gaierror):
        return "the host name is unknown"
    # asyncio has one text for several addresses of one name, all of which refused.
    if isinstance(error, ConnectionRefusedError) or str(error).startswith("Multiple exceptions"):
        return "the connection was refused: is the broker running, is the port right?"
    if isinstance(error, TimeoutError):
        return "the broker did not answer in time"
    return os.strerror(error.errno) if error.errno else str(error)


def dialler(security: ClientSecurity | None) -> Dial:
    """Returns how to connect to a broker: by the file of properties that was given for it, or to a PLAINTEXT
    listener."""
    if security is None:
        return dial_plain
    from kafka_shim.commands.streams import SecuredDialler

    return SecuredDialler(security)


def telling(dial: Dial) -> Dial:
    """Returns `dial`, which also says that a broker is not reached, once until it is: its clients only see that their
    connections are closed."""
    is_told = False

    async def dial_and_tell(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        nonlocal is_told
        try:
            streams = await dial(host, port)
        except OSError as error:
            if not is_told:
                click.echo(f"warning: cannot connect to {host}:{port}: {reason_of(error)}", err=True)
            is_told = True
            raise
        is_told = False
        return streams

    return dial_and_tell


def tell(outcome: Outcome) -> int:
    """Prints the findings and returns the exit status."""
    for finding in outcome.findings:
        click.echo(str(finding))
    requests, records = counted(outcome.requests, "request"), counted(outcome.records, "record")
    differ = "1 answer that differs" if len(outcome.findings) == 1 else f"{len(outcome.findings)} answers that differ"
    click.echo(f"{requests}, {records} compared, {differ}")
    return 1 if outcome.findings else 0


@click.command(name="record", help="Stand between clients and a broker, and keep every frame in a capture.")
@click.option("--listen", default="127.0.0.1:0", show_default=True, metavar="HOST:PORT", help="where clients connect")
@click.option("--upstream", required=True, metavar="HOST:PORT", help="the broker")
@click.option(
    "--twin", metavar="HOST:PORT", help="a second broker that gets the same requests; its answers are compared"
)
@security_option("--twin-command-config", "as --command-config, for --twin; without it that is a PLAINTEXT listener")
@click.option("--overwrite", is_flag=True, help="the capture may exist, and is lost")
@config_option
@click.argument("capture", type=click.Path(dir_okay=False))
def record(
    listen: str,
    upstream: str,
    twin: str | None,
    twin_command_config: ClientSecurity | None,
    overwrite: bool,
    capture: str,
) -> int:
    if twin_command_config is not None and twin is None:
        raise click.UsageError("--twin-command-config needs --twin")
    if Path(capture).exists() and not overwrite:
        raise click.ClickException(f"{capture} exists: name another file, or give --overwrite")
    where, to = address(listen, "--listen"), address(upstream, "--upstream")
    second = address(twin, "--twin") if twin else None
    dial, dial_twin = dialler(given_security()), dialler(twin_command_config)
    try:
        outcome = asyncio.run(_record(where, to, second, capture, dial, dial_twin))
    except (OSError, _OutputError) as error:
        _remove_empty(capture)
        if isinstance(error, _OutputError):
            raise error.error from None
        raise click.ClickException(f"{error.filename or upstream}: {reason_of(error)}") from None
    return 0 if outcome is None else tell(outcome)


def _remove_empty(capture: str) -> None:
    """Remove a capture in which nothing was recorded."""
    kept = Path(capture)
    if kept.is_file() and kept.stat().st_size == len(MAGIC):
        kept.unlink()


async def _check_login(broker: tuple[str, int], dial: Dial) -> None:
    """Connect once, so that what is wrong with a login is said before a client comes. Raises OSError."""
    if dial is not dial_plain:
        _, writer = await dial(*broker)
        writer.close()


async def _record(
    listen: tuple[str, int],
    upstream: tuple[str, int],
    twin: tuple[str, int] | None,
    path: str,
    dial: Dial,
    dial_twin: Dial,
) -> Outcome | None:
    """Returns how the twin answered, if there is one."""
    await _check_login(upstream, dial)
    if twin is not None:
        try:
            await _check_login(twin, dial_twin)
        except OSError as error:
            error.filename = "--twin"
            raise
    ends = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ends.set)
    entries: asyncio.Queue[Entry | None] = asyncio.Queue()

    async def arriving() -> AsyncIterator[Entry]:
        while (entry := await entries.get()) is not None:
            yield entry

    with CaptureWriter(path) as writer:
        recorder = Recorder(
            upstream, listen=listen, writer=writer, on_entry=entries.put_nowait if twin else None, dial=telling(dial)
        )
        replaying = asyncio.ensure_future(Replayer(twin, dial=dial_twin).run(arriving())) if twin else None
        try:
            await recorder.start()
        except OSError as error:
            error.filename = "{}:{}".format(*listen)
            raise
        _say(f"recording {recorder.bootstrap} to {path}")
        await ends.wait()
        await recorder.stop()
    counts = writer.counts
    _say(
        f"{counted(counts[Kind.OPENED], 'connection')}, {counted(counts[Kind.REQUEST], 'request')}, "
        f"{counted(counts[Kind.RESPONSE], 'answer')}, "
        f"{writer.frame_bytes:,} bytes are in {path}"
    )
    if replaying is None:
        return None
    entries.put_nowait(None)
    return await replaying


@click.command(
    name="replay", help="Send a capture's requests to a broker, and compare its answers with the recorded ones."
)
@click.option("--target", required=True, metavar="HOST:PORT", help="the broker")
@click.option("--keep", type=click.Path(dir_okay=False), metavar="FILE", help="a capture of the replay, for `diff`")
@click.option("--overwrite", is_flag=True, help="the FILE of --keep may exist, and is lost")
@config_option
@click.argument("capture", type=click.Path(exists=True, dir_okay=False))
def replay(target: str, keep: str | None, overwrite: bool, capture: str) -> int:
    to = address(target, "--target")
    if keep is not None and Path(keep).exists() and Path(keep).samefile(capture):
        raise click.ClickException(f"--keep {keep} is the capture that is replayed: name another file")
    if keep is not None and Path(keep).exists() and not overwrite:
        raise click.ClickException(f"{keep} exists: name another file, or give --overwrite")
    try:
        with CaptureWriter(keep) if keep else contextlib.nullcontext() as writer:
            replayer = Replayer(to, writer=writer, dial=dialler(given_security()))
            outcome = asyncio.run(replayer.run(read_capture(capture)))
    except (CaptureError, OSError) as error:
        if keep is not None:
            _remove_empty(keep)
        if isinstance(error, CaptureError):
            raise click.ClickException(str(error)) from None
        where = error.filename if error.filename is not None else target
        raise click.ClickException(f"{where}: {reason_of(error)}") from None
    return tell(outcome)


group = record
