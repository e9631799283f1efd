"""An archive of the classes that Apache Kafka and its tools load (the JDK's class data sharing). It saves half of the
CPU of a start.

``python -m kafka_shim.targets.class_archive`` creates it once for each JVM and folder of jars, in ``.cache``. A JVM
that cannot use it starts without it.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import tempfile
from pathlib import Path

from kafka_shim.targets.kafka_jars import LIBS, classpath, kafka_libs

# For a JVM that lives for a minute; the optimising compiler would not pay off.
SHORT_LIVED = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# With logging on, a JVM that rejects the archive would print that on stdout.
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@functools.cache
def archive_path() -> Path:
    """Returns the path of the archive for the JVM on PATH, whether it exists or not. An archive holds the paths of its
    jars, so those of another folder get another one.
    """
    version = subprocess.run(["java", "-version"], capture_output=True, check=False).stderr
    digest = hashlib.sha256(version + str(LIBS).encode()).hexdigest()
    return LIBS.parent / f"tools-and-broker-{digest[:12]}.jsa"


def options() -> tuple[str, ...]:
    """Returns the `java` options that use the archive, or none if there is no archive. The class path must begin with
    Kafka's jars.
    """
    path = archive_path()
    return (f"-XX:SharedArchiveFile={path}", "-Xshare:auto", *QUIET) if path.is_file() else ()


def make_archive() -> Path:
    """Lists the classes of a broker that serves a few requests and of tools and clients that use it, and makes the JVM
    archive them.
    """
    from kafka_shim.targets.kafka_native import KafkaNative

    path = archive_path()
    if path.is_file():
        return path
    kafka_libs()
    with tempfile.TemporaryDirectory(prefix="classes-", dir=path.parent) as folder:
        lists = Path(folder)
        target = KafkaNative()
        target.jvm_options = (*SHORT_LIVED, f"-XX:DumpLoadedClassList={lists / 'broker'}")
        target.stop_timeout_s = 120.0
        with target:
            _use(target.bootstrap, lists)
            target.stop()
        # In the order of loading; a class that several of them load is listed once.
        classes = dict.fromkeys(line for each in sorted(lists.iterdir()) for line in each.read_text().splitlines())
        (lists / "all").write_text("".join(f"{line}\n" for line in classes))
        partial = lists / "archive"
        # Objects of the heap are archived by this collector alone; the others can load them.
        command = ["java", "-Xshare:dump", "-XX:+UseG1GC", f"-XX:SharedClassListFile={lists / 'all'}"]
        command += [f"-XX:SharedArchiveFile={partial}", *QUIET, "-cp", classpath()]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if partial.is_file():
            partial.rename(path)
    return path


def _use(bootstrap: str, lists: Path) -> None:
    """Sends requests to the broker, and runs a producer, a consumer in a group, and tools of the administrator."""
    from kafka_shim.targets import jvm
    from kafka_shim.targets.requests import create_topic, fetch, make, produce
    from kafka_shim.wire_client import Connection

    with Connection(bootstrap, timeout_s=60) as client:
        create_topic(client, "t")
        client.request(produce("t", 0, [(b"k", b"v")]), 11)
        client.request(fetch("t", 0, 0), 12)
        for kind in (0, 1):
            client.request(make("FindCoordinator", key_type=kind, coordinator_keys=["any"]), 4)
        client.request(make("InitProducerId", transaction_timeout_ms=1000), 4)
        client.request(make("Metadata", topics=None), 12)
    server = ("--bootstrap-server", bootstrap)
    uses: tuple[tuple[str, ...], ...] = (
        ("kafka-topics", *server, "--list"),
        ("kafka-console-producer", *server, "--topic", "t", "--compression-codec", "zstd"),
        ("kafka-console-consumer", *server, "--topic", "t", "--from-beginning", "--max-messages", "1"),
        ("kafka-consumer-groups", *server, "--list"),
    )
    for name, *arguments in uses:
        listing = (f"-XX:DumpLoadedClassList={lists / name}",)
        jvm.run(jvm.TOOLS[name], *arguments, stdin=b"value\n", options=listing, timeout_s=120)


if __name__ == "__main__":
    print(make_archive())
