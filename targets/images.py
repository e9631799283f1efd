"""The images of container targets: named by a setting, or the official one, or built by ``docker/build.sh``."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from pathlib import Path

from kafka_shim.targets.kafka_jars import KAFKA_VERSION

OFFICIAL = f"apache/kafka:{KAFKA_VERSION}"
SCRIPT = Path(__file__).resolve().parent.parent / "docker" / "build.sh"
_one_at_a_time = threading.Lock()


class ImageError(Exception):
    """An image does not exist and cannot be built."""


def shim_image() -> str:
    """Returns the shim's image: KAFKA_SHIM_IMAGE, else built from this tree."""
    return os.environ.get("KAFKA_SHIM_IMAGE") or built("shim")


def kafka_image() -> str:
    """Returns Apache Kafka's image: KAFKA_SHIM_KAFKA_IMAGE, else the official one, else one built from
    the same jars.
    """
    return os.environ.get("KAFKA_SHIM_KAFKA_IMAGE") or _official_or_built()


def built(part: str) -> str:
    """The image of one part of ``docker/build.sh``, which builds what its sources have not given yet."""
    with _one_at_a_time:
        return _built(part)


@functools.cache
def _built(part: str) -> str:
    if not SCRIPT.is_file():
        raise ImageError(
            "images are built in a source tree; elsewhere KAFKA_SHIM_IMAGE and KAFKA_SHIM_KAFKA_IMAGE name them"
        )
    done = subprocess.run([str(SCRIPT), part], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise ImageError(f"docker/build.sh {part} ended with status {done.returncode}")
    return done.stdout.decode().split()[1]


def _official_or_built() -> str:
    with _one_at_a_time:
        can_pull = _can_pull(OFFICIAL)
    return OFFICIAL if can_pull else built("kafka")


@functools.cache
def _can_pull(image: str) -> bool:
    if subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False).returncode == 0:
        return True
    try:
        done = subprocess.run(["docker", "pull", "--quiet", image], capture_output=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode:
        print(
            f"{image} cannot be pulled: taking the image that docker/build.sh makes of the same jars", file=sys.stderr
        )
    return done.returncode == 0
