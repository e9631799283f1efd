"""The shim's own image. ``KAFKA_SHIM_IMAGE`` names one, else it is built from this tree."""

from __future__ import annotations

from kafka_shim.compat.images import shim_image
from kafka_shim.compat.targets.container import ContainerTarget


class ShimContainer(ContainerTarget):
    kind = "shim-container"

    def image(self) -> str:
        return shim_image()
