"""An archive of the classes that Apache Kafka loads at start (the JDK's class data sharing). It saves half of the CPU
of a start.

``python -m kafka_shim.targets.class_archive`` creates it once for each JVM, in ``.cache``. A JVM that cannot use it
starts without it.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess

from kafka_shim.targets.kafka_jars import LIBS, kafka_libs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

# For a JVM that lives for a minute; the optimising compiler would not pay off.
SHORT_LIVED = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@functools.cache
def archive_path() -> Path:
    """Returns the path of the archive for the JVM on PATH, whether it exists or not."""
    version = subprocess.run(["java", "-version"], capture_output=True, check=False).stderr
    return LIBS.parent / f"classes-{hashlib.sha256(version).hexdigest()[:12]}.jsa"


def options() -> tuple[str, ...]:
    """Returns the `java` options that use the archive, or none if there is no archive."""
    path = archive_path()
    if not path.is_file():
        return ()
    # With logging on, a JVM that rejects the archive would print that on stdout.
    return (f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def make_archive() -> Path:
    """Starts Kafka once, sends it a few requests, and makes the JVM dump the loaded classes."""
    from kafka_shim.targets.kafka_native import KafkaNative
    from kafka_shim.targets.requests import create_topic, fetch, make, produce
    from kafka_shim.wire_client import Connection

    path = archive_path()
    if path.is_file():
        return path
    kafka_libs()
    partial = path.with_name(f".{path.name}")
    partial.unlink(missing_ok=True)
    target = KafkaNative()
    target.jvm_options = (*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={partial}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
    target.stop_timeout_s = 120.0
    with target, Connection(target.bootstrap, timeout_s=60) as client:
        create_topic(client, "t")
        client.request(produce("t", 0, [(b"k", b"v")]), 11)
        client.request(fetch("t", 0, 0), 12)
        for kind in (0, 1):
            client.request(make("FindCoordinator", key_type=kind, coordinator_keys=["any"]), 4)
        client.request(make("InitProducerId", transaction_timeout_ms=1000), 4)
        client.request(make("Metadata", topics=None), 12)
        target.stop()
    if partial.is_file():
        partial.rename(path)
    return path


if __name__ == "__main__":
    print(make_archive())
