"""The shim in its own process: ``python -m kafka_shim serve``."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from kafka_shim.targets.base import Power, ProcessTarget, TargetError, free_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

ROOT = Path(__file__).resolve().parent.parent
READY = re.compile(r"ready (?P<listeners>\S+) node=\d+ cluster=\S+(?: http=(?P<http>\S+))? data=(?P<data>.*)\n")


class ShimProcess(ProcessTarget):
    """`environment` adds variables to the child process, for example fault points of kafka_shim.faults."""

    kind = "shim"
    powers = Power.WIRE | Power.PROXY | Power.SETTINGS | Power.KILL | Power.SEEDED | Power.INSIDE | Power.CONTROLLER

    def __init__(self, settings: Mapping[str, str] | None = None, data_dir: Path | None = None) -> None:
        super().__init__(settings, data_dir)
        self.environment: dict[str, str] = {}
        self.python = sys.executable
        self._controller = ""
        # Where metrics are, if `kafka.shim.http.listener` is set.
        self.http_address = ""

    @property
    def controller(self) -> str:
        """The address of the last listener, which is the controller's if there is one."""
        return self._controller

    def command(self) -> list[str]:
        """Returns the command line. A restart uses the same addresses again."""
        listen = self.bootstrap or f"127.0.0.1:{free_ports(1)[0]}"
        if "controller.listener.names" in self.settings and "://" not in listen:
            controller = self._controller or f"127.0.0.1:{free_ports(1)[0]}"
            listen = f"PLAINTEXT://{listen},CONTROLLER://{controller}"
        command = [self.python, "-m", "kafka_shim", "serve", "--listen", listen]
        if "log.dirs" not in self.settings:
            command += ["--data-dir", str(self.data_dir)]
        for name, value in self.settings.items():
            command += ["-o", f"{name}={value}"]
        return command

    def start(self) -> Self:
        self._spawn(self.command(), stdout_pipe=True, environment={**os.environ, **self.environment})
        assert self.process is not None
        assert self.process.stdout is not None
        # The ready line is the only line on stdout. End of file means that the process has ended.
        line = self.process.stdout.readline().decode()
        found = READY.fullmatch(line)
        if found is None:
            self.process.kill()
            self.process.wait()
            tail = self.tail()
            self._reap()
            raise TargetError(f"the shim did not get ready; it printed {line!r}:\n{tail}")
        addresses = [entry.partition("://")[2] for entry in found["listeners"].split(",")]
        self.bootstrap, self._controller = addresses[0], addresses[-1]
        self.http_address = found["http"] or ""
        return self
