"""The shim in this process: ``shim.Broker`` in a thread."""

from __future__ import annotations

from kafka_shim.targets.base import Power, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from kafka_shim import Broker


class ShimEmbedded(Target):
    kind = "shim-embedded"
    powers = Power.WIRE | Power.PROXY | Power.SETTINGS | Power.SEEDED | Power.INSIDE

    broker: Broker | None = None

    def start(self) -> Self:
        from kafka_shim import Broker

        options: dict[str, Any] = {name.replace(".", "_"): value for name, value in self.settings.items()}
        if self.bootstrap:
            options["listen"] = self.bootstrap
        self.broker = Broker(data_dir=self.data_dir, **options)
        self.broker.__enter__()
        self.bootstrap = self.broker.bootstrap_servers
        return self

    def stop(self) -> None:
        if self.broker is not None:
            self.broker.__exit__(None, None, None)
            self.broker = None
