"""A broker that is managed elsewhere: ``external=HOST:PORT``. It only accepts requests, also through a proxy."""

from __future__ import annotations

from kafka_shim.targets.base import Power, Target, TargetError, answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class External(Target):
    kind = "external"
    powers = Power.WIRE | Power.PROXY

    def start(self) -> Self:
        if not self.bootstrap:
            raise TargetError("an external target needs its address: external=HOST:PORT")
        if not answers(self.host, self.port):
            raise TargetError(f"nothing answers at {self.bootstrap}")
        return self

    def stop(self) -> None:
        """It is not ours to stop."""
