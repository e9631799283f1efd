"""`kafka-shim serve`: reads the configuration, runs a server on an event loop, prints one ready line, and stops cleanly
on a signal.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import sys

from kafka_shim.cext.allocator import keep as keep_memory
from kafka_shim.config import BrokerConfig, ConfigError
from kafka_shim.errors import KafkaError, not_in_encoding
from kafka_shim.faults import Faults
from kafka_shim.garbage import Collector
from kafka_shim.log_format import set_up_logging
from kafka_shim.server import Server
from kafka_shim.storage.results import StorageError, what_to_do

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from kafka_shim.broker import Broker

logger = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_USAGE = 2  # as of click, which all other commands use
DESCRIPTORS = "/dev/fd/"
# Set in the environment of a child process: it stops when its standard input closes, so that it never outlives its
# parent.
STOP_WITH_STDIN = "KAFKA_SHIM_STOP_WITH_STDIN"
# Its value if the child also removes its data directory then. A parent that lives removes it by itself.
REMOVE = "remove"
# Set in the environment of a child process: the first line of its standard input is JSON, the users of SCRAM with their
# passwords, which no process list and no file shows, and ACLs.
RECORDS_ON_STDIN = "KAFKA_SHIM_RECORDS_ON_STDIN"


# Enough for a few 1 MB responses for each of several partitions. Memory beyond it is returned to the system as usual.
KEPT_MEMORY_BYTES = 16 << 20


class _UsageError(ConfigError):
    """A word of the command line that has not its form."""


def serve(
    *,
    listen: str | None = None,
    data_dir: str | None = None,
    memory: bool = False,
    config_file: str | None = None,
    options: Sequence[str] = (),
    log_level: str = "INFO",
    log_format: str = "text",
    strict_security: bool = False,
    cluster_id: str | None = None,
    on_started: Callable[[Server], None] | None = None,
) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP. Returns the exit status. A failed start prints one line to stderr.

    `cluster_id` is for new data directories; `on_started` is called once the listeners accept connections.
    """
    temporary: Path | None = None
    config: BrokerConfig | None = None
    try:
        set_up_logging(log_level, log_format)
        if memory:
            from kafka_shim.memory_dir import make

            temporary = make()
        config = configure(listen, str(temporary) if temporary else data_dir, config_file, options, memory)
        if STOP_WITH_STDIN in os.environ and config_file is not None and config_file.startswith(DESCRIPTORS):
            os.close(int(config_file.removeprefix(DESCRIPTORS)))  # its passwords would be on the disk until the end
        config.strict_security = strict_security
        faults = Faults.from_environment()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_serve(config, faults, cluster_id=cluster_id, on_started=on_started))
    except (ConfigError, KafkaError, StorageError, OSError, ValueError) as err:
        # A record of the start that a disk refuses is a KafkaError.
        error = err.__cause__ if isinstance(err, KafkaError) and isinstance(err.__cause__, OSError) else err
        said = str(error)
        if isinstance(error, OSError) and error.strerror:  # without the number of the error
            said = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
            if error.errno in (errno.ENOSPC, errno.EDQUOT) and config is not None:
                said = f"the data directory {', '.join(config.log_dirs)} cannot be used: {said}{what_to_do(error)}"
        sys.stderr.write(f"error: {said}\n")
        return EXIT_USAGE if isinstance(err, _UsageError) else EXIT_FAILED
    finally:
        if temporary is not None:
            from kafka_shim.memory_dir import remove

            remove(temporary)


def configure(
    listen: str | None, data_dir: str | None, config_file: str | None, options: Sequence[str], memory: bool = False
) -> BrokerConfig:
    """Returns the configuration from a server.properties file, `-o` options and the two short options; a later source
    wins. `memory`: it was `--memory` that gave `data_dir`.

    Raises ConfigError, OSError.
    """
    given: dict[str, str] = {}
    if config_file is not None:
        from kafka_shim.config import read_properties

        given.update(read_properties(config_file))
    on_command_line = dict(map(_pair, options))
    from_file = given.keys() - on_command_line.keys()
    given.update(on_command_line)
    if data_dir is not None:
        if not data_dir:  # as of a variable that is not set: it would be the working directory
            raise _UsageError("--data-dir takes a directory, not ''")
        replaced = {name: given.pop(name) for name in ("log.dir", "log.dirs") if name in given}
    try:
        config = BrokerConfig.parse(given, from_file)
    except ConfigError as err:
        if config_file is None or (on_command_line and _is_right(config_file)):
            raise _UsageError(str(err)) from err
        raise ConfigError(str(err) if on_command_line else f"{config_file}: {err}") from err
    if on_command_line:
        config.shown_secrets = _shown_secrets(config, on_command_line)
    if listen is not None:
        listen = _checked_listen(listen)
        if given.get("listeners", listen) != listen:
            config.warnings.append(f"--listen takes the place of listeners={given['listeners']}")
        config.listeners = listen
        config.advertised_listeners = given.get("advertised.listeners")
    if data_dir is not None:
        config.log_dirs = (data_dir,)
        for name, value in replaced.items():
            if value != data_dir:
                word = "--memory" if memory else "--data-dir"
                config.warnings.append(f"{word} takes the place of {name}={value}")
    return config


def _pair(option: str) -> tuple[str, str]:
    """Returns name and value of `-o name=value`. Raises _UsageError."""
    name, equals, value = option.partition("=")
    if not equals or not name.strip():
        raise _UsageError(f"-o takes key=value, not {option!r}")
    return name.strip(), value.strip()


def _shown_secrets(config: BrokerConfig, on_command_line: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the options whose secrets the list of processes shows. A login module without options says nothing that
    is secret, nor does a reference to where a secret is."""
    from kafka_shim.config import is_password

    return tuple(
        name
        for name, text in on_command_line.items()
        if is_password(name)
        and (not name.endswith("sasl.jaas.config") or "=" in text)
        and config.given.get(name) == text
    )


def _checked_listen(listen: str) -> str:
    """Returns the value of `listeners` that `--listen` means. Raises _UsageError."""
    from kafka_shim.listeners import parse_address, parse_endpoints

    try:
        if "://" in listen:
            parse_endpoints(listen, "--listen")
            return listen
        parse_address(listen, "--listen", listen, "HOST:PORT")
    except ConfigError as err:
        raise _UsageError(str(err)) from None
    return f"PLAINTEXT://{listen}"


def _is_right(config_file: str) -> bool:
    """Whether what is wrong of a file's options and those of the command line is of the latter."""
    from kafka_shim.config import read_properties

    given = read_properties(config_file)
    try:
        BrokerConfig.parse(given, set(given))
    except ConfigError:
        return False
    return True


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Returns uvloop's loop factory if uvloop is installed, else asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def store_acls(server: Server, acls: Sequence[Mapping[str, object]]) -> None:
    """Store ACLs in the words of `security.acl_spec`. Raises ConfigError for a bad one, and if the authorizer does
    not decide by them."""
    if not acls:
        return
    from kafka_shim.security.acl_spec import parse_acl

    stored = server.broker.acls
    if stored is None:
        raise ConfigError("acls need an authorizer that decides by them (change_acls)")
    for error in await stored.create([parse_acl(one) for one in acls]):
        if error is not None:
            raise ConfigError(str(error))


async def _store_first_records(server: Server, first: dict[str, Any]) -> None:
    """What an embedded broker's child stores before it serves."""
    if first["users"]:
        from kafka_shim.security.scram_credentials import records_of_users

        broker = server.broker
        broker.metadata.commit(records_of_users(first["mechanism"], first["users"], broker.clock.random))
    await store_acls(server, first["acls"])


def collect_in_parts(broker: Broker) -> Collector:
    """Have the garbage collector look at each object once while it is young. What is read later on, and the logs
    that are used, stay: they are frozen as soon as they are there. With a million offsets, or 60,000 used partitions,
    one look takes a fifth of a second. For a process that does nothing else. Returns the collector, started."""
    collector = Collector(broker.clock)
    collector.start()
    broker.groups.call_after_steps(gc.freeze)
    broker.logs.partitions.after_many = gc.freeze
    if broker.acls is not None:
        broker.acls.call_after_many(gc.freeze)
    return collector


class _End:
    """What ends this process: SIGTERM, SIGINT and SIGHUP, and the end of the standard input where a parent wants that.

    During a start Python calls the handlers at once: the loop would not until a partition is recovered."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.is_asked = asyncio.Event()
        # Those that came, in order.
        self.signals: list[int] = []
        self._server: Server | None = None
        self._starting: asyncio.Task[None] | None = None
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        # nohup has SIGHUP ignored
        self._taken = [one for one in numbers if one != signal.SIGHUP or signal.getsignal(one) is not signal.SIG_IGN]
        for number in self._taken:
            signal.signal(number, self._on_signal_at_start)
        # As Java does: who started this process may have blocked them.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)

    def ask(self) -> None:
        self.is_asked.set()
        if self._starting is not None:
            self._starting.cancel()  # nothing once it is done

    def begin_start(self, server: Server, cluster_id: str | None) -> asyncio.Task[None]:
        """Returns the task of the server's start, which ends with CancelledError once the end is asked for."""
        self._server = server
        self._starting = asyncio.ensure_future(server.start(cluster_id))
        if self.signals:
            server.give_up()
        return self._starting

    def start_is_over(self) -> None:
        for number in self._taken:
            self._loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal_at_start(self, number: int, _: object) -> None:
        self.signals.append(number)
        if self._server is not None:
            self._server.give_up()
        self._loop.call_soon_threadsafe(self.ask)

    def _on_signal(self, number: int) -> None:
        self.signals.append(number)
        self.ask()


async def _serve(
    config: BrokerConfig,
    faults: Faults,
    cluster_id: str | None = None,
    on_started: Callable[[Server], None] | None = None,
) -> int:
    keep_memory(KEPT_MEMORY_BYTES)
    loop = asyncio.get_running_loop()
    end = _End(loop)
    first: dict[str, Any] = {}
    if RECORDS_ON_STDIN in os.environ:
        import json

        first = json.loads(sys.stdin.readline())
        config.acl_principals = tuple(one["principal"] for one in first["acls"])
    if STOP_WITH_STDIN in os.environ:
        loop.add_reader(sys.stdin.fileno(), end.ask)
    server = Server(config, faults=faults)
    try:
        try:
            await end.begin_start(server, cluster_id)
        finally:
            end.start_is_over()
    except asyncio.CancelledError:
        if not (end.signals or end.is_asked.is_set()):
            raise
        logger.info("told to stop during the start")
    else:
        await _run(server, first, end.is_asked, on_started)
    if os.environ.get(STOP_WITH_STDIN) == REMOVE and not end.signals:
        import shutil

        for directory in config.log_dirs:  # the owner of which was the process that is gone
            shutil.rmtree(directory, ignore_errors=True)
    return 0


async def _run(
    server: Server, first: dict[str, Any], asked: asyncio.Event, on_started: Callable[[Server], None] | None
) -> None:
    """Serve until the end is asked for, and stop; also where nobody can be told that the broker serves."""
    try:
        if first:
            await _store_first_records(server, first)
        collector = collect_in_parts(server.broker)
        _write_ready_line(server)
        if on_started is not None:
            on_started(server)
        from kafka_shim.first_uses import import_in_slices

        imports = import_in_slices(server.broker)
    except BaseException:
        await server.end()
        raise
    await asked.wait()
    collector.stop()
    imports.stop()
    await server.end()


def _write_ready_line(server: Server) -> None:
    """Raises ConfigError."""
    try:
        sys.stdout.write(server.ready_line + "\n")
        sys.stdout.flush()
    except (OSError, UnicodeError) as error:
        reason = not_in_encoding(error) if isinstance(error, UnicodeError) else error.strerror
        raise ConfigError(f"cannot write the ready line to the standard output: {reason}") from error
