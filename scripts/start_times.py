"""Measures how long a start takes that a person waits for: of the image beside Apache Kafka's, and of the single file.

From the command's start to the first answer to ApiVersions at the published port; `docker run` of a container that does
nothing is measured beside it, because the engine's share is nobody's to mend. Starts are taken in turn.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import click

from kafka_shim.targets import engine
from kafka_shim.targets.base import answers, free_ports
from kafka_shim.targets.container import BROKER_PORT
from kafka_shim.targets.kafka_container import KafkaContainer
from kafka_shim.targets.shim_container import ShimContainer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.targets.container import ContainerTarget

PATIENCE_S = 60.0


def until_it_answers_s(began_s: float, port: int) -> float:
    while not answers("127.0.0.1", port, 0.5):
        if time.perf_counter() - began_s > PATIENCE_S:
            raise click.ClickException(f"nothing answers at port {port} after {PATIENCE_S:.0f} s")
        time.sleep(0.005)
    return time.perf_counter() - began_s


def container_s(target: ContainerTarget) -> float:
    """The time of one new container."""
    (port,) = free_ports(1)
    target.bootstrap = f"127.0.0.1:{port}"
    line = ["docker", "run", "--detach", "--publish", f"127.0.0.1:{port}:{BROKER_PORT}"]
    for name, value in target.environment().items():
        line += ["--env", f"{name}={value}"]
    began_s = time.perf_counter()
    name = subprocess.run([*line, target.image()], check=True, capture_output=True, text=True).stdout.strip()
    try:
        return until_it_answers_s(began_s, port)
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", name], check=True, capture_output=True)


def engine_s(image: str) -> float:
    """The time of a container that ends at once."""
    began_s = time.perf_counter()
    line = ["docker", "run", "--rm", "--publish", f"127.0.0.1::{BROKER_PORT}", "--entrypoint", "/bin/true", image]
    subprocess.run(line, check=True, capture_output=True)
    return time.perf_counter() - began_s


def file_s(executable: Path) -> float:
    """The time of one start of the single file, in an empty directory."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        line = [str(executable), "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", folder]
        began_s = time.perf_counter()
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            took_s = until_it_answers_s(began_s, port)
            child.terminate()
    return took_s


@click.command(help=__doc__.split("\n\n")[0] if __doc__ else "")
@click.option("--starts", default=7, show_default=True, help="Of each.")
@click.option("--file", "executable", type=click.Path(path_type=Path, exists=True), help="dist/kafka-shim")
@click.option("--containers/--no-containers", default=True, help="Measure the images.")
def main(starts: int, executable: Path | None, containers: bool) -> None:
    found: dict[str, list[float]] = {}
    if containers:
        engine.ensure()
        shim, kafka = ShimContainer(), KafkaContainer()
        print(f"images: {shim.image()}, {kafka.image()}")
    for _ in range(starts):
        if containers:
            found.setdefault("docker run of nothing", []).append(engine_s(shim.image()))
            found.setdefault("docker run kafka-shim", []).append(container_s(shim))
            found.setdefault("docker run Apache Kafka", []).append(container_s(kafka))
        if executable is not None:
            found.setdefault("the single file", []).append(file_s(executable))
    for name, times_s in found.items():
        print(
            f"{name:26} {statistics.median(times_s) * 1000:6.0f} ms "
            f"({min(times_s) * 1000:.0f} to {max(times_s) * 1000:.0f})"
        )


if __name__ == "__main__":
    main()
