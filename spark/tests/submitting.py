"""Runs the streaming job by spark-submit on executors that have nothing of this project, and takes executors away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pyspark
import pytest

from kafka_shim.spark import chaos, generator, session, shipping
from kafka_shim.spark import plain_clients as kafka
from kafka_shim.targets import spark_jvm
from kafka_shim.targets.base import free_ports
from kafka_shim.targets.shim_process import ROOT

INSTALLED = Path(pyspark.__file__).parent
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
PREFIX = "cluster-"
OF_THE_TASKS = ("confluent-kafka", "pyarrow", "pandas")


def spark_home(scratch: Path) -> Path:
    """The installed Spark under another path: the executors of a local-cluster work in a folder of SPARK_HOME."""
    home = scratch / "spark-home"
    if not home.exists():
        home.mkdir()
        for path in INSTALLED.iterdir():
            (home / path.name).symlink_to(path)
    return home


def bare_environment(scratch: Path) -> dict[str, str]:
    """Variables of a machine of the cluster: none of this process but what a JVM needs to be found."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "LANG") if name in os.environ}
    return {
        **kept,
        **spark_jvm.environment(),
        "SPARK_HOME": str(spark_home(scratch)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_NO_DAEMONIZE": "1",
        "PYTHONNOUSERSITE": "1",
    }


def python_without_project(scratch: Path) -> tuple[Path, Path]:
    """An interpreter and a folder for its PYTHONPATH: what this one has installed, without this project.

    Folders of PYTHONPATH are no site folders: the file that makes an editable install importable is not read there.
    """
    python = Path(os.path.realpath(sys.executable))
    folder = scratch / "site"
    folder.mkdir()
    for path in Path(pytest.__file__).parent.parent.resolve().iterdir():
        if "kafka_shim" not in path.name and path.suffix != ".pth" and path.name != "pyspark":
            (folder / path.name).symlink_to(path.resolve())
    for path in Path(sys.prefix, "lib").glob("python*/site-packages/*"):
        if "kafka_shim" not in path.name and path.suffix != ".pth" and path.name != "pyspark":
            link = folder / path.name
            if not link.is_symlink():
                link.symlink_to(path.resolve())
    tried = subprocess.run(
        [python, "-c", "import confluent_kafka, pyarrow; import kafka_shim"],
        env={"PYTHONPATH": str(folder)},
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.stderr.strip().endswith("No module named 'kafka_shim'"), tried.stderr
    return python, folder


def packed_environment(scratch: Path) -> Path:
    """``environment.tar.gz``, a packed environment of this Python with the wheel of this project and what the sink's
    tasks import, and beside it the same as a folder. Not with pyspark: that is the cluster's.
    """
    dist, folder = scratch / "dist", scratch / "environment"
    pip = (sys.executable, "-m", "pip")
    run(sys.executable, str(ROOT / "scripts" / "wheels.py"), "--python", sys.executable, "--out", str(dist))
    run(os.path.realpath(sys.executable), "-m", "venv", "--without-pip", str(folder))
    wheel = str(next(dist.glob("*.whl")))
    run(*pip, "--python", str(folder / "bin" / "python"), "install", "-q", wheel, *OF_THE_TASKS)
    packed = scratch / "environment.tar.gz"
    # Level 1: it is unpacked by each executor.
    run(sys.executable, "-m", "venv_pack", "-p", str(folder), "-o", str(packed), "--compress-level", "1")
    return packed


def run(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


class Submitted(chaos.Driver):
    """spark-submit of a job. It dies with its JVM and, in a local-cluster, with its executors."""

    KEPT_LINES = 2000

    def __init__(
        self,
        master: str,
        job: Sequence[str],
        scratch: Path,
        environment: Mapping[str, str],
        options: Mapping[str, str],
        archives: Sequence[Path] = (),
    ) -> None:
        """`archives` are shipped in place of this package, each to a folder of its name."""
        archive, program = shipping.write(scratch / "shipped")
        shipped = ["--py-files", str(archive)]
        if archives:
            shipped = ["--archives", ",".join(f"{path}#{path.name.split('.')[0]}" for path in archives)]
        settings = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "700m",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            **options,
        }
        submit = str(INSTALLED / "bin" / "spark-submit")
        command = [submit, "--master", master, "--packages", ",".join(session.PACKAGES), *shipped]
        command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        # spark-submit prints what the program prints to stderr on its stdout.
        merged = ("sh", "-c", 'exec "$@" >&2', "sh")
        super().__init__([*merged, *command, str(program), *job], dict(environment), scratch)


def stream_job(bootstrap: str, checkpoint: Path, per_batch: int, sink: str, prefix: str = PREFIX) -> list[str]:
    words = ["stream", "--pipeline", "map", "--bootstrap-servers", bootstrap, "--prefix", prefix, "--sink", sink]
    words += ["--out", f"{prefix}out", "--checkpoint", f"file://{checkpoint}"]
    return [*words, "--max-offsets-per-trigger", str(per_batch)]


def write_orders(bootstrap: str, orders: int, prefix: str = PREFIX) -> None:
    for topic in (generator.ORDERS, "out"):
        kafka.create(bootstrap, prefix + topic)
    generator.write(bootstrap, orders, prefix=prefix, repeats=False)


def audit(bootstrap: str, orders: int, prefix: str = PREFIX) -> chaos.Outcome:
    """What read_committed readers find, beside what the job had to write."""
    outcome = chaos.Outcome()
    chaos.count(bootstrap, f"{prefix}out", orders, outcome)
    return outcome


def executors(below: int) -> Iterator[psutil.Process]:
    """The executors that a process has started, of its grandchildren as well."""
    for process in psutil.Process(below).children(recursive=True):
        try:
            if EXECUTOR in process.cmdline():
                yield process
        except psutil.Error:
            continue


def kill_executor(below: int) -> int:
    """SIGKILL of one executor, JVM alone: its Python workers notice. Returns its process id."""
    process = next(executors(below))
    process.send_signal(signal.SIGKILL)
    return int(process.pid)


class Standalone:
    """A standalone cluster of this machine: a master and workers of one core, by Spark's own classes."""

    def __init__(self, scratch: Path, workers: int = 2) -> None:
        self._scratch = scratch
        self._environment = bare_environment(scratch)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.log = (scratch / "cluster.log").open("wb")
        port, ui = free_ports(2)
        self.master = f"spark://127.0.0.1:{port}"
        name = "org.apache.spark.deploy.master.Master"
        self._start(name, "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui))
        self.wait_for("I have been elected leader", 1)
        self.workers = [self._worker(number) for number in range(workers)]
        self.wait_for("Successfully registered with master", workers)

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        name = "org.apache.spark.deploy.worker.Worker"
        folder = self._scratch / f"worker-{number}"
        folder.mkdir()
        size = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder))
        return self._start(name, "--host", "127.0.0.1", *size, self.master)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [str(INSTALLED / "bin" / "spark-class"), *words],
            env=self._environment,
            cwd=self._scratch,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def wait_for(self, line: str, times: int, timeout_s: float = 120) -> None:
        give_up = time.monotonic() + timeout_s
        while self.text().count(line) < times:
            assert time.monotonic() < give_up, f"no {line!r} in the cluster's log:\n{self.text()[-3000:]}"
            time.sleep(0.1)

    def text(self) -> str:
        return Path(self.log.name).read_text(errors="replace")

    def lose_worker(self, number: int) -> None:
        """SIGKILL of a worker with all that it runs: the machine is gone and does not come back."""
        worker = self.workers[number]
        gone = [*psutil.Process(worker.pid).children(recursive=True), psutil.Process(worker.pid)]
        for process in gone:
            process.send_signal(signal.SIGKILL)
        worker.wait()

    def close(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
                process.kill()
            process.wait()
        self.log.close()
