"""The shim's image: KAFKA_SHIM_IMAGE, else built from this tree."""

from __future__ import annotations

from kafka_shim.targets.container import ContainerTarget
from kafka_shim.targets.images import shim_image


class ShimContainer(ContainerTarget):
    kind = "shim-container"

    def image(self) -> str:
        return shim_image()
