"""A server of Spark Connect, which has of this project what is shipped to clusters, and jobs that are its clients."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from kafka_shim.spark import session, shipping
from kafka_shim.spark.tests import submitting
from kafka_shim.targets.base import free_ports

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
# What spark-submit takes for a program whose class Spark itself has.
NO_PROGRAM = "spark-internal"


class ConnectServer:
    """A server on a port of its own. It runs two tasks at a time and each up to four times."""

    def __init__(self, scratch: Path) -> None:
        python, site = submitting.python_without_project(scratch)
        archive, _ = shipping.write(scratch / "shipped")
        (self.port,) = free_ports(1)
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        }
        submit = str(submitting.INSTALLED / "bin" / "spark-submit")
        command = [submit, "--master", session.MASTER, "--packages", ",".join(session.PACKAGES), "--class", CLASS]
        command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        environment = {
            **submitting.bare_environment(scratch),
            "PYTHONPATH": f"{archive}{os.pathsep}{site}",
            "PYSPARK_PYTHON": str(python),
        }
        self.log = scratch / "connect-server.log"
        self._file = self.log.open("wb")
        self._process = subprocess.Popen(
            [*command, NO_PROGRAM], env=environment, cwd=scratch, stdout=self._file, stderr=subprocess.STDOUT
        )
        self._scratch = scratch

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def wait_until_ready(self, timeout_s: float = 300) -> None:
        give_up = time.monotonic() + timeout_s
        while not self._is_listening():
            assert self._process.poll() is None, self.text()
            assert time.monotonic() < give_up, self.text()
            time.sleep(0.2)

    def _is_listening(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
            return True
        return False

    def text(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def run(self, *words: object, status: int = 0, program: str | None = None) -> str:
        """What a job (or a program's text) prints as this server's client, stderr included."""
        start = ["-m", "kafka_shim.spark"] if program is None else ["-c", program]
        done = subprocess.run(
            [sys.executable, *start, *(str(word) for word in words)],
            env={**os.environ, session.REMOTE: self.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == status, f"{done.stdout[-4000:]}\nthe server:\n{self.text()}"
        return done.stdout

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._file.close()
