"""A broker inside a Python program: in a thread of its own, or in a child process.

    from kafka_shim import Broker

    with Broker(num_partitions=4) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

Data is kept in memory unless `data_dir` says where. Several may run at once; nothing is left behind.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

from kafka_shim.clock import RealClock, VirtualClock
from kafka_shim.config import BrokerConfig
from kafka_shim.embedded_client import EmbeddedClient, absolute_path, absolute_paths, class_name, option_name, text_of
from kafka_shim.embedded_control import ClockControl, OnLoop, call_on, has_turns, in_turn, require_own, thread_of
from kafka_shim.embedded_ports import HTTP_LISTENER, KeptPorts, addresses_of
from kafka_shim.embedded_records import FirstRecords
from kafka_shim.faults import Faults
from kafka_shim.memory_dir import make, remove, remove_at_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import threading
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.embedded_process import BrokerProcess
    from kafka_shim.embedded_security import EmbeddedSecurity
    from kafka_shim.server import Server

START_SECONDS = STOP_SECONDS = 30.0
# Kafka waits this long for more members. A test that starts its own consumers does not need the delay.
DEFAULTS = {"group.initial.rebalance.delay.ms": "0"}


class Broker(EmbeddedClient):
    """One broker, running from `start` to `stop`; `with` does both. Call its methods on any thread but its own.

    Other keyword arguments are Kafka's options with underscores in place of dots, with values of any plain type:
    `Broker(log_retention_ms=1000, auto_create_topics_enable=False)`.
    """

    def __init__(
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        listen: str | None = None,
        process: bool = False,
        clock: Clock | str | None = None,
        faults: str | None = None,
        authorizer: type | str | None = None,
        acls: Sequence[Mapping[str, object]] = (),
        tls: bool = False,
        sasl: str | None = None,
        users: Mapping[str, str] | None = None,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
        **options: object,
    ) -> None:
        """`data_dir`: a directory that is kept after the stop, as is one that the option `log_dirs` names; without
        either, data is in memory. `listen`: HOST:PORT, or a comma-separated list of NAME://HOST:PORT. `process`: run in
        a child process, for clients that hold the interpreter lock. `clock`: "virtual" stands still until
        `broker.clock.advance`. `faults`: fault points to arm, as "txn.after_prepare=kill@1". `acls`: each as
        {"principal": "User:alice", "operation": "READ", "topic": "orders"} (or `group`, `cluster` ...), stored
        at the start; Kafka's StandardAuthorizer decides by them. `authorizer`: another class than that, or its dotted
        path. `tls`: with a throw-away certificate authority. `sasl`: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, with `users`
        (name -> password), or OAUTHBEARER; `client_config` says how to connect. Raises ConfigError, TypeError."""
        given = {option_name(name): text_of(value) for name, value in options.items()}
        self._options = {**DEFAULTS, **absolute_paths(given)}
        self._security: EmbeddedSecurity | None = None
        if tls or sasl is not None or users:
            from kafka_shim.embedded_security import EmbeddedSecurity

            self._security = EmbeddedSecurity(tls=tls, sasl=sasl, users=users)
            self._options = {**self._security.options(), **self._options}
        if authorizer is not None or acls:
            self._options.setdefault("authorizer.class.name", class_name(authorizer))
        listen = listen or "127.0.0.1:0"
        protocol = "PLAINTEXT" if self._security is None else self._security.protocol
        self._listen = listen if "://" in listen else f"{protocol}://{listen}"
        if (isinstance(clock, str) and clock != "virtual") or (process and clock is not None):
            raise TypeError(f"clock is 'virtual' or a Clock, and with process=True it is left out, not {clock!r}")
        self._clock = VirtualClock() if isinstance(clock, str) else clock or RealClock()
        self._faults = Faults(faults, owns_process=process)
        self._faults_text = self._constructed_faults = faults
        self._loop_factory = loop_factory
        self._is_process = process
        self._kept = KeptPorts()
        has_turns(self)
        config = self._config()
        # None: data is in memory, in a directory that is removed at the stop.
        self._given_dirs: tuple[str, ...] | None = None if data_dir is None else (absolute_path(data_dir),)
        if not self._options.keys().isdisjoint(("log.dirs", "log.dir")):
            if data_dir is not None:
                raise TypeError("data_dir and log_dirs (or log_dir) say the same: give one of them")
            self._given_dirs = config.log_dirs
        self._first = FirstRecords(self._security, acls)
        # Set from start to stop.
        self._data_dir: Path | None = None
        self._ready = ""
        self._server: Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._process: BrokerProcess | None = None

    # --- life

    @in_turn
    def start(self) -> Broker:
        """Start the broker and return once it accepts connections. Raises what the start raises: StorageError, OSError;
        TimeoutError if it takes over 30 s; RuntimeError with the last words of a process, and in a thread where gevent
        or eventlet has replaced threads."""
        if self._ready:
            raise RuntimeError("this broker is running")
        is_new = self._data_dir is None
        try:
            if self._data_dir is None:
                if self._given_dirs is None:
                    remove_at_end()
                self._data_dir = Path(self._given_dirs[0]) if self._given_dirs is not None else make()
            self._first.begin(self._config().metadata_log_dir or self._data_dir)
            (self._start_process if self._is_process else self._start_thread)()
            self._first.end()
        except BaseException:
            self._end()  # also what runs already: its caller may have no name for it
            if is_new:
                self._forget()
            raise
        self._kept.forget()
        return self

    @in_turn
    def stop(self) -> None:
        """Stop the broker cleanly. Does nothing if it is stopped. It may be started again; with data in memory it is
        then empty, and its port is another one. `restart` keeps both. Fault points stay armed, and callers that they
        hold go on. Raises TimeoutError if it takes over 30 s, after which it may be called again; so do `restart` and
        `reset`. A child process is killed then instead."""
        self._end()
        self._forget()

    @in_turn
    def restart(self, *, faults: str | None = None) -> Broker:
        """Stop the broker cleanly, if it still runs, and start it again with its data, also in memory, on the same
        port. No fault point is armed afterwards but those of `faults`."""
        self._end_to_return()
        self._rearm(faults)
        return self.start()

    @in_turn
    def reset(self) -> None:
        """Make the broker as new, on the same port, in milliseconds (a process: in a start): without topics, groups,
        transactions, users that were added, and options that were set; the fault points are those of the constructor,
        a virtual clock is back at its start. Connected clients are disconnected. TypeError: it keeps a directory."""
        if self._given_dirs is not None:
            raise TypeError("reset is for data in memory: this broker was given a directory, which it keeps")
        self._end_to_return()
        self._drop_data()
        self._rearm(self._constructed_faults)
        if isinstance(self._clock, VirtualClock):
            self._clock.rewind()
        self.start()

    def kill(self) -> None:
        """Send SIGKILL to the child process, to simulate a crash. Requires `process=True`. Start the broker again to
        test recovery: it has its port and its data, also in memory. Raises RuntimeError without such a process."""
        process = self._process
        if process is None:
            raise RuntimeError("only a running broker in a process of its own can be killed: Broker(process=True)")
        require_own(self)
        process.popen.kill()  # at once: another thread may stop it, and wait for its end
        with self._life:
            if self._process is process:
                self._note_addresses()
                process.kill()
                self._process, self._ready = None, ""
                self._kept.hold()

    def wait_for_crash(self, timeout_s: float = 30.0) -> int:
        """Wait until the child process has ended by itself, as by the fault action `kill`. Returns its status: -9 after
        SIGKILL. `start` or `restart` then tests recovery. Raises TimeoutError."""
        if self._process is None:
            raise RuntimeError("only a running broker in a process of its own can crash: Broker(process=True)")
        status = self._process.wait(timeout_s)
        self.kill()
        return status

    def _end(self) -> None:
        if self._process is not None:
            self._process.stop()
        elif self._loop is not None and self._asked is not None and self._thread is not None:
            with suppress(RuntimeError):  # its loop is closed: an earlier stop gave up waiting for it
                self._loop.call_soon_threadsafe(self._asked.set)
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive():
                raise TimeoutError(
                    f"the broker still runs {STOP_SECONDS:g} s after it was told to stop, with its data in "
                    f"{self._data_dir}: call stop() again to wait for it"
                )
        self._server = self._loop = self._asked = self._thread = self._process = None
        self._ready = ""

    def _forget(self) -> None:
        self._drop_data()
        self._kept.forget()

    def _drop_data(self) -> None:
        if self._given_dirs is None and self._data_dir is not None:
            remove(self._data_dir)
        self._data_dir = None

    def _rearm(self, specification: str | None) -> None:
        self._faults_text = specification
        if not self._is_process:
            self._faults.disarm()
            self._faults.arm_all(specification)

    def _note_addresses(self) -> None:
        if self._ready:
            self._kept.note(self._options.get("listeners", self._listen), self._word(1))
            self._kept.note_http(self._options.get(HTTP_LISTENER, ""), self.http_address)

    def _end_to_return(self) -> None:
        """End the broker, which keeps its addresses."""
        require_own(self)
        self._note_addresses()
        self._end()
        self._kept.hold()

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- what a test wants to know

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of the first listener, for a client's `bootstrap.servers`."""
        return next(iter(addresses_of(self._word(1)).values()))

    @property
    def bootstrap_controllers(self) -> str:
        """HOST:PORT of the controller's first listener, for `--bootstrap-controller`; empty without one. It is one of
        `listen` that `controller_listener_names` names."""
        names = self._config().controller_listener_names
        return next((address for name, address in addresses_of(self._word(1)).items() if name in names), "")

    def client_config(self, library: str, user: str | None = None) -> dict[str, Any]:
        """Returns the settings of "confluent-kafka", "kafka-python", "aiokafka", "java" or "spark" for the first
        listener that is as `tls` and `sasl` say, as `user` (the first of `users` if it is None). Raises ValueError."""
        from kafka_shim.embedded_security import EmbeddedSecurity

        security = self._security or EmbeddedSecurity()
        address = security.listener_of(self._config(), addresses_of(self._word(1))) or self.bootstrap_servers
        return security.client_config(library, address, user)

    @property
    def http_address(self) -> str:
        """The URL of `kafka_shim_http_listener`, as "http://127.0.0.1:40123"; empty without one."""
        return self._word(4).partition("data=")[0].strip().removeprefix("http=")

    @property
    def cluster_id(self) -> str:
        return self._word(3).removeprefix("cluster=")

    @property
    def node_id(self) -> int:
        return int(self._word(2).removeprefix("node="))

    @property
    def data_dir(self) -> Path:
        """The (first) data directory. With data in memory it is removed at the stop."""
        self._word(4)  # raises unless the broker runs
        return Path(self._data_dir or "")

    def _word(self, at: int) -> str:
        if not self._ready:
            raise RuntimeError("this broker is not running: `with Broker() as broker` or `start()` starts one")
        return self._ready.split(" ", 4)[at]

    # --- what a test wants to do

    @property
    def clock(self) -> ClockControl:
        """The broker's clock. Only a virtual one can be advanced."""
        return ClockControl(self, self._clock)

    @property
    def faults(self) -> Faults:
        """The fault points. Functions that they call may use them too. Raises TypeError with `process=True`."""
        if self._is_process:
            raise TypeError("the faults of a broker in a process of its own are set when it starts: Broker(faults=...)")
        return OnLoop(self, self._faults)  # type: ignore[return-value]

    @property
    def state(self) -> Any:
        """The broker's state objects (`kafka_shim.broker.Broker`). Access them only inside `call`. Raises RuntimeError
        if the broker does not run in this process."""
        if self._server is None:
            raise RuntimeError("only a broker in a thread of this process has its state here: Broker(process=False)")
        return self._server.broker

    def _now_ms(self) -> int | None:
        return self._clock.now_ms()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run `function(*arguments)` on the broker's thread. Returns or raises what it returns or raises. A coroutine
        is awaited there."""
        return function(*arguments) if self._loop is None else call_on(self._loop, function, *arguments)

    # --- in a thread

    def _config(self) -> BrokerConfig:
        config = BrokerConfig.parse({name: text for name, text in self._options.items() if text != DEFAULTS.get(name)})
        if self._options["group.initial.rebalance.delay.ms"] == "0":  # a start without options reads no table of them
            config.group_initial_rebalance_delay_ms = 0
        if "listeners" not in self._options:
            config.listeners = self._listen
        self._kept.apply(config)
        return config

    def _start_thread(self) -> None:
        from kafka_shim.serve import loop_factory

        config = self._config()
        config.log_dirs = self._given_dirs or (str(self._data_dir),)
        config.acl_principals = self._first.principals
        started: Future[None] = Future()
        self._thread = thread_of(self._run, self._loop_factory or loop_factory(), config, started)
        try:
            self._thread.start()
            started.result(START_SECONDS)
        except BaseException as error:
            if started.cancel():  # the thread gives the start up as soon as it can
                if isinstance(error, TimeoutError):
                    raise TimeoutError(f"the broker did not start within {START_SECONDS:g} s") from error
            elif started.exception() is None:
                raise
            with suppress(RuntimeError):  # not even the thread has started
                self._thread.join(STOP_SECONDS)
            raise

    def _run(self, make: Callable[[], asyncio.AbstractEventLoop], config: BrokerConfig, started: Future[None]) -> None:
        try:
            with asyncio.Runner(loop_factory=make) as runner:
                runner.run(self._serve(config, started))
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            elif not started.cancelled():
                raise
        if started.cancelled() and self._given_dirs is None and config.log_dirs[0] != str(self._data_dir):
            rmtree(config.log_dirs[0], ignore_errors=True)  # the caller removed it, and this start made it again

    async def _serve(self, config: BrokerConfig, started: Future[None]) -> None:
        from kafka_shim.embedded_control import started_server
        from kafka_shim.server import Server

        server = await started_server(Server(config, self._clock, self._faults), started)
        try:
            await self._first.store(server)
        except BaseException:
            await server.stop()
            raise
        if not started.set_running_or_notify_cancel():  # the caller has given up
            await server.stop()
            return
        self._server, self._loop = server, asyncio.get_running_loop()
        self._asked = asked = asyncio.Event()
        self._ready = server.ready_line
        started.set_result(None)
        await asked.wait()
        await server.end()

    # --- in a process

    def _start_process(self) -> None:
        from kafka_shim.embedded_process import BrokerProcess

        listen = self._kept.listen or self._options.get("listeners", self._listen)
        arguments = ["--listen", listen, "--log-level", "WARNING"]
        if self._given_dirs is None or len(self._given_dirs) == 1:
            arguments += ["--data-dir", str(self._data_dir)]
        options = {name: text for name, text in self._options.items() if name != "listeners"} | self._kept.http
        records, faults, removes = self._first.line(), self._faults_text, self._given_dirs is None
        self._process = BrokerProcess(arguments, options, records=records, faults=faults, removes_data=removes)
        self._ready = self._process.ready
