"""The common part of the container targets: one container of an image, through testcontainers, with its port on
127.0.0.1.

The data are in a volume, which `close` removes together with the container. A killed or stopped container restarts with
both. The data directory is inside the container: such a target has no `data_dir`, so tests cannot seed it.
"""

from __future__ import annotations

import os
import time
from types import MappingProxyType

from kafka_shim.targets import engine
from kafka_shim.targets.base import Power, Target, TargetError, answers, free_ports
from kafka_shim.targets.images import ImageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

BROKER_PORT = 9092


class ContainerTarget(Target):
    powers = Power.WIRE | Power.PROXY | Power.SETTINGS | Power.KILL

    start_timeout_s = 120.0
    stop_timeout_s = 120.0
    container: Any = None
    # More variables of the container than `options` makes.
    variables: Mapping[str, str] = MappingProxyType({})

    def image(self) -> str:
        """Returns the image name; may build the image. Raises ImageError."""
        raise NotImplementedError

    def options(self) -> dict[str, str]:
        """Broker options; `bootstrap` is known."""
        return {"advertised.listeners": f"PLAINTEXT://{self.bootstrap}", **self.settings}

    def environment(self) -> dict[str, str]:
        """The container's variables: an underscore is two, a hyphen three, a dot one."""
        spelled = {"_": "__", "-": "___", ".": "_"}
        return {
            "KAFKA_" + "".join(spelled.get(letter, letter) for letter in name).upper(): value
            for name, value in self.options().items()
        }

    @property
    def wrapped(self) -> Any:
        """The container as docker-py has it, its state as of now."""
        if self.container is None:
            raise TargetError(f"{self.kind} was not started")
        wrapped = self.container.get_wrapped_container()
        wrapped.reload()
        return wrapped

    def start(self) -> Self:
        if self.container is None:
            self._create()
        else:
            self.wrapped.start()
        self._wait_until_it_answers()
        self.pid = self.wrapped.attrs["State"]["Pid"]
        return self

    def _create(self) -> None:
        try:
            engine.ensure()
            image = self.image()
        except (engine.EngineError, ImageError) as error:
            raise TargetError(str(error)) from None
        # Disable the reaper: it needs a separate image from a registry, and `close` removes the container anyway.
        os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
        from testcontainers.core.container import DockerContainer

        self.bootstrap = self.bootstrap or f"127.0.0.1:{free_ports(1)[0]}"
        self.container = DockerContainer(image).with_envs(**{**self.environment(), **self.variables})
        # testcontainers' own way publishes the port on every address of the machine.
        self.container.ports[BROKER_PORT] = (self.host, self.port)
        self.container.start()

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + self.start_timeout_s
        while not answers(self.host, self.port):
            if self.wrapped.status in {"exited", "dead"}:
                raise TargetError(f"{self.kind} ended before it answered:\n{self.log()[-3000:]}")
            if time.monotonic() > deadline:
                raise TargetError(
                    f"{self.kind} did not answer within {self.start_timeout_s:.0f} s:\n{self.log()[-3000:]}"
                )
            time.sleep(0.1)

    def log(self) -> str:
        if self.container is None:
            return ""
        return b"".join(self.container.get_logs()).decode(errors="replace")

    def stop(self) -> None:
        if self.container is not None and self.wrapped.status == "running":
            self.wrapped.stop(timeout=int(self.stop_timeout_s))
        self.pid = None

    def kill(self) -> None:
        if self.wrapped.status == "running":
            self.wrapped.kill()
            self.wrapped.wait()
        self.pid = None

    def close(self) -> None:
        if self.container is not None:
            self.container.stop(force=True, delete_volume=True)
        self.container = self.pid = None
