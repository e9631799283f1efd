"""Runs tests of Kafka's test jars in a JVM of their own, on the shim or on the Kafka of the same JVM."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from kafka_shim.targets import jvm
from kafka_shim.targets.kafka_jars import ROOT, streams_test_libs, test_libs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

SOURCES = Path(__file__).resolve().parent / "java"
SHIM, KAFKA, LIST = "shim", "kafka", "list"
PASSED, FAILED, NOT_APPLICABLE, SKIPPED, ABORTED = "passed", "failed", "not applicable", "skipped", "aborted"
# Kafka's own brokers live in the JVM. It lives for minutes.
OPTIONS = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xlog:cds=off")
# Kafka's MiniKdc makes the JVM read its configuration again.
OPENED = ("--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",)
# The tests that need more jars: those of the tools too start a cluster of Kafka Streams' tests.
OF_STREAMS = (
    "org.apache.kafka.streams.",
    "org.apache.kafka.tools.ResetIntegration",
    "org.apache.kafka.tools.streams.",
)
# The runner's status when a test did not react to its time limit and took the JVM with it.
GIVEN_UP = 3


@dataclass(frozen=True)
class Outcome:
    """Of one test. `calls` names what it asked of a broker's JVM; `message` is the failure with its stack."""

    status: str
    seconds: float = 0.0
    message: str = ""
    calls: tuple[str, ...] = field(default=())


def classes() -> Path:
    """Compile our Java sources once for each content. Returns the folder of the classes. Raises ToolError."""
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = jvm.CLASSES / f"apache_kafka-{digest}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".compile-", dir=folder.parent) as partial:
            line = ["javac", "-Xlint:all,-processing,-classfile,-path", "-cp", f"{test_libs()}/*", "-d", partial]
            done = subprocess.run([*line, *map(str, sources)], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise jvm.ToolError(f"the harness does not compile:\n{done.stderr}")
            made = Path(partial).with_name(f"{folder.name}.made")
            Path(partial).rename(made)
            Path(partial).mkdir()  # for its own end
            try:
                made.rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was first
                    raise
                shutil.rmtree(made)
    return folder


def methods(names: Sequence[str], scratch: Path) -> list[str]:
    """Return the test methods of the classes `names`, without running any. Raises ToolError."""
    scratch.mkdir(parents=True, exist_ok=True)
    found = scratch / "methods.txt"
    found.unlink(missing_ok=True)
    status = _end_of(LIST, names, found, scratch, 0)
    if status != 0:
        raise jvm.ToolError(f"the JVM of the tests ended with status {status}; see {scratch / 'runner.log'}")
    return found.read_text().split()


def run(
    target: str, tests: Sequence[str], results: Path, scratch: Path, limit_s: int = 60, leave_out: Collection[str] = ()
) -> dict[str, Outcome]:
    """Run `tests` (classes, methods, or invocations `Class.method[2]`) but the methods `leave_out`, and return the
    outcome of each test in them.

    Lines are appended to `results` as tests end; a method that has a line there is not run again. A test that does not
    react to its time limit ends the JVM, and the rest runs in another one.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    results.parent.mkdir(parents=True, exist_ok=True)
    while True:
        before = results.stat().st_size if results.exists() else 0
        status = _end_of(target, [*tests, *(f"-{method}" for method in leave_out)], results, scratch, limit_s)
        is_further = results.exists() and results.stat().st_size > before
        if status != GIVEN_UP or not is_further:
            break
    if status not in (0, GIVEN_UP):
        raise jvm.ToolError(f"the JVM of the tests ended with status {status}; see {scratch / 'runner.log'}")
    return read(results)


def _end_of(target: str, lines: Sequence[str], results: Path, scratch: Path, limit_s: int) -> int:
    """Run one JVM. Returns its status."""
    selected = scratch / f"tests-{os.getpid()}.txt"
    selected.write_text("".join(f"{line}\n" for line in lines))
    shim = "\t".join([sys.executable, "-m", "kafka_shim", "serve"])
    line = ["java", *OPTIONS, *OPENED, f"-Djava.io.tmpdir={scratch}", f"-Dkafkashim.logs={scratch}"]
    folders, level = [classes(), test_libs() / "*"], "error"
    if any(test.startswith(OF_STREAMS) for test in lines):
        folders.append(streams_test_libs() / "*")
        level = "info"  # They assert on what Kafka Streams and the clients log.
    line += [f"-Dkafkashim.command={shim}", f"-Dlog4j2.configurationFile={jvm.log4j_configuration(level)}"]
    line += ["-cp", os.pathsep.join(map(str, folders)), "kafkashim.Runner"]
    line += [target, str(selected), str(results), str(limit_s)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    with (scratch / "runner.log").open("ab") as log:
        return subprocess.run(line, stdout=log, stderr=log, check=False, cwd=scratch, env=environment).returncode


def read(results: Path) -> dict[str, Outcome]:
    """Return the outcomes in a file of results; of a test with several lines, the first that is not a pass."""
    found: dict[str, Outcome] = {}
    if not results.exists():
        return found
    for text in results.read_text().splitlines():
        row = json.loads(text)
        outcome = Outcome(row["outcome"], row["seconds"], row.get("message", ""), tuple(row.get("calls", ())))
        if row["test"] not in found or found[row["test"]].status == PASSED:
            found[row["test"]] = outcome
    return found
