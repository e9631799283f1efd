"""Kafka's own message classes behind a pipe: the oracle of the codec. One Java process serves a whole test run."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from kafka_shim.targets.kafka_jars import classpath, kafka_libs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

SOURCE = Path(__file__).resolve().parent / "java" / "CodecDriver.java"


class KafkaRefusalError(Exception):
    """The exception that Kafka threw."""


class CodecDriver:
    """A context manager over one Java process. Not thread-safe."""

    def __init__(self) -> None:
        self._classes = _message_classes(kafka_libs())
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", classpath(), str(SOURCE)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
        )

    def __enter__(self) -> CodecDriver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=10)

    def ask(self, name: str, version: int, data: bytes | None, json: str | None) -> tuple[bytes, bytes, str, int]:
        """Returns (bytes of ``json``, Kafka's re-encoding of ``data``, JSON of ``data``, number of unread bytes of
        ``data``).

        ``name`` is the message's name in its definition. Raises KafkaRefusalError.
        """
        assert self._process.stdin and self._process.stdout
        cells = (self._classes[name], str(version), "-" if data is None else data.hex(), json or "-")
        self._process.stdin.write("\t".join(cells) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline().rstrip("\n")
        if not reply:
            raise RuntimeError(f"the driver ended with {self._process.wait(timeout=10)}; a JDK 17 is needed")
        if reply.startswith("!"):
            raise KafkaRefusalError(reply[1:])
        from_json, again, text, left = reply.split("\t")
        return (
            b"" if from_json == "-" else bytes.fromhex(from_json),
            b"" if again == "-" else bytes.fromhex(again),
            text,
            int(left),
        )


def _message_classes(libs: Path) -> dict[str, str]:
    """Maps a message's name to its Java class. In the clients jar the class name ends in Data if the message name does
    not.
    """
    found: dict[str, str] = {}
    for jar in sorted(libs.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for path in archive.namelist():
                if path.endswith("JsonConverter.class") and "$" not in path:
                    name = path.removesuffix("JsonConverter.class").replace("/", ".")
                    plain = name.rpartition(".")[2]
                    found[plain] = name
                    found.setdefault(plain.removesuffix("Data"), name)
    return found
