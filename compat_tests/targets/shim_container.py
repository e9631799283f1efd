"""The shim's own image. ``KAFKA_SHIM_IMAGE`` names one, else it is built from this tree."""

from __future__ import annotations

from compat_tests.images import shim_image
from compat_tests.targets.container import ContainerTarget


class ShimContainer(ContainerTarget):
    kind = "shim-container"

    def image(self) -> str:
        return shim_image()
