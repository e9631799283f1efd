"""Apache Kafka 4.3.1's released jars, fetched once into ``.cache/kafka-4.3.1/libs`` of the project.

``python -m kafka_shim.targets.kafka_jars`` prints the folder, with the word ``tests`` that of Kafka's test jars. Maven
fetches where ``mvn`` is installed, else the Ivy jar inside the installed ``pyspark`` does; both take artifacts by
coordinates from their configured repositories.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

KAFKA_VERSION = "4.3.1"
CLIENTS_JAR = f"kafka-clients-{KAFKA_VERSION}.jar"
# kafka_2.13 is the broker, kafka-tools the command-line tools, log4j-slf4j-impl makes both of them log.
ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)
# Kafka's own integration tests: the jars that hold them or what they inherit from, and what these need to run.
TEST_CLASSIFIER = "test"
TEST_ARTIFACTS = tuple(
    ("org.apache.kafka", name, KAFKA_VERSION, TEST_CLASSIFIER)
    for name in (
        "kafka-clients",
        "kafka-clients-integration-tests",
        "kafka-coordinator-common",
        "kafka-group-coordinator",
        "kafka-metadata",
        "kafka-raft",
        "kafka-server",
        "kafka-server-common",
        "kafka-share-coordinator",
        "kafka-storage",
        "kafka-storage-api",
        "kafka-test-common-internal-api",
        "kafka-test-common-runtime",
        "kafka-tools",
        "kafka-transaction-coordinator",
        "kafka_2.13",
    )
)
# The KDC that Kafka's tests start.
_DIRECTORY_SERVER = (
    "core-api",
    "interceptor-kerberos",
    "protocol-shared",
    "protocol-kerberos",
    "protocol-ldap",
    "ldif-partition",
    "mavibot-partition",
    "jdbm-partition",
)
# Kafka Streams, with the store that it keeps state in.
STREAMS_ARTIFACTS = (("org.apache.kafka", "kafka-streams", KAFKA_VERSION),)
# The agent that shows a JVM's metrics to Prometheus.
JMX_VERSION = "1.0.1"
JMX_ARTIFACTS = (("io.prometheus.jmx", "jmx_prometheus_javaagent", JMX_VERSION),)
TEST_NEEDS = (
    *ARTIFACTS,
    ("org.apache.kafka", "kafka-test-common-runtime", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-test-common-internal-api", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-test-common-util", KAFKA_VERSION),
    ("org.junit.jupiter", "junit-jupiter", "5.13.1"),
    ("org.junit.platform", "junit-platform-launcher", "1.13.1"),
    ("org.mockito", "mockito-junit-jupiter", "5.20.0"),
    ("org.hamcrest", "hamcrest", "3.0"),
    ("org.bouncycastle", "bcpkix-jdk18on", "1.80"),
    ("org.apache.kafka", "kafka-streams", KAFKA_VERSION),
    ("no.nav.security", "mock-oauth2-server", "2.2.1"),
    *(("org.apache.directory.server", f"apacheds-{name}", "2.0.0-M24") for name in _DIRECTORY_SERVER),
    # The KDC names a class of it, and depends on it nowhere.
    ("org.apache.directory.api", "api-ldap-codec-standalone", "1.0.0"),
)
# The integration tests of Kafka Streams, which need the jars of the two tables above, too.
STREAMS_TEST_ARTIFACTS = tuple(
    ("org.apache.kafka", name, KAFKA_VERSION, TEST_CLASSIFIER)
    for name in ("kafka-streams", "kafka-streams-integration-tests")
)
STREAMS_TEST_NEEDS = tuple(
    ("org.apache.kafka", name, KAFKA_VERSION) for name in ("kafka-streams-test-utils", "kafka-streams-scala_2.13")
)
# What these bring along and what is older than, or in the way of, the jars above.
UNWANTED = ("bcprov-jdk15on-", "logback-classic-", "logback-core-")
ROOT = Path(__file__).resolve().parent.parent
LIBS = ROOT / ".cache" / f"kafka-{KAFKA_VERSION}" / "libs"
# A folder for each content of the two tables: one more dependency is fetched where an older folder stands.
_TESTS_KEY = hashlib.sha256(repr((TEST_ARTIFACTS, TEST_NEEDS)).encode()).hexdigest()[:8]
_STREAMS_KEY = hashlib.sha256(repr((STREAMS_TEST_ARTIFACTS, STREAMS_TEST_NEEDS)).encode()).hexdigest()[:8]
STREAMS_TEST_LIBS = ROOT / ".cache" / f"kafka-{KAFKA_VERSION}-streams-tests-{_STREAMS_KEY}" / "libs"
STREAMS_LIBS = ROOT / ".cache" / f"kafka-{KAFKA_VERSION}-streams" / "libs"
TEST_LIBS = ROOT / ".cache" / f"kafka-{KAFKA_VERSION}-tests-{_TESTS_KEY}" / "libs"


def kafka_libs() -> Path:
    """The folder of jars; fetches them on the first call. Raises RuntimeError when neither Maven nor Ivy can run."""
    return fetched(LIBS, ARTIFACTS)


def test_libs() -> Path:
    """The folder of Kafka's test jars and of all that they need, Kafka included. Fetches and raises like
    `kafka_libs`."""
    return fetched(TEST_LIBS, (*TEST_ARTIFACTS, *TEST_NEEDS))


def streams_test_libs() -> Path:
    """The folder of the test jars of Kafka Streams, and of what they need beside `test_libs`. Fetches and raises like
    `kafka_libs`."""
    return fetched(STREAMS_TEST_LIBS, (*STREAMS_TEST_ARTIFACTS, *STREAMS_TEST_NEEDS))


def streams_libs() -> Path:
    """The folder of the jars of Kafka Streams. Fetches and raises like `kafka_libs`."""
    return fetched(STREAMS_LIBS, STREAMS_ARTIFACTS)


def jmx_agent() -> Path:
    """The jar of the agent that shows a JVM's metrics to Prometheus. Fetches and raises like `kafka_libs`."""
    jar = f"jmx_prometheus_javaagent-{JMX_VERSION}.jar"
    return fetched(ROOT / ".cache" / f"jmx-{JMX_VERSION}" / "libs", JMX_ARTIFACTS, jar) / jar


def classpath(*extra: Path) -> str:
    """A ``java -cp`` value with every jar, and behind them ``extra`` folders or jars: an archive of classes is valid
    for a class path that begins with the archive's.
    """
    return os.pathsep.join([f"{kafka_libs()}/*", *(str(path) for path in extra)])


def fetched(libs: Path, artifacts: Sequence[tuple[str, ...]], wanted: str = CLIENTS_JAR) -> Path:
    """Makes `libs` the folder of the jars of `artifacts` (group, name, version, perhaps a classifier) and of all that
    they need, and returns it. Raises RuntimeError when neither Maven nor Ivy can run, or no jar has the name
    `wanted` (a pattern)."""
    if libs.is_dir():
        return libs
    libs.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=libs.parent) as scratch:
        partial = Path(scratch) / "libs"
        partial.mkdir()
        if shutil.which("mvn"):
            _with_maven(Path(scratch), partial, artifacts)
        else:
            _with_ivy(Path(scratch), partial, artifacts)
        for jar in list(partial.iterdir()):
            if jar.name.startswith(UNWANTED):
                jar.unlink()
        if not any(partial.glob(wanted)):
            raise RuntimeError(f"the fetch ended without {wanted}")
        try:
            partial.rename(libs)
        except OSError:
            # Another process was first. Its folder is complete, because it was also renamed into place.
            if not libs.is_dir():
                raise
    return libs


def _with_maven(scratch: Path, target: Path, artifacts: Sequence[tuple[str, ...]]) -> None:
    rows = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        + "".join(f"<classifier>{each}</classifier>" for each in classifier)
        + "</dependency>"
        for group, name, version, *classifier in artifacts
    )
    pom = scratch / "pom.xml"
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kafka-shim</groupId><artifactId>reference-kafka</artifactId><version>1</version>"
        f"<dependencies>{rows}</dependencies></project>"
    )
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *goal], check=True, stdout=sys.stderr)


IVY_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="kafka-shim" module="reference-kafka"/>
<dependencies>
{rows}
</dependencies>
</ivy-module>
"""


def _with_ivy(scratch: Path, target: Path, artifacts: Sequence[tuple[str, ...]]) -> None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("fetching Apache Kafka's jars needs Maven, or a Java runtime and the package pyspark")
    ivy = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))[-1]
    retrieved = scratch / "retrieved"
    pattern = f"{retrieved}/[artifact](-[classifier])/[artifact]-[revision](-[classifier]).[ext]"
    found: set[str] = set()
    for group, name, version, *classifier in artifacts:
        command = ["java", f"-Divy.cache.dir={scratch}/ivy", "-jar", str(ivy)]
        if classifier:
            # The command line knows no classifiers, and a test jar's own dependencies are those of its module.
            module = scratch / f"{name}-{classifier[0]}.xml"
            row = (
                f'<dependency org="{group}" name="{name}" rev="{version}" conf="*->default" transitive="false">'
                f'<artifact name="{name}" type="jar" ext="jar" m:classifier="{classifier[0]}"/></dependency>'
            )
            module.write_text(IVY_MODULE.format(rows=row))
            command += ["-ivy", str(module)]
        else:
            command += ["-dependency", group, name, version]
        # Some jars (snappy-java, jackson) are published as OSGi bundles.
        command += ["-retrieve", pattern, "-types", "jar", "bundle"]
        if not classifier:
            command += ["-confs", "default"]
        subprocess.run(command, check=True, stdout=sys.stderr, cwd=scratch)
        # Each is resolved by itself. Of two versions of one jar the first stays, as with Maven.
        for folder in sorted(retrieved.iterdir()):
            if folder.name not in found:
                found.add(folder.name)
                for jar in folder.iterdir():
                    jar.rename(target / jar.name)
        shutil.rmtree(retrieved)


if __name__ == "__main__":
    print(test_libs() if sys.argv[1:] == ["tests"] else kafka_libs())
