"""The generated files are what the script writes from Kafka's jars."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim import protocol
from kafka_shim.protocol.transcribe import outputs, read_definitions, snake
from kafka_shim.targets.kafka_jars import kafka_libs

HERE = Path(protocol.__file__).parent


@pytest.mark.java
def test_generated_modules_are_up_to_date() -> None:
    files = outputs(kafka_libs())
    for path, text in files.items():
        assert (HERE / path).read_text() == text, f"{path}: run python -m kafka_shim.protocol.transcribe"
    for folder in ("messages", "records"):
        present = {f"{folder}/{path.name}" for path in (HERE / folder).glob("*.py")}
        assert present == {path for path in files if path.startswith(folder)}


@pytest.mark.java
def test_no_description_of_kafka_is_copied() -> None:
    texts = "".join(outputs(kafka_libs()).values())
    abouts = [
        field["about"]
        for _, definition in read_definitions(kafka_libs())
        for field in definition["fields"]
        if len(field.get("about", "")) > 20
    ]
    assert abouts
    assert not [about for about in abouts if about in texts]


def test_names_become_snake_case() -> None:
    names = {
        "TransactionalId": "transactional_id",
        "IsKRaftController": "is_kraft_controller",
        "ThrottleTimeMs": "throttle_time_ms",
        "ACLs": "ac_ls",
        "ResultsByTopicV3AndBelow": "results_by_topic_v3_and_below",
        "KRaftVersionRecord": "kraft_version_record",
    }
    assert {name: snake(name) for name in names} == names
