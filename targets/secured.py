"""An Apache Kafka and a shim with listeners beside the unauthenticated one, for tests and benches that compare them."""

from __future__ import annotations

from kafka_shim.targets.base import free_ports
from kafka_shim.targets.kafka_native import KafkaNative
from kafka_shim.targets.shim_process import ShimProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from kafka_shim.targets.base import ProcessTarget

SASL_PLAINTEXT = "SASL_PLAINTEXT"


class SecuredTarget:
    """A broker and the addresses of its listeners, which are named by their security protocols. A context manager."""

    def __init__(self, target: ProcessTarget, addresses: Mapping[str, str]) -> None:
        self.target = target
        self.addresses = addresses

    @property
    def bootstrap(self) -> str:
        """The address of the PLAINTEXT listener."""
        return self.addresses["PLAINTEXT"]

    def __enter__(self) -> Self:
        self.target.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.target.close()


def _addresses(protocols: Sequence[str]) -> dict[str, str]:
    names = ("PLAINTEXT", *protocols)
    return {name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}


def _listeners(addresses: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in addresses.items())


class SecuredKafka(SecuredTarget):
    """Apache Kafka."""

    def __init__(
        self, settings: Mapping[str, str], data_dir: Path | None = None, protocols: Sequence[str] = (SASL_PLAINTEXT,)
    ) -> None:
        addresses = _addresses(protocols)
        (controller_port,) = free_ports(1)
        kafka = KafkaNative(settings=settings, data_dir=data_dir)
        kafka.bootstrap, kafka.controller_port = addresses["PLAINTEXT"], controller_port
        kafka.settings.update(
            {
                "listeners": f"{_listeners(addresses)},CONTROLLER://127.0.0.1:{controller_port}",
                "advertised.listeners": _listeners(addresses),
                "listener.security.protocol.map": ",".join(
                    [*(f"{name}:{name}" for name in addresses), "CONTROLLER:PLAINTEXT"]
                ),
            }
        )
        super().__init__(kafka, addresses)


class SecuredShim(SecuredTarget):
    """The shim."""

    def __init__(
        self, settings: Mapping[str, str], data_dir: Path | None = None, protocols: Sequence[str] = (SASL_PLAINTEXT,)
    ) -> None:
        addresses = _addresses(protocols)
        shim = _Shim(settings=settings, data_dir=data_dir)
        shim.listen = _listeners(addresses)
        super().__init__(shim, addresses)


class _Shim(ShimProcess):
    listen = ""

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--listen") + 1] = self.listen
        return command
