"""Apache Kafka 4.3.1's released jars, fetched once into ``.cache/kafka-4.3.1/libs`` of the project.

``python -m kafka_shim.targets.kafka_jars`` prints the folder. Maven fetches where ``mvn`` is installed, else the Ivy
jar inside the installed ``pyspark`` does; both take artifacts by coordinates from their configured repositories.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KAFKA_VERSION = "4.3.1"
# kafka_2.13 is the broker, kafka-tools the command-line tools, log4j-slf4j-impl makes both of them log.
ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)
ROOT = Path(__file__).resolve().parent.parent
LIBS = ROOT / ".cache" / f"kafka-{KAFKA_VERSION}" / "libs"


def kafka_libs() -> Path:
    """The folder of jars; fetches them on the first call. Raises RuntimeError when neither Maven nor Ivy can run."""
    if not LIBS.is_dir():
        _fetch()
    return LIBS


def classpath(*extra: Path) -> str:
    """A ``java -cp`` value with every jar, and behind them ``extra`` folders or jars: an archive of classes is valid
    for a class path that begins with the archive's.
    """
    return os.pathsep.join([f"{kafka_libs()}/*", *(str(path) for path in extra)])


def _fetch() -> None:
    LIBS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=LIBS.parent) as scratch:
        partial = Path(scratch) / "libs"
        partial.mkdir()
        if shutil.which("mvn"):
            _with_maven(Path(scratch), partial)
        else:
            _with_ivy(Path(scratch), partial)
        if not (partial / f"kafka-clients-{KAFKA_VERSION}.jar").is_file():
            raise RuntimeError("the fetch ended without kafka-clients")
        try:
            partial.rename(LIBS)
        except OSError:
            # Another process was first. Its folder is complete, because it was also renamed into place.
            if not LIBS.is_dir():
                raise


def _with_maven(scratch: Path, target: Path) -> None:
    rows = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in ARTIFACTS
    )
    pom = scratch / "pom.xml"
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kafka-shim</groupId><artifactId>reference-kafka</artifactId><version>1</version>"
        f"<dependencies>{rows}</dependencies></project>"
    )
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *goal], check=True, stdout=sys.stderr)


def _with_ivy(scratch: Path, target: Path) -> None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("fetching Apache Kafka's jars needs Maven, or a Java runtime and the package pyspark")
    ivy = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))[-1]
    pattern = f"{target}/[artifact]-[revision](-[classifier]).[ext]"
    for group, name, version in ARTIFACTS:
        command = ["java", f"-Divy.cache.dir={scratch}/ivy", "-jar", str(ivy), "-dependency", group, name, version]
        # Some jars (snappy-java, jackson) are published as OSGi bundles.
        command += ["-retrieve", pattern, "-types", "jar", "bundle", "-confs", "default"]
        subprocess.run(command, check=True, stdout=sys.stderr, cwd=scratch)


if __name__ == "__main__":
    print(kafka_libs())
