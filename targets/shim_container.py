"""The shim's image: KAFKA_SHIM_IMAGE, else built from this tree."""

from __future__ import annotations

from kafka_shim.targets.container import BROKER_PORT, ContainerTarget
from kafka_shim.targets.images import shim_image


class ShimContainer(ContainerTarget):
    kind = "shim-container"

    def options(self) -> dict[str, str]:
        return {"listeners": f"PLAINTEXT://0.0.0.0:{BROKER_PORT}", **super().options()}

    def image(self) -> str:
        return shim_image()
