"""Kafka's own message classes behind a pipe: the oracle of the codec. One Java process serves a whole test run."""

from __future__ import annotations

import zipfile
from pathlib import Path

from kafka_shim.compat.java_driver import JavaDriver
from kafka_shim.targets.kafka_jars import classpath, kafka_libs

SOURCE = Path(__file__).resolve().parent / "java" / "CodecDriver.java"


class KafkaRefusalError(Exception):
    """The exception that Kafka threw."""


class CodecDriver(JavaDriver):
    """Kafka's codec of messages."""

    def __init__(self) -> None:
        self._classes = _message_classes(kafka_libs())
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", classpath(), str(SOURCE)]
        super().__init__(command)

    def ask(self, name: str, version: int, data: bytes | None, json: str | None) -> tuple[bytes, bytes, str, int]:
        """Returns (bytes of ``json``, Kafka's re-encoding of ``data``, JSON of ``data``, number of unread bytes of
        ``data``).

        ``name`` is the message's name in its definition. Raises KafkaRefusalError.
        """
        reply = self._ask(self._classes[name], str(version), "-" if data is None else data.hex(), json or "-")
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
