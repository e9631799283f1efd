"""``kafka-shim-spark``: every job by its name, and what spark-submit ships."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_shim import Broker
from kafka_shim.spark import command_line, generator, options, plain_clients, session, shipping
from kafka_shim.targets.waiting import PATIENCE_S
from kafka_shim.tests.dropped_interrupts import DROPPED


@pytest.mark.parametrize("name", command_line.JOBS)
def test_each_job_has_help(name: str) -> None:
    done = CliRunner().invoke(command_line.main, [name, "--help"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"Usage: main {name} ")


def test_jobs_run_in_a_python_without_docstrings_and_asserts() -> None:
    """Six of them ended with an AttributeError, and records of `fill` were lost."""
    code = (
        "import sys\nfrom kafka_shim.spark import command_line, plain_clients\n"
        "for name in command_line.JOBS:\n    command_line.main.get_command(None, name)\n"
        "plain_clients.fill(sys.argv[1], 'orders', [{'value': b'a'}])"
    )
    with Broker() as broker:
        command = [sys.executable, "-OO", "-c", code, broker.bootstrap_servers]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert [record.text for record in broker.consume("orders")] == ["a"]


def test_rows_that_a_broker_refuses_are_told() -> None:
    with Broker(message_max_bytes=1000) as broker, pytest.raises(RuntimeError, match=r"orders: .* refused: 1 "):
        plain_clients.fill(broker.bootstrap_servers, "orders", [{"value": b"a" * 2000}])


def test_an_unknown_job_is_told() -> None:
    done = CliRunner().invoke(command_line.main, ["nothing"])
    assert done.exit_code == 2
    assert "No such command 'nothing'" in done.output


@pytest.mark.parametrize(("typed", "meant"), [("strem", "stream"), ("topic_to_table", "topic-to-table")])
def test_a_mistyped_job_is_told_with_the_nearest(typed: str, meant: str) -> None:
    done = CliRunner().invoke(command_line.main, [typed, "--bootstrap-servers", "127.0.0.1:9092"])
    assert done.exit_code == 2
    assert f"No such command '{typed}'. Did you mean '{meant}'?" in done.output


@pytest.mark.parametrize("words", [[], ["generator"]])
def test_help_has_its_short_option_too(words: list[str]) -> None:
    short, long = (CliRunner().invoke(command_line.main, [*words, option]) for option in ("-h", "--help"))
    assert (short.exit_code, short.output) == (0, long.output)
    assert "-h, --help" in long.output


def test_a_location_keeps_its_slashes_and_a_missing_path_is_told(tmp_path: Path) -> None:
    @click.command()
    @click.option("--in", "path", callback=options.existing)
    def job(path: str) -> None:
        click.echo(path)

    for location in ("hdfs://name:8020/table", "s3a://bucket/table", str(tmp_path)):
        assert CliRunner().invoke(job, ["--in", location]).output == f"{location}\n"
    done = CliRunner().invoke(job, ["--in", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert f"{tmp_path / 'none'} does not exist" in done.output


def test_a_file_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(command_line.main, ["ship", str(tmp_path / "file" / "shipped")])
    assert done.exit_code == 1
    assert done.output == f"Error: {tmp_path}/file/shipped: Not a directory\n"


def test_no_broker_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a traceback, at the end of which librdkafka asked to call again."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(generator, "PATIENCE_S", 1)
        done = CliRunner().invoke(command_line.main, ["generator", "--bootstrap-servers", address])
    assert done.exit_code == 1
    (line,) = [line for line in done.output.splitlines() if line.startswith("Error: ")]
    assert line.startswith("Error: Kafka's client: Timed out")
    assert line.endswith(command_line.ADVICE)


def test_a_package_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError("No module named 'pyspark.sql'", name="pyspark.sql")

    monkeypatch.setattr(command_line, "import_module", absent)
    done = CliRunner().invoke(command_line.main, ["stream", "--help"])
    assert (done.exit_code, done.output.splitlines()) == (
        1,
        [
            "Error: No module named 'pyspark.sql': pip install 'pyspark[connect]==4.0.0' "
            "(docs/spark.md lists what the jobs need)"
        ],
    )


INTERRUPTED_RUN = (
    DROPPED
    + """
import sys

def interrupt():
    signal.raise_signal(signal.SIGINT)

class Finder:
    def find_spec(self, name, *_):
        if name == "{module}":
            print("importing", flush=True)
            {what}()

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
from kafka_shim.spark.__main__ import start
sys.argv[1:] = ["generator", "--help"]
sys.exit(start())
"""
)


@pytest.mark.parametrize("module", ["click", "kafka_shim.spark.generator"])
@pytest.mark.parametrize("what", ["interrupt", "interrupt_where_it_is_dropped"])
def test_ctrl_c_ends_a_job_also_while_it_is_imported_and_where_python_drops_it(module: str, what: str) -> None:
    """It had the status of an error, or the job went on."""
    command = [sys.executable, "-c", INTERRUPTED_RUN.format(what=what, module=module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "importing\n", "")


def test_a_closed_stdout_leaves_the_status_of_the_job() -> None:
    command = ["sh", "-c", 'exec "$0" -m kafka_shim.spark nothing >&-', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_without_java_spark_does_not_start_and_the_need_is_told(tmp_path: Path) -> None:
    python = Path(sys.executable)
    command = "from kafka_shim.spark.command_line import main; main()"
    words = ["topic-to-table", "--bootstrap-servers", "127.0.0.1:1", "--topics", "t", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [python, "-c", command, *words],
        env={"PATH": str(python.parent), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Error: Spark did not start; it needs a JDK 17, there is no java on the PATH" in done.stderr


class SparkError(Exception):
    """As py4j raises it: the traces of Java, one in the other, are its text."""

    __module__ = "py4j.protocol"


def test_of_the_traces_of_spark_kafkas_own_reason_is_told() -> None:
    trace = (
        "An error occurred while calling o40.save.\n: org.apache.spark.SparkException: Job aborted\n\tat org.apache.X\n"
    )
    unknown = (
        "Caused by: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host it\n"
    )
    assert command_line.refusal(SparkError(trace + unknown)) == (
        "Kafka's client: UnknownTopicOrPartitionException: This server does not host it"
    )
    late = "Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node\n"
    told = command_line.refusal(SparkError(trace + late))
    assert told == f"Kafka's client: TimeoutException: Timed out waiting for a node{command_line.ADVICE}"
    # What failed in a task, in Python or elsewhere, is nothing that one line tells.
    assert command_line.refusal(SparkError(trace + "Traceback (most recent call last):\n" + late)) is None
    assert command_line.refusal(SparkError(trace)) is None
    assert command_line.refusal(ValueError(trace + late)) is None


IMPORTS = """\
import kafka_shim, sys
from kafka_shim.spark import stream, topic_to_table, table_to_topic, generator
from kafka_shim.spark.audit import __main__
from kafka_shim.spark.sink import foreach_batch, data_source, faults
assert all(".zip" in module.__file__ for name, module in sys.modules.items() if name.startswith("kafka_shim"))
"""


def test_the_shipped_archive_is_all_that_jobs_and_tasks_import_of_the_project(tmp_path: Path) -> None:
    archive, job = shipping.write(tmp_path / "shipped")
    assert job.read_text().startswith("from kafka_shim.spark.command_line import main")
    # Folders of PYTHONPATH are no site folders: an editable install of the project there is not found.
    sites = [path for path in sys.path if path.endswith("site-packages")]
    python = Path(os.path.realpath(sys.executable))
    for command in ([python, "-c", IMPORTS], [python, job, "--help"]):
        tried = subprocess.run(
            command,
            env={"PYTHONPATH": os.pathsep.join([str(archive), *sites]), "PATH": os.environ["PATH"]},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert tried.returncode == 0, tried.stderr


def test_the_same_sources_give_the_same_archive(tmp_path: Path) -> None:
    first, _ = shipping.write(tmp_path / "a")
    second, _ = shipping.write(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()


class _Started(Exception):
    """Spark would start now."""


def test_a_session_leaves_the_modules_that_its_workers_find_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of this package came first: where it is installed, its `http` stood in the way of Python's own."""

    def start(_builder: SparkSession.Builder) -> SparkSession:
        raise _Started

    for name in (session.IS_SUBMITTED, session.REMOTE):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"PYTHONPATH": "/mine", "PYSPARK_PYTHON": sys.executable}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)
    with pytest.raises(session.SparkStartError):
        session.build_session("modules")
    assert os.environ["PYTHONPATH"] == "/mine"
