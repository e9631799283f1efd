"""Runs Java programs with Apache Kafka's jars: Kafka's command-line tools by class name, and our drivers
from source.
"""

from __future__ import annotations

import hashlib
import subprocess

from kafka_shim.targets import class_archive
from kafka_shim.targets.kafka_jars import ROOT, classpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

# Small and quick to start, because a tool runs for a second or two beside the broker.
JVM_OPTIONS = ("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
CLASSES = ROOT / ".cache" / "java-classes"

LOG4J = """\
status = error
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = {level}
rootLogger.appenderRef.err.ref = err
"""


class ToolError(Exception):
    """A tool ended with a non-zero status or exceeded its time limit."""


def log4j_configuration(level: str = "info") -> Path:
    """Returns a log4j2 file that logs to stderr at `level`."""
    path = ROOT / ".cache" / f"log4j2-{level}.properties"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LOG4J.format(level=level))
    return path


def command(
    main_class: str,
    *arguments: str,
    level: str = "warn",
    extra: tuple[Path, ...] = (),
    options: tuple[str, ...] | None = None,
) -> list[str]:
    """Returns the command line of a Java main class with Kafka's jars (and `extra` folders behind them). `options`
    replace those of the archive of classes.
    """
    log4j = f"-Dlog4j2.configurationFile={log4j_configuration(level)}"
    archive = class_archive.options() if options is None else options
    return ["java", *JVM_OPTIONS, *archive, log4j, "-cp", classpath(*extra), main_class, *arguments]


def run(
    main_class: str,
    *arguments: str,
    stdin: bytes = b"",
    timeout_s: float = 60,
    check: bool = True,
    extra: tuple[Path, ...] = (),
    options: tuple[str, ...] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Runs a main class until it ends. Raises ToolError with its output if `check` and the status is not 0."""
    line = command(main_class, *arguments, extra=extra, options=options)
    try:
        done = subprocess.run(line, input=stdin, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as slow:
        raise ToolError(f"{main_class} ran over {timeout_s:.0f} s:\n{_end_of(slow.stdout, slow.stderr)}") from None
    if check and done.returncode != 0:
        output = _end_of(done.stdout, done.stderr)
        raise ToolError(f"{main_class} {' '.join(arguments)} ended with status {done.returncode}:\n{output}")
    return done


def _end_of(*outputs: bytes | None) -> str:
    return b"".join(output or b"" for output in outputs).decode(errors="replace")[-3000:]


# The names of the scripts in Kafka's bin folder.
TOOLS = {
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
}


def tool(name: str, *arguments: str, stdin: bytes = b"", timeout_s: float = 60, check: bool = True) -> str:
    """Runs one of TOOLS and returns its stdout."""
    return run(TOOLS[name], *arguments, stdin=stdin, timeout_s=timeout_s, check=check).stdout.decode()


def compiled(source: Path, *libs: Path) -> Path:
    """Compiles one .java file of ours once for each content, and returns the folder of its classes. `libs` are jars
    besides Kafka's."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    folder = CLASSES / f"{source.stem}-{digest}"
    if not folder.is_dir():
        partial = folder.with_name(f".{folder.name}")
        partial.mkdir(parents=True, exist_ok=True)
        line = ["javac", "-Xlint:all,-processing", "-cp", classpath(*libs), "-d", str(partial), str(source)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"{source.name} does not compile:\n{done.stderr}")
        partial.rename(folder)
    return folder
